#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""velo-replay does each operation of a script, and refuses a script that makes no sense.

check_replay.py MPIRUN VELO_REPLAY
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

MPIRUN, PROGRAM = sys.argv[1:3]
SECONDS = 60
HEAD = "velo-replay 1 1 0 5\n"
COMPUTE_US = 20_000
COLLECTIVE = (
    "bcast", "gather", "scatter", "allgather", "alltoall", "allreduce", "reduce", "reduce_scatter",
    "scan", "exscan",
)  # fmt: skip
# A script of one rank, and what is wrong with it.
REFUSED = {
    "": "the script cannot be read, or is empty",
    "velo-replay 2 1 0 5\n": ":1: this is no script of velo replay",
    "velo-replay 1 0 0 5\n": ":1: there are no ranks",
    "velo-replay 1 1 1 5\n": ":1: the rank has to be a number up to 0",
    "velo-replay 1 1 0 5 6\n": ":1: there is something behind the operation",
    f"{HEAD}comm\n": ":2: a communicator has no members",
    f"{HEAD}comm 0 0\n": ":2: a communicator has more members than there are ranks",
    f"{HEAD}comm 1\n": ":2: a member has to be a number up to 0",
    HEAD + 1025 * "comm 0\n": ":1026: there are more than 1024 communicators",
    f"{HEAD}send 0 0 0 0 8\n": ":2: there is no communicator",
    f"{HEAD}comm 0\nsend 0 1 0 0 8\n": ":3: the communicator has to be a number up to 0",
    f"{HEAD}comm 0\nsend 0 0 1 0 8\n": ":3: the peer has to be a number up to 0",
    f"{HEAD}comm 0\nsend 65536 0 0 0 8\n": ":3: the request has to be a number up to 65535",
    f"{HEAD}comm 0\nsend 0 0 0 0 -8\n": ":3: the length has to be a number",
    f"{HEAD}comm 0\nsend 0 0 0 0 1073741825\n": ":3: the length has to be a number",
    f"{HEAD}comm 0\nsend 0 0 0 0\n": ":3: the length has to be a number",
    f"{HEAD}comm 0\nbcast 0 1 8\n": ":3: the root has to be a number up to 0",
    f"{HEAD}compute 99999999999999999999\n": ":2: a time has to be a number",
    f"{HEAD}rest 5\n": ":2: rest is no operation",
    f"{HEAD}compute 5 6\n": ":2: there is something behind the operation",
}


def replay(folder: Path, ranks: int) -> subprocess.CompletedProcess[str]:
    command = [MPIRUN, "-n", str(ranks), "--oversubscribe", "--bind-to", "none"]
    command += ["--mca", "pml", "ob1", "--mca", "btl", "self,vader", PROGRAM, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)


def write(folder: Path, scripts: list[str]) -> Path:
    folder.mkdir()
    for rank, script in enumerate(scripts):
        (folder / f"rank.{rank}").write_text(script, encoding="utf-8")
    return folder


def check_all_operations(folder: Path) -> None:
    steps = ["comm 0 1 2", "comm 2 0", f"compute {COMPUTE_US * 1000}", "barrier 0 0 0"]
    steps += [f"{name} 0 {root} {size}" for name in COLLECTIVE for root, size in ((0, 8), (2, 0))]
    steps += ["bcast 0 1 100000", "receive 3 0 {left} 7 200000", "send 9 0 {right} 7 200000"]
    steps += ["wait 9", "wait 3"]
    scripts = []
    for rank in range(3):
        text = "\n".join(steps).format(left=(rank - 1) % 3, right=(rank + 1) % 3)
        # Only two are in the second one; its last message is waited for at the end.
        more = {0: "\nsend 1 1 0 5 8", 2: "\nreceive 1 1 1 5 8"}.get(rank, "")
        scripts.append(f"velo-replay 1 3 {rank} 4321\n{text}{more}\n")
    done = replay(write(folder / "all", scripts), 3)
    assert done.returncode == 0, done.stderr
    said = re.fullmatch(
        r"3 ranks, 4 messages, 66 parts in collective operations: (\S+) us; "
        r"the trace took 4.321 us\n",
        done.stdout,
    )
    assert said and float(said[1]) >= COMPUTE_US, done.stdout
    done = replay(folder / "all", 2)
    assert done.returncode != 0 and "the trace has 3 ranks; give -n 3" in done.stderr, done.stderr


def check_refusals(folder: Path) -> None:
    for number, (script, said) in enumerate(REFUSED.items()):
        path = write(folder / str(number), [script])
        # One rank needs no launcher.
        done = subprocess.run(
            [PROGRAM, str(path)], capture_output=True, text=True, check=False, timeout=SECONDS
        )
        assert done.returncode == 1 and said in done.stderr, (script, said, done.stderr)
        assert f"velo-replay: {path}/rank.0:" in done.stderr, done.stderr
    done = subprocess.run(
        [PROGRAM, str(folder / "absent")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "cannot read" in done.stderr, done.stderr
    for words, code in (([], 1), (["--help"], 0)):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
        assert done.returncode == code and "Usage: velo-replay FOLDER" in done.stdout


with tempfile.TemporaryDirectory() as name:
    check_all_operations(Path(name))
    check_refusals(Path(name))
