# SPDX-License-Identifier: Apache-2.0
"""Figure 5 and the tables of the DIMMnet-2 paper, from the RTL's figures (make rtl-bench).

The RTL is that of whole boards, the host a model of the paper's PC: rtl/dimmnet_board/host.
"""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from velo import units
from velo.report import plots

NONE = "–"
SOURCE = "DIMMnet-2"
SMALLEST_BYTES = 16
# What each curve measures, and the paper's value of the smallest packet (section 4.2).
CASES = (
    ("a", "status seen, data in the Prefetch Window", 1890),
    ("b", "status seen, data in SO-DIMM", 1950),
    ("c", "data read from the Prefetch Window", 2280),
)
CYCLES = (
    ("command to last word sent, 16 B", "dimmnet_send_cycles", "33"),
    ("first word in to status, 16 B", "dimmnet_receive_cycles", "46"),
    ("of these for retransmission", "dimmnet_retransmission_cycles", "10 to 20, expected"),
)
TABLE_1 = (
    ("put", "SO-DIMM, Write Window", "SO-DIMM, Prefetch Window, LLCM"),
    ("get", "SO-DIMM, Prefetch Window", "SO-DIMM"),
)
TABLE_2 = (
    ("processor", "Pentium 4, 2.6 GHz", "modelled: caches, write-combining buffers, CLFLUSH"),
    ("chipset", "VIA VT8751A", "modelled; its times are assumed"),
    ("memory slot", "PC-1600", "the RTL's pins, commands in PC-1600's times"),
    ("board", "Virtex-II Pro XC2VP70, 100 MHz", "the RTL, 100 MHz; LiteDRAM before its SO-DIMMs"),
    ("cable", "InfiniBand 4X, 5 m", "25 ns, and 265 ns for serializers, assumed"),
    ("software", "gcc 3.3.5 -O3", "modelled: stores, fences, polls"),
)


@dataclass(frozen=True)
class Section:
    """What the page shows of the paper."""

    runs: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]
    """What, the paper's value, ours of each run."""
    figure: Markup
    differs: tuple[str, ...]
    table_1: tuple[tuple[str, str, str], ...] = TABLE_1
    table_2: tuple[tuple[str, str, str], ...] = TABLE_2


def section(cycles: dict[str, Any]) -> Section | None:
    """None: the boards were not measured."""
    series = cycles.get("dimmnet_figure5")
    if not series:
        return None
    runs = tuple(series)
    rows = [
        (f"({case}) {what}, 16 B", units.time_ns(paper),
         tuple(_shown(_at(series[run][case], SMALLEST_BYTES)) for run in runs))
        for case, what, paper in CASES
    ]  # fmt: skip
    rows += [
        (what, paper, (f"{cycles[key]:g} cycles", *([NONE] * (len(runs) - 1))))
        for what, key, paper in CYCLES
        if key in cycles
    ]
    return Section(runs, tuple(rows), _figure(series[runs[0]]), _differs(cycles, series[runs[0]]))


def _at(values: list[list[float]], size_bytes: float) -> float | None:
    return next((ns for size, ns in values if size == size_bytes), None)


def _shown(ns: float | None) -> str:
    return NONE if ns is None else units.time_ns(ns)


def _figure(run: dict[str, list[list[float]]]) -> Markup:
    curves = [
        plots.Curve(
            f"ours, ({case}) {what}", [x for x, _ in run[case]], [y for _, y in run[case]], at
        )
        for at, (case, what, _) in enumerate(CASES)
    ]
    marks = [(f"paper, ({case})", float(SMALLEST_BYTES), float(paper)) for case, _, paper in CASES]
    svg = plots.curves(curves, marks, "payload, bytes", "latency", units.time_ns)
    return Markup(svg)


def _differs(cycles: dict[str, Any], run: dict[str, list[list[float]]]) -> tuple[str, ...]:
    theirs = 33 + 46
    ours = cycles.get("dimmnet_send_cycles", 0) + cycles.get("dimmnet_receive_cycles", 0)
    gap = CASES[0][2] - (_at(run["a"], SMALLEST_BYTES) or 0)
    board = 10 * (theirs - ours)
    return (
        f"Of the {gap:.0f} ns between (a) and the paper's, {board:.0f} are the board's: "
        f"{theirs} clocks there, {ours} here, with retransmission, which theirs had not.",
        f"The other {gap - board:.0f} ns are host and wire: theirs take 1.1 µs, ours what the "
        "model's constants add up to. Its chipset and serializers are assumed, so that part "
        "compares no hardware.",
        "A time is the mean of four round trips. A poll sees a status up to 0.2 µs late, so that "
        "neighbouring points, and (a) and (b), differ by chance.",
        "The paper draws its curve without values; only those of 16 bytes are in its text.",
    )
