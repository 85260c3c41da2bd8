# SPDX-License-Identifier: Apache-2.0
"""One run between two looks at the physical limit, and what became of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench import hpcc, mpi_perf
from bench.peers import METRIC, Case, Peer
from bench.python import compare
from velo.measure import limits
from velo.measure.mpi import netpipe
from velo.measure.mpi.stacks import Stack
from velo.results import stats
from velo.results.records import Sample


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

    measure_between(lambda: netpipe.samples(stack, netpipe.run(stack, cpus)), cpus, into)


def measure_python(stack: str, cpus: Sequence[int], quick: bool, into: Peers) -> None:
    """One run over a queue of Python between two looks at the cores."""
    measure_between(lambda: compare.run(stack, cpus, quick), cpus, into)


def measure_between(
    act: Callable[[], list[Sample]], cpus: Sequence[int], into: Peers, keep_moved: bool = False
) -> None:
    """Run a program that measures by itself; its samples get the class of the cores.

    If the cores moved they are left out, or with keep_moved get the class from before the run.
    """
    before = limits.look(cpus)
    samples = act()
    after = limits.look(cpus)
    hop = stats.hop_class(before.hop_ns, after.hop_ns) if before and after else None
    if keep_moved and before and after and not hop:
        hop = stats.hop_class(before.hop_ns, before.hop_ns)
    if hop is None or before is None or after is None:
        into.moved += 1
        return
    into.samples += limits.bracketed(samples, before, after, hop)


def measure_peer(peer: Peer, case: Case, cpus: Sequence[int], into: Peers) -> None:
    """One run of a peer between two looks at the limits."""
    before = limits.look(cpus)
    value = peer.measure(case, cpus)
    after = limits.look(cpus)
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
            limit_before=before.of(case.mode, case.size_bytes),
            limit_after=after.of(case.mode, case.size_bytes),
            hop=hop,
            limit_name=limits.LIMIT_NAMES[case.mode][0].removesuffix("8"),
            stack=peer.stack,
        )
    )
