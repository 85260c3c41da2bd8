# SPDX-License-Identifier: Apache-2.0
"""A job whose rank is killed in the middle of a rendezvous ends soon, with an error, and leaves
nothing in shared memory."""

import os
import subprocess
import sys
import time
from pathlib import Path

ENDS_WITHIN_S = 20.0


def segments() -> set[str]:
    """Segments of `velo run`'s jobs."""
    folder = Path(os.environ.get("VELO_SHM_DIR") or "/dev/shm")
    return {path.name for path in folder.glob("velo.run-*")}


def ends(layer: str, program: str, *options: str) -> bool:
    """Does a job end in time, with nothing left?"""
    argv = [sys.executable, "-m", "velo", "run", "-n", "3", f"--{layer}", *options, program]
    start = time.monotonic()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        try:
            said, _ = job.communicate(timeout=ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            job.terminate()
            print(f"the job hangs after a rank was killed ({ENDS_WITHIN_S:.0f} s)")
            return False
    # Other tests run at the same time: only what this job leaves counts.
    left = {name for name in segments() if name.startswith(f"velo.run-{job.pid:x}-")}
    print(said.decode(errors="replace"))
    took_s = time.monotonic() - start
    print(f"exit code {job.returncode} after {took_s:.1f} s; left: {left or 'nothing'}")
    # With --enable-recovery mpirun's exit code says nothing.
    failed = job.returncode != 0 or bool(options)
    return failed and b"nobody died" not in said and not left


def main() -> int:
    layer, program = sys.argv[1:]
    # The second time mpirun lets the others live: they themselves must notice.
    return int(not (ends(layer, program) and ends(layer, program, "--enable-recovery")))


if __name__ == "__main__":
    sys.exit(main())
