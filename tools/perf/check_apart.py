# SPDX-License-Identifier: Apache-2.0
"""Two velo-perf that were started apart measure together: check_apart.py VELO_PERF.

They share nothing but a folder. One that is left alone by the other's death says so.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WAIT_S = 60


def start(*words: str) -> "subprocess.Popen[str]":
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.argv[1], *words], text=True, **pipes)  # type: ignore[call-overload]


def measures(mode: str) -> None:
    """The side that connects has the samples, the other says nothing and ends well."""
    listens = start("--listen")
    connects = start(mode, "--connect", "--sizes", "8,1000", "--batches", "2")
    said, errors = connects.communicate(timeout=WAIT_S)
    lines = [json.loads(line) for line in said.splitlines()]
    assert connects.returncode == 0, errors
    samples = [line for line in lines if line["type"] == "sample"]
    assert len(samples) + lines[-1]["dropped"] >= 4, said
    assert all(sample["value"] > 0 and sample["limit_before"] > 0 for sample in samples), said
    assert listens.communicate(timeout=WAIT_S)[0] == ""
    assert listens.returncode == 0


def is_left_alone() -> None:
    """A listener that is killed is missed, and what it left is in nobody's way."""
    listens = start("--listen")
    connects = start("latency", "--connect", "--batches", "100000", "--time-ms", "60000")
    assert connects.stdout
    while '"sample"' not in (line := connects.stdout.readline()):
        assert line, "it ended before a sample"
    listens.kill()
    listens.wait()
    _, errors = connects.communicate(timeout=WAIT_S)
    assert connects.returncode != 0
    assert "ended" in errors or "PEER_DEAD" in errors, errors


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="velo-apart-", dir="/dev/shm") as folder:
        os.environ["VELO_SHM_DIR"] = folder
        for mode in ("latency", "rate"):
            measures(mode)
        is_left_alone()
        measures("bandwidth")
        left = [path.name for path in Path(folder).iterdir()]
        assert not left, left
    print("velo-perf measures with one that was started apart")


if __name__ == "__main__":
    main()
