# SPDX-License-Identifier: Apache-2.0
"""Debian's NetPIPE, unchanged, over MPI stacks; `velo netpipe` shows two of them side by side."""

import argparse
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from velo import display, units
from velo.errors import VeloError
from velo.mpi_stacks import STACKS, Stack

RUN_TIMEOUT_S = 30.0
ROUNDS = 5
NETPIPE_MEGABIT = 1024 * 1024
# The sizes of one run and how often each is sent; NetPIPE takes 7 trials of it and gives the best.
SCHEDULE = ((1, 12288, 1000), (16384, 196608, 100), (262144, 1048576, 25))
SIZES_SHOWN = tuple(1 << k for k in (0, 3, 5, 6, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20))


def run(stack: Stack, cpus: Sequence[int]) -> dict[int, float]:
    """Message size -> half round trip in ns, of one run."""
    found: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="velo-netpipe-") as name:
        out = Path(name) / "np.out"
        for low, high, repeats in SCHEDULE:
            program = ["NPopenmpi", "-p", "0", "-l", str(low), "-u", str(high), "-n", str(repeats),
                       "-o", str(out)]  # fmt: skip
            stack.output(2, cpus, program, RUN_TIMEOUT_S)
            found |= parse(out.read_text(encoding="ascii", errors="replace"))
    return found


def parse(text: str) -> dict[int, float]:
    """NetPIPE's output file: size, Mbit/s and seconds; the seconds have too few digits."""
    found: dict[int, float] = {}
    for line in text.splitlines():
        try:
            size, rate, _ = line.split()
            size_bytes, megabits_per_s = int(size), float(rate)
        except ValueError as error:
            raise VeloError(f"NetPIPE wrote a line that is no result: {line!r}") from error
        if not (size_bytes > 0 and megabits_per_s > 0):
            raise VeloError(f"NetPIPE wrote a result that is not above zero: {line!r}")
        found[size_bytes] = size_bytes * 8 / (megabits_per_s * NETPIPE_MEGABIT) * 1e9
    if not found:
        raise VeloError("NetPIPE wrote no result")
    return found


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
    out = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for heading in ("size", velo, "", other, "", "velo is"):
        out.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        times = [row.velo_ns, row.other_ns]
        cells = [
            text
            for ns in times
            for text in (units.time_ns(ns), units.bandwidth(row.size_bytes * 1e9 / ns))
        ]
        style = "green" if row.ratio >= 1 else "red"
        out.add_row(units.size(row.size_bytes), *cells, f"[{style}]{row.ratio:.2f} ×[/] as fast")
    return out


def command(args: argparse.Namespace) -> None:
    """`velo netpipe`."""
    from velo.bench import two_cpus

    console = display.console()
    cpus = two_cpus(args.cpus)
    words = {stack.word: stack for stack in STACKS}
    ours, other = words["btl" if args.btl else "mtl"], words["vader"]
    for stack in (ours, other):
        reason = stack.missing(cpus)
        if reason:
            raise VeloError(f"NetPIPE cannot run over {stack.name}: {reason}")
    rows = measure(ours, other, cpus, args.rounds, console)
    shown = [row for row in rows if row.size_bytes in SIZES_SHOWN]
    console.print(f"NetPIPE: half round trip and bandwidth, median of {args.rounds} runs in turns")
    console.print(table(shown, ours.name, other.name))


def measure(
    ours: Stack, other: Stack, cpus: Sequence[int], rounds: int, console: Console
) -> list[Row]:
    """Both in turns; each round the other one begins."""
    found: dict[str, list[dict[int, float]]] = {ours.word: [], other.word: []}
    with display.Bar(console, total=2 * rounds) as bar:
        for number in range(rounds):
            bar.step(f"NetPIPE, round {number + 1} of {rounds}")
            order = (ours, other) if number % 2 == 0 else (other, ours)
            for done, stack in enumerate(order):
                found[stack.word].append(run(stack, cpus))
                bar.advance_to(2 * number + done + 1, stack.name)
    return compare(found[ours.word], found[other.word])
