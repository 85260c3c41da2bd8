# SPDX-License-Identifier: Apache-2.0
"""What `velo bench` and `velo report --targets` say beside the results: what velo aims at, met or
missed, and the bare programs that it is judged by."""

from collections.abc import Sequence

from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter

from bench import mpi_targets, targets
from velo import units
from velo.display import Console, Table, paint
from velo.report import mpi_report, plots
from velo.report.page import NONE, Aims, Grid, without_empty_columns
from velo.results.figures import BESIDE_MPI, LATENCY, MpiFigures, has_records, main_class
from velo.results.records import CLASSES, LIMITS, VELO, Record


def aims(records: Sequence[Record], hop: str) -> Aims:
    """What a page shows of it."""
    cliffs = _cliffs([r for r in records if r.hop == hop], mpi_report.ordered(records))
    return Aims(
        tables(records, hop),
        limits(records),
        [cliffs] if cliffs else [],
        list(targets.LATENCY_BOUNDS.items()),
        list(targets.SENDERS_BOUNDS.items()),
    )


def show(found: Sequence[Record], console: Console) -> None:
    """The tables of targets: target, measured, met or missed."""
    hop = main_class(found)
    for _, outcomes in tables(found, hop):
        _show_outcomes(outcomes, hop, console)


def tables(found: Sequence[Record], hop: str) -> list[tuple[str, list[targets.Outcome]]]:
    """The tables of targets of which at least one was measured, each with its title."""
    has_mpi = has_records(found)
    out = []
    if any(r.stack == VELO and r.mode not in BESIDE_MPI for r in found) or not has_mpi:
        out.append(("Messages", targets.judge(found, hop)))
    if has_mpi:
        out.append(("MPI", mpi_targets.judge(found, hop)))
    return [(title, outcomes) for title, outcomes in out if any(o.measured for o in outcomes)]


def _show_outcomes(outcomes: Sequence[targets.Outcome], hop: str, console: Console) -> None:
    has_bare = any(outcome.bare for outcome in outcomes)
    bare = [">bare"] if has_bare else []
    table = Table(f"<target ({hop})", ">wanted", ">measured", *bare, "<verdict", "<from")
    styles = {True: "green", False: "red", None: "dim"}
    for outcome in outcomes:
        verdict = paint(outcome.verdict, styles[outcome.met])
        table.add_row(
            outcome.target.what,
            outcome.target.wanted,
            outcome.ratio,
            *([outcome.bare_ratio] if has_bare else []),
            verdict,
            outcome.detail,
        )
    console.print(table)


def limits(records: Sequence[Record]) -> Grid:
    """The limits by themselves, in the order in which LIMITS describes them."""
    found: dict[tuple[str, int], dict[str, Record]] = {}
    for r in records:
        if r.mode == "limit" and r.limit_name in LIMITS:
            found.setdefault((r.limit_name, r.size_bytes), {})[r.hop] = r
    order = list(LIMITS)
    rows = [
        (LIMITS[name], units.size(size_bytes), *(_shown(both.get(h)) for h in CLASSES))
        for (name, size_bytes), both in sorted(
            found.items(), key=lambda item: (order.index(item[0][0]), item[0][1])
        )
    ]
    return without_empty_columns(Grid("", ("limit", "size", *CLASSES), tuple(rows)))


def _shown(record: Record | None) -> str:
    return record.show(record.value) if record else NONE


def _cliffs(mine: Sequence[Record], stacks: Sequence[str]) -> mpi_report.Picture | None:
    figures = MpiFigures(mine, mine[0].hop) if mine else None
    found = {}
    for index, stack in enumerate(stacks):
        ups = mpi_targets.steps(figures.sizes(stack, LATENCY)) if figures else []
        if ups:
            found[stack] = (index, [(step.whole.size_bytes, step.ratio) for step in ups])
    if not found:
        return None
    return mpi_report.Picture(
        "Cliffs",
        _steps(found, mpi_targets.CLIFF_FACTOR),
        "Half round trip of each size, less 30 ns, over that of half the size. A step above the "
        "dotted line is a cliff.",
    )


def _steps(found: dict[str, tuple[int, list[tuple[int, float]]]], bound: float) -> str:
    """Ratios of each size to half of it, over size; by stack: its colour and its points."""
    with plt.rc_context(plots.STYLE):
        figure, axes = plt.subplots(figsize=plots.FIGURE_INCHES)
        for stack, (index, points) in found.items():
            style = plots.Line(stack, (), index).style
            axes.plot([s for s, _ in points], [y for _, y in points], label=stack, **style)
        axes.axhline(bound, label=f"target: at most {bound:g}", **plots.TARGET_STYLE)
        plots.size_axis(axes, [size for _, points in found.values() for size, _ in points])
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.set_ylabel("time over that of half the size")
        axes.legend(loc="best", ncols=2)
        return plots.to_svg(figure, "steps")
