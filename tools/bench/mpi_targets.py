# SPDX-License-Identifier: Apache-2.0
"""What MPI over velo is to reach, and whether a set of records reaches it.

Latencies and rates of different stacks are compared as ratios to the limit measured around them, so
that cores that moved between the runs do not matter; where there is no such limit, as they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench.targets import Measured, Outcome, Target
from velo import units
from velo.results.figures import BTL, LATENCY, MTL, POSTED, MpiFigures, standing
from velo.results.records import FAR, NEAR, VELO, Record, metric

KIB, MIB = 1 << 10, 1 << 20
CLIFF_FACTOR, CLIFF_STEP_NS, CLIFF_MAX_BYTES = 1.35, 30.0, 16384

# Message size -> at most so much of the best peer's half round trip.
BEST_BOUNDS = {8: 0.8, 64: 0.85, KIB: 0.75, 4 * KIB: 0.8}
# The same of Intel MPI's.
INTEL_BOUNDS = {16 * KIB: 0.9, 64 * KIB: 1.05, MIB: 1.1, 4 * MIB: 1.0}
# Message size -> at least so many times as fast as vader.
VADER_BOUNDS = {64 * KIB: 4, MIB: 3.2, 4 * MIB: 4}
# What the BTL is compared with vader at, as one row.
BTL_SIZES = tuple(1 << k for k in range(3, 13))
# The same for the MTL and the bare pipelined copy.
COPY_SIZES = tuple(INTEL_BOUNDS)
# The same for the MTL and the best peer, and for the BTL and vader, far.
FAR_SIZES = tuple(1 << k for k in range(3, 23))
FAR_BTL_SIZES = tuple(1 << k for k in range(3, 21))


MpiMeasure = Callable[[MpiFigures], Measured | None]


def is_vader(stack: str) -> bool:
    return stack.endswith(" vader")


def is_intel(stack: str) -> bool:
    return stack.startswith("impi")


def _against(record: Record, other: Record) -> Measured:
    """Ours over theirs."""
    detail = f"{record.show(record.value)} to {other.show(other.value)} ({other.stack})"
    return Measured(standing(record) / standing(other), detail)


def _best(peers: Sequence[Record]) -> Record | None:
    """The best of them, by the metric's own direction."""
    if not peers:
        return None
    pick = min if metric(peers[0].metric).lower_is_better else max
    return pick(peers, key=standing)


def _to_limit(figures: MpiFigures) -> Measured | None:
    r = figures.find(MTL, LATENCY)
    return Measured(r.ratio, f"{r.show(r.value)} to {r.show(r.limit)}") if r else None


def _to_best(mode: str, size_bytes: int = 8, **wanted: object) -> MpiMeasure:
    """The MTL against the best peer of the run."""

    def measure(figures: MpiFigures) -> Measured | None:
        ours = figures.find(MTL, mode, size_bytes, **wanted)
        found = (figures.find(peer, mode, size_bytes, **wanted) for peer in figures.peers(mode))
        best = _best([r for r in found if r])
        return _against(ours, best) if ours and best else None

    return measure


def _to_peer(
    ours: str, fits: Callable[[str], bool], mode: str, size_bytes: int = 8, **wanted: object
) -> MpiMeasure:
    """One of ours against one peer."""

    def measure(figures: MpiFigures) -> Measured | None:
        peer = figures.stack(fits, mode)
        a = figures.find(ours, mode, size_bytes, **wanted)
        b = figures.find(peer, mode, size_bytes, **wanted) if peer else None
        return _against(a, b) if a and b else None

    return measure


def _times(fits: Callable[[str], bool], size_bytes: int) -> MpiMeasure:
    """How many times as fast as a peer: the inverse of the latencies."""
    measure_slower = _to_peer(MTL, fits, LATENCY, size_bytes)

    def measure(figures: MpiFigures) -> Measured | None:
        slower = measure_slower(figures)
        return Measured(1 / slower.ratio, slower.detail) if slower else None

    return measure


def _worst(sizes: Sequence[int], of_size: Callable[[int], MpiMeasure]) -> MpiMeasure:
    """The largest ratio of several sizes; all must have been measured, or the worst may be
    missing."""

    def measure(figures: MpiFigures) -> Measured | None:
        found = {size: measured for size in sizes if (measured := of_size(size)(figures))}
        if len(found) < len(sizes):
            return None
        worst = max(found, key=lambda size: found[size].ratio)
        return replace(found[worst], detail=f"{units.size(worst)}: {found[worst].detail}")

    return measure


@dataclass(frozen=True)
class Step:
    """A size beside half of it."""

    half: Record
    whole: Record

    @property
    def ratio(self) -> float:
        """How the times compare once the 30 ns are taken off; the rule is that
        t(size) ≤ 1.35 · t(size / 2) + 30 ns."""
        return (self.whole.value - CLIFF_STEP_NS) / self.half.value


def steps(records: Sequence[Record], max_bytes: int = CLIFF_MAX_BYTES) -> list[Step]:
    """Every size of which half was measured, too."""
    by_size = {r.size_bytes: r for r in records}
    return [
        Step(by_size[size // 2], r)
        for size, r in sorted(by_size.items())
        if 2 <= size <= max_bytes and size % 2 == 0 and size // 2 in by_size
    ]


def _cliff(figures: MpiFigures) -> Measured | None:
    """The steepest step; all sizes must have been measured, or the worst may be missing."""
    found = steps(figures.sizes(MTL, LATENCY))
    if not found or len(found) < CLIFF_MAX_BYTES.bit_length() - 1:
        return None
    worst = max(found, key=lambda step: step.ratio)
    half, whole = worst.half, worst.whole
    return Measured(
        worst.ratio,
        f"{whole.show(whole.value)} at {units.size(whole.size_bytes)},"
        f" {half.show(half.value)} at {units.size(half.size_bytes)}",
    )


def _to_copy(size_bytes: int) -> MpiMeasure:
    """The MTL over the faster bare pipelined copy, as times: so long a message depends on caches
    more than on one line, and the one-line ping-pongs of two programs differ by how they are
    compiled."""

    def measure(figures: MpiFigures) -> Measured | None:
        ours = figures.find(MTL, LATENCY, size_bytes)
        ways = ("pipelined_copy", "pipelined_copy_own")
        found = [figures.find(VELO, "limit", size_bytes, limit_name=way) for way in ways]
        bare = min((r for r in found if r), key=lambda r: r.value, default=None)
        if not ours or not bare:
            return None
        detail = f"{ours.show(ours.value)} to {bare.show(bare.value)}"
        return Measured(ours.value / bare.value, detail)

    return measure


def _direct_gups(figures: MpiFigures) -> Measured | None:
    """RandomAccess over velo.h, against HPCC's over vader, both with two ranks."""
    ours = figures.find(VELO, "gups", processes=2)
    peer = figures.stack(is_vader, "hpcc")
    hpcc = figures.find(peer, "hpcc", processes=2, metric="updates_per_s") if peer else None
    return _against(ours, hpcc) if ours and hpcc else None


def _matching(figures: MpiFigures) -> Measured | None:
    """The half round trip with many receives posted over that with one."""
    one = figures.find(MTL, "mpi matching", posted=1)
    many = figures.find(MTL, "mpi matching", posted=POSTED)
    if not one or not many:
        return None
    return Measured(many.ratio / one.ratio, f"{many.show(many.value)} to {one.show(one.value)}")


def _hpcc_gups(ranks: int) -> MpiMeasure:
    return _to_peer(MTL, is_vader, "hpcc", processes=ranks, metric="updates_per_s")


TARGETS = (
    Target("MPI half round trip, 8 B, MTL / one-line ping-pong", 1.5, True, _to_limit),
    *(
        Target(f"MPI half round trip, {units.size(size)}, MTL / best MPI peer", bound, True,
               _to_best(LATENCY, size))
        for size, bound in BEST_BOUNDS.items()
    ),
    Target("MPI message rate, 8 B, one pair / best MPI peer", 1.8, False, _to_best("mpi rate")),
    Target("No cliff to 16 KiB: (time - 30 ns) / time of half", CLIFF_FACTOR, True, _cliff),
    *(
        Target(f"{units.size(size)} half round trip / Intel MPI", bound, True,
               _to_peer(MTL, is_intel, LATENCY, size))
        for size, bound in INTEL_BOUNDS.items()
    ),
    *(
        Target(f"{units.size(size)} half round trip: times as fast as vader", bound, False,
               _times(is_vader, size))
        for size, bound in VADER_BOUNDS.items()
    ),
    Target("Worst of 16 KiB to 4 MiB / the bare pipelined copy", 1.2, True,
           _worst(COPY_SIZES, _to_copy)),
    Target("Far cores: worst of 8 B to 4 MiB, MTL / best MPI peer", 1.0, True,
           _worst(FAR_SIZES, lambda size: _to_best(LATENCY, size)), FAR),
    Target("Far cores: worst of 8 B to 1 MiB, BTL / vader", 1.0, True,
           _worst(FAR_BTL_SIZES, lambda size: _to_peer(BTL, is_vader, LATENCY, size)), FAR),
    Target("Far cores: MPI message rate, 8 B, one pair / best MPI peer", 1.0, False,
           _to_best("mpi rate"), FAR),
    Target("Far cores: allreduce of 8 B, 2 ranks / best MPI peer", 1.0, True,
           _to_best("mpi allreduce", processes=2), FAR),
    Target("Far cores: barrier, 2 ranks / best MPI peer", 1.0, True,
           _to_best("mpi barrier", 0, processes=2), FAR),
    Target("Half round trip, worst of 8 B to 4 KiB, BTL / vader", 0.95, True,
           _worst(BTL_SIZES, lambda size: _to_peer(BTL, is_vader, LATENCY, size))),
    *(
        Target(f"Half round trip, {units.size(size)}, BTL / vader", 0.35, True,
               _to_peer(BTL, is_vader, LATENCY, size))
        for size in (64 * KIB, MIB)
    ),
    Target("HPCC RandomAccess, 2 ranks / vader", 1.5, False, _hpcc_gups(2)),
    Target("HPCC RandomAccess, 4 ranks / vader", 1.2, False, _hpcc_gups(4)),
    Target("RandomAccess over velo.h, 2 ranks / HPCC over vader", 2.8, False, _direct_gups),
    Target("Half round trip, 10,000 receives posted / one", 2, True, _matching),
    Target("8 ranks on 2 cores: HPCC run time / best peer", 1, True,
           _to_best("hpcc", processes=8, metric="run_time_ns")),
    Target("Allreduce of 8 B, 2 ranks / best MPI peer", 0.6, True,
           _to_best("mpi allreduce", processes=2)),
    Target("Barrier, 2 ranks / best MPI peer", 0.6, True,
           _to_best("mpi barrier", 0, processes=2)),
    Target("8 ranks on 2 cores: allreduce of 8 B / best peer", 0.9, True,
           _to_best("mpi allreduce", processes=8)),
    Target("8 ranks on 2 cores: barrier / best peer", 0.9, True,
           _to_best("mpi barrier", 0, processes=8)),
)  # fmt: skip
# Rows about more ranks than cores.
MANY_RANKS = {t.what for t in TARGETS if "4 ranks" in t.what or "8 ranks" in t.what}


def judge(records: Sequence[Record], hop: str = NEAR) -> list[Outcome]:
    """Every target with what the records of a class say about it.

    With no figures of that class on both sides those of the other class are taken, and the detail
    says so, for whole runs are few; a row that is about one class takes no other. Where ranks
    outnumber cores, which hardly notice how far those are, a figure near may then stand beside one
    far.
    """
    other = FAR if hop == NEAR else NEAR
    out = []
    for target in TARGETS:
        tries: list[tuple[str | None, str]] = [(hop, ""), (other, f", {other}")]
        if target.hop:
            tries = [(target.hop, "")]
        elif target.what in MANY_RANKS:
            tries.append((None, ", near and far"))
        found = ((target.measure(MpiFigures(records, h)), note) for h, note in tries)
        measured, note = next(((m, note) for m, note in found if m), (None, ""))
        out.append(Outcome(target, measured and replace(measured, detail=measured.detail + note)))
    return out
