# SPDX-License-Identifier: Apache-2.0
"""The papers' experiments, and runs of them on the simulated hardware.

Each experiment is a program that `velo sim` runs at each hardware point: the paper's clock, and
newer ones.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Protocol

from papers.points import (
    EIGHT_NODES,
    EXTOLL_POINTS,
    HT200_POINT,
    HTX_POINT,
    RATE,
    VELO_POINTS,
    Point,
    parse,
)
from papers.prediction import Results as Predicted
from velo import tree
from velo.cluster import apart
from velo.errors import UsageError, VeloError
from velo.measure.mpi import netpipe

TIMEOUT_S = 3600.0
QUICK_RANKS = 16
QUICK_TABLE_LOG2 = 10
# What the page takes from there.
CYCLES_NEEDED = {
    "stages", "host_to_host_cycles", "node_64_bit", "node_128_bit", "dimmnet_figure5",
}  # fmt: skip
RTL_BENCH = tree.measured("rtl-bench.json")
RTL_SYNTH = tree.measured("rtl-synth.json")
# The name of what sensitivity.py runs, among those of the experiments.
PREDICT = "predict"


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
    tables_log2: tuple[int, ...] = ()
    """Of RandomAccess: how many words its tables have."""


def _sizes(*sizes: int) -> str:
    return ",".join(map(str, sizes))


SMALL = _sizes(1, 2, 4, 8, 12, 16, 24, 32, 40, 48)
RATE_SIZES = _sizes(1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
PINGPONG_SIZES = _sizes(0, *(1 << n for n in range(13)))
GUPS = ("velo-mpi-perf", "gups", "--no-limit", "--batches", "1", "--table-log2")

EXPERIMENTS = (
    Experiment(
        "api latency",
        (*VELO_POINTS, HT200_POINT),
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
        (*VELO_POINTS, HT200_POINT),
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
        "pingpong",
        EXTOLL_POINTS,
        ("velo-mpi-perf", "latency", "--no-limit", "--batches", "1", "--sizes", PINGPONG_SIZES),
        ("velo-mpi-perf", "latency", "--no-limit", "--batches", "1", "--sizes", _sizes(0, 128)),
    ),
    Experiment(
        "gups by table",
        EXTOLL_POINTS,
        GUPS,
        GUPS,
        (),
        (32,),
        "table_words",
        (12, 16),
    ),
    Experiment(
        "gups",
        EXTOLL_POINTS,
        GUPS,
        GUPS,
        (),
        (16, 64),
        "processes",
        (16,),
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

    def at(self, x: float) -> float | None:
        return next((value for found, value in self.values if found == x), None)


@dataclass
class Results:
    """All series, the cycles of one message by module, and the area of modules."""

    series: list[Series] = field(default_factory=list)
    cycles: dict[str, Any] = field(default_factory=dict)
    areas: dict[str, Any] = field(default_factory=dict)
    prediction: Predicted | None = None
    absent: list[str] = field(default_factory=list)

    def of(self, experiment: str) -> list[Series]:
        return [s for s in self.series if s.experiment == experiment]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


class Call(Protocol):
    """One command of velo among those that make the page."""

    @property
    def title(self) -> str: ...

    def words(self, folder: Path) -> list[str]:
        """Its arguments; what it measures goes into the folder."""

    def read(self, folder: Path, said: str) -> tuple[str, Callable[[Results], None]]:
        """What it measured, in a few words, and what adds that to the results."""


@dataclass(frozen=True)
class Trial:
    """One run of an experiment."""

    experiment: Experiment
    point: Point
    ranks: int
    table_log2: int | None
    is_quick: bool

    @property
    def title(self) -> str:
        table = f", 2^{self.table_log2} words" if self.table_log2 else ""
        return f"{self.experiment.name}, {self.point.name}, {self.ranks} ranks{table}"

    @property
    def options(self) -> list[str]:
        """Of velo sim."""
        words = [*self.point.options, *self.experiment.options]
        if self.experiment.x in ("pairs", "table_words"):
            words += ["--ranks-a-node", str(self.ranks // 2)]
        elif self.experiment.x == "processes":
            words += ["--topology", EIGHT_NODES[self.point.width_bits]]
            words += ["--ranks-a-node", str(self.ranks // 8)]
        return [*words, "-n", str(self.ranks)]

    @property
    def program(self) -> list[str]:
        """As one types it."""
        program = self.experiment.quick if self.is_quick else self.experiment.program
        return [*program, str(self.table_log2)] if self.table_log2 else [*program]

    @property
    def command(self) -> str:
        """As one types it."""
        return " ".join(["velo", "sim", *self.options, "--", *self.program])

    def words(self, folder: Path) -> list[str]:
        program = self.program
        if program[0].startswith("velo-"):
            program[0] = str(tree.find(program[0]))
        else:
            program += ["-o", str(folder / "np.out")]
        return ["sim", *self.options, "--json", str(folder / "result.json"), "--", *program]

    def read(self, folder: Path, said: str) -> tuple[str, Callable[[Results], None]]:
        values = self._values(folder, said)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        note = f"{values[-1][1]:.4g} at {values[-1][0]:g}"
        return note, partial(self._add, values=values, result=result)

    def _values(self, folder: Path, said: str) -> list[tuple[float, float]]:
        if self.program[0] == "NPopenmpi":
            text = (folder / "np.out").read_text(encoding="ascii", errors="replace")
            found = [(float(size), ns) for size, ns in sorted(netpipe.parse(text).items())]
        elif self.experiment.x == "table_words":
            found = [(1 << (self.table_log2 or 0), y) for _, y in parse(said, "processes")]
        else:
            found = parse(said, self.experiment.x)
        if not found:
            raise VeloError(f"{self.command} measured nothing")
        return found

    def _add(
        self, results: Results, values: list[tuple[float, float]], result: dict[str, Any]
    ) -> None:
        found = (s for s in results.of(self.experiment.name) if s.point == self.point)
        series = next(found, None)
        if series is None:
            series = Series(self.experiment.name, self.point)
            results.series.append(series)
        series.values += values
        series.hashes.append(result["hash"])
        series.commands.append(self.command)
        series.virtual_us += result["virtual_time_ps"] / 1e6


def choose(only: str | None) -> list[str]:
    """The names of the experiments to run, that of the prediction among them."""
    words = only.split(",") if only else []
    known = [PREDICT, *(e.name for e in EXPERIMENTS)]
    for word in words:
        if word not in known:
            raise UsageError(
                f"there is no experiment '{word}'; there are {', '.join(sorted(known))}"
            )
    return [name for name in known if not words or name in words]


def plan(names: Sequence[str], is_quick: bool) -> list[Trial]:
    """Every run; with --quick only at the paper's own point, with few ranks and small tables."""
    trials = []
    for experiment in (e for e in EXPERIMENTS if e.name in names):
        few = [ranks for ranks in experiment.ranks if ranks <= QUICK_RANKS][:2]
        ranks = (few or [QUICK_RANKS]) if is_quick else experiment.ranks
        tables: Sequence[int | None] = experiment.tables_log2 or [None]
        if is_quick and experiment.tables_log2:
            tables = [QUICK_TABLE_LOG2]
        trials += [
            Trial(experiment, *each, is_quick)
            for each in product(experiment.points[: 1 if is_quick else None], ranks, tables)
        ]
    return trials


def measure(results: Results, calls: Sequence[Call], at_once: int) -> Iterator[tuple[str, str]]:
    """Make the calls, so many at once: the title of each as it ends, and its newest value in a few
    words. The results get them in the order of the calls, once all have ended."""
    additions: dict[int, Callable[[Results], None]] = {}
    with tempfile.TemporaryDirectory(prefix="velo-paper-") as name:
        folders = [Path(name) / str(number) for number in range(len(calls))]
        for folder in folders:
            folder.mkdir()
        words = [call.words(folder) for call, folder in zip(calls, folders, strict=True)]
        for number, said in apart.side_by_side(words, at_once, TIMEOUT_S):
            title = calls[number].title
            if isinstance(said, VeloError):
                results.absent.append(f"{title}: {_no_model(title, said)}")
                yield title, "not built"
            else:
                note, additions[number] = calls[number].read(folders[number], said)
                yield title, note
    for number in sorted(additions):
        additions[number](results)


def _no_model(title: str, error: VeloError) -> str:
    try:
        return apart.no_model(error)
    except VeloError as other:
        raise VeloError(f"{title}: {other}") from other


def read_cycles() -> dict[str, Any]:
    """What `make rtl-bench` measured, if all of it is there; tests leave some of its figures."""
    found = _read(RTL_BENCH)
    return found if found.keys() >= CYCLES_NEEDED else {}


def read_areas() -> dict[str, Any]:
    """What `make rtl-synth` found, by module; of one or of all."""
    return _read(RTL_SYNTH)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
