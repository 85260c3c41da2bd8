# SPDX-License-Identifier: Apache-2.0
"""A simulator that is killed takes its job along: no process is left, no segment, and no hang.

killed.py VELO API_PERF
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

VELO, PROGRAM = sys.argv[1:3]
PATIENCE_S = 60


def running(program: str) -> list[int]:
    """Processes of ours that run it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "exe").readlink() == Path(program):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_for(what: str, condition: bool, program: str) -> list[int]:
    """Until there are processes that run it, or none."""
    for _ in range(10 * PATIENCE_S):
        found = running(program)
        if bool(found) == condition:
            return found
        time.sleep(0.1)
    sys.exit(f"{what}: {running(program)}")


argv = [VELO, "sim", "-n", "2", "--", PROGRAM, "latency", "--repeats", "1000000"]
with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as velo:
    wait_for("the program does not start", True, PROGRAM)
    time.sleep(1)
    simulator = str(Path(PROGRAM).with_name("velo-sim"))
    children = running(simulator)
    assert children, "no simulator"
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    wait_for("left behind", False, PROGRAM)
    assert velo.wait(PATIENCE_S) == 128 + signal.SIGKILL
assert not Path(f"/dev/shm/velo-sim.{velo.pid}").exists(), "a segment is left"
