# SPDX-License-Identifier: Apache-2.0
"""The first screen of a report: what a person may conclude, and velo beside others."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from velo import units
from velo.report import plots
from velo.report.names import plain
from velo.report.page import NONE, Grid, without_empty_columns
from velo.results.figures import (
    BTL,
    LATENCY,
    MTL,
    OURS,
    PROVIDER,
    Figures,
    MpiFigures,
    standing,
)
from velo.results.records import FAR, NEAR, VELO, VELO_QUEUE, WITHOUT_LIMIT, Record

SIZES_BYTES = (8, 64, 1 << 10, 4 << 10, 64 << 10, 1 << 20)
# Of these the conclusion speaks: a short message, a longer one, and one of many pages.
SIZES_COMPARED = (8, 1 << 10, 64 << 10)
# Limits that are further apart than this factor are not one limit.
LIMITS_DIFFER = 1.25


@dataclass(frozen=True)
class Program:
    """A ping-pong that was measured over velo, and perhaps over others."""

    mode: str
    name: str
    short: str
    """Its name in the picture."""
    ours: tuple[str, ...]
    """The stacks of velo; the conclusion is about the first."""


NATIVE = Program("latency", "C, without MPI", "C", (VELO,))
MPI_PERF = Program(LATENCY, "MPI, velo-mpi-perf", "MPI", (MTL, BTL))
NETPIPE = Program("netpipe", "MPI, NetPIPE", "MPI", (MTL, BTL, PROVIDER))
QUEUES = Program("python latency", "Python", "Python", (VELO_QUEUE,))
# Which of them the conclusion takes, if others were measured there: what most people run, first.
BY_WEIGHT = (MPI_PERF, NETPIPE, NATIVE, QUEUES)
IN_ORDER = (NATIVE, MPI_PERF, NETPIPE, QUEUES)


@dataclass(frozen=True)
class Beside:
    """One program's half round trips over velo and others, of one command and one class."""

    program: Program
    hop: str
    ours: tuple[str, ...]
    peers: tuple[str, ...]
    figures: MpiFigures

    def find(self, stack: str, size_bytes: int) -> Record | None:
        return self.figures.find(stack, self.program.mode, size_bytes, threads=1, senders=1)

    def ratios(self) -> dict[int, float]:
        """How many times as fast the first of ours is as the best peer, by size, where all peers
        were measured; ratios to the limit are compared where there is one."""
        out = {}
        for size in SIZES_COMPARED:
            theirs = [r for stack in self.peers if (r := self.find(stack, size))]
            mine = self.find(self.ours[0], size)
            if mine and len(theirs) == len(self.peers):
                out[size] = min(map(standing, theirs)) / standing(mine)
        return out


def beside(records: Sequence[Record], program: Program, hop: str) -> Beside | None:
    """What there is of a program: of the newest command that measured others, too; of the page's
    class, unless only the other one has both."""
    runs = list({r.run: None for r in records if r.mode == program.mode})
    alone = None
    for run in reversed(runs):
        for of_class in (hop, FAR if hop == NEAR else NEAR):
            mine = [r for r in records if r.run == run and r.mode == program.mode]
            figures = MpiFigures(mine, of_class)
            there = {r.stack for r in mine if figures.sizes(r.stack, program.mode)}
            ours = tuple(stack for stack in program.ours if stack in there)
            peers = tuple(sorted(there - set(program.ours)))
            found = Beside(program, of_class, ours, peers, figures)
            if ours and peers:
                return found
            if ours and of_class == hop:
                alone = alone or found
    return alone


@dataclass(frozen=True)
class Opening:
    """What the page begins with."""

    conclusion: str
    picture: Markup | None
    moved: str
    """Says that the limit was another one around other bars of the picture; empty if it was not."""
    grid: Grid | None
    limit: str
    has_peers: bool
    by_limit: bool
    """Does the conclusion compare ratios to the limit, and not times?"""


def opening(records: Sequence[Record], hop: str) -> Opening:
    """The first screen."""
    found = {program: beside(records, program, hop) for program in IN_ORDER}
    mpi_perf = found[MPI_PERF]
    if mpi_perf and mpi_perf.peers:
        del found[NETPIPE]  # The same stacks again; its own figure is below.
    if any(of for program, of in found.items() if program != QUEUES):
        del found[QUEUES]  # They have tables of their own.
    there = [of for of in found.values() if of]
    return Opening(
        conclusion(records, there, hop),
        *picture(bars(there)),
        grid(there, hop),
        limit(records, hop),
        any(of.peers for of in there),
        any(of.peers for of in there if of.program != QUEUES),
    )


def grid(there: Sequence[Beside], hop: str) -> Grid | None:
    """A row for each program and stack, a column for each size."""
    rows = []
    for of in there:
        name = of.program.name + ("" if of.hop == hop else f" ({of.hop} cores)")
        for stack in (*of.ours, *of.peers):
            cells = [of.find(stack, size) for size in SIZES_BYTES]
            if any(cells):
                shown = (r.show(r.value) if r else NONE for r in cells)
                rows.append((name, plain(stack), *shown))
    if not rows:
        return None
    headings = ("program", "over", *map(units.size, SIZES_BYTES))
    return without_empty_columns(Grid("", headings, tuple(rows), texts=2))


def bars(there: Sequence[Beside]) -> list[tuple[str, Record]]:
    """What the picture compares: messages of 8 bytes, of each program over each stack."""
    found = []
    for of in there:
        for stack in (*of.ours, *of.peers):
            record = of.find(stack, SIZES_COMPARED[0])
            if record and record.metric not in WITHOUT_LIMIT:
                found.append((f"{of.program.short} over {plain(stack)}", record))
    return found


def picture(found: Sequence[tuple[str, Record]]) -> tuple[Markup | None, str]:
    """The bars, each with the limit around it; and a sentence, if these limits differ."""
    if not found:
        return None, ""
    rows = [
        (label, r.value, r.limit, plots.SERIES[0] if r.stack in OURS else plots.SERIES[plots.GREY])
        for label, r in found
    ]
    limits = sorted(r.limit for _, r in found)
    moved = ""
    if limits[-1] > LIMITS_DIFFER * limits[0]:
        moved = (
            f"The cores moved between the runs, as those of virtual machines do: one line took "
            f"{units.time_ns(limits[0])} around one of them and {units.time_ns(limits[-1])} around "
            "another. So compare each bar with its own dark part."
        )
    return Markup(plots.beside_limit(rows, found[0][1].show)), moved


def limit(records: Sequence[Record], hop: str) -> str:
    """How long one cache line takes, as measured around velo's 8 bytes, or whatever there is."""
    own = Figures(records, hop).find("latency", 8)
    around = own or next(
        (r for r in records if r.hop == hop and r.limit_name == "pingpong" and r.limit > 1), None
    )
    return units.time_ns(around.limit) if around else ""


def conclusion(records: Sequence[Record], there: Sequence[Beside], hop: str) -> str:
    """One sentence; empty where there is nothing to conclude from."""
    own = Figures(records, hop).find("latency", 8)
    parts = []
    if own:
        parts.append(
            f"velo carries 8 bytes in {own.show(own.value)}, {own.ratio:.2f} times what one cache "
            "line alone takes"
        )
    compared = next((of for p in BY_WEIGHT for of in there if of.program == p and of.peers), None)
    ratios = compared.ratios() if compared else {}
    if compared and ratios:
        parts.append(_compared(compared, ratios, hop))
    if not parts:
        return ""
    return f"Between two processes on this machine {', and '.join(parts)}."


def _compared(of: Beside, ratios: dict[int, float], hop: str) -> str:
    count = len(of.peers)
    other = plain(of.peers[0]) if count == 1 else f"the best of {count} others"
    what = {NATIVE: "a message", MPI_PERF: "an MPI ping-pong", NETPIPE: "NetPIPE",
            QUEUES: "a bytes object of Python"}[of.program]  # fmt: skip
    (first, fast), *more = ((units.size(size), f"{ratio:.3g}") for size, ratio in ratios.items())
    where = f" on {of.hop} cores" if of.hop != hop else ""
    ours = "velo" if of.ours[0] in OURS else of.ours[0]
    text = f"{what} over {ours} is {fast} times as fast as over {other}{where} with {first}"
    further = [f"{ratio} times with {size}" for size, ratio in more]
    return ", ".join([text, *further[:-1]]) + "".join(f" and {last}" for last in further[-1:])
