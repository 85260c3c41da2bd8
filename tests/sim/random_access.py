# SPDX-License-Identifier: Apache-2.0
"""HPCC RandomAccess, of Debian's own hpcc, on a torus of eight nodes with two ranks each.

random_access.py VELO

It is the first of HPCC's parts. None can be chosen, so the job is interrupted when the next one
begins.
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hpcc

RANKS, ORDER = 16, 128
TIMEOUT_S = 600.0
WORDS = 2**14
INTERRUPTED = 130
SKIPPED = 77


def wait_for(path: Path, text: str, job: subprocess.Popen[bytes]) -> str:
    """The content of a file that is being written, as soon as a text is in it."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        found = path.read_text() if path.exists() else ""
        if text in found:
            return found
        if job.poll() is not None:
            sys.exit(f"velo sim ended with {job.returncode}")
        time.sleep(0.2)
    job.send_signal(signal.SIGINT)
    sys.exit(f"no {text!r} in {TIMEOUT_S:.0f} s")


def main() -> None:
    if not shutil.which("hpcc"):
        print("hpcc is not there; install hpcc (Debian's name)")
        sys.exit(SKIPPED)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        text = hpcc.problem(hpcc.EXAMPLE.read_text(), RANKS, ORDER)
        (Path(folder) / "hpccinf.txt").write_text(text)
        argv = [sys.argv[1], "sim", "--topology", "torus:2x2x2", "--ranks-a-node", "2"]
        argv += ["--clock-mhz", "156", "--", "hpcc"]
        with subprocess.Popen(argv, cwd=folder) as job:
            said = wait_for(Path(folder, "hpccoutf.txt"), "End of MPIRandomAccess section", job)
            took_s = time.monotonic() - begin
            job.send_signal(signal.SIGINT)
        if job.returncode != INTERRUPTED:
            sys.exit(f"interrupted, velo sim ended with {job.returncode}")
    gups = re.search(r"([\d.]+) Billion.* Updates    per second", said)
    if gups is None or f"Found 0 errors in {WORDS} locations (passed)" not in said:
        sys.exit(said)
    print(f"{float(gups[1]):.4f} GUP/s, verified, in {took_s:.0f} s")


main()
