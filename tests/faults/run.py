# SPDX-License-Identifier: Apache-2.0
"""A call that libvelo makes of the system fails: the job goes on, or ends with one error.

Each scene of scene.c is played first as it is, and tells which calls its two processes make. Then
it is played once for each of these calls and each process, with that call failing, and once more
with all behind it failing too, as a resource that has run out does. preload.c has the list of calls
that can fail so; closing, unmapping and reading folders are not among them.

It is wrong if a process is ended by a signal or hangs, if what arrives is not what was sent, if a
descriptor or a file stays, or if more is written than the one error.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
SCENES = ("messages", "events", "remote", "matched", "broadcast", "reopened")
GOOD = (0, 3)  # All went well; a call failed and said so: see scene.c.
# A process whose peer has failed waits so long for it.
PATIENCE_MS = 400
# As a whole. A machine that is busy takes its time.
LIMIT_S = 60.0
# No call of the system that fails means that a table is full or an id in use.
NOT_OF_THE_SYSTEM = ("VELO_ERR_FULL", "VELO_ERR_IN_USE")
# What a file cannot be found or removed by.
MAY_STAY = ("stat", "unlink")
# Both processes may tell of a failure: the call, what the library says, and a second line of it.
LINES_MAX = 6


@dataclass(frozen=True)
class Fault:
    """One call of one process fails: the `at`-th, and if it `goes_on` all behind it."""

    scene: str
    role: int
    call: str
    at: int
    goes_on: bool

    def __str__(self) -> str:
        behind = " and all behind it" if self.goes_on else ""
        return f"{self.scene}, process {self.role}: {self.call} number {self.at}{behind}"


class Stage:
    """Where scenes are played: the programs, and the settings of all."""

    def __init__(self, scene: Path, preload: Path) -> None:
        self._scene = scene
        self._preload = preload

    def play(
        self,
        name: str,
        settings: tuple[dict[str, str], dict[str, str]],
        good: tuple[int, ...] = GOOD,
    ) -> str:
        """Play a scene, with settings for each process; what was wrong, or nothing."""
        with tempfile.TemporaryDirectory(prefix="velo-faults-", dir=MEMORY) as folder:
            env = os.environ | {"VELO_SHM_DIR": folder, "LD_PRELOAD": str(self._preload)}
            processes = [
                subprocess.Popen(
                    [self._scene, name, str(role)],
                    env=env | own,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for role, own in enumerate(settings)
            ]
            end = time.monotonic() + LIMIT_S
            words = []
            try:
                for process in processes:
                    words += [process.communicate(timeout=max(0.0, end - time.monotonic()))[1]]
            except subprocess.TimeoutExpired:
                return f"it has not ended after {LIMIT_S:.0f} s"
            finally:
                for process in processes:
                    process.kill()
                    process.wait()
            statuses = [process.returncode for process in processes]
            said = "".join(words)
            left = sorted(entry.name for entry in Path(folder).iterdir())
        if any(status not in good for status in statuses):
            return f"exit statuses {statuses}: {said}"
        faulty = [
            own_words for own, own_words in zip(settings, words, strict=True) if "FAULT_CALL" in own
        ]
        if any(status in own_words for status in NOT_OF_THE_SYSTEM for own_words in faulty):
            return f"the error is another: {said}"
        if len(said.splitlines()) > LINES_MAX:
            return f"{len(said.splitlines())} lines were written: {said}"
        # A port that cannot be opened anew leaves what there was before it.
        is_old = name == "reopened" and any(statuses)
        may_stay = is_old or any(own.get("FAULT_CALL") in MAY_STAY for own in settings)
        return f"left behind: {', '.join(left)}" if left and not may_stay else ""

    def count(self, name: str) -> list[tuple[int, str, int]]:
        """The calls of a scene in which nothing fails: process, name, how many."""
        with tempfile.TemporaryDirectory(prefix="velo-counts-") as folder:
            files = [Path(folder, str(role)) for role in range(2)]
            settings = [{"FAULT_COUNTS": str(file)} for file in files]
            # Else a scene whose first call fails would have nothing to try.
            wrong = self.play(name, (settings[0], settings[1]), good=(0,))
            if wrong:
                raise RuntimeError(f"{name}, where nothing fails: {wrong}")
            calls = []
            for role, file in enumerate(files):
                for line in sorted(file.read_text().splitlines()):
                    call, count = line.split()
                    calls.append((role, call, int(count)))
        return calls

    def try_fault(self, fault: Fault) -> str:
        """Play its scene with the fault; what was wrong, or nothing."""
        patience = {"SCENE_PATIENCE_MS": str(PATIENCE_MS)}
        own = patience | {"FAULT_CALL": fault.call, "FAULT_AT": str(fault.at)}
        if fault.goes_on:
            own["FAULT_ON"] = "1"
        settings = (own, patience) if fault.role == 0 else (patience, own)
        return self.play(fault.scene, settings)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scene", type=Path, help="the program of scene.c")
    parser.add_argument("preload", type=Path, help="the library of preload.c")
    parser.add_argument("--sample", type=int, metavar="N", help="only N faults, drawn by the seed")
    parser.add_argument("--seed", default=time.strftime("%Y-%m-%d"), help="by default the day")
    parser.add_argument("--only", metavar="WORDS", help="only faults whose description has them")
    parser.add_argument("-j", "--jobs", type=int, default=8, help="so many at once")
    options = parser.parse_args()
    stage = Stage(options.scene, options.preload)
    faults = [
        Fault(scene, role, call, at, goes_on)
        for scene in SCENES
        for role, call, count in stage.count(scene)
        for at in range(1, count + 1)
        for goes_on in (False, True)
    ]
    if options.only:
        faults = [fault for fault in faults if options.only in str(fault)]
    if options.sample is not None and options.sample < len(faults):
        faults = random.Random(options.seed).sample(faults, options.sample)
        print(f"seed {options.seed}")
    if not faults:
        print("no fault was tried", file=sys.stderr)
        return 2
    wrongs = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for fault, wrong in zip(faults, pool.map(stage.try_fault, faults), strict=True):
            if wrong:
                wrongs += 1
                print(f"{fault}: {wrong}", flush=True)
    print(f"{len(faults)} faults, of which {wrongs} went wrong")
    return 1 if wrongs else 0


if __name__ == "__main__":
    raise SystemExit(main())
