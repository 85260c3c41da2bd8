# SPDX-License-Identifier: Apache-2.0
"""Programs whose runs say that they repeat themselves do so, twenty times, however busy the
machine is.

under_load.py VELO DEPENDS SHAPES [RUNS]
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 20
BUSY_A_PROCESSOR = 2

velo, depends, shapes, *rest = sys.argv[1:]
runs = int(rest[0]) if rest else RUNS
JOBS = {
    "nothing": ("-n", "2", "--", depends, "nothing"),
    "long messages": ("-n", "2", "--", depends, "long"),
    "a farm": ("--model", "fast", "--topology", "ring:4", "--", shapes, "farm", "40", "64"),
    "children": ("-n", "2", "--", "sh", "-c", f"x=$(sleep 0.001; echo 1); exec {depends} nothing"),
}

failed = []
with tempfile.TemporaryDirectory() as folder:
    result = Path(folder) / "result.json"
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(BUSY_A_PROCESSOR * len(os.sched_getaffinity(0)))
    ]
    try:
        for what, job in JOBS.items():
            seen = set()
            for _ in range(runs):
                argv = [velo, "sim", "--json", str(result), *job]
                subprocess.run(argv, check=True, timeout=200, capture_output=True)
                said = json.loads(result.read_text(encoding="utf-8"))
                seen.add((said["hash"], said["virtual_time_ps"], *said["because"]))
            print(what, seen, flush=True)
            if len(seen) != 1 or len(seen.copy().pop()) != 2:
                failed.append(what)
    finally:
        for one in busy:
            one.kill()
            one.wait()
sys.exit(f"not the same: {', '.join(failed)}" if failed else 0)
