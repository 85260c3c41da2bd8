# SPDX-License-Identifier: Apache-2.0
"""The page of `velo predict`: its tables, and figures 5 to 7 of the high-message-rates paper."""

import math
from pathlib import Path

from markupsafe import Markup

from papers.predict_tables import sheets
from papers.prediction import LARGE_BYTES, SMALL_BYTES, Results, Variation
from velo.report import plots
from velo.report.page import Figure, template

TEMPLATE = Path(__file__).with_name("predict_page.html.j2")
STEPS = 100  # Of a curve that is drawn.


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
    drawn: list[plots.Curve] = []
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
