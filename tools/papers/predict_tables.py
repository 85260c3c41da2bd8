# SPDX-License-Identifier: Apache-2.0
"""What `velo predict` says, in tables for terminal and page.

Tables II to IV are those of the high-message-rates paper, section VI.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from papers.extrapolation import BEYOND_MAX, R_SQUARED_MIN
from papers.prediction import LARGE_BYTES, SMALL_BYTES, Results, Run
from velo import units
from velo.display import Console, Table

NONE = "–"
MANY = 10.0


@dataclass(frozen=True)
class Sheet:
    """A table as text, as velo.report.page's Grid, and what is said below it."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int
    note: str = ""


def show(results: Results, console: Console) -> None:
    """On the terminal."""
    for sheet in sheets(results):
        head = (f"{'<' if n < sheet.texts else '>'}{name}" for n, name in enumerate(sheet.headings))
        table = Table(*head, title=sheet.title)
        for row in sheet.rows:
            table.add_row(*row)
        console.print(table)
        console.print()
    for line in unfit(results):
        console.print(line, style="yellow")
    for line in results.absent:
        console.print(f"not run: {line}", style="yellow")


def unfit(results: Results) -> list[str]:
    """What was not predicted, since nothing fits what was seen."""
    return [
        f"no prediction by {variation.name}, {fit.name}: the curve does not fit the runs; the "
        "program's time follows something else, or too little of it is communication"
        for variation in results.variations
        for fit in variation.fits
        if not fit.quality.is_fit
    ]


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
        texts=2,
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
        texts=1,
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
            if not fit.quality.is_fit:
                shown += ", no fit"
            rows.append([variation.name, fit.name, fit.formula, shown, f"{fit.quality.worst:.2%}"])
    return Sheet(
        "Run time, fitted",
        ("varied", "curve", "time, base = 1", "R²", "worst"),
        rows,
        texts=3,
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
        texts=2,
        note=f"Curves with an R² below {R_SQUARED_MIN} are not followed, nor those that make a "
        f"program faster than {BEYOND_MAX:g} times what the hardware is. Table II takes 300 MHz "
        "with 64 bits for 600 MHz with 32, and 800 MHz with 128 for 2,400; “measured” is the "
        "message rate that this hardware really has. Off by: performance predicted over that "
        "of the run, less one.",
    )
