#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MPIs over velo's libfabric provider beside each one's own way, in turns in one run.

The MPIs are those of scripts/packages/requirements-bench.txt, installed below build/peers, each
with velo-mpi-perf compiled by its own compiler; Debian's Open MPI 4.1 over mtl/velo runs along as a
second measure. MPICH has two ways of its own, and for each figure the better one counts; both run
with the sched_yield() that `velo run` gives MPICH, since they wait for the kernel's otherwise. Each
batch is bracketed by the raw line between the two cores: batches during which the cores moved do
not count, and near and far ones are kept apart.

Run it on a machine that does nothing else:

  python3 tools/perf/ofi/mpis.py [--rounds N] [--json FILE]
"""

import argparse
import json
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from bench import mpi_perf
from bench.mpi_perf import Program
from velo import display, tree
from velo.display import Table
from velo.errors import VeloError
from velo.measure.cpus import two_cpus
from velo.measure.mpi import stacks
from velo.measure.mpi.stacks import Stack
from velo.results.records import FAR, NEAR, Sample

OWN = {stack.word: stack for stack in stacks.STACKS}
MTL = OWN["mtl"]
MPIS = ("ompi5", "mpich", "impi")
OWN_WAYS = {"ompi5": ("ompi5",), "mpich": ("mpich", "mpich-ucx"), "impi": ("impi",)}
PROGRAMS = (
    Program("latency", 2, 1500, ("--sizes", "8,65536,1048576", "--batches", "30")),
    Program("rate", 2, 600, ("--batches", "30")),
    Program("matching", 2, 1500, ("--batches", "10")),
)
POSTED = 10000


@dataclass(frozen=True)
class Row:
    """One line of the table for each MPI."""

    title: str
    mode: str
    size_bytes: int
    posted: int
    targets: dict[str, float]
    """The ratio to reach, by MPI; at least it for a rate, at most it for a time."""

    def takes(self, sample: Sample) -> bool:
        return (sample.mode, sample.size_bytes, sample.posted) == (
            f"mpi {self.mode}",
            self.size_bytes,
            self.posted,
        )

    def is_met(self, mpi: str, ratio: float) -> bool:
        target = self.targets[mpi]
        return ratio >= target if self.mode == "rate" else ratio <= target


def _all(target: float) -> dict[str, float]:
    return dict.fromkeys(MPIS, target)


LATENCY = Row("half round trip 8 B, ns", "latency", 8, 0, _all(0.75))
LONG = _all(0.5) | {"impi": 1.0}
ROWS = (
    LATENCY,
    Row("messages of 8 B a second", "rate", 8, 0, _all(1.5)),
    Row("half round trip 64 KiB, ns", "latency", 65536, 0, LONG),
    Row("half round trip 1 MiB, ns", "latency", 1048576, 0, LONG),
)
MTL_TARGETS = _all(1.25) | {"impi": 1.6}
CROWD_TARGET = 2.0


@dataclass(frozen=True)
class Figure:
    """What the batches of one stack found."""

    median: float
    low: float
    """The fifth percentile."""
    high: float
    """The ninety-fifth."""
    batches: int

    def __str__(self) -> str:
        return f"{self.median:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class Line:
    """Two figures and their ratio."""

    mpi: str
    what: str
    hop: str
    ours: Figure
    other: Figure
    ratio: float
    target: float
    is_met: bool


def own_ways(mpi: str) -> list[Stack]:
    """How an MPI sends messages without velo, each in its best known setting."""
    stacks = [OWN[word] for word in OWN_WAYS[mpi]]
    if mpi != "mpich":
        return stacks
    preload = {"LD_PRELOAD": str(tree.find_loaded("libvelo-yield.so").resolve())}
    return [replace(stack, env={**stack.env, **preload}) for stack in stacks]


def over_provider(mpi: str) -> Stack:
    """The same MPI as `velo run --mpi` starts it."""
    own = OWN[mpi]
    return replace(
        own,
        word=f"{mpi}-velo",
        label="velo " + own.label.split()[0],
        options=("--mpi-root", str(own.build.folder)),
        many=(),
        many_env={},
        velo=f"mpi={mpi}",
    )


def figure(values: Sequence[float]) -> Figure:
    """Of at least two values."""
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return Figure(statistics.median(values), cuts[0], cuts[-1], len(values))


def lines(found: dict[str, list[Sample]]) -> Iterator[Line]:
    """All lines for which both sides have batches with cores as far from each other."""

    def pick(word: str, row: Row, hop: str) -> Figure | None:
        values = [s.value for s in found[word] if s.hop == hop and row.takes(s)]
        return figure(values) if len(values) > 1 else None

    for hop in (NEAR, FAR):
        for mpi in MPIS:
            for row in ROWS:
                ours = pick(f"{mpi}-velo", row, hop)
                owns = [own for word in OWN_WAYS[mpi] if (own := pick(word, row, hop))]
                if ours and owns:
                    best = max if row.mode == "rate" else min
                    own = best(owns, key=lambda figure: figure.median)
                    ratio = ours.median / own.median
                    yield Line(mpi, f"{row.title} / its own", hop, ours, own, ratio,
                               row.targets[mpi], row.is_met(mpi, ratio))  # fmt: skip
            ours, mtl = pick(f"{mpi}-velo", LATENCY, hop), pick(MTL.word, LATENCY, hop)
            if ours and mtl:
                ratio, target = ours.median / mtl.median, MTL_TARGETS[mpi]
                yield Line(mpi, f"{LATENCY.title} / Open MPI 4.1 by mtl/velo", hop, ours, mtl,
                           ratio, target, ratio <= target)  # fmt: skip
            many, one = (
                pick(f"{mpi}-velo", replace(LATENCY, mode="matching", posted=posted), hop)
                for posted in (POSTED, 1)
            )
            if many and one:
                ratio = many.median / one.median
                yield Line(mpi, f"the same with {POSTED:,} posted receives / with one", hop, many,
                           one, ratio, CROWD_TARGET, ratio <= CROWD_TARGET)  # fmt: skip


def measure(
    cpus: Sequence[int], rounds: int, all_stacks: Sequence[Stack]
) -> dict[str, list[Sample]]:
    """Every stack in every round, in an order of its own."""
    found: dict[str, list[Sample]] = defaultdict(list)
    with display.Bar(display.Console(sys.stderr), total=rounds * len(all_stacks)) as bar:
        for number in range(rounds):
            for done, stack in enumerate(random.sample(all_stacks, len(all_stacks))):
                bar.step(f"round {number + 1} of {rounds}: {stack.name}")
                for program in PROGRAMS:
                    try:
                        found[stack.word] += mpi_perf.run(stack, program, cpus).samples
                    except VeloError as error:
                        print(f"{stack.name}, {program.title}: {error}", file=sys.stderr)
                bar.advance_to(number * len(all_stacks) + done + 1, stack.name)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="rounds of all (9)")
    parser.add_argument("--cpus", help="the two CPUs to pin to: 0,1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there, too")
    args = parser.parse_args()
    cpus = two_cpus([int(cpu) for cpu in args.cpus.split(",")] if args.cpus else None)
    usable = []
    for stack in (MTL, *(s for mpi in MPIS for s in (over_provider(mpi), *own_ways(mpi)))):
        if why := stack.missing(cpus):
            print(f"left out: {stack.name}: {why}", file=sys.stderr)
        else:
            usable.append(stack)
    table = list(lines(measure(cpus, args.rounds, usable)))
    out = Table("<MPI", "<what", "<cores", ">velo (5 % to 95 %)", ">other", ">ratio", ">target")
    for line in table:
        target = f"{line.target:g}{'' if line.is_met else ' missed'}"
        out.add_row(line.mpi, line.what, line.hop, str(line.ours), str(line.other),
                    f"{line.ratio:.2f}", target)  # fmt: skip
    display.Console().print(out)
    if args.json:
        args.json.write_text(json.dumps([asdict(line) for line in table], indent=1) + "\n")
    return 0 if table else 1


if __name__ == "__main__":
    sys.exit(main())
