# SPDX-License-Identifier: Apache-2.0
"""The report's figures, as SVG text to be put into a page.

Colours and fonts are left to the page: every colour drawn here is a key that becomes a CSS
variable, so that one picture serves light, dark and print. The series colours are those of Okabe
and Ito, and every series has its own marker as well.
"""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from velo import units
from velo.results import stats
from velo.results.records import METRICS, VELO, Record

# Drawn colour -> CSS variable.
INK, MUTED, GRID, LIMIT = "#010101", "#020202", "#030303", "#040404"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#9b6a3c")
GREY = 6
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
CSS_NAMES = {INK: "--ink", MUTED: "--muted", GRID: "--grid", LIMIT: "--limit"} | {
    colour: f"--series-{i}" for i, colour in enumerate(SERIES)
}

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelpad": 8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.constrained_layout.use": True,
}
FIGURE_INCHES = (6.6, 3.9)
LOG_FROM = 30  # Values further apart than that are shown by their logarithm.
TALL_INCHES = (6.6, 5.4)  # Where many lines share one figure.
TARGET_STYLE: dict[str, Any] = {"color": MUTED, "linestyle": (0, (1, 2)), "linewidth": 1.4}
LIMIT_STYLE: dict[str, Any] = {"color": LIMIT, "linestyle": (0, (5, 3)), "linewidth": 1.4}


@dataclass(frozen=True)
class Line:
    """One stack's records of one metric, by message size."""

    label: str
    records: tuple[Record, ...]
    index: int
    """Picks colour and marker; velo is 0, so that it looks the same in every figure."""

    @property
    def sizes(self) -> list[int]:
        return [r.size_bytes for r in self.records]

    @property
    def values(self) -> list[float]:
        return [r.value for r in self.records]

    @property
    def ratios(self) -> list[float]:
        return [r.ratio for r in self.records]

    @property
    def style(self) -> dict[str, Any]:
        return {
            "color": SERIES[self.index % len(SERIES)],
            "marker": MARKERS[self.index % len(MARKERS)],
            "linewidth": 2.4 if self.index == 0 else 1.5,
            "zorder": 3 if self.index == 0 else 2,
        }


def lines(records: Sequence[Record], mode: str, stacks: Sequence[str]) -> list[Line]:
    """The lines of a figure: one sender, the fewest pairs measured, sizes above 0."""
    out = []
    for index, stack in enumerate(stacks):
        mine = [
            r
            for r in records
            if (r.stack, r.mode, r.senders) == (stack, mode, 1) and r.size_bytes > 0
        ]
        fewest = min((r.pairs * r.threads for r in mine), default=0)
        newest = {r.size_bytes: r for r in mine if r.pairs * r.threads == fewest}
        if newest:
            out.append(Line(stack, tuple(newest[size] for size in sorted(newest)), index))
    return out


def by_size(
    drawn: Sequence[Line],
    *,
    ratio: bool = False,
    log_y: bool = False,
    limit_label: str = "",
    targets: Sequence[tuple[int, float]] = (),
    mark_half: bool = False,
    tall: bool = False,
) -> str:
    """Values, or ratios to the limit, over message size; the quartiles of velo as a band."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=TALL_INCHES if tall else FIGURE_INCHES)
        for line in drawn:
            axes.plot(line.sizes, line.ratios if ratio else line.values, label=line.label,
                      **line.style)  # fmt: skip
        velo = next((line for line in drawn if line.index == 0), None)
        if velo:
            low, high = _quartiles(velo, ratio)
            axes.fill_between(velo.sizes, low, high, color=SERIES[0], alpha=0.18, linewidth=0)
            if limit_label and not ratio:
                axes.plot(velo.sizes, [r.limit for r in velo.records], label=limit_label,
                          **LIMIT_STYLE)  # fmt: skip
        if ratio:
            axes.axhline(1, label="the limit itself", **LIMIT_STYLE)
        if targets:
            axes.plot(
                [size for size, _ in targets],
                [bound for _, bound in targets],
                label="target",
                linestyle="none",
                marker="_",
                markersize=16,
                markeredgewidth=2.5,
                color=MUTED,
                zorder=4,
            )
        size_axis(axes, [size for line in drawn for size in line.sizes])
        metric = METRICS[drawn[0].records[0].metric]
        axes.set_ylabel("ratio to the limit" if ratio else metric.label)
        _value_axis(axes, (lambda y: f"{y:g}") if ratio else metric.show, log_y)
        if velo and mark_half:
            _mark_half_size(axes, velo)
        axes.legend(loc="best")
        return to_svg(figure, f"{drawn[0].records[0].mode} {metric.label} {ratio}")


@dataclass(frozen=True)
class Curve:
    """Values over anything, with a name."""

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    index: int
    is_formula: bool = False
    """Drawn as a line without points."""

    @property
    def style(self) -> dict[str, Any]:
        formula = {"marker": "", "linestyle": (0, (6, 2)), "linewidth": 1.5}
        return Line("", (), self.index).style | (formula if self.is_formula else {})


def curves(
    drawn: Sequence[Curve],
    marks: Sequence[tuple[str, float, float]],
    x_label: str,
    y_label: str,
    show: Callable[[float], str],
) -> str:
    """Curves, and single points (label, x, y); x is marked where there are points."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=FIGURE_INCHES)
        for curve in drawn:
            axes.plot(curve.xs, curve.ys, label=curve.label, **curve.style)
        for number, (label, x, y) in enumerate(marks):
            axes.plot([x], [y], label=label, linestyle="none", color=LIMIT, markersize=9,
                      marker=("*", "X")[number % 2], zorder=4)  # fmt: skip
        xs = sorted({x for curve in drawn for x in curve.xs} | {x for _, x, _ in marks})
        if x_label == "message size":
            size_axis(axes, [round(x) for x in xs])
        else:
            points = [c.xs for c in drawn if not c.is_formula] + [[x for _, x, _ in marks]]
            axes.xaxis.set_major_locator(FixedLocator(sorted({x for part in points for x in part})))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.3g}"))
            left = 0 if xs[0] < xs[-1] / 2 else xs[0]
            room = 0.06 * (xs[-1] - left) or 0.5
            axes.set_xlim(left - room if left else 0, xs[-1] + room)
            axes.set_xlabel(x_label)
        ys = [y for curve in drawn for y in curve.ys] + [y for _, _, y in marks]
        axes.set_ylabel(y_label)
        _value_axis(axes, show, max(ys) > LOG_FROM * min(ys))
        axes.legend(loc="best")
        return to_svg(figure, f"{y_label} {[curve.label for curve in drawn]} {marks}")


def senders(records: Sequence[Record], targets: Sequence[tuple[int, float]]) -> str:
    """Half round trip, as a multiple of that with one sender, over connected senders."""
    one = next(r for r in records if r.senders == 1)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=FIGURE_INCHES)
        counts = [r.senders for r in records]
        axes.plot(counts, [r.ratio / one.ratio for r in records], label=VELO, color=SERIES[0],
                  marker=MARKERS[0], linewidth=2.4)  # fmt: skip
        if targets:
            axes.plot([c for c, _ in targets], [b for _, b in targets], label="target",
                      color=MUTED, linestyle="none", marker="_", markersize=22,
                      markeredgewidth=2.5)  # fmt: skip
        for r in records:
            axes.annotate(r.show(r.value), (r.senders, r.ratio / one.ratio), xytext=(0, -18),
                          textcoords="offset points", ha="center", fontsize=10)  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_xlim(counts[0] / 1.6, counts[-1] * 1.6)
        axes.xaxis.set_major_locator(FixedLocator(counts))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
        axes.set_xlabel("connected senders, one of them active")
        axes.set_ylabel("× the half round trip of one sender")
        axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
        axes.legend(loc="lower right")
        return to_svg(figure, "senders")


def bars(rows: Sequence[tuple[str, float, str]], show: Callable[[float], str]) -> str:
    """Horizontal bars with their values written at their ends; rows are (label, value, colour)."""
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, axes = plt.subplots(figsize=(FIGURE_INCHES[0], 0.6 + 0.55 * len(rows)))
        for y, (_, value, colour) in enumerate(rows):
            axes.barh(y, value, color=colour, height=0.6)
            axes.annotate(show(value), (value, y), xytext=(6, 0), textcoords="offset points",
                          va="center")  # fmt: skip
        axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.2 * max(value for _, value, _ in rows))
        axes.tick_params(length=0)
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        return to_svg(figure, f"bars {rows}")


def beside_limit(
    rows: Sequence[tuple[str, float, float, str]], show: Callable[[float], str]
) -> str:
    """Horizontal bars of which the limit is the dark part; rows are (label, value, limit,
    colour)."""
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, axes = plt.subplots(figsize=(9.6, 0.5 + 0.42 * len(rows)))
        for y, (_, value, limit, colour) in enumerate(rows):
            dark = min(limit, value)
            axes.barh(y, dark, color=LIMIT, height=0.62)
            axes.barh(y, value - dark, left=dark, color=colour, height=0.62)
            axes.annotate(show(value), (value, y), xytext=(6, 0), textcoords="offset points",
                          va="center")  # fmt: skip
        axes.set_yticks(range(len(rows)), [label for label, *_ in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.12 * max(value for _, value, *_ in rows))
        axes.tick_params(length=0)
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        return to_svg(figure, f"beside limit {rows}")


def histogram(values_ns: np.ndarray[Any, Any], marks: dict[str, float]) -> str:
    """How many of the values lie where, both axes logarithmic; marked are those of `marks`."""
    low, high = float(values_ns.min()), float(values_ns.max())
    # A tenth more on each side, so that equal values are a bar and not a line.
    bins = np.geomspace(low / 1.1, high * 1.1, 60)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=FIGURE_INCHES)
        counts, _ = np.histogram(values_ns, bins)
        axes.stairs(counts, bins, fill=True, color=SERIES[0])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(0.7, 0.7 * (counts.max() / 0.7) ** 1.35)  # Room for the marks' names.
        for (name, value), place in zip(marks.items(), (0.97, 0.89, 0.81), strict=False):
            axes.axvline(value, **LIMIT_STYLE)
            right = value > (low * high) ** 0.5
            axes.annotate(f"{name} {units.time_ns(value)}", (value, place),
                          xycoords=("data", "axes fraction"), xytext=(-5 if right else 5, 0),
                          textcoords="offset points", ha="right" if right else "left",
                          va="top", fontsize=10)  # fmt: skip
        _log_ticks(axes, bins[0], bins[-1], units.time_ns)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _short(units.short(y))))
        axes.set_xlabel("latency")
        axes.set_ylabel("messages")
        return to_svg(figure, f"histogram {counts}")


def rate_by_time(times_us: np.ndarray[Any, Any], begin_us: float, end_us: float) -> str:
    """Events a second over time."""
    counts, edges = np.histogram(times_us, bins=120, range=(begin_us, end_us))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=FIGURE_INCHES)
        rates = counts / (edges[1] - edges[0]) * 1e6
        axes.stairs(rates, edges, fill=True, color=SERIES[0])
        axes.set_xlim(begin_us, end_us)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _short(units.short(y))))
        _time_axis(axes)
        axes.set_ylabel("messages a second")
        return to_svg(figure, f"rate {counts}")


def heat_map(
    names: Sequence[str], edges_us: np.ndarray[Any, Any], use: np.ndarray[Any, Any]
) -> str:
    """Shares from 0 to 1 by name and time: the less, the more the page shines through."""
    rows = len(names)
    inches = (2 * FIGURE_INCHES[0], min(max(1.2 + 0.2 * rows, 2.2), 11))
    step = -(-rows // 50)  # Names that do not touch.

    def colours(shares: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        red, green, blue = (int(SERIES[1][i : i + 2], 16) / 255 for i in (1, 3, 5))
        image = np.empty((*shares.shape, 4))
        image[...] = (red, green, blue, 0)
        image[..., 3] = np.clip(shares, 0, 1)
        return image

    with plt.rc_context(STYLE | {"axes.grid": False, "axes.spines.left": False}):
        figure, (axes, key) = plt.subplots(
            ncols=2, figsize=inches, gridspec_kw={"width_ratios": (60, 1)}
        )
        axes.imshow(colours(use), aspect="auto", interpolation="nearest",
                    extent=(edges_us[0], edges_us[-1], rows - 0.5, -0.5))  # fmt: skip
        axes.set_yticks(range(0, rows, step), names[::step])
        axes.tick_params(axis="y", length=0)
        axes.set_yticks(np.arange(0.5, rows - 1), minor=True)
        axes.tick_params(axis="y", which="minor", length=0)
        if step == 1:
            axes.grid(axis="y", which="minor")
        _time_axis(axes)
        shares = np.linspace(1, 0, 100)[:, None]
        key.imshow(colours(shares), aspect="auto", extent=(0, 1, 0, 100))
        key.set_xticks([])
        key.yaxis.tick_right()
        key.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0f} %"))
        key.tick_params(axis="y", length=0)
        return to_svg(figure, f"heat {names} {use.sum()}")


def _time_axis(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    axes.set_xlabel("virtual time [µs]")


def _log_ticks(axes: Axes, low: float, high: float, show: Callable[[float], str]) -> None:
    """Round values on a logarithmic x axis, of which no more than ten."""
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10**k for k in range(15) for m in steps if low <= m * 10**k <= high]
        if len(ticks) <= 10:
            break
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _short(show(x))))


def _quartiles(line: Line, ratio: bool) -> tuple[list[float], list[float]]:
    names = ("ratio_q1", "ratio_q3") if ratio else ("q1", "q3")
    low, high = ([getattr(r, name) for r in line.records] for name in names)
    return low, high


def size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    low, high = min(sizes), max(sizes)
    ticks = [1 << k for k in range(25) if low <= 1 << k <= high]
    # At most ten labels, or they touch.
    axes.xaxis.set_major_locator(FixedLocator(ticks[:: 1 + len(ticks) // 10]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: units.size(round(x))))
    axes.set_xlabel("message size")


def _value_axis(axes: Axes, show: Callable[[float], str], log_y: bool) -> None:
    if log_y:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        # A log axis of less than a decade needs closer marks than 1, 2, 5.
        steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7) if high / low < 8 else (1, 2, 5)
        ticks = [m * 10**k for k in range(12) for m in steps if low <= m * 10**k <= high]
        axes.yaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _short(show(y)) if y else "0"))


def _short(text: str) -> str:
    """Without decimals that are all zero: an axis shows round values."""
    return re.sub(r"\.0+(?![\d.])", "", text)


def _mark_half_size(axes: Axes, line: Line) -> None:
    half = stats.half_size(line.sizes, line.values)
    if half is None:
        return
    best = max(line.values)
    axes.plot([half, half], [0, best / 2], **TARGET_STYLE)
    axes.annotate(f"N½ = {half:.0f} B", (half, best / 2), xytext=(-8, 4),
                  textcoords="offset points", ha="right")  # fmt: skip


def to_svg(figure: Figure, name: str) -> str:
    """The figure as an <svg> element whose ids cannot clash with those of another figure."""
    out = io.StringIO()
    with plt.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    plt.close(figure)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Clip paths and markers are referred to; the ids of groups are not, and repeat in every figure.
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    for colour, css in CSS_NAMES.items():
        text = text.replace(colour, f"var({css})")
    # The view box says the proportions; the page says the width.
    return re.sub(r'(<svg[^>]*?) width="[^"]*"| height="[0-9.]+pt"', r"\1", text)
