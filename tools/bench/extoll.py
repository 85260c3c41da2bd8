# SPDX-License-Identifier: Apache-2.0
"""What EXTOLL's interface costs over velo's own: the same loops over both, in turns."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from velo import helpers, tree
from velo.display import Console, Table
from velo.results.records import EXTOLL, Sample

BATCHES, BATCHES_QUICK = 100, 20
# Program -> what it is measured beside, and the modes at 8 bytes whose cost has a bound [ns].
PROGRAMS = {
    "velo2-perf": ("velo", ("pingpong", "rate"), 10.0),
    "rma2-perf": ("rma", ("own put", "own get"), 15.0),
}


@dataclass
class Costs:
    """What the programs said, by program, mode and size."""

    lines: dict[tuple[str, str, int], list[dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def measure(self, program: str, cpus: Sequence[int], quick: bool) -> list[Sample]:
        """Run a program once."""
        interface, (bare, _, _) = program.removesuffix("-perf"), PROGRAMS[program]
        samples = []
        batches = BATCHES_QUICK if quick else BATCHES
        argv = [tree.find(program), "--cpus", ",".join(map(str, cpus)), "--batches", batches]
        for line in helpers.stream([str(word) for word in argv], has_end=False):
            mode, size = str(line["mode"]), int(line["size_bytes"])
            self.lines[program, mode, size].append(line)
            extra = {name: float(line[name]) for name in (f"{bare}_ns", "cost_ns")}
            value = float(line[f"{interface}_ns"])
            samples.append(
                Sample(
                    EXTOLL + mode, "time_ns", size, value, 1, 1, None, stack=interface, extra=extra
                )
            )
        return samples

    def show(self, console: Console) -> None:
        """The medians over all runs; of 8 bytes also whether the cost is within its bound."""
        if not self.lines:
            return
        table = Table("<EXTOLL's interface", ">bytes", ">ours", ">beside", ">cost", "<bound")
        for (program, mode, size), lines in self.lines.items():
            bare, bounded, bound_ns = PROGRAMS[program]
            ours_ns, bare_ns, cost_ns = (
                statistics.median(float(line[name]) for line in lines)
                for name in (f"{program.removesuffix('-perf')}_ns", f"{bare}_ns", "cost_ns")
            )
            verdict = ""
            if mode in bounded and size == 8:
                verdict = f"{'met' if cost_ns <= bound_ns else 'missed'}: ≤ {bound_ns:g} ns"
            table.add_row(
                f"{program.removesuffix('-perf')} {mode}", str(size), f"{ours_ns:.1f} ns",
                f"{bare_ns:.1f} ns", f"{cost_ns:+.1f} ns", verdict,
            )  # fmt: skip
        console.print(table)
