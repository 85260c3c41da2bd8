# SPDX-License-Identifier: Apache-2.0
"""Debian's NetPIPE on two simulated nodes: the same messages at the same times, run after run.

netpipe.py VELO [--record]

With a release of Open MPI that nothing is recorded for, runs are only compared with one another.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import recorded

RECORD = Path(__file__).with_name("netpipe.json")
RUNS = 3
SKIPPED = 77


def run(velo: str, folder: Path) -> dict[str, object]:
    result = folder / "result.json"
    argv = [velo, "sim", "-n", "2", "--json", str(result), "--", "NPopenmpi"]
    argv += ["-u", "64", "-n", "3", "-p", "0", "-o", str(folder / "np.out")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    said = json.loads(result.read_text(encoding="utf-8"))
    return {name: said[name] for name in ("hash", "messages")}


def main() -> None:
    if not shutil.which("NPopenmpi"):
        print("NPopenmpi is not there; install netpipe-openmpi (Debian's name)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        runs = [run(sys.argv[1], Path(folder)) for _ in range(RUNS)]
    print(runs)
    if any(other != runs[0] for other in runs):
        sys.exit("the runs differ")
    recorded.check(RECORD, runs[0])


main()
