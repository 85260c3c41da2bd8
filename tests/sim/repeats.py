# SPDX-License-Identifier: Apache-2.0
"""A job on two nodes: the same messages at the same times, run after run, whatever the names.

repeats.py VELO LAYER PROGRAM RANKS [ARGUMENT ...]
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 2
NODES = 2

velo, layer, program, ranks, *arguments = sys.argv[1:]
ranks_a_node = str(int(ranks) // NODES)

runs = []
with tempfile.TemporaryDirectory() as folder:
    result = Path(folder) / "result.json"
    argv = [velo, "sim", "--topology", f"full:{NODES}", "--ranks-a-node", ranks_a_node]
    argv += ["-n", ranks, f"--{layer}", "--json", str(result), "--", program]
    argv += arguments
    for number in range(RUNS):
        # Where the launcher has its files: its names are copied, and stand in the environment.
        names = Path(folder) / ("x" * (1 + 9 * number))
        names.mkdir()
        env = os.environ | {"TMPDIR": str(names), "VELO_TEST_ROOM": "x" * (777 * number)}
        subprocess.run(argv, env=env, check=True, timeout=120)
        said = json.loads(result.read_text(encoding="utf-8"))
        runs.append({name: said[name] for name in ("hash", "messages", "virtual_time_ps")})
print(runs)
if any(other != runs[0] for other in runs):
    sys.exit("the runs differ")
