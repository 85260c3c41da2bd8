# SPDX-License-Identifier: Apache-2.0
"""NetPIPE over two MPI stacks in turns, and the table that sets them side by side."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from velo import display, units
from velo.display import Console, Table, paint
from velo.errors import AbsentError, LateError
from velo.measure import limits
from velo.measure.cpus import Watch
from velo.measure.mpi import netpipe
from velo.measure.mpi.stacks import Stack
from velo.results import stats
from velo.results.records import Sample

# A poller that is taken off its CPU for one slice of time makes microseconds milliseconds.
OTHERS_MAX = 0.1
SIZES_SHOWN = tuple(1 << k for k in (0, 3, 5, 6, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20))


@dataclass(frozen=True)
class Row:
    """One size over both stacks."""

    size_bytes: int
    velo_ns: float
    other_ns: float

    @property
    def ratio(self) -> float:
        """How many times as fast velo is."""
        return self.other_ns / self.velo_ns


def compare(ours: Sequence[dict[int, float]], others: Sequence[dict[int, float]]) -> list[Row]:
    """The median of the rounds, for each size that both have."""

    def medians(rounds: Sequence[dict[int, float]]) -> dict[int, float]:
        by_size: dict[int, list[float]] = defaultdict(list)
        for found in rounds:
            for size, value in found.items():
                by_size[size].append(value)
        return {size: statistics.median(values) for size, values in by_size.items()}

    a, b = medians(ours), medians(others)
    return [Row(size, a[size], b[size]) for size in sorted(a.keys() & b.keys())]


def table(rows: Sequence[Row], velo: str, other: str) -> Table:
    """Size, and for both latency and bandwidth, and the ratio of the latencies."""
    out = Table(*(f">{heading}" for heading in ("size", velo, "", other, "", "velo is")))
    for row in rows:
        times = [row.velo_ns, row.other_ns]
        cells = [
            text
            for ns in times
            for text in (units.time_ns(ns), units.bandwidth(row.size_bytes * 1e9 / ns))
        ]
        style = "green" if row.ratio >= 1 else "red"
        out.add_row(units.size(row.size_bytes), *cells, paint(f"{row.ratio:.2f} × as fast", style))
    return out


@dataclass
class Kept:
    """The runs of both stacks that count, and how many do not."""

    found: dict[str, list[dict[int, float]]]
    samples: list[Sample] = field(default_factory=list)
    """The same, each with the raw line around it."""
    moved: int = 0
    """Runs during which the cores moved: the raw line was of another class afterwards."""
    shared: int = 0
    """Runs during which others took more than OTHERS_MAX of the CPUs."""
    others: float = 0.0
    """The largest share that others took in such a run."""

    @property
    def dropped(self) -> int:
        return self.moved + self.shared

    def why(self) -> str:
        """What became of the runs that do not count."""
        parts = []
        if self.moved:
            parts.append(f"the cores moved during {self.moved}")
        if self.shared:
            parts.append(f"others took up to {self.others:.0%} of the CPUs during {self.shared}")
        return " and ".join(parts)


def measure(
    ours: Stack, other: Stack, cpus: Sequence[int], rounds: int, console: Console
) -> tuple[list[Row], Kept]:
    """Both in turns; each round the other one begins. Runs on a busy machine do not count."""
    kept = Kept({ours.word: [], other.word: []})
    with display.Bar(console, total=2 * rounds) as bar:
        for number in range(rounds):
            bar.step(f"NetPIPE, round {number + 1} of {rounds}")
            order = (ours, other) if number % 2 == 0 else (other, ours)
            for done, stack in enumerate(order):
                _measure(stack, cpus, kept)
                bar.advance_to(2 * number + done + 1, stack.name)
    if not all(kept.found.values()):
        raise AbsentError(
            f"no run of one of the two counts: {kept.why()}; try again when the machine is less "
            "busy"
        )
    return compare(kept.found[ours.word], kept.found[other.word]), kept


def _measure(stack: Stack, cpus: Sequence[int], kept: Kept) -> None:
    """One run between two looks at the raw line, as every batch of velo perf is.

    One that does not end in its time hangs, unless others have the CPUs.
    """
    before = limits.look(cpus)
    watch = Watch(cpus)
    values: dict[int, float] = {}
    late = None
    try:
        values = netpipe.run(stack, cpus)
    except LateError as error:
        late = error
    others = watch.others()
    if late and others <= OTHERS_MAX:
        raise late
    after = limits.look(cpus)
    hop = stats.hop_class(before.hop_ns, after.hop_ns) if before and after else None
    if others > OTHERS_MAX:
        kept.shared += 1
        kept.others = max(kept.others, others)
    elif not (before and after and hop):
        kept.moved += 1
    else:
        kept.found[stack.word].append(values)
        samples = netpipe.samples(stack, values)
        kept.samples += limits.bracketed(samples, before, after, hop)
