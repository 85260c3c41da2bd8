# SPDX-License-Identifier: Apache-2.0
"""A program on a grid of networks: the runs, the table that keeps them, and what they say.

Three things vary: what a cable adds to a message's way, how fast a rank may send lines, and how
fast a link is. If the run time is a straight line over one of them, its slope is a count of what
the program does one after the other, on what would be called its critical path: cables passed,
lines sent, bytes moved.
"""

import argparse
import csv
import json
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path

from velo import display, units
from velo.cluster import apart
from velo.cluster.job import Job
from velo.errors import UsageError, VeloError, writing

TIMEOUT_S = 86400.0
# A line that explains less of what was seen than this share of it says nothing.
R_SQUARED_MIN = 0.9
# A count below this is none: the time changes by less than one message's.
COUNT_MIN = 0.5
AXES = ("latency", "rate", "bandwidth")


@dataclass(frozen=True)
class Point:
    """A network of the grid."""

    latency_ns: float
    """What each cable takes more than in the network to begin with."""
    rate: float | None
    """Lines a second that a rank may send; None: as many as it can."""
    bandwidth: float
    """Bytes a second of a link."""

    @property
    def text(self) -> str:
        rate = "any rate" if self.rate is None else units.rate(self.rate)
        return f"+{self.latency_ns:g} ns, {rate}, {units.bandwidth(self.bandwidth)}"


@dataclass(frozen=True)
class Run:
    """What the program did on a network."""

    point: Point
    time_ns: float
    """From its start to its end, in virtual time."""
    computing: float
    """Share of the ranks' time that --compute charged."""
    hash: str
    command: str


@dataclass(frozen=True)
class Base:
    """The network to begin with, and the program."""

    words: tuple[str, ...]
    """Options of velo sim that stay."""
    program: tuple[str, ...]
    ranks: int
    width_bits: int
    bandwidth: float
    cable_ns: float
    host_ns: Mapping[str, int]

    @staticmethod
    def of(args: argparse.Namespace, job: Job) -> "Base":
        cluster = job.cluster
        given = {
            "--topology": args.topology,
            "--cluster": args.cluster,
            "--ranks-a-node": job.ranks_a_node,
            "-n": job.ranks,
            "--width-bits": cluster.width_bits,
            "--error-rate": cluster.error_rate,
            "--compute": cluster.compute,
            "--host": args.host,
            "--seed": args.seed,
            "--model": args.model,
        }
        words = [word for name, v in given.items() if v is not None for word in (name, str(v))]
        return Base(
            (f"--{job.layer}", *words),
            tuple(job.program),
            job.ranks,
            cluster.width_bits,
            cluster.clock_mhz * 1e6 * cluster.width_bits / 8,
            (cluster.cable_cycles or 0) * 1000 / cluster.clock_mhz,
            dict(cluster.host_ns),
        )

    def arguments(self, point: Point) -> list[str]:
        """Of velo, but for the result's file."""
        clock_mhz = point.bandwidth * 8 / self.width_bits / 1e6
        cycles = round((self.cable_ns + point.latency_ns) * clock_mhz / 1000)
        host_ns = dict(self.host_ns)
        if point.rate is not None:
            host_ns["gap"] = host_ns.get("gap", 0) + round(1e9 / point.rate)
        words = [*self.words, "--clock-mhz", f"{clock_mhz:g}"]
        words += ["--cable-cycles", str(cycles)] if cycles else []
        if host_ns:
            words += ["--host-ns", ",".join(f"{name}={ns}" for name, ns in host_ns.items())]
        return ["sim", *words]

    def command(self, point: Point) -> str:
        return shlex.join(["velo", *self.arguments(point), "--", *self.program])


def points(
    base: Base, latencies: Sequence[float], rates: Sequence[float], bandwidths: Sequence[float]
) -> list[Point]:
    """The grid; the network to begin with is always one of it, and its first."""
    axes = (
        dict.fromkeys([0.0, *latencies]),
        dict.fromkeys([None, *rates]),
        dict.fromkeys([base.bandwidth, *bandwidths]),
    )
    return [Point(*values) for values in product(*axes)]


class Table:
    """The runs there are; in a file, too, if there is one."""

    HEAD = ("latency_ns", "rate", "bandwidth", "time_ns", "computing", "hash", "command")

    def __init__(self, path: Path | None, base: Base) -> None:
        self._path, self._base = path, base
        self._runs: dict[str, Run] = {}
        if path and path.exists():
            self._read(path)
        elif path:
            self._write(self.HEAD)

    def __contains__(self, point: Point) -> bool:
        return self._base.command(point) in self._runs

    def __getitem__(self, point: Point) -> Run:
        return self._runs[self._base.command(point)]

    def add(self, run: Run) -> None:
        """Written before anything else is begun, so an interruption loses no run that ended."""
        self._runs[run.command] = run
        point = run.point
        rate = "" if point.rate is None else repr(point.rate)
        self._write((repr(point.latency_ns), rate, repr(point.bandwidth), repr(run.time_ns),
                     repr(run.computing), run.hash, run.command))  # fmt: skip

    def _write(self, cells: Sequence[str]) -> None:
        if self._path:
            with writing(self._path), self._path.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file).writerow(cells)

    def _read(self, path: Path) -> None:
        try:
            rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UsageError(f"{path}: {error}") from error
        if not rows or tuple(rows[0]) != self.HEAD:
            raise UsageError(f"{path} is no table of velo what-if; name another file")
        for number, row in enumerate(rows[1:], start=2):
            try:
                latency, rate, bandwidth, time_ns, computing, found, command = row
                point = Point(float(latency), float(rate) if rate else None, float(bandwidth))
                run = Run(point, float(time_ns), float(computing), found, command)
            except ValueError as error:
                raise UsageError(f"{path}, line {number}: it is torn; delete it") from error
            self._runs[command] = run


def measure(base: Base, wanted: Sequence[Point], at_once: int) -> Iterator[Run]:
    """Run the program on these networks, so many at once: each as it ends."""
    with tempfile.TemporaryDirectory(prefix="velo-what-if-") as name:
        files = [Path(name) / f"{number}.json" for number in range(len(wanted))]
        calls = [
            [*base.arguments(point), "--json", str(file), "--", *base.program]
            for point, file in zip(wanted, files, strict=True)
        ]
        for number, said in apart.side_by_side(calls, at_once, TIMEOUT_S):
            point = wanted[number]
            if isinstance(said, VeloError):
                raise VeloError(f"{base.command(point)}: {said}") from said
            result = json.loads(files[number].read_text(encoding="utf-8"))
            time_ps = result["virtual_time_ps"]
            computing = result["computed_ps"] / (max(base.ranks, 1) * time_ps)
            yield Run(point, time_ps / 1000, computing, result["hash"], base.command(point))


@dataclass(frozen=True)
class Slope:
    """The run time over one axis, the others as in the network to begin with."""

    axis: str
    xs: list[float]
    """ns of a cable; ns between two lines; ns a byte."""
    times_ns: list[float]
    count: float
    """What the program does one after the other."""
    r_squared: float

    @staticmethod
    def of(axis: str, xs: list[float], times_ns: list[float]) -> "Slope":
        """Least squares."""
        x_mean, t_mean = sum(xs) / len(xs), sum(times_ns) / len(times_ns)
        spread = sum((x - x_mean) ** 2 for x in xs)
        count = sum((x - x_mean) * (t - t_mean) for x, t in zip(xs, times_ns, strict=True)) / spread
        total = sum((t - t_mean) ** 2 for t in times_ns)
        left = sum(
            (t - t_mean - count * (x - x_mean)) ** 2 for x, t in zip(xs, times_ns, strict=True)
        )
        return Slope(axis, xs, times_ns, count, 1 - left / total if total else 1.0)

    def sentence(self, base_ns: float) -> str:
        """What it says."""
        what = {
            "latency": ("ns that a cable takes more", "passes {} cables one after the other"),
            "rate": ("ns between two lines of a rank", "has {} lines sent one after the other"),
            "bandwidth": ("ns a byte", "has {} bytes moved one after the other"),
        }
        per, does = what[self.axis]
        if self.count < COUNT_MIN:
            return f"{self.axis}: the run time does not follow it."
        if self.r_squared < R_SQUARED_MIN:
            worst = max(self.times_ns) / base_ns
            return (
                f"{self.axis}: the run time changes, up to {worst:.2f} times, but is no line over "
                f"it (R² {self.r_squared:.2f}): something else takes over on the way."
            )
        many = does.format(f"{self.count:,.0f}")
        return f"{self.axis}: {self.count:,.3g} ns for each {per}: the program {many}."


@dataclass(frozen=True)
class Findings:
    """All runs, and what they say of each axis that varied."""

    runs: list[Run]
    slopes: list[Slope]

    @property
    def base(self) -> Run:
        return self.runs[0]

    @staticmethod
    def of(runs: Sequence[Run]) -> "Findings":
        """The first is that on the network to begin with."""
        base = runs[0].point
        slopes = []
        for axis, name in zip(AXES, [field.name for field in fields(Point)], strict=True):
            others = [field.name for field in fields(Point) if field.name != name]
            found = [
                run for run in runs
                if all(getattr(run.point, each) == getattr(base, each) for each in others)
            ]  # fmt: skip
            if len(found) > 1:
                xs = [_x(axis, run.point) for run in found]
                slopes.append(Slope.of(axis, xs, [run.time_ns for run in found]))
        return Findings(list(runs), slopes)

    def sentences(self) -> list[str]:
        return [slope.sentence(self.base.time_ns) for slope in self.slopes]

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"findings": self.sentences()}, indent=1) + "\n"


def _x(axis: str, point: Point) -> float:
    if axis == "latency":
        return point.latency_ns
    if axis == "rate":
        return 1e9 / point.rate if point.rate else 0.0
    return 1e9 / point.bandwidth


def shown(found: Findings) -> display.Table:
    """All runs, for the terminal."""
    table = display.Table("<cable", ">lines a rank", ">link", ">run time", ">of the first",
                          ">computing")  # fmt: skip
    for run in found.runs:
        table.add_row(*cells(found, run))
    return table


def cells(found: Findings, run: Run) -> list[str]:
    """A row about a run."""
    point = run.point
    rate = "–" if point.rate is None else units.rate(point.rate)
    return [
        f"+{point.latency_ns:g} ns", rate, units.bandwidth(point.bandwidth),
        units.time_ns(run.time_ns), f"{run.time_ns / found.base.time_ns:.3f}",
        f"{run.computing:.1%}",
    ]  # fmt: skip
