# SPDX-License-Identifier: Apache-2.0
"""The papers' experiments, and runs of them on the simulated hardware.

Each experiment is a program that `velo sim` runs at each hardware point: the paper's clock, and
newer ones.
"""

import json
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from papers import apart
from papers.points import (
    EIGHT_NODES,
    EXTOLL_POINTS,
    HTX_POINT,
    RATE,
    VELO_POINTS,
    Point,
    parse,
)
from velo import tree
from velo.errors import UsageError, VeloError
from velo.measure.mpi import netpipe

TIMEOUT_S = 1800.0
QUICK_RANKS = 16
# What the page takes from there.
CYCLES_NEEDED = {
    "stages", "host_to_host_cycles", "node_64_bit", "node_128_bit", "dimmnet_figure5",
}  # fmt: skip
RTL_BENCH = tree.measured("rtl-bench.json")


@dataclass(frozen=True)
class Experiment:
    """A program, and where it runs; `x` is what its figure is drawn over."""

    name: str
    points: tuple[Point, ...]
    program: tuple[str, ...]
    quick: tuple[str, ...]
    """The program where all is to be short: fewer sizes and messages."""
    options: tuple[str, ...] = ()
    ranks: tuple[int, ...] = (2,)
    x: str = "size_bytes"


def _sizes(*sizes: int) -> str:
    return ",".join(map(str, sizes))


SMALL = _sizes(1, 2, 4, 8, 12, 16, 24, 32, 40, 48)
RATE_SIZES = _sizes(1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
GUPS = ("velo-mpi-perf", "gups", "--no-limit", "--batches", "1", "--table-log2")

EXPERIMENTS = (
    Experiment(
        "api latency",
        VELO_POINTS,
        ("velo-api-perf", "latency", "--sizes", SMALL, "--repeats", "50"),
        ("velo-api-perf", "latency", "--sizes", _sizes(8, 48), "--repeats", "10"),
    ),
    Experiment(
        "api stream",
        VELO_POINTS,
        ("velo-api-perf", "stream", "--sizes", SMALL, "--repeats", "2000"),
        ("velo-api-perf", "stream", "--sizes", _sizes(8, 32), "--repeats", "200"),
    ),
    Experiment(
        "mpi latency",
        VELO_POINTS,
        ("NPopenmpi", "-l", "1", "-u", "48", "-n", "20", "-p", "0"),
        ("NPopenmpi", "-l", "8", "-u", "12", "-n", "5", "-p", "0"),
        ("--btl",),
    ),
    Experiment(
        "netpipe latency",
        (*EXTOLL_POINTS, HTX_POINT),
        ("NPopenmpi", "-u", "4096", "-n", "20", "-p", "0"),
        ("NPopenmpi", "-l", "128", "-u", "192", "-n", "3", "-p", "0"),
    ),
    Experiment(
        "netpipe stream",
        EXTOLL_POINTS,
        ("NPopenmpi", "-s", "-u", "8192", "-n", "8", "-p", "0"),
        ("NPopenmpi", "-s", "-l", "128", "-u", "192", "-n", "10", "-p", "0"),
    ),
    Experiment(
        "rate by size",
        EXTOLL_POINTS,
        (*RATE, "--windows", "2", "--sizes", RATE_SIZES),
        (*RATE, "--windows", "1", "--sizes", _sizes(8, 64)),
        ("--ranks-a-node", "4"),
        (8,),
    ),
    Experiment(
        "rate by pairs",
        EXTOLL_POINTS,
        (*RATE, "--windows", "4", "--sizes", "8"),
        (*RATE, "--windows", "1", "--sizes", "8"),
        (),
        (2, 4, 6, 8, 12, 16),
        "pairs",
    ),
    Experiment(
        "gups",
        EXTOLL_POINTS,
        (*GUPS, "16"),
        (*GUPS, "10"),
        (),
        (16, 64),
        "processes",
    ),
)


@dataclass
class Series:
    """What an experiment came to at a point."""

    experiment: str
    point: Point
    values: list[tuple[float, float]] = field(default_factory=list)
    """x and value: ns of half a round trip, messages or updates per second."""
    hashes: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    virtual_us: float = 0
    real_s: float = 0

    def at(self, x: float) -> float | None:
        return next((value for found, value in self.values if found == x), None)


@dataclass
class Results:
    """All series, and the cycles of one message by module."""

    series: list[Series] = field(default_factory=list)
    cycles: dict[str, Any] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)

    def of(self, experiment: str) -> list[Series]:
        return [s for s in self.series if s.experiment == experiment]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def choose(only: str | None) -> list[Experiment]:
    """The experiments that are named."""
    words = only.split(",") if only else []
    known = {e.name for e in EXPERIMENTS}
    for word in words:
        if word not in known:
            raise UsageError(
                f"there is no experiment '{word}'; there are {', '.join(sorted(known))}"
            )
    return [e for e in EXPERIMENTS if not words or e.name in words]


def plan(experiments: Iterable[Experiment], quick: bool) -> Iterable[tuple[Experiment, Point, int]]:
    """Every run; with --quick only at the paper's own point, and with few ranks."""
    for experiment in experiments:
        few = [ranks for ranks in experiment.ranks if ranks <= QUICK_RANKS][:2]
        for point in experiment.points[:1] if quick else experiment.points:
            for ranks in few if quick else experiment.ranks:
                yield experiment, point, ranks


def run(results: Results, experiment: Experiment, point: Point, ranks: int, quick: bool) -> str:
    """One run, added to its series; its newest value in a few words."""
    series = next(
        (s for s in results.of(experiment.name) if s.point == point),
        Series(experiment.name, point),
    )
    with tempfile.TemporaryDirectory(prefix="velo-paper-") as name:
        folder = Path(name)
        program = list(experiment.quick if quick else experiment.program)
        if program[0].startswith("velo-"):
            program[0] = str(tree.find(program[0]))
        else:
            program += ["-o", str(folder / "np.out")]
        options = list(experiment.options)
        if experiment.x == "pairs":
            options += ["--ranks-a-node", str(ranks // 2)]
        elif experiment.x == "processes":
            options += ["--topology", EIGHT_NODES[point.width_bits]]
            options += ["--ranks-a-node", str(ranks // 8)]
        words = [*point.options, *options, "-n", str(ranks)]
        began_s = time.monotonic()
        said, result = apart.run_apart(words, program, TIMEOUT_S)
        series.real_s += time.monotonic() - began_s
        if program[0] == "NPopenmpi":
            text = (folder / "np.out").read_text(encoding="ascii", errors="replace")
            values = [(float(size), ns) for size, ns in sorted(netpipe.parse(text).items())]
        else:
            values = parse(said, experiment.x)
    shown = [word if not word.startswith("/") else Path(word).name for word in program]
    typed = " ".join(["velo", "sim", *words, "--", *shown])
    if not values:
        raise VeloError(f"{typed} measured nothing")
    series.values += values
    series.hashes.append(result["hash"])
    series.commands.append(typed)
    series.virtual_us += result["virtual_time_ps"] / 1e6
    if series not in results.series:
        results.series.append(series)
    return f"{values[-1][1]:.4g} at {values[-1][0]:g}"


def read_cycles() -> dict[str, Any]:
    """What `make rtl-bench` measured, if all of it is there; tests leave some of its figures."""
    try:
        found = json.loads(RTL_BENCH.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.keys() >= CYCLES_NEEDED else {}
