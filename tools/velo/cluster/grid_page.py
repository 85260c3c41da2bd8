# SPDX-License-Identifier: Apache-2.0
"""The page of `velo what-if`: a picture of each axis, what it says, and all runs."""

from pathlib import Path

from markupsafe import Markup

from velo import units
from velo.cluster.grid import Findings, Slope, cells
from velo.report import plots
from velo.report.page import Figure, template

TEMPLATE = Path(__file__).with_name("grid_page.html.j2")
LABELS = {
    "latency": "ns that each cable takes more",
    "rate": "ns between two lines of a rank",
    "bandwidth": "ns a byte of a link",
}


def render(found: Findings) -> str:
    """The page as text."""
    return template(TEMPLATE).render(
        found=found,
        figures=[_figure(found, slope) for slope in found.slopes],
        rows=[(cells(found, run), run) for run in found.runs],
        base=found.base,
        base_time=units.time_ns(found.base.time_ns),
    )


def _figure(found: Findings, slope: Slope) -> Figure:
    pairs = sorted(zip(slope.xs, slope.times_ns, strict=True))
    curve = plots.Curve("run time", [x for x, _ in pairs], [t for _, t in pairs], 0)
    svg = plots.curves([curve], (), LABELS[slope.axis], "run time", units.time_ns)
    return Figure(slope.axis, Markup(svg), slope.sentence(found.base.time_ns))
