# SPDX-License-Identifier: Apache-2.0
"""Two simulated clusters of one user side by side: neither sees the other's ports.

beside.py VELO API_PERF
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

VELO, PROGRAM = sys.argv[1:3]

with tempfile.TemporaryDirectory() as folder:
    results = [Path(folder) / name for name in ("one.json", "other.json")]
    argv = [VELO, "sim", "-n", "2", "--json"]
    program = ["--", PROGRAM, "latency", "--sizes", "8", "--repeats", "2000"]
    jobs = [subprocess.Popen([*argv, str(result), *program]) for result in results]
    codes = [job.wait(120) for job in jobs]
    if codes != [0, 0]:
        sys.exit(f"they ended with {codes}")
    one, other = (json.loads(result.read_text(encoding="utf-8"))["hash"] for result in results)
print(one, other)
assert one == other
