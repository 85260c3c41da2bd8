# SPDX-License-Identifier: Apache-2.0
"""One ring for many readers beside a connection to each of them, in turns."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from velo import helpers, tree, units
from velo.display import Console, Table
from velo.results.records import BCAST, Sample

PROGRAM = "velo-bcast-perf"
ROUNDS, ROUNDS_QUICK = 3, 1
# Mode -> what its times are of.
TITLES = {
    "stream": "a message of a stream, taken by all",
    "writer": "a message, for its writer",
    "wake": "a message that wakes all, for its writer",
    "woken": "a message that wakes all, until the last has it",
    "idle": "processor time of a second of sleep, of a reader",
}


@dataclass
class OneToMany:
    """What the program said, by mode, size and readers."""

    lines: dict[tuple[str, int, int], list[dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def measure(self, cpus: Sequence[int], quick: bool) -> list[Sample]:
        """Run it once."""
        samples = []
        rounds = ROUNDS_QUICK if quick else ROUNDS
        argv = [tree.find(PROGRAM), "--json", "--cpus", ",".join(map(str, cpus))]
        for line in helpers.stream([*map(str, argv), "--rounds", str(rounds)], has_end=False):
            key = str(line["mode"]), int(line["size_bytes"]), int(line["readers"])
            self.lines[key].append(line)
            mode, size, readers = key
            samples += [
                Sample(
                    BCAST + mode, "time_ns", size, float(line[name]), 1, 1, None,
                    processes=1 + readers, stack=stack,
                )
                for stack, name in (("ring", "ring_ns"), ("connections", "conns_ns"))
            ]  # fmt: skip
        return samples

    def show(self, console: Console) -> None:
        """The medians over all runs."""
        if not self.lines:
            return
        table = Table("<one to many", ">bytes", ">readers", ">ring", ">connections", ">ratio")
        for (mode, size, readers), lines in self.lines.items():
            ring_ns, conns_ns, ratio = (
                statistics.median(float(line[name]) for line in lines)
                for name in ("ring_ns", "conns_ns", "ratio")
            )
            table.add_row(
                TITLES[mode], str(size), str(readers), units.time_ns(ring_ns),
                units.time_ns(conns_ns), f"{ratio:.2f}",
            )  # fmt: skip
        console.print(table)
