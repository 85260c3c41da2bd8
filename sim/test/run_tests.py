#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run velo-sim with the test clients, and look at what it says and leaves behind.

run_tests.py VELO_SIM CLIENTS ROUTING [CASE...]
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SECONDS = 120
STORE_PS, DMA_PS, CYCLE_PS = 110_000, 110_000, 10_000
HOST_TO_HOST_CYCLES = 31  # rtl/node/README.md


class Runner:
    """velo-sim, its clients, and a folder for what they leave."""

    def __init__(self, velo_sim: str, clients: str, routing: str, folder: Path) -> None:
        self.velo_sim = velo_sim
        self.clients = clients
        self.routing = routing
        self.folder = folder

    def topology(self, kind: str, size: str) -> Path:
        path = self.folder / f"{kind}{size}.topology"
        text = subprocess.run(
            [sys.executable, self.routing, kind, size], check=True, capture_output=True
        )
        path.write_bytes(text.stdout)
        return path

    def command(self, options: list[str], command: list[str]) -> list[str]:
        defaults = {
            "--topology-file": str(self.topology("mesh", "2")),
            "--shm-dir": str(self.folder),
        }
        for name, value in defaults.items():
            if name not in options:
                options = [*options, name, value]
        return [self.velo_sim, *options, "--", *command]

    def run(self, options: list[str], *case: str, status: int = 0) -> tuple[str, dict[str, Any]]:
        result = self.folder / "result.json"
        done = subprocess.run(
            self.command(["--result", str(result), *options], [self.clients, *case]),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == status, f"{done.returncode}, not {status}: {done.stderr}"
        self.check_nothing_left()
        figures = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
        return done.stdout + done.stderr, figures

    def check_nothing_left(self) -> None:
        files = list(self.folder.glob("velo-sim.*"))
        assert not files, f"left behind: {files}"


def test_latency_is_that_of_the_hardware_and_the_host_model(runner: Runner) -> None:
    text, _ = runner.run([], "latency")
    expected = STORE_PS + HOST_TO_HOST_CYCLES * CYCLE_PS + DMA_PS
    assert f"latency_ps {expected}\n" in text, text


def test_latency_follows_clock_cable_and_constants(runner: Runner) -> None:
    options = ["--clock-mhz", "200", "--cable-cycles", "10", "--store-ns", "200", "--dma-ns", "50"]
    text, _ = runner.run(options, "latency")
    expected = 200_000 + (HOST_TO_HOST_CYCLES + 10) * CYCLE_PS // 2 + 50_000
    assert f"latency_ps {expected}\n" in text, text


def test_calls_answer_what_the_contract_says(runner: Runner) -> None:
    runner.run([], "calls")


def test_the_hash_is_the_same_again(runner: Runner) -> None:
    hashes = {runner.run([], "all_to_all", "4", "40")[1]["hash"] for _ in range(5)}
    assert len(hashes) == 1, hashes


def test_skipping_changes_nothing(runner: Runner) -> None:
    for options in ([], ["--cable-cycles", "9"], ["--error-rate", "3e-5", "--seed", "7"]):
        for case in (["ping_pong", "200"], ["all_to_all", "4", "20"]):
            _, with_skip = runner.run(options, *case)
            _, without = runner.run([*options, "--no-skip"], *case)
            assert with_skip["hash"] == without["hash"]
            assert with_skip["virtual_time_ps"] == without["virtual_time_ps"]
            skipped = without["evaluated_node_cycles"] - with_skip["evaluated_node_cycles"]
            assert skipped > 0 or case[0] == "all_to_all", "nothing was skipped"


def test_errors_on_cables_lose_nothing(runner: Runner) -> None:
    _, figures = runner.run(["--error-rate", "1e-3"], "all_to_all", "4", "20")
    assert figures["messages"] == 4 * 3 * 20
    assert figures["bad_words"] > 0


def test_a_larger_network(runner: Runner) -> None:
    topology = str(runner.topology("torus", "2x2"))
    hashes = set()
    for _ in range(2):
        _, figures = runner.run(["--topology-file", topology], "all_to_all", "8", "5")
        assert figures["messages"] == 8 * 7 * 5
        hashes.add(figures["hash"])
    assert len(hashes) == 1, hashes


def test_who_sleeps_in_real_time_is_set_aside(runner: Runner) -> None:
    runner.run([], "aside")


def test_a_repeatable_run_ends_if_someone_sleeps(runner: Runner) -> None:
    text, _ = runner.run([], "aside", "1", status=3)
    assert "sleeps in read" in text, text


def test_who_dies_holds_up_nobody(runner: Runner) -> None:
    runner.run([], "death")


def test_fences_without_a_call_between_them(runner: Runner) -> None:
    runner.run([], "fences")


def test_a_signal_ends_everything(runner: Runner) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        command = runner.command([], [runner.clients, "forever"])
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as sim:
            assert sim.stdout is not None
            sim.stdout.readline()
            sim.send_signal(number)
            started = time.monotonic()
            sim.communicate(timeout=SECONDS)
            assert sim.returncode == 128 + number, sim.returncode
            assert time.monotonic() - started < 30
        runner.check_nothing_left()
        mine = Path(runner.clients).stat()
        for entry in Path("/proc").glob("[0-9]*/exe"):
            try:
                other = entry.stat()
            except OSError:
                continue
            assert (other.st_dev, other.st_ino) != (mine.st_dev, mine.st_ino), f"left: {entry}"


def test_the_exit_code_is_that_of_the_command(runner: Runner) -> None:
    for script, status in (("exit 7", 7), ("kill -KILL $$", 128 + signal.SIGKILL)):
        command = runner.command([], ["sh", "-c", script])
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        assert done.returncode == status, done.stderr
        runner.check_nothing_left()


def test_what_cannot_be_is_refused(runner: Runner) -> None:
    bad = runner.folder / "bad"
    bad.write_text("cable 0 0 1 0\n", encoding="utf-8")
    for options, why in (
        (["--topology-file", str(bad)], "no way back"),
        (["--topology-file", "/nonexistent"], "cannot be read"),
        (["--shm-dir", "/proc"], "/proc"),
        (["--links", "1", "--topology-file", str(runner.topology("torus", "2x2"))], "needs 4"),
    ):
        command = runner.command(options, ["true"])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and why in done.stderr, done.stderr


def main(argv: list[str]) -> int:
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name in argv[4:] or tests:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="velo-sim-") as folder:
            tests[name](Runner(*argv[1:4], Path(folder)))
        print(f"ok {time.monotonic() - started:6.1f} s  {name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
