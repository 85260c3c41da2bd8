# SPDX-License-Identifier: Apache-2.0
"""Ranks that are scripts: processes that they start read clocks, nap, and send by pipes.

Each takes the virtual time that it says, the same in each run.

children.py VELO
"""

import os
import subprocess
import sys
import time
from pathlib import Path

RUNS = 2
RANKS = 2
LONG = 300_000  # More than a pipe holds.
NAPS_S = 0.25 + 0.1 + 0.05 + 0.02
SLACK_S = 0.01
SHELL = f"""
now=$(sleep 0.25; date +%s.%N)
len=$(head -c {LONG} /dev/zero | tr '\\0' x | wc -c)
echo "a shell: $now, $len"
"""
CHILD = f"""
import time
time.monotonic()
print("x" * {LONG})
time.sleep(0.1)
"""


def run_shell(words: list[str]) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def be_rank() -> None:
    begun_s = time.monotonic()
    said = run_shell(["sh", "-c", SHELL])
    assert said.endswith(f", {LONG}\n"), said
    assert len(run_shell([sys.executable, "-c", CHILD])) == LONG + 1
    assert os.system("sleep 0.05; exit 3") == 3 << 8
    reader, writer = os.pipe()
    if os.fork() == 0:
        time.sleep(0.02)
        os.write(writer, b"of a child")
        os._exit(0)
    assert os.read(reader, 100) == b"of a child"
    os.wait()
    passed_s = time.monotonic() - begun_s
    assert NAPS_S <= passed_s <= NAPS_S + SLACK_S, passed_s
    print(f"a rank: {passed_s:.9f} s, {said}", end="", flush=True)


def main(velo: str) -> None:
    argv = [velo, "sim", "-n", str(RANKS), "--", sys.executable, str(Path(__file__).resolve())]
    runs = [
        subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
        for _ in range(RUNS)
    ]
    said = [sorted(run.stdout.splitlines()) for run in runs]
    print(*said, sep="\n")
    if any(len(lines) != RANKS or lines != said[0] for lines in said):
        sys.exit("the runs differ, or a rank has not ended")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        be_rank()
    else:
        main(sys.argv[1])
