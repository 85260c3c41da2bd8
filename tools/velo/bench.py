# SPDX-License-Identifier: Apache-2.0
"""`velo bench`: velo and its peers in turns, each run between two looks at the physical limit."""

import argparse
import contextlib
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from velo import display, helpers, machine, perf, records, stats
from velo.errors import UsageError, VeloError
from velo.peers import BANDWIDTH, LATENCY, METRIC, PEERS, RATE, Case, Peer
from velo.perf import Collected, Job
from velo.records import FAR, NEAR, Sample

# What the rows of the target table need, and the peers' sizes; every round takes all of them.
VELO_JOBS = (
    ("velo latency", "latency", "--sizes", "1,8,16,32,56,64,128,256,512,1024,2048,4096,8192"),
    ("velo senders", "latency", "--sizes", "8", "--senders", perf.SENDERS),
    ("velo rate", "rate", "--sizes", perf.RATE_SIZES),
    ("velo bandwidth", "bandwidth"),
    ("velo ring", "ring", "--procs", "8"),
)
VELO_TIME_MS = {"latency": 250, "rate": 250, "bandwidth": 250, "ring": 3000}
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
    """What became of the peers."""

    samples: list[Sample] = field(default_factory=list)
    moved: int = 0
    """Runs left out because the cores moved meanwhile."""
    failures: dict[str, str] = field(default_factory=dict)
    """Stack and case -> why its last failed run failed."""


def command(args: argparse.Namespace) -> None:
    """`velo bench`."""
    console = display.console()
    cpus = two_cpus(args.cpus)
    present = []
    for peer in PEERS:
        reason = peer.missing()
        if reason:
            console.print(f"skipped {peer.stack}: {reason}")
        else:
            present.append(peer)
            console.print(f"peer {peer.stack}: {peer.config}", soft_wrap=True)
    velo, peers = run(present, cpus, args.rounds, console)
    run_facts = machine.new_run()
    found = velo.records(run_facts)
    found += records.summarize(peers.samples, replace(run_facts, version=velo.version))
    configs = {peer.stack: peer.config for peer in present}
    found = [replace(r, config=configs.get(r.stack, "")) for r in found]
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


def run(
    present: Sequence[Peer], cpus: Sequence[int], rounds: int, console: Console
) -> tuple[Collected, Peers]:
    """All rounds; the order of each is random, so that no stack always follows the same other."""
    velo, peers = Collected(), Peers()
    tasks: list[tuple[str, float, Callable[[], None]]] = []
    for job in velo_jobs(cpus):
        tasks.append((job.title, job.weight, partial(perf.run_job, job, velo, _ignore)))
    for peer in present:
        for case in peer.cases:
            title = f"{peer.stack} {case.mode} {case.size_bytes} B"
            tasks.append((title, 1.2, partial(measure_peer, peer, case, cpus, peers)))
    done = 0.0
    with display.Bar(console, total=rounds * sum(weight for _, weight, _ in tasks)) as bar:
        for number in range(1, rounds + 1):
            bar.step(f"round {number} of {rounds}")
            for title, weight, task in random.sample(tasks, len(tasks)):
                bar.advance_to(done, title)
                task()
                done += weight
    return velo, peers


def velo_jobs(cpus: Sequence[int]) -> list[Job]:
    """One round of velo: it brackets its own batches."""
    pin = ("--cpus", ",".join(map(str, cpus)), "--batches", str(VELO_BATCHES))
    out = []
    for title, mode, *options in VELO_JOBS:
        time_ms = VELO_TIME_MS[mode]
        out.append(Job(title, (mode, *options, *pin, "--time-ms", str(time_ms)), 3.0))
    return out


def measure_peer(peer: Peer, case: Case, cpus: Sequence[int], into: Peers) -> None:
    """One run of a peer between two looks at the limits."""
    try:
        before = limits(cpus)
        value = peer.measure(case, cpus)
        after = limits(cpus)
    except VeloError as error:
        into.failures[f"{peer.stack}, {case.mode}, {case.size_bytes} B"] = str(error)
        return
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
    console.print(perf.result_table(found))
    hops = {hop: sum(r.samples for r in found if r.hop == hop) for hop in (NEAR, FAR)}
    console.print(
        f"{hops[NEAR]:,} batches near, {hops[FAR]:,} far; left out because the cores moved:"
        f" {velo.dropped} batches of velo, {peers.moved} runs of peers."
    )
    for what, why in peers.failures.items():
        console.print(f"failed: {what}: {why}", style="red", markup=False)
    perf.show_targets(found, console)


def _ignore(_part: float, _last: str) -> None:
    pass
