# SPDX-License-Identifier: Apache-2.0
"""Programs over simulated boards of DIMMnet-2.

boards.py VELO TEST PROGRAM
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIGURE5 = ROOT / "build" / "rtl" / "dimmnet-figure5-back.json"
SKIPPED = 77
# A poll sees a status up to 0.2 us late, and which poll does depends on where the rounds begin.
POLL_NS = 250


def command(velo: str, boards: int, program: list[str], *options: str) -> list[str]:
    return [velo, "sim", "--dimmnet", str(boards), *options, "--", *program]


def run(velo: str, boards: int, program: list[str]) -> tuple[str, dict[str, Any]]:
    """What the program says, and what the simulation came to."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        argv = command(velo, boards, program, "--json", str(result))
        said = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
        return said.stdout, json.loads(result.read_text(encoding="utf-8"))


def repeats(velo: str, program: str) -> None:
    """The same packets in the same cycles, run after run."""
    figures = ("board_hash", "board_packets", "virtual_time_ps")
    first, second = (run(velo, 2, [program])[1] for _ in range(2))
    for name in figures:
        assert first[name] == second[name], name
    assert first["board_packets"] > 0
    assert first["board_packets_lost"] == 0


def through_a_switch(velo: str, program: str) -> None:
    """Three boards: 39 cycles more for each packet, so at least for each of a ping-pong's."""
    cable, switch = (run(velo, boards, [program])[1] for boards in (2, 3))
    assert switch["board_packets"] == cable["board_packets"]
    more_ps = switch["virtual_time_ps"] - cable["virtual_time_ps"]
    assert 2000 * 2 * 390_000 * 0.9 < more_ps < 2000 * 2 * 390_000 * 1.6, more_ps


def figure5(velo: str, program: str) -> None:
    """The PC in C++ takes what the one in Python takes."""
    if not FIGURE5.exists():
        print(f"{FIGURE5} is not there; scripts/rtl bench makes it")
        sys.exit(SKIPPED)
    wanted = json.loads(FIGURE5.read_text(encoding="utf-8"))["back to back"]
    for line in run(velo, 2, [program])[0].splitlines():
        case, size, ns = line.split()
        model = dict(wanted[case])[int(size)]
        print(f"{case}, {size} bytes: {ns} ns, {model} with cocotb")
        assert abs(float(ns) - model) < POLL_NS


def refusals(velo: str, program: str) -> None:
    """A user learns what is wrong."""
    said = subprocess.run(
        [program], env={**os.environ, "VELO_DIMMNET": "sim"}, stderr=subprocess.PIPE, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert said.returncode == 1
    assert "velo sim" in said.stderr, said.stderr
    said = subprocess.run(
        [program], env={**os.environ, "VELO_DIMMNET": "none"}, stderr=subprocess.PIPE, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert said.returncode == 1
    assert "libvelo-dimmnet-none.so" in said.stderr, said.stderr


def interrupted(velo: str, program: str) -> None:
    """Ctrl-C ends all, and leaves nothing."""
    shared = Path("/dev/shm")
    with subprocess.Popen(
        command(velo, 2, [program]), start_new_session=True, stderr=subprocess.PIPE, text=True
    ) as process:
        area = shared / f"velo-sim.{process.pid}"
        for _ in range(200):
            if area.exists():
                break
            time.sleep(0.05)
        assert area.exists()
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert not area.exists()
    left = subprocess.run(
        ["pgrep", "-g", str(process.pid)], stdout=subprocess.PIPE, text=True, check=False
    )
    assert left.stdout == "", left.stdout


TESTS = {
    "repeats": repeats, "through_a_switch": through_a_switch, "figure5": figure5,
    "refusals": refusals, "interrupted": interrupted,
}  # fmt: skip

TESTS[sys.argv[2]](sys.argv[1], sys.argv[3])
