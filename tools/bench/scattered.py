# SPDX-License-Identifier: Apache-2.0
"""Words that lie apart: gets of dimmnet.h beside rma.h and MPI's derived datatypes, in turns."""

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from velo import helpers, tree, units
from velo.display import Console, Table
from velo.errors import VeloError
from velo.measure.mpi.stacks import STACKS, Stack
from velo.results.records import DIMMNET, Sample

PROGRAM, MPI_PROGRAM = "velo-dimmnet-perf", "velo-dimmnet-mpi-perf"
ROUNDS, ROUNDS_QUICK = 20, 3
RUN_TIMEOUT_S = 60.0
WORD_BYTES = 8
# Debian's Open MPI, for which the program is built: over velo, and over its own transport.
MPI_STACKS = tuple(stack for stack in STACKS if stack.word in ("mtl", "btl", "vader"))
TITLES = {"sparse": "what a sparse matrix needs of a vector", "transpose": "a transpose"}


def has_mpi() -> bool:
    """Was the MPI program built?"""
    try:
        return tree.find(MPI_PROGRAM).exists()
    except VeloError:
        return False


@dataclass
class Scattered:
    """What the programs said, by problem and way."""

    lines: dict[tuple[str, int], dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def measure(self, cpus: Sequence[int], quick: bool) -> list[Sample]:
        """Run the native program once."""
        rounds = ROUNDS_QUICK if quick else ROUNDS
        argv = [str(tree.find(PROGRAM)), "--cpus", ",".join(map(str, cpus))]
        lines = helpers.stream([*argv, "--rounds", str(rounds)], has_end=False)
        return [self._add(line, str(line["way"])) for line in lines]

    def measure_mpi(self, stack: Stack, cpus: Sequence[int], quick: bool) -> list[Sample]:
        """Run the MPI program once, over one stack."""
        rounds = ROUNDS_QUICK if quick else ROUNDS
        argv: list[str | Path] = [tree.find(MPI_PROGRAM), str(rounds)]
        text = stack.output(2, cpus, argv, RUN_TIMEOUT_S)
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return [self._add(line, f"{line['way']}, {stack.word}") for line in lines]

    def _add(self, line: dict[str, Any], way: str) -> Sample:
        mode, owned = str(line["mode"]), int(line["owned_words"])
        value = float(line["word_ns"])
        self.lines[mode, owned][way].append(value)
        size = owned * WORD_BYTES
        return Sample(DIMMNET + mode, "time_ns", size, value, 1, 1, None, stack=way)

    def show(self, console: Console) -> None:
        """The medians over all runs, with their range."""
        if not self.lines:
            return
        table = Table("<words that lie apart", ">of words", "<way", ">a word", ">least", ">most")
        for (mode, owned), ways in self.lines.items():
            for way, times in ways.items():
                table.add_row(
                    TITLES[mode], str(owned), way, units.time_ns(statistics.median(times)),
                    units.time_ns(min(times)), units.time_ns(max(times)),
                )  # fmt: skip
        console.print(table)
