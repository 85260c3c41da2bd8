# SPDX-License-Identifier: Apache-2.0
"""libfabric on simulated nodes: the same messages at the same times, and times that are known.

fabric.py VELO PROGRAM [--record]

The recorded figures change with the hardware, the host model, the library's messages and the
provider, and with nothing else.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("fabric.json")
RUNS = 2
# A rank that waits looks every 30 ns, so it may find a message as much later.
POLL_NS = 30.0
MODES = {"round": ["-n", "2"], "memory": ["--topology", "full:4"]}


def run(velo: str, program: str, mode: str, folder: Path, number: int) -> dict[str, Any]:
    result = folder / "result.json"
    argv = [velo, "sim", *MODES[mode], "--json", str(result), "--", program, mode]
    env = os.environ | {"VELO_TEST_ROOM": "x" * (777 * number)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    said = json.loads(result.read_text(encoding="utf-8"))
    lines = [line.split() for line in done.stdout.splitlines()]
    times = {words[0]: float(words[1]) for words in lines if len(words) == 2}
    return {"hash": said["hash"], "messages": said["messages"], "ns": times}


def check_times(times: dict[str, float]) -> None:
    """The provider adds no more than the poll that its completion takes."""
    for name in ("tinject", "tsend", "send"):
        added = times[name] - times["queues"]
        if not -POLL_NS < added < POLL_NS:
            sys.exit(f"{name} takes {added:.1f} ns more than the queues below the provider")


def main() -> None:
    velo, program = sys.argv[1:3]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for mode in MODES:
            runs = [run(velo, program, mode, Path(folder), number) for number in range(RUNS)]
            print(mode, runs)
            if any(other != runs[0] for other in runs):
                sys.exit("the runs differ")
            found[mode] = runs[0]
    check_times(found["round"]["ns"])
    if "--record" in sys.argv:
        RECORD.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    elif (recorded := json.loads(RECORD.read_text(encoding="utf-8"))) != found:
        sys.exit(f"recorded: {recorded}\nfound: {found}\nIf that was meant: --record")


main()
