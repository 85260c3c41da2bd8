# SPDX-License-Identifier: Apache-2.0
"""The MPI part of report and terminal: one table of all stacks, and the figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from velo import units
from velo.display import Table
from velo.report import plots
from velo.report.page import NONE, Grid, without_empty_columns
from velo.results.figures import BTL, LATENCY, MTL, POSTED, WHOLE_RUNS, MpiFigures
from velo.results.records import VELO, Record

SIZES = (8, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20)


@dataclass(frozen=True)
class Kind:
    """One figure of every stack."""

    heading: str
    find: Callable[[MpiFigures, str], Record | None]

    def show(self, figures: MpiFigures, stack: str) -> str:
        record = self.find(figures, stack)
        return record.show(record.value) if record else NONE


def _kind(heading: str, mode: str, size_bytes: int = 8, **wanted: object) -> Kind:
    return Kind(heading, lambda figures, stack: figures.find(stack, mode, size_bytes, **wanted))


FIGURES = (
    *(_kind(f"half round trip, {units.size(size)}", LATENCY, size) for size in SIZES),
    *(
        _kind(f"written before, {units.size(size)}", "mpi written", size)
        for size in (64 << 10, 1 << 20)
    ),
    _kind("message rate, 8 B", "mpi rate"),
    _kind(f"8 B, {POSTED:,} receives posted", "mpi matching", posted=POSTED),
    _kind("allreduce of 8 B, 2 ranks", "mpi allreduce", processes=2),
    _kind("allreduce of 8 B, 8 ranks", "mpi allreduce", processes=8),
    _kind("barrier, 2 ranks", "mpi barrier", 0, processes=2),
    _kind("barrier, 8 ranks", "mpi barrier", 0, processes=8),
    _kind("RandomAccess, 2 ranks", "mpi gups", processes=2),
)
HPCC_FIGURES = (
    *(
        _kind(f"RandomAccess, {n} ranks", "hpcc", processes=n, metric="updates_per_s")
        for n in (2, 4, 8)
    ),
    *(_kind(f"whole run, {n} ranks", "hpcc", processes=n, metric="run_time_ns") for n in (2, 4, 8)),
)


def ordered(records: Sequence[Record]) -> list[str]:
    """The stacks that MPI was measured over; ours first, always, so that colours stay the same."""
    found = {r.stack for r in records if r.mode.startswith("mpi ") or r.mode in WHOLE_RUNS}
    return [MTL, BTL, *sorted(found - {MTL, BTL})]


def grids(records: Sequence[Record], hop: str) -> list[Grid]:
    """The MPI programs, and HPCC: one row a figure, since there are more of them than stacks."""
    figures = MpiFigures(records, hop)
    stacks = ordered(records)
    out = []
    for title, kinds in (("MPI", FIGURES), ("HPCC, N = 1000", HPCC_FIGURES)):
        rows = [(kind.heading, *(kind.show(figures, stack) for stack in stacks)) for kind in kinds]
        rows = [row for row in rows if any(cell != NONE for cell in row[1:])]
        if rows:
            all_stacks = Grid(f"{title} ({hop})", ("", *stacks), tuple(rows))
            out.append(without_empty_columns(all_stacks))
    return out


def table(grid: Grid) -> Table:
    """A grid for the terminal."""
    first, *others = grid.headings
    out = Table(f"<{first}", *(f">{heading}" for heading in others), title=grid.title)
    for row in grid.rows:
        out.add_row(*row)
    return out


@dataclass(frozen=True)
class Picture:
    """A figure before it is put into a page."""

    title: str
    svg: str
    caption: str


def pictures(records: Sequence[Record], hop: str) -> list[Picture]:
    """Every MPI picture for which there are records."""
    mine = [r for r in records if r.hop == hop]
    stacks = ordered(records)
    drawn = (
        _latency(mine, stacks),
        _bandwidth(mine, stacks),
        _netpipe(mine, stacks),
        _rates(mine, stacks, hop),
        _gups(mine, stacks, hop),
        _matching(mine, stacks, hop),
        _many_ranks(records, stacks, hop),
    )
    return [picture for picture in drawn if picture]


def _latency(mine: Sequence[Record], stacks: Sequence[str]) -> Picture | None:
    lines = plots.lines(mine, LATENCY, stacks)
    if not lines:
        return None
    svg = plots.by_size(lines, log_y=True, limit_label="limit: one cache line", tall=True)
    return Picture(
        "MPI latency",
        svg,
        "Half round trip of MPI_Send and MPI_Recv between two ranks. Lower is better; the dashed "
        "line is one cache line's own half round trip around the same batches.",
    )


def as_bandwidth(record: Record) -> Record:
    """A ping-pong's bytes per second: one message a half round trip."""

    def rate(time_ns: float) -> float:
        return record.size_bytes * 1e9 / time_ns

    return replace(record, metric="bandwidth_bytes_per_s", value=rate(record.value),
                   q1=rate(record.q3), q3=rate(record.q1))  # fmt: skip


def _bandwidth(mine: Sequence[Record], stacks: Sequence[str]) -> Picture | None:
    large = [as_bandwidth(r) for r in mine if r.mode == LATENCY and r.size_bytes >= 512]
    lines = plots.lines(large, LATENCY, stacks)
    if not lines:
        return None
    return Picture(
        "MPI bandwidth",
        plots.by_size(lines, tall=True),
        "Bytes per half round trip in the same runs. Higher is better.",
    )


def _netpipe(mine: Sequence[Record], stacks: Sequence[str]) -> Picture | None:
    lines = plots.lines(mine, "netpipe", stacks)
    if not lines:
        return None
    return Picture(
        "NetPIPE",
        plots.by_size(lines, log_y=True, tall=True),
        "Half round trip as Debian's unchanged NPopenmpi sees it, with sizes between the powers of "
        "two. Lower is better.",
    )


def _bars(
    title: str, caption: str, rows: Sequence[tuple[str, Record | None, int]]
) -> Picture | None:
    """Bars of what there is; rows are label, record, colour."""
    there = [(label, r, colour) for label, r, colour in rows if r]
    if not there:
        return None
    colours = plots.SERIES
    drawn = [(label, r.value, colours[colour % len(colours)]) for label, r, colour in there]
    return Picture(title, plots.bars(drawn, there[0][1].show), caption)


def _rates(mine: Sequence[Record], stacks: Sequence[str], hop: str) -> Picture | None:
    figures = MpiFigures(mine, hop)
    return _bars(
        "MPI message rate",
        "8-byte messages per second of one pair, in windows of 64 with an answer to each, as "
        "osu_mbw_mr counts them. Higher is better.",
        [(stack, figures.find(stack, "mpi rate"), i) for i, stack in enumerate(stacks)],
    )


def _gups(mine: Sequence[Record], stacks: Sequence[str], hop: str) -> Picture | None:
    figures = MpiFigures(mine, hop)
    rows = [("velo.h, no MPI, 2 ranks", figures.find(VELO, "gups", processes=2), 0)]
    for ranks in (2, 4):
        for i, stack in enumerate(stacks):
            r = figures.find(stack, "hpcc", processes=ranks, metric="updates_per_s")
            rows.append((f"{stack}, HPCC, {ranks} ranks", r, i))
    for i, stack in enumerate(stacks):
        rows.append((f"{stack}, own, 2 ranks", figures.find(stack, "mpi gups", processes=2), i))
    return _bars(
        "RandomAccess",
        "Updates per second to a table of 2^19 words that the ranks share out. HPCC is Debian's "
        "unchanged binary; “own” is velo-mpi-perf, which runs over every MPI. Higher is better.",
        rows,
    )


def _matching(mine: Sequence[Record], stacks: Sequence[str], hop: str) -> Picture | None:
    figures = MpiFigures(mine, hop)
    rows = []
    for i, stack in enumerate(stacks):
        for posted in (1, POSTED):
            r = figures.find(stack, "mpi matching", posted=posted)
            rows.append((f"{stack}, {posted:,} posted", r, i))
    return _bars(
        "Matching",
        "Half round trip of 8 bytes with one receive posted and with 10,000, of which the one that "
        "fits was posted last. Lower is better.",
        rows,
    )


def _many_ranks(records: Sequence[Record], stacks: Sequence[str], hop: str) -> Picture | None:
    figures = MpiFigures(records, hop)
    rows = [
        (stack, figures.find(stack, "mpi allreduce", processes=8), i)
        for i, stack in enumerate(stacks)
    ]
    return _bars(
        "Eight ranks on two cores",
        "MPI_Allreduce of 8 bytes, every stack in its best known setting. Lower is better.",
        rows,
    )
