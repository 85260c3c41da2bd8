# SPDX-License-Identifier: Apache-2.0
"""`velo bench`: velo and its peers in turns, each run between two looks at the physical limit.

There are two parts. *native*: messages through velo.h, against UCX's own ucx_perftest. *mpi*: the
same MPI programs over velo and over what people use today.
"""

import argparse
import contextlib
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from velo import display, helpers, hpcc, mpi, netpipe, perf
from velo.errors import UsageError, VeloError
from velo.mpi_stacks import STACKS, Stack
from velo.peers import BANDWIDTH, LATENCY, METRIC, PEERS, RATE, Case, Peer
from velo.perf import Collected, Job
from velo.report import mpi_report, tables
from velo.results import machine, records, stats, targets
from velo.results.mpi_targets import WHOLE_RUNS
from velo.results.records import FAR, NEAR, Sample

# What the rows of the target table need, and the peers' sizes; every round takes all of them.
VELO_JOBS = (
    ("velo latency", "latency", "--sizes", "1,8,16,32,56,64,128,256,512,1024,2048,4096,8192"),
    ("velo senders", "latency", "--sizes", "8", "--senders", perf.SENDERS),
    ("velo rate", "rate", "--sizes", perf.RATE_SIZES),
    ("velo bandwidth", "bandwidth"),
    ("velo ring", "ring", "--procs", "8"),
    ("velo RandomAccess, 2 ranks", "gups", "--procs", "2"),
    ("velo RandomAccess, 4 ranks", "gups", "--procs", "4"),
)
VELO_TIME_MS = {"latency": 250, "rate": 250, "bandwidth": 250, "ring": 3000, "gups": 700}
VELO_BATCHES = 100
# Which raw limits a mode's figure is divided by; of several the best counts, as in velo-perf.
LIMIT_NAMES = {
    LATENCY: ("pingpong",),
    RATE: ("stream8", "stream8_pause"),
    BANDWIDTH: ("peer_copy",),
}


@dataclass(frozen=True)
class Limits:
    """The raw limits at one moment."""

    hop_ns: float
    rate_msgs_per_s: float
    copy_bytes_per_s: dict[int, float]

    def of(self, case: Case) -> float:
        """The limit that belongs to a case."""
        if case.mode == LATENCY:
            return self.hop_ns
        if case.mode == RATE:
            return self.rate_msgs_per_s
        # As in velo-perf: below the smallest copy one would measure how a copy starts.
        sizes = [size for size in self.copy_bytes_per_s if size <= case.size_bytes]
        return self.copy_bytes_per_s[max(sizes, default=min(self.copy_bytes_per_s))]


@dataclass
class Peers:
    """What became of everything but velo-perf."""

    samples: list[Sample] = field(default_factory=list)
    moved: int = 0
    """Runs left out because the cores moved meanwhile."""
    dropped: int = 0
    """The same for batches of programs that bracket by themselves."""
    failures: dict[str, str] = field(default_factory=dict)
    """Stack and case -> why its last failed run failed."""


@dataclass(frozen=True)
class Task:
    """One thing to run once a round."""

    title: str
    words: frozenset[str]
    """The groups and the peer that it belongs to, as --only and --skip name them."""
    weight_s: float
    """About how long it takes, for the progress bar."""
    run: Callable[[], None]


# Groups that --only and --skip know, beside the words of peers.
PARTS = ("native", "mpi")
MODES = ("latency", "senders", "rate", "bandwidth", "ring", "gups", "matching", "allreduce",
         "hpcc", "netpipe")  # fmt: skip
PEER_WORDS = ("velo", "ucx", *(stack.word for stack in STACKS))
# A task that failed so often is left out of the rounds that remain.
FAILURES_MAX = 2
ROUNDS, ROUNDS_QUICK = 5, 1
# The most time that the rounds of each part may take.
TIME_S = {"native": 600.0, "mpi": 840.0}


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


def command(args: argparse.Namespace) -> None:
    """`velo bench`."""
    console = display.console()
    cpus = two_cpus(args.cpus)
    choice = Choice.parse(args.only, args.skip)
    velo, peers = Collected(), Peers()
    configs: dict[str, str] = {}
    absent: dict[str, str] = {}
    tasks = native_tasks(choice, cpus, args.quick, velo, peers, configs, absent)
    tasks += mpi_tasks(choice, cpus, args.quick, peers, configs, absent, console)
    for stack, config in configs.items():
        console.print(f"measured: {stack}: {config}", soft_wrap=True, markup=False)
    for stack, reason in absent.items():
        console.print(f"absent: {stack}: {reason}", soft_wrap=True, markup=False, style="yellow")
    if not tasks:
        raise UsageError("nothing is left to measure; see --only, --skip and what is absent")
    rounds = args.rounds or (ROUNDS_QUICK if args.quick else ROUNDS)
    run(tasks, rounds, peers, console)
    facts = machine.new_run(velo.version)
    missing = absent | {f"{what} (failed)": why for what, why in peers.failures.items()}
    lines = [f"{what}: {' '.join(why.split())}" for what, why in missing.items()]
    facts = replace(facts, absent="\n".join(lines))
    found = records.summarize([*velo.samples, *peers.samples], facts)
    found = [replace(r, config=configs.get(r.stack, "")) for r in found]
    if not found:
        show_failures(peers, console)
        raise VeloError("nothing could be measured; the lines above say why")
    show(found, velo, peers, console)
    if args.json:
        records.save(Path(args.json), found)
        console.print(f"{len(found)} records written to {args.json}", soft_wrap=True)


def two_cpus(wanted: Sequence[int] | None) -> list[int]:
    """The CPUs that everything is pinned to."""
    allowed = sorted(os.sched_getaffinity(0))
    cpus = list(wanted or allowed[:2])
    if len(cpus) != 2 or not set(cpus) <= set(allowed):
        raise UsageError(
            f"a pair needs two CPUs out of those allowed here, {','.join(map(str, allowed))};"
            " name them with --cpus"
        )
    return cpus


def run(tasks: Sequence[Task], rounds: int, peers: Peers, console: Console) -> None:
    """All rounds; the order of each is random, so that no stack always follows the same other.

    A round that would not end in the time that the parts may take is not begun.
    """
    time_s = sum(t for part, t in TIME_S.items() if any(part in task.words for task in tasks))
    begin_s = time.monotonic()
    total = rounds * sum(task.weight_s for task in tasks)
    failed: Counter[str] = Counter()
    done = 0.0
    with display.Bar(console, total=total) as bar:
        for number in range(1, rounds + 1):
            spent_s = time.monotonic() - begin_s
            if number > 1 and spent_s * number / (number - 1) > time_s:
                console.print(f"{number - 1} rounds took {spent_s / 60:.0f} min; no more fits")
                return
            bar.step(f"round {number} of {rounds}")
            for task in random.sample(tasks, len(tasks)):
                bar.advance_to(done, task.title)
                done += task.weight_s
                if failed[task.title] >= FAILURES_MAX:
                    continue
                try:
                    task.run()
                except VeloError as error:
                    failed[task.title] += 1
                    peers.failures[task.title] = str(error)


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
        mode = job.mode or job.arguments[0]
        # RandomAccess over velo.h stands beside that over MPI.
        words = frozenset({"native", "velo", mode, *(["mpi"] if mode == "gups" else [])})
        if choice.takes(words):
            act = partial(perf.run_job, job, velo, _ignore)
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
        console.print(f"trying {stack.name} ...", markup=False)
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

    for program in mpi.PROGRAMS:
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


def measure_mpi(
    stack: Stack, program: mpi.Program, cpus: Sequence[int], quick: bool, into: Peers
) -> None:
    """One run of velo-mpi-perf, which brackets its own batches."""
    result = mpi.run(stack, program, cpus, quick)
    into.samples += result.samples
    into.dropped += result.dropped


def measure_hpcc(stack: Stack, ranks: int, cpus: Sequence[int], into: Peers) -> None:
    """One run of HPCC between two looks at the cores."""

    def act() -> list[Sample]:
        result = hpcc.run(stack, ranks, cpus)
        values = {"updates_per_s": result.updates_per_s, "run_time_ns": result.run_time_ns}
        return [
            Sample("hpcc", metric, 8, value, 1, 1, None, processes=ranks, stack=stack.name)
            for metric, value in values.items()
        ]

    # The class says little about ranks that outnumber cores: a move must not cost such a long run.
    measure_between(act, cpus, into, keep_moved=ranks > len(cpus))


def measure_netpipe(stack: Stack, cpus: Sequence[int], into: Peers) -> None:
    """One run of NetPIPE between two looks at the cores."""

    def act() -> list[Sample]:
        return [
            Sample("netpipe", "half_rtt_ns", size, value, 1, 1, None, stack=stack.name)
            for size, value in netpipe.run(stack, cpus).items()
        ]

    measure_between(act, cpus, into)


def measure_between(
    act: Callable[[], list[Sample]], cpus: Sequence[int], into: Peers, keep_moved: bool = False
) -> None:
    """Run a program that measures by itself; its samples get the class of the cores.

    If the cores moved they are left out, or with keep_moved get the class from before the run.
    """
    before = limits(cpus)
    samples = act()
    after = limits(cpus)
    hop = stats.hop_class(before.hop_ns, after.hop_ns) if before and after else None
    if keep_moved and before and after and not hop:
        hop = stats.hop_class(before.hop_ns, before.hop_ns)
    if hop is None or before is None or after is None:
        into.moved += 1
        return
    into.samples += [
        replace(s, hop=hop, limit_name="pingpong", limit_before=before.hop_ns,
                limit_after=after.hop_ns)
        for s in samples
    ]  # fmt: skip


def measure_peer(peer: Peer, case: Case, cpus: Sequence[int], into: Peers) -> None:
    """One run of a peer between two looks at the limits."""
    before = limits(cpus)
    value = peer.measure(case, cpus)
    after = limits(cpus)
    hop = stats.hop_class(before.hop_ns, after.hop_ns) if before and after else None
    if hop is None or before is None or after is None:
        into.moved += 1
        return
    into.samples.append(
        Sample(
            mode=case.mode,
            metric=METRIC[case.mode],
            size_bytes=case.size_bytes,
            value=value,
            limit_before=before.of(case),
            limit_after=after.of(case),
            hop=hop,
            limit_name=LIMIT_NAMES[case.mode][0].removesuffix("8"),
            stack=peer.stack,
        )
    )


def limits(cpus: Sequence[int]) -> Limits | None:
    """The raw limits now; None if the cores moved while they were measured."""
    arguments = ["limit", "--batches", "1", "--cpus", ",".join(map(str, cpus))]
    found: list[Sample] = []
    with contextlib.closing(helpers.stream([helpers.find(perf.PROGRAM), *arguments])) as lines:
        found = [Sample.from_json(line) for line in lines if line.get("type") == "sample"]

    def values(mode: str) -> dict[int, float]:
        best: dict[int, float] = {}
        for s in found:
            if s.limit_name in LIMIT_NAMES[mode]:
                best[s.size_bytes] = max(s.value, best.get(s.size_bytes, 0.0))
        return best

    hops, rates, copies = (list(values(mode).values()) for mode in (LATENCY, RATE, BANDWIDTH))
    if not hops or not rates or not copies:
        return None
    return Limits(hops[0], max(rates), values(BANDWIDTH))


def show(found: Sequence[records.Record], velo: Collected, peers: Peers, console: Console) -> None:
    """Everything that the user should see at the end."""
    native = [r for r in found if not r.mode.startswith("mpi ") and r.mode not in WHOLE_RUNS]
    if native:
        console.print(tables.result_table(native))
    for grid in mpi_report.grids(found, targets.main_class(found)):
        console.print(mpi_report.table(grid))
    hops = {hop: sum(r.samples for r in found if r.hop == hop) for hop in (NEAR, FAR)}
    console.print(
        f"{hops[NEAR]:,} batches near, {hops[FAR]:,} far; left out because the cores moved:"
        f" {velo.dropped} batches of velo, {peers.dropped} of MPIs, {peers.moved} runs of peers."
    )
    show_failures(peers, console)
    tables.show_targets(found, console)


def show_failures(peers: Peers, console: Console) -> None:
    """What ran and went wrong; the others went on."""
    for what, why in peers.failures.items():
        console.print(f"failed: {what}: {why}", style="red", markup=False, soft_wrap=True)


def _ignore(_part: float, _last: str) -> None:
    pass
