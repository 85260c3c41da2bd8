# SPDX-License-Identifier: Apache-2.0
"""What a prediction consists of, and how it follows from the runs."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from papers import extrapolation
from papers.extrapolation import Curve, Quality, Sample
from papers.points import EXTOLL_POINTS, Point

SMALL_BYTES, LARGE_BYTES = 8, 1024


@dataclass(frozen=True)
class Technology:
    """Faster hardware, and what Table II takes it for."""

    point: Point
    rate: float
    """Its message rate, relative to that of the paper's own hardware."""
    equivalent_mhz: float
    """The clock at which 32 bits would be as fast."""


# Table II's base: 156 MHz, 32 bits.
PAPER = EXTOLL_POINTS[0]
TECHNOLOGIES = (
    Technology(EXTOLL_POINTS[1], 4.0, 600),
    Technology(EXTOLL_POINTS[2], 10.0, 2400),
)


@dataclass
class Run:
    """Hardware, what micro-benchmarks measure on it, and what the program does there."""

    name: str
    point: Point
    delay_ns: int = 0
    topology: str | None = None
    """If it is another one than the base's."""
    rate: float = 0
    latency_ns: float = 0
    bandwidth: float = 0
    performance: float = 0
    """The metric; without one, runs per second of virtual time."""
    virtual_us: float = 0
    computing: float = 0
    """Share of the ranks' virtual time that was charged for computing."""
    hash: str = ""
    command: str = ""


@dataclass
class Fit:
    """A curve through the runs of a variation."""

    name: str
    formula: str
    curve: Curve
    quality: Quality


@dataclass
class Variation:
    """The runs that were slowed down in one way."""

    name: str
    runs: list[Run]
    xs: list[float]
    """Relative to the base."""
    fits: list[Fit] = field(default_factory=list)


@dataclass(frozen=True)
class Prediction:
    """What the curves of a variation say of a technology, and what it does when run."""

    technology: str
    by: str
    x: float
    performances: list[float | None]
    """In the order of the fits; None: the curve does not say, see follow()."""
    direct: float | None


@dataclass
class Results:
    """All of it."""

    program: list[str]
    metric: str | None
    computing: float
    """Share of the base's time that stays on any hardware."""
    base: Run
    variations: list[Variation]
    direct: list[Run]
    absent: list[str]
    predictions: list[Prediction] = field(default_factory=list)

    def relative(self, run: Run) -> float:
        return run.performance / self.base.performance

    def samples(self, variation: Variation) -> list[Sample]:
        times = [1 / self.relative(run) for run in variation.runs]
        return [Sample(1, 1), *map(Sample, variation.xs, times)]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def from_dict(said: dict[str, Any]) -> Results:
    """What Results.to_json() wrote; curves and predictions are made anew from the runs."""

    def run(fields: dict[str, Any]) -> Run:
        return Run(**fields | {"point": Point(**fields["point"])})

    variations = [
        Variation(v["name"], [run(each) for each in v["runs"]], v["xs"]) for v in said["variations"]
    ]
    direct = [run(each) for each in said["direct"]]
    results = Results(said["program"], said["metric"], said["computing"], run(said["base"]),
                      variations, direct, said["absent"])  # fmt: skip
    conclude(results)
    return results


def conclude(results: Results) -> None:
    """Fit the curves, and follow them."""
    by_rate, by_clock = results.variations
    for variation in results.variations:
        samples = results.samples(variation)
        for name, curve in (
            ("exponential", extrapolation.fit_exponential(samples, results.computing)),
            ("a + b / x", extrapolation.fit_inverse(samples)),
        ):
            quality = extrapolation.quality(curve, samples)
            variation.fits.append(Fit(name, curve.formula, curve, quality))
    base = results.base
    for technology in TECHNOLOGIES:
        name = technology.point.name
        run = next((run for run in results.direct if run.name == name), None)
        # Table II counts from the paper's clock.
        rate = technology.rate * PAPER.clock_mhz / base.point.clock_mhz
        ways = [(by_rate, "message rate, Table II", rate)]
        ways += [(by_rate, "message rate, measured", run.rate / base.rate)] if run else []
        frequency = technology.equivalent_mhz / base.point.clock_mhz
        ways += [(by_clock, "frequency, Table II", frequency)]
        for variation, by, x in ways:
            found = [extrapolation.follow(fit.curve, fit.quality, x) for fit in variation.fits]
            values = [None if value is None else value * base.performance for value in found]
            truth = run.performance if run else None
            results.predictions.append(Prediction(name, by, x, values, truth))
