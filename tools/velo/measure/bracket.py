# SPDX-License-Identifier: Apache-2.0
"""One run between two looks at the physical limit, and what became of it."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from velo import helpers, tree
from velo.measure import velo_perf
from velo.measure.mpi import hpcc, mpi_perf, netpipe
from velo.measure.mpi.stacks import Stack
from velo.measure.peers import BANDWIDTH, LATENCY, METRIC, RATE, Case, Peer
from velo.measure.python import compare
from velo.results import stats
from velo.results.records import Sample

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


def measure_mpi(
    stack: Stack, program: mpi_perf.Program, cpus: Sequence[int], quick: bool, into: Peers
) -> None:
    """One run of velo-mpi-perf, which brackets its own batches."""
    result = mpi_perf.run(stack, program, cpus, quick)
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

    measure_between(lambda: netpipe_samples(stack, netpipe.run(stack, cpus)), cpus, into)


def netpipe_samples(stack: Stack, values: Mapping[int, float]) -> list[Sample]:
    """What a run of NetPIPE found, by size, as samples that no limit surrounds yet."""
    return [
        Sample("netpipe", "half_rtt_ns", size, value, 1, 1, None, stack=stack.name)
        for size, value in values.items()
    ]


def measure_python(stack: str, cpus: Sequence[int], quick: bool, into: Peers) -> None:
    """One run over a queue of Python between two looks at the cores."""
    measure_between(lambda: compare.run(stack, cpus, quick), cpus, into)


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
    into.samples += bracketed(samples, before, after, hop)


def bracketed(samples: Sequence[Sample], before: Limits, after: Limits, hop: str) -> list[Sample]:
    """Samples of a program that measures by itself, with the raw line around its run."""
    return [
        replace(
            s, hop=hop, limit_name="pingpong", limit_before=before.hop_ns, limit_after=after.hop_ns
        )
        for s in samples
    ]


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
    with contextlib.closing(helpers.stream([tree.find(velo_perf.PROGRAM), *arguments])) as lines:
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
