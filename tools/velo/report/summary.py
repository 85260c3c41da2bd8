# SPDX-License-Identifier: Apache-2.0
"""The page of result files: headline figures, targets, plots and every record."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from velo import tree, units
from velo.errors import VeloError, writing
from velo.report import mpi_report, plots, python_report, tables
from velo.report.names import explained
from velo.report.opening import opening
from velo.report.page import NO_AIMS, Aims, Figure, Grid, Tile, template, without_empty_columns
from velo.results import stats
from velo.results.figures import BATCHES_MIN, Figures, main_class
from velo.results.records import FAR, NEAR, VELO, Record, load

Judge = Callable[[Sequence[Record], str], Aims]
TEMPLATE = Path(__file__).with_name("summary.html.j2")


def write(inputs: Sequence[Path], output: Path, judge: Judge | None = None) -> None:
    """Make the page of all records of the inputs."""
    records = [record for path in inputs for record in load(path)]
    if not records:
        raise VeloError(f"no records in {', '.join(map(str, inputs))}; nothing to report")
    page = render(records, judge)
    with writing(output):
        output.write_text(page, encoding="utf-8")


def render(records: Sequence[Record], judge: Judge | None = None) -> str:
    """The page as text; `judge` adds what velo aims at, for those who work on it."""
    hop = main_class(records)
    aims = judge(records, hop) if judge else NO_AIMS
    runs = list({r.run: None for r in records if r.run.id or r.run.machine})
    begin = opening(records, hop)
    mpi_grids = mpi_report.grids(records, hop)
    rows = [row for grid in (begin.grid, *mpi_grids) if grid for row in grid.rows]
    return template(TEMPLATE).render(
        hop=hop,
        velo="build/bin/velo" if tree.CHECKOUT else "velo",
        words=explained([begin.conclusion, *(cell for row in rows for cell in row)]),
        near_max=units.time_ns(stats.NEAR_MAX_NS),
        machines=sorted({run.machine for run in runs if run.machine}),
        versions=sorted({run.version for run in runs if run.version}),
        times=sorted({run.time for run in runs if run.time}),
        commands=list({run.command: None for run in runs if run.command}),
        tiles=tiles(records, hop),
        figures=figures(records, hop, aims),
        opening=begin,
        limits=aims.limits,
        configs=sorted({(r.stack, r.config) for r in records if r.config}),
        target_tables=aims.tables,
        mpi_figures=[*mpi_report.pictures(records, hop), *aims.pictures],
        python_grids=python_report.grids(records, hop),
        mpi_grids=mpi_grids,
        absent=sorted({line for run in runs for line in run.absent.splitlines() if line}),
        records=all_records(records),
    )


def tiles(records: Sequence[Record], hop: str) -> list[Tile]:
    """The figures of velo by itself. One limit is enough here."""
    found = Figures(records, hop)
    out = []
    for mode, size_bytes, title in (
        ("latency", 8, "half round trip"),
        ("rate", 8, "message rate"),
        ("bandwidth", 4096, "streaming bandwidth"),
    ):
        record = found.find(mode, size_bytes)
        if record:
            detail = "one sender, one receiver"
            if mode == "latency":
                detail = f"{record.ratio:.2f} × the limit of {record.show_limit()}"
            value = record.show(record.value)
            out.append(Tile(f"{units.size(size_bytes)} {title}", value, detail))
    ring = found.find("ring")
    if ring:
        detail = f"{ring.processes} processes that share the cores"
        out.append(Tile("messages around a ring", ring.show(ring.value), detail))
    return out


def figures(records: Sequence[Record], hop: str, aims: Aims) -> list[Figure]:
    """Every picture for which there are records."""
    mine = [r for r in records if r.hop == hop]
    # velo first: it keeps its colour and marker whoever else is there.
    others = {VELO} | {r.stack for r in mine if r.mode in ("latency", "rate", "bandwidth")}
    stacks = sorted(others, key=lambda stack: (stack != VELO, stack))
    out = []
    latency = plots.lines(mine, "latency", stacks)
    if latency:
        out.append(
            Figure(
                "Latency",
                Markup(plots.by_size(latency, log_y=True, limit_label="limit: one cache line")),
                "Half round trip by message size, median of the batches. The band holds the middle "
                "half of velo's batches; the dashed line is the physical limit, measured around "
                "the same batches.",
            )
        )
        other = FAR if hop == NEAR else NEAR
        enough = [r for r in records if r.hop == other and r.samples >= BATCHES_MIN]
        moved = plots.lines(enough, "latency", [VELO])
        both = latency + [
            replace(line, label=f"velo, {other} cores", index=plots.GREY) for line in moved
        ]
        out.append(
            Figure(
                "Latency against the limit",
                Markup(plots.by_size(both, ratio=True, log_y=True, targets=aims.latency)),
                "The same half round trips divided by that of one cache line. Lower is better; "
                "the limit itself is 1.",
            )
        )
    rate = plots.lines(mine, "rate", stacks)
    if rate:
        out.append(
            Figure(
                "Message rate",
                Markup(plots.by_size(rate, limit_label="limit: bare stream of lines")),
                "Messages per second from one sender to one receiver; velo checks each payload. "
                "Higher is better.",
            )
        )
    bandwidth = plots.lines(mine, "bandwidth", stacks)
    if bandwidth:
        out.append(
            Figure(
                "Bandwidth",
                Markup(
                    plots.by_size(
                        bandwidth, limit_label="limit: copy from the peer's cache", mark_half=True
                    )
                ),
                "Payload bytes per second while streaming. N½ is the message size at which half of "
                "the best bandwidth is reached; smaller is better.",
            )
        )
    many = {
        r.senders: r
        for r in mine
        if (r.stack, r.mode, r.size_bytes, r.pairs) == (VELO, "senders", 8, 1)
    }
    if len(many) > 1 and 1 in many:
        svg = plots.senders([many[n] for n in sorted(many)], aims.senders)
        out.append(
            Figure(
                "Connected senders",
                Markup(svg),
                "Half round trip of 8 bytes when more senders are connected to the receiver than "
                "are active, as a multiple of that with one sender. Flat is best.",
            )
        )
    ring = Figures(mine, hop).find("ring")
    if ring:
        rows = [
            ("velo", ring.value, plots.SERIES[0]),
            ("bare futexes", ring.limit, plots.LIMIT),
        ]
        out.append(
            Figure(
                "More processes than cores",
                Markup(plots.bars(rows, ring.show)),
                f"Messages per second around a ring of {ring.processes} processes that share the "
                "cores, against the same ring built on nothing but futexes.",
            )
        )
    return out


def all_records(records: Sequence[Record]) -> Grid:
    """Every record, with the words that the terminal has for it."""
    headings = ("what", "class", "size", "value", "limit", "ratio", "by batch", "min – max",
                "batches")  # fmt: skip
    rows = [
        (
            tables.what(r),
            r.hop,
            units.size(r.size_bytes),
            r.show(r.value),
            r.show_limit(),
            r.show_ratio(),
            tables.quartiles(r),
            f"{r.show(r.min)} – {r.show(r.max)}",
            str(r.samples),
        )
        for r in sorted(records, key=_table_order)
    ]
    return without_empty_columns(Grid("", headings, tuple(rows), texts=2))


def _table_order(record: Record) -> tuple[object, ...]:
    return (*tables.row_order(tables.row_key(record)), record.hop != NEAR)
