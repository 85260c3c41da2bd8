# SPDX-License-Identifier: Apache-2.0
"""What `velo bench` runs once a round, and which of it is chosen."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench import hpcc, mpi_perf
from bench.bracket import (
    Peers,
    measure_between,
    measure_hpcc,
    measure_mpi,
    measure_netpipe,
    measure_peer,
    measure_python,
)
from bench.extoll import PROGRAMS, Costs
from bench.one_to_many import PROGRAM, OneToMany
from bench.peers import PEERS
from bench.python import compare
from bench.python.channels import CHANNELS
from bench.scattered import MPI_STACKS, Scattered, has_mpi
from bench.scattered import PROGRAM as SCATTERED_PROGRAM
from velo import tree
from velo.display import Console
from velo.errors import UsageError
from velo.measure import velo_perf
from velo.measure.mpi.stacks import STACKS, Stack
from velo.measure.velo_perf import Collected, Job
from velo.results.figures import BESIDE_MPI
from velo.results.records import Sample

# What the rows of the target table need, and the peers' sizes; every round takes all of them.
VELO_JOBS = (
    ("velo limits", "limit"),
    ("velo latency", "latency", "--sizes", "1,8,16,32,56,64,128,256,512,1024,2048,4096,8192"),
    ("velo latency in place", "latency", "--sizes", "8,64,256,1024,4096,8192", "--in-place"),
    ("velo senders", "latency", "--sizes", "8", "--senders", velo_perf.SENDERS),
    ("velo rate", "rate", "--sizes", velo_perf.RATE_SIZES),
    ("velo bandwidth", "bandwidth"),
    ("velo ring", "ring", "--procs", "8"),
    ("velo RandomAccess, 2 ranks", "gups", "--procs", "2"),
    ("velo RandomAccess, 4 ranks", "gups", "--procs", "4"),
)
VELO_TIME_MS = {
    "limit": 700,
    "latency": 250,
    "rate": 250,
    "bandwidth": 250,
    "ring": 3000,
    "gups": 700,
}
VELO_BATCHES = 100
NEEDS_CHECKOUT = (
    "a program is compiled for each MPI from velo's sources, which an installation lacks; run "
    "'make bench' in a checkout of velo, or here velo netpipe"
)
# Groups that --only and --skip know, beside the words of peers.
PARTS = ("native", "mpi", "python")
MODES = ("limit", "latency", "senders", "rate", "bandwidth", "ring", "gups", "extoll", "bcast",
         "dimmnet", "written", "matching", "allreduce", "barrier", "hpcc", "netpipe",
         "queue")  # fmt: skip
PEER_WORDS = ("velo", "ucx", *(stack.word for stack in STACKS))


@dataclass(frozen=True)
class Task:
    """One thing to run once a round."""

    title: str
    words: frozenset[str]
    """The groups and the peer that it belongs to, as --only and --skip name them."""
    weight_s: float
    """About how long it takes, for the progress bar."""
    run: Callable[[], None]


@dataclass(frozen=True)
class Choice:
    """What --only and --skip leave."""

    only: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()

    @staticmethod
    def parse(only: str | None, skip: str | None) -> "Choice":
        return Choice(_words(only, "--only"), _words(skip, "--skip"))

    def takes(self, words: frozenset[str]) -> bool:
        """Of each kind of word that --only names, one must fit; of those of --skip, none may."""
        if words & self.skip:
            return False
        kinds = (self.only & frozenset(kind) for kind in (PARTS, MODES, PEER_WORDS))
        return all(words & wanted for wanted in kinds if wanted)


def _words(text: str | None, option: str) -> frozenset[str]:
    words = frozenset(part.strip() for part in (text or "").split(",") if part.strip())
    unknown = words - {*PARTS, *MODES, *PEER_WORDS}
    if unknown:
        raise UsageError(
            f"{option} does not know {', '.join(sorted(unknown))}; parts: {', '.join(PARTS)};"
            f" what is measured: {', '.join(MODES)}; peers: {', '.join(PEER_WORDS)}"
        )
    return words


def native_tasks(
    choice: Choice,
    cpus: Sequence[int],
    quick: bool,
    velo: Collected,
    peers: Peers,
    configs: dict[str, str],
    absent: dict[str, str],
) -> list[Task]:
    """velo-perf, and the peers of messages."""
    out = []
    for job in velo_jobs(cpus, quick):
        mode = job.mode if job.mode in MODES else job.arguments[0]
        words = frozenset({"native", "velo", mode, *(["mpi"] if mode in BESIDE_MPI else [])})
        if choice.takes(words):
            act = partial(velo_perf.run_job, job, velo, _ignore)
            out.append(Task(job.title, words, job.weight, act))
    for peer in PEERS:
        cases = [c for c in peer.cases if choice.takes(frozenset({"native", "ucx", c.mode}))]
        reason = peer.missing() if cases else None
        if reason:
            absent[peer.stack] = reason
            continue
        for case in cases:
            configs[peer.stack] = peer.config
            title = f"{peer.stack}, {case.mode}, {case.size_bytes} B"
            words = frozenset({"native", "ucx", case.mode})
            out.append(Task(title, words, 1.2, partial(measure_peer, peer, case, cpus, peers)))
    return out


def beside(
    act: Callable[[], list[Sample]], cpus: Sequence[int], peers: Peers
) -> Callable[[], None]:
    """What two things take, measured in turns by one program: none of it is lost if cores move."""
    return partial(measure_between, act, cpus, peers, keep_moved=True)


def extoll_tasks(
    choice: Choice, cpus: Sequence[int], quick: bool, costs: Costs, peers: Peers
) -> list[Task]:
    """EXTOLL's interface beside velo's own."""
    words = frozenset({"native", "velo", "extoll"})
    if not choice.takes(words):
        return []
    return [
        Task(program, words, 4.0, beside(partial(costs.measure, program, cpus, quick), cpus, peers))
        for program in PROGRAMS
    ]


def bcast_tasks(
    choice: Choice, cpus: Sequence[int], quick: bool, ways: OneToMany, peers: Peers
) -> list[Task]:
    """One ring beside a connection to each reader."""
    words = frozenset({"native", "velo", "bcast"})
    if not choice.takes(words):
        return []
    act = partial(ways.measure, cpus, quick)
    return [Task(PROGRAM, words, 13.0, beside(act, cpus, peers))]


def dimmnet_tasks(
    choice: Choice, cpus: Sequence[int], quick: bool, scattered: Scattered, peers: Peers
) -> list[Task]:
    """Words that lie apart: natively, and over Debian's Open MPI."""
    out = []
    words = frozenset({"native", "velo", "dimmnet"})
    if choice.takes(words):
        act = partial(scattered.measure, cpus, quick)
        out.append(Task(SCATTERED_PROGRAM, words, 3.0, beside(act, cpus, peers)))
    for stack in MPI_STACKS:
        words = frozenset({"mpi", stack.word, "dimmnet"})
        if choice.takes(words) and has_mpi():
            act = partial(scattered.measure_mpi, stack, cpus, quick)
            title = f"words that lie apart, {stack.word}"
            out.append(Task(title, words, 3.0, beside(act, cpus, peers)))
    return out


def python_tasks(
    choice: Choice, cpus: Sequence[int], quick: bool, peers: Peers, absent: dict[str, str]
) -> list[Task]:
    """velo.Queue beside the other queues of Python."""
    words = frozenset({"python", "velo", "queue"})
    if not choice.takes(words):
        return []
    reasons = {stack: compare.missing(stack) for stack in CHANNELS}
    absent |= {stack: reason for stack, reason in reasons.items() if reason}
    return [
        Task(f"Python, {stack}", words, 3.0, partial(measure_python, stack, cpus, quick, peers))
        for stack in CHANNELS
        if not reasons[stack]
    ]


def mpi_tasks(
    choice: Choice,
    cpus: Sequence[int],
    quick: bool,
    peers: Peers,
    configs: dict[str, str],
    absent: dict[str, str],
    console: Console,
) -> list[Task]:
    """The MPI programs over every stack that runs here."""
    out: list[Task] = []
    for stack in STACKS:
        mine = [task for task in stack_tasks(stack, cpus, quick, peers) if choice.takes(task.words)]
        if not mine:
            continue
        if tree.CHECKOUT is None:
            absent["MPI"] = NEEDS_CHECKOUT
            break
        console.print(f"trying {stack.name} ...")
        reason = stack.missing(cpus)
        if reason:
            absent[stack.name] = reason
        else:
            configs[stack.name] = stack.config
            out += mine
    for program in ("hpcc", "NPopenmpi"):
        word = "netpipe" if program == "NPopenmpi" else program
        if any(word in task.words for task in out) and not shutil.which(program):
            absent[program] = "it is not installed; run 'make bench'"
            out = [task for task in out if word not in task.words]
    return out


def stack_tasks(stack: Stack, cpus: Sequence[int], quick: bool, peers: Peers) -> list[Task]:
    """Everything that is measured of one MPI stack."""
    out = []

    def add(what: str, mode: str, weight_s: float, act: Callable[[], None]) -> None:
        words = frozenset({"mpi", mode, stack.word})
        out.append(Task(f"{stack.name}, {what}", words, weight_s, act))

    for program in mpi_perf.PROGRAMS:
        act = partial(measure_mpi, stack, program, cpus, quick, peers)
        add(program.title, program.mode, 0.6 + program.time_ms / 1e3, act)
    if stack.is_debian:
        for ranks in hpcc.GRIDS:
            act = partial(measure_hpcc, stack, ranks, cpus, peers)
            add(f"HPCC, {ranks} ranks", "hpcc", 1.5 if ranks == 2 else 4.0, act)
        add("NetPIPE", "netpipe", 2.5, partial(measure_netpipe, stack, cpus, peers))
    return out


def velo_jobs(cpus: Sequence[int], quick: bool = False) -> list[Job]:
    """One round of velo: it brackets its own batches."""
    pin = ("--cpus", ",".join(map(str, cpus)), "--batches", str(VELO_BATCHES))
    out = []
    for title, mode, *options in VELO_JOBS:
        time_ms = VELO_TIME_MS[mode] // (3 if quick else 1)
        out.append(Job(title, (mode, *options, *pin, "--time-ms", str(time_ms)), 3.0))
    return out


def _ignore(_part: float, _last: str) -> None:
    pass
