# SPDX-License-Identifier: Apache-2.0
"""A call that velo makes of the system fails: the job goes on, or ends with one error.

Each scene of a group is played first as it is, and tells which calls its two processes make. Then
it is played once for each of these calls and each process, with that call failing, and once more
with all behind it failing too, as a resource that has run out does. preload.c and preload_fabric.c
have the list of calls that can fail so; closing and unmapping are not among them. Of calls that are
made in a loop some are left out: see positions().

It is wrong if a process is ended by a signal or hangs, if what arrives is not what was sent, if a
descriptor or a file stays, or if more is written than the one error.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
# A process whose peer has failed waits so long for it.
PATIENCE_MS = 400
# As a whole. A machine that is busy takes its time.
LIMIT_S = 60.0
# No call of the system that fails means that a table is full or an id in use.
NOT_OF_THE_SYSTEM = ("VELO_ERR_FULL", "VELO_ERR_IN_USE")
# What a file cannot be found or removed by.
MAY_STAY = ("stat", "unlink", "opendir", "fdopendir")
# The file of those who live (lib/shm/lives.h) is removed by who can lock all of it. Without a lock
# somebody may join in that moment. Then a name without bytes stays; the next program of the user
# takes it over or away, as `velo clean` does.
LIVES, LIVES_MAY_STAY = "+lives.", ("fcntl",)
# A crash that a launcher tells of.
CRASHES = ("signal 11", "signal 6", "signal 8", "signal 7", "SIGSEGV", "SIGABRT", "SIGBUS")
# What Open MPI writes when a process crashes: a rank, or mpirun.
CRASH_WORDS = re.compile(
    r"^.*\*\*\* Process received signal \*\*\*\n(?:.*\n)*?.*\*\*\* End of error message \*\*\*\n?",
    re.M,
)
# Where a rank has left MPI_Init() with an error, mpirun 4.1.4 at times crashes itself, in this.
LAUNCHER_CRASH = "PMIx_server_finalize"
LAUNCHER_STATUSES = (128 + signal.SIGSEGV, 128 + signal.SIGABRT, 128 + signal.SIGBUS)
# These fail once, but not for good: a signal came, a packet found no memory.
AT_TIMES = ("epoll_wait", "recv")
# One that fails for good is not made so many times more than where nothing fails.
FLOOD = 3000
# A process that waits asks for the memory or the descriptor that it lacks at each poll.
AT_EACH_POLL = ("malloc", "calloc", "realloc", "accept4")
# So many of the calls of a name fail one after the other; of those behind, one in some.
EACH = 16


@dataclass(frozen=True)
class Group:
    """Scenes of one program, played in one way."""

    scenes: tuple[str, ...]
    sample: int
    """So many faults by day."""
    env: Mapping[str, str] = field(default_factory=dict)
    roles: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
    """What each process has besides."""
    launcher: str = ""
    """What starts both processes of a scene: "mpirun", as `mpirun -n 1 A : -n 1 B`, or a "cluster",
    which runs one command. Else each is started alone."""
    is_virtual: bool = False
    """The cluster's clock is that of the processes: it has a library of its own in them."""
    good: tuple[int, ...] = (0, 3)
    """All went well; a call failed and said so: see play.h."""
    lines_max: int = 6
    """Both may tell of a failure: the call, what the library says, and a second line of it."""


# Libraries of other providers would write a file where a signal ends a process.
LIBFABRIC = {"HFI_NO_BACKTRACE": "1", "IPATH_NO_BACKTRACE": "1"}
# Of a launcher, which has statuses of its own, 255 among them. From 129 on a rank has crashed; 4 is
# that of play.h and mpi.c.
NOT_WRONG = tuple(status for status in (*range(128), 255) if status != 4)
# The status of a cluster's one command is the worse of the two.
SIDE_BY_SIDE = """
{} & first=$!
{} & second=$!
wait $first; first=$?
wait $second; second=$?
[ $first -gt $second ] && exit $first
exit $second
"""
NETWORKED = ("messages", "events", "remote", "matched")
GROUPS = {
    "memory": Group(("messages", "events", "remote", "matched", "broadcast", "reopened"), 150),
    "loop": Group(NETWORKED, 40, {"VELO_NETWORK": "loop,own=loop"}),
    # On a simulated cluster of two nodes, where scenes with long messages take seconds. A device
    # has no descriptor to wait for.
    "nic": Group(
        ("messages", "reopened"),
        6,
        roles=({"VELO_NODE": "0"}, {"VELO_NODE": "1"}),
        launcher="cluster",
        is_virtual=True,
        lines_max=8,
    ),
    "card": Group(
        ("messages", "events", "reopened"),
        6,
        {"VELO_NETWORK": "card,own=card,spread=2", "VELO_CARD_TIMEOUT_MS": "2000"},
        launcher="cluster",
        lines_max=8,
    ),
    "extoll": Group(
        ("both",),
        20,
        {"VELO_EXTOLL_WAIT_MS": "400"},
        roles=({"VELO_NODE": "0"}, {"VELO_NODE": "1"}),
    ),
    "dimmnet": Group(("transfers",), 20),
    "python": Group(("messages", "remote", "broadcast", "objects"), 20),
    "mtl": Group(
        ("windows",),
        12,
        launcher="mpirun",
        good=NOT_WRONG,
        lines_max=60,
    ),
    "btl": Group(("windows",), 12, launcher="mpirun", good=NOT_WRONG, lines_max=60),
    # Shared memory from the first collective on, and groups of two ranks.
    "coll": Group(
        ("collectives",),
        12,
        {"OMPI_MCA_coll_velo_after": "0", "OMPI_MCA_coll_velo_group": "2"},
        launcher="mpirun",
        good=NOT_WRONG,
        lines_max=60,
    ),
    # FI_PROVIDER_PATH leads to the provider.
    "provider": Group(("both",), 15, LIBFABRIC | {"FI_PROVIDER": "velo"}),
    "ofi": Group(
        NETWORKED,
        15,
        LIBFABRIC
        | {
            "VELO_NETWORK": "ofi,own=ofi",
            "VELO_OFI_SECRET": "for-tests-on-this-machine-only",
            "VELO_OFI_INTERFACE": "lo",
            "VELO_OFI_PROVIDER": "tcp",
            "VELO_OFI_TIMEOUT_MS": "500",
            "FI_OFI_RXM_MSG_RX_SIZE": "32",
            "FI_OFI_RXM_CM_PROGRESS_INTERVAL": "100",
        },
    ),
}


@dataclass(frozen=True)
class Fault:
    """One call of one process fails: the `at`-th, and if it `goes_on` all behind it."""

    scene: str
    role: int
    call: str
    count: int
    """So many there are where nothing fails."""
    at: int
    goes_on: bool

    def __str__(self) -> str:
        behind = " and all behind it" if self.goes_on else ""
        return f"{self.scene}, process {self.role}: {self.call} number {self.at}{behind}"


def positions(count: int) -> list[int]:
    """Which of the calls of a name fail: the first ones, and some of those up to the last."""
    chosen = list(range(1, min(count, EACH) + 1))
    while chosen and chosen[-1] < count:
        chosen.append(min(count, chosen[-1] * 3 // 2))
    return chosen


def end_process(process: subprocess.Popen[str]) -> None:
    """A launcher ends what it has started, too."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def of_rank(crash: str) -> str:
    """The words of a crash; none if it is mpirun's own."""
    return "" if LAUNCHER_CRASH in crash else crash


def is_of_launcher(said: str) -> bool:
    """Has mpirun itself crashed?"""
    return any(not of_rank(crash) for crash in CRASH_WORDS.findall(said))


class Stage:
    """Where scenes of a group are played: the program, and the settings of all."""

    def __init__(self, group: Group, program: Path, preload: Path, runner: list[str]) -> None:
        self._group = group
        self._program = program
        self._preload = preload
        self._runner = runner

    def _commands(self, name: str, envs: list[dict[str, str]]) -> list[list[str]]:
        """What is started, side by side."""
        settings = [["env", *(f"{key}={value}" for key, value in env.items())] for env in envs]
        program = [str(self._program), name]
        if self._group.launcher == "mpirun":
            first, second = ([*own, *program] for own in settings)
            return [[*self._runner, "-n", "1", *first, ":", "-n", "1", *second]]
        if self._group.launcher == "cluster":
            library = shlex.quote(str(self._preload))
            before = f'LD_PRELOAD={library}:"$LD_PRELOAD" ' if self._group.is_virtual else ""
            first, second = (
                before + shlex.join([*own, *program, str(role)])
                for role, own in enumerate(settings)
            )
            return [[*self._runner, "sh", "-c", SIDE_BY_SIDE.format(first, second)]]
        return [[*own, *self._runner, *program, str(role)] for role, own in enumerate(settings)]

    def play(self, name: str, settings: list[dict[str, str]], good: tuple[int, ...] = ()) -> str:
        """Play a scene, with settings for each process; what was wrong, or nothing."""
        group = self._group
        with tempfile.TemporaryDirectory(prefix="velo-faults-", dir=MEMORY) as folder:
            # What runs the program is left alone.
            envs = [
                {"VELO_SHM_DIR": folder}
                | ({} if group.is_virtual else {"LD_PRELOAD": str(self._preload)})
                | dict(group.env)
                | dict(group.roles[role])
                | settings[role]
                for role in range(2)
            ]
            processes = [
                subprocess.Popen(
                    command,
                    env=os.environ | {"VELO_SHM_DIR": folder},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for command in self._commands(name, envs)
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
                    end_process(process)
            statuses = [process.returncode for process in processes]
            said = "".join(words)
            left = sorted(entry.name for entry in Path(folder).iterdir())
        if group.launcher == "mpirun" and is_of_launcher(said):
            # Only that is not velo's: what the ranks did is judged as ever.
            said = words[0] = CRASH_WORDS.sub(lambda crash: of_rank(crash[0]), said)
            statuses = [0 if status in LAUNCHER_STATUSES else status for status in statuses]
        if any(status not in (good or group.good) for status in statuses):
            return f"exit statuses {statuses}: {said}"
        if "flood: " in said:
            return said
        if any(crash in said for crash in CRASHES):
            return f"a process crashed: {said}"
        faulty = [
            own_words
            for own, own_words in zip(settings, words, strict=False)
            if "FAULT_CALL" in own
        ]
        if any(status in own_words for status in NOT_OF_THE_SYSTEM for own_words in faulty):
            return f"the error is another: {said}"
        if len(said.splitlines()) > group.lines_max:
            return f"{len(said.splitlines())} lines were written: {said}"
        # A port that cannot be opened anew leaves what there was before it.
        is_old = name == "reopened" and any(statuses)
        calls = [own.get("FAULT_CALL") for own in settings]
        if any(call in LIVES_MAY_STAY for call in calls):
            left = [file for file in left if LIVES not in file]
        may_stay = is_old or any(call in MAY_STAY for call in calls)
        return f"left behind: {', '.join(left)}" if left and not may_stay else ""

    def count(self, name: str) -> list[tuple[int, str, int]]:
        """The calls of a scene in which nothing fails: process, name, how many."""
        with tempfile.TemporaryDirectory(prefix="velo-counts-") as folder:
            files = [Path(folder, str(role)) for role in range(2)]
            # Else a scene whose first call fails would have nothing to try.
            wrong = self.play(name, [{"FAULT_COUNTS": str(file)} for file in files], good=(0,))
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
        settings = [{"SCENE_PATIENCE_MS": str(PATIENCE_MS)} for _ in range(2)]
        settings[fault.role] |= {"FAULT_CALL": fault.call, "FAULT_AT": str(fault.at)}
        if fault.goes_on:
            settings[fault.role] |= {"FAULT_ON": "1"}
            if fault.call not in AT_EACH_POLL:
                settings[fault.role] |= {"FAULT_MOST": str(FLOOD + 10 * fault.count)}
        return self.play(fault.scene, settings)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("program", type=Path, help="the program that has the group's scenes")
    parser.add_argument("preload", type=Path, help="the library of preload.c")
    parser.add_argument("--sample", action="store_true", help="only some faults, drawn by the seed")
    parser.add_argument("--seed", default=time.strftime("%Y-%m-%d"), help="by default the day")
    parser.add_argument("--only", metavar="WORDS", help="only faults whose description has them")
    parser.add_argument("-j", "--jobs", type=int, default=8, help="so many at once")
    parser.add_argument("runner", nargs="*", help="what runs the program, behind --")
    options = parser.parse_args()
    group = GROUPS[options.group]
    stage = Stage(group, options.program, options.preload, options.runner)
    faults = [
        Fault(scene, role, call, count, at, goes_on)
        for scene in group.scenes
        for role, call, count in stage.count(scene)
        for at in positions(count)
        for goes_on in (False, True)
        if not (goes_on and call in AT_TIMES)
    ]
    if options.only:
        faults = [fault for fault in faults if options.only in str(fault)]
    if options.sample and group.sample < len(faults):
        faults = random.Random(options.seed).sample(faults, group.sample)
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
