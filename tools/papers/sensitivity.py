# SPDX-License-Identifier: Apache-2.0
"""Tables II to IV and figures 5 to 8 of the high-message-rates paper, for the page of `velo paper`.

They are a run of `velo predict` with RandomAccess, whose results are read back and set beside what
the paper states. WRF is not run: its rows say what the paper's own curve for WRF makes of our
hardware.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from papers import experiments, points, predict_page, predict_tables, prediction
from papers.extrapolation import Exponential, performance
from papers.predict_tables import Sheet
from papers.prediction import PAPER, TECHNOLOGIES, Results
from velo import tree
from velo.report.page import Figure

NONE = "–"
NODES = 8
# The paper's ranks. A smaller table than that of the other runs, since this program runs on each of
# twelve networks.
RANKS, TABLE_LOG2 = 64, 14
QUICK_RANKS, QUICK_TABLE_LOG2 = 16, 10
QUICK = ("--rates", "80", "--clocks", "75", "--no-direct")
METRIC = '"value":([0-9.e+]+)'
# Table III, in shares of what 156 MHz has: rate, bandwidth, latency.
TABLE_III = {
    "140 MHz": (0.8862, 0.9264, 0.9316),
    "125 MHz": (0.7921, 0.8523, 0.8718),
    "117 MHz": (0.7461, 0.8089, 0.8379),
}
# Table IV, GUP/s and GFLOP/s: the prototype's, then for 300 and 800 MHz by rate and by frequency.
GUPS_BASE, GUPS_BY_RATE, GUPS_BY_CLOCK = 0.20853, (1.452, 1.895), (1.538, 1.896)
WRF_BASE, WRF_BY_RATE, WRF_BY_CLOCK = 48.50262, (81.833, 88.161), (79.319, 88.180)
# Section VI.B: WRF's share of time in MPI, with 64 processes on 8 nodes.
WRF_MPI_SHARE = 0.45


@dataclass(frozen=True)
class Section:
    """What the page shows."""

    command: str
    sheets: Sequence[Sheet]
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Prediction:
    """The call of velo predict, as experiments.measure() takes it."""

    is_quick: bool

    @property
    def title(self) -> str:
        return "RandomAccess on slower hardware, and predicted on faster"

    def words(self, folder: Path) -> list[str]:
        ranks, table_log2 = RANKS, TABLE_LOG2
        if self.is_quick:
            ranks, table_log2 = QUICK_RANKS, QUICK_TABLE_LOG2
        cycles = round(PAPER.cable_ns * PAPER.clock_mhz / 1000)
        return [
            "predict", "--topology", points.EIGHT_NODES[PAPER.width_bits],
            "--ranks-a-node", str(ranks // NODES), "--clock-mhz", f"{PAPER.clock_mhz:g}",
            "--cable-cycles", str(cycles), "--metric", METRIC, *(QUICK if self.is_quick else ()),
            "--json", str(folder / "predict.json"), "--", str(tree.find("velo-mpi-perf")),
            "gups", "--no-limit", "--batches", "1", "--table-log2", str(table_log2),
        ]  # fmt: skip

    def read(self, folder: Path, said: str) -> tuple[str, Callable[[experiments.Results], None]]:
        del said
        text = (folder / "predict.json").read_text(encoding="utf-8")
        found = prediction.from_dict(json.loads(text))
        return f"{len(found.variations[0].runs)} rates", partial(_add, found=found)


def _add(results: experiments.Results, found: Results) -> None:
    results.prediction = found


def section(results: Results | None) -> Section | None:
    """None if it was not run."""
    if results is None:
        return None
    _, _, fits, predictions = predict_tables.sheets(results)
    sheets = [_table_iii(results), _table_iv(results), fits, predictions]
    if results.direct:
        sheets.append(_wrf(results))
    return Section(results.base.command, sheets, predict_page.figures(results))


def _per_cent(value: float) -> str:
    return f"{100 * value:.1f}"


def _table_iii(results: Results) -> Sheet:
    base = results.base
    rows = []
    for run in results.variations[1].runs:
        theirs = TABLE_III.get(run.point.name)
        ours = (run.rate / base.rate, run.bandwidth / base.bandwidth,
                base.latency_ns / run.latency_ns)  # fmt: skip
        cells = [
            cell
            for at, value in enumerate(ours)
            for cell in (_per_cent(theirs[at]) if theirs else NONE, _per_cent(value))
        ]
        rows.append([run.point.name, *cells, _per_cent(results.relative(run))])
    return Sheet(
        "Table III: what the clock does, in per cent of 156 MHz",
        ("clock", "rate: paper", "ours", "bandwidth: paper", "ours", "latency: paper", "ours",
         "RandomAccess: ours"),
        rows,
        texts=1,
        note="The paper's are means over all message sizes; ours are 8 B for rate and latency, "
        "1 KiB for bandwidth.",
    )  # fmt: skip


def _table_iv(results: Results) -> Sheet:
    rows = []
    for at, technology in enumerate(TECHNOLOGIES):
        name = technology.point.name
        for way, theirs in (("frequency", GUPS_BY_CLOCK), ("message rate", GUPS_BY_RATE)):
            found = next(
                (p for p in results.predictions
                 if p.technology == name and p.by == f"{way}, Table II"), None,
            )  # fmt: skip
            if found is None:
                continue
            ours = [
                NONE if value is None else f"{value / results.base.performance:.2f}"
                for value in (*found.performances, found.direct)
            ]
            rows.append([name, way, f"{theirs[at] / GUPS_BASE:.2f}", *ours])
    curves = [fit.name for fit in results.variations[0].fits]
    return Sheet(
        "Tables II and IV: RandomAccess on newer hardware, in multiples of 156 MHz",
        ("hardware", "predicted by", "paper", *(f"ours: {name}" for name in curves), "run there"),
        rows,
        texts=2,
        note="The paper had no such hardware to run on. No agreement is to be expected: in the "
        "paper 11 % of the time is computing, here computing is free.",
    )


def _wrf(results: Results) -> Sheet:
    rows = []
    for at, run in enumerate(results.direct):
        rate = run.rate / results.base.rate
        rows.append(
            [run.name, f"{WRF_BY_RATE[at]:.1f}", f"{WRF_BY_CLOCK[at]:.1f}", _per_cent(rate),
             f"{wrf_gflops(rate):.1f}"]
        )  # fmt: skip
    return Sheet(
        "Figure 8 and table IV: WRF, GFLOP/s",
        ("hardware", "paper, by rate", "by frequency", "our message rate, per cent",
         "the paper's curve there"),
        rows,
        texts=1,
        note="WRF was not run. The last column follows the paper's curve (45 % of the time is MPI, "
        "the decay from its value at 400 % of the message rate) to the rate that our hardware was "
        "measured to have, with 48.5 GFLOP/s at 156 MHz as in the paper.",
    )  # fmt: skip


def wrf_gflops(x: float) -> float:
    """By the paper's curve at this relative message rate."""
    computing = 1 - WRF_MPI_SHARE
    known = WRF_BASE / WRF_BY_RATE[0]
    decay = -math.log((known - computing) / WRF_MPI_SHARE) / (TECHNOLOGIES[0].rate - 1)
    return WRF_BASE * (performance(Exponential(computing, decay), x) or 0)
