# SPDX-License-Identifier: Apache-2.0
"""What `velo predict` shows: tables for terminal and page, and the page's figures.

Tables II to IV and figures 5 to 7 are those of the high-message-rates paper, section VI.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from rich.console import Console
from rich.table import Table

from velo import units
from velo.cluster.prediction import LARGE_BYTES, SMALL_BYTES, Results, Run, Variation
from velo.report import plots
from velo.report.page import Figure, template

TEMPLATE = Path(__file__).with_name("predict_page.html.j2")
NONE = "–"
STEPS = 100  # Of a curve that is drawn.
MANY = 10.0


@dataclass(frozen=True)
class Sheet:
    """A table; all columns but the first ones that hold words are numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int
    note: str = ""


def show(results: Results, console: Console) -> None:
    """On the terminal."""
    for sheet in sheets(results):
        table = Table(title=sheet.title, title_justify="left", header_style="bold", box=None,
                      padding=(0, 2, 0, 0))  # fmt: skip
        for number, name in enumerate(sheet.head):
            table.add_column(name, justify="left" if number < sheet.words else "right")
        for row in sheet.rows:
            table.add_row(*row)
        console.print(table)
        console.print()
    for line in results.absent:
        console.print(f"not run: {line}", style="yellow", markup=False)


def render(results: Results) -> str:
    """The page as text."""
    return template(TEMPLATE).render(
        results=results,
        sheets=sheets(results),
        figures=figures(results),
        runs=[results.base, *(r for v in results.variations for r in v.runs), *results.direct],
        small_bytes=SMALL_BYTES,
        large_bytes=LARGE_BYTES,
    )  # fmt: skip


def sheets(results: Results) -> list[Sheet]:
    return [_hardware(results), _program(results), _fits(results), _predictions(results)]


def _per_cent(value: float) -> str:
    return f"{value:.1%}"


def _error(value: float | None, truth: float | None) -> str:
    if value is None or truth is None:
        return NONE
    ratio = value / truth
    return f"{ratio - 1:+.0%}" if ratio < MANY else f"{ratio:.3g} times"


def _performance(results: Results) -> tuple[str, Callable[[float], str]]:
    """What performance is called, and how it is shown: without a metric as the time it takes."""
    if results.metric is None:
        return "run time", lambda value: units.time_ns(1e9 / value)
    return "performance", lambda value: f"{value:.4g}"


def _hardware(results: Results) -> Sheet:
    base = results.base

    def row(run: Run) -> list[str]:
        return [
            run.name, run.point.name, f"{run.delay_ns} ns", units.rate(run.rate),
            _per_cent(run.rate / base.rate), units.bandwidth(run.bandwidth),
            _per_cent(run.bandwidth / base.bandwidth), units.time_ns(run.latency_ns),
            _per_cent(base.latency_ns / run.latency_ns),
        ]  # fmt: skip

    slower = [run for variation in results.variations for run in variation.runs]
    return Sheet(
        "What micro-benchmarks measure (Table III)",
        ("", "clock", "delay", f"messages, {SMALL_BYTES} B", "of base",
         f"bandwidth, {LARGE_BYTES} B", "of base", f"latency, {SMALL_BYTES} B", "of base"),
        [row(run) for run in (base, *slower, *results.direct)],
        words=2,
        note="Per cent are performance relative to the base: half the latency is 200 %.",
    )  # fmt: skip


def _program(results: Results) -> Sheet:
    name, show = _performance(results)
    base = results.base
    rows = [[base.name, "100.0%", show(base.performance), "100.0%", "", _per_cent(base.computing)]]
    for variation in results.variations:
        for x, run in zip(variation.xs, variation.runs, strict=True):
            relative = results.relative(run)
            rows.append(
                [run.name, _per_cent(x), show(run.performance), _per_cent(relative),
                 f"{100 * (relative - x):+.1f}", _per_cent(run.computing)]
            )  # fmt: skip
    return Sheet(
        "What the program does (figures 5 and 6)",
        ("", "hardware", name, "speed", "speed less hardware", "computing"),
        rows,
        words=1,
        note="Speed is performance relative to the base. Where it falls by less than the hardware "
        "the difference is above 0. Computing is the share of virtual time that was charged for "
        "it.",
    )


def _fits(results: Results) -> Sheet:
    rows = []
    for variation in results.variations:
        for fit in variation.fits:
            r_squared = fit.quality.r_squared
            shown = NONE if r_squared is None else f"{r_squared:.4f}"
            rows.append([variation.name, fit.name, fit.formula, shown, f"{fit.quality.worst:.2%}"])
    return Sheet(
        "Run time, fitted",
        ("varied", "curve", "time, base = 1", "R²", "worst"),
        rows,
        words=3,
        note="x is message rate or frequency, relative to the base. R² is the share of the times' "
        "variance that the curve explains, below 0 if their mean is the better guess; worst is the "
        "largest distance of a run from the curve.",
    )


def _predictions(results: Results) -> Sheet:
    name, show = _performance(results)
    fits = [fit.name for fit in results.variations[0].fits]
    rows = []
    for p in results.predictions:
        cells = [p.technology, p.by, _per_cent(p.x)]
        for value in p.performances:
            cells += [NONE if value is None else show(value), _error(value, p.direct)]
        rows.append([*cells, NONE if p.direct is None else show(p.direct)])
    heads = [word for fit in fits for word in (fit, "off by")]
    return Sheet(
        f"Predicted {name} (Tables II and IV), and the truth",
        ("hardware", "by", "x", *heads, "run there"),
        rows,
        words=2,
        note="Table II takes 300 MHz with 64 bits for 600 MHz with 32, and 800 MHz with 128 for "
        "2,400; “measured” is the message rate that this hardware really has. Off by: performance "
        "predicted over that of the run, less one.",
    )


def figures(results: Results) -> list[Figure]:
    """As figures 5, 6 and 7."""
    out = []
    for number, variation in enumerate(results.variations):
        title = f"Figure {5 + number}: run time over {variation.name}"
        out.append(Figure(title, Markup(_sensitivity(results, variation)), "Base = 1."))
    caption = "Dashed: the curves. Marked: the program on that hardware, at its relative frequency."
    return [*out, Figure("Figure 7: extrapolation", Markup(_extrapolation(results)), caption)]


def _sensitivity(results: Results, variation: Variation) -> str:
    samples = sorted(results.samples(variation), key=lambda sample: sample.x)
    xs = [sample.x for sample in samples]
    drawn = [plots.Curve("measured", xs, [sample.time for sample in samples], 0)]
    line = _between(xs[0], xs[-1])
    for number, fit in enumerate(variation.fits, start=1):
        ys = [fit.curve.time(x) for x in line]
        drawn.append(plots.Curve(fit.name, line, ys, number, is_formula=True))
    if results.computing:
        ys = [results.computing] * 2
        drawn.append(plots.Curve("computing", [xs[0], xs[-1]], ys, plots.GREY, is_formula=True))
    return plots.curves(drawn, (), variation.name, "run time", lambda y: f"{y:.2g}")


def _extrapolation(results: Results) -> str:
    line = _between(1, max(p.x for p in results.predictions))
    drawn = []
    for variation in results.variations:
        for fit in variation.fits:
            times = [fit.curve.time(x) for x in line]
            # Where time has all but gone there is nothing to be seen.
            points = [(x, 1 / t) for x, t in zip(line, times, strict=True) if t > 1e-3]
            drawn.append(
                plots.Curve(f"{variation.name}, {fit.name}", [x for x, _ in points],
                            [y for _, y in points], len(drawn), is_formula=True)
            )  # fmt: skip
    base = results.base.performance
    marks = [
        (f"run, {p.technology}", p.x, p.direct / base)
        for p in results.predictions
        if p.direct is not None and p.by.startswith("frequency")
    ]
    return plots.curves(
        drawn, marks, "message rate or frequency, base = 1",
        "performance, base = 1", lambda y: f"{y:.3g}",
    )  # fmt: skip


def _between(low: float, high: float) -> list[float]:
    step = math.log(high / low) / STEPS
    return [low * math.exp(step * number) for number in range(STEPS + 1)]
