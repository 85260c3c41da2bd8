# SPDX-License-Identifier: Apache-2.0
"""A job whose ranks share nodes: the same messages at the same times, run after run.

repeats.py VELO LAYER RANKS PROGRAM [ARGUMENT ...]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 3
RANKS_A_NODE = 2

velo, layer, ranks, *program = sys.argv[1:]
nodes = -(-int(ranks) // RANKS_A_NODE)

runs = []
with tempfile.TemporaryDirectory() as folder:
    result = Path(folder) / "result.json"
    argv = [velo, "sim", "--topology", f"full:{nodes}", "--ranks-a-node", str(RANKS_A_NODE)]
    argv += ["-n", ranks, f"--{layer}", "--json", str(result), "--", *program]
    for _ in range(RUNS):
        subprocess.run(argv, check=True, timeout=120)
        said = json.loads(result.read_text(encoding="utf-8"))
        runs.append({name: said[name] for name in ("hash", "messages", "virtual_time_ps")})
print(runs)
if any(other != runs[0] for other in runs):
    sys.exit("the runs differ")
