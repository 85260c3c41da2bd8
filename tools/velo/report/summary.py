# SPDX-License-Identifier: Apache-2.0
"""The page of result files: headline figures, targets, plots and every record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from velo import units
from velo.errors import VeloError, writing
from velo.report import mpi_report, plots, tables
from velo.report.page import Figure, Tile, template
from velo.results import stats, targets
from velo.results.records import CLASSES, FAR, LIMITS, NEAR, VELO, Record, load, metric

TEMPLATE = Path(__file__).with_name("summary.html.j2")


def write(inputs: Sequence[Path], output: Path) -> None:
    """Make the page of all records of the inputs."""
    records = [record for path in inputs for record in load(path)]
    if not records:
        raise VeloError(f"no records in {', '.join(map(str, inputs))}; nothing to report")
    page = render(records)
    with writing(output):
        output.write_text(page, encoding="utf-8")


def render(records: Sequence[Record]) -> str:
    """The page as text."""
    hop = targets.main_class(records)
    runs = list({r.run: None for r in records if r.run.id or r.run.machine})
    return template(TEMPLATE).render(
        hop=hop,
        near_max=units.time_ns(stats.NEAR_MAX_NS),
        machines=sorted({run.machine for run in runs if run.machine}),
        versions=sorted({run.version for run in runs if run.version}),
        times=sorted({run.time for run in runs if run.time}),
        commands=list({run.command: None for run in runs if run.command}),
        tiles=tiles(records, hop),
        figures=figures(records, hop),
        limit_rows=limit_rows(records),
        configs=sorted({(r.stack, r.config) for r in records if r.config}),
        target_tables=tables.target_tables(records, hop),
        mpi_figures=mpi_report.pictures(records, hop),
        mpi_grids=mpi_report.grids(records, hop),
        absent=sorted({line for run in runs for line in run.absent.splitlines() if line}),
        records=sorted(records, key=_table_order),
        metric=metric,
        quartiles=tables.quartiles,
        size=units.size,
        time_ns=units.time_ns,
    )


def tiles(records: Sequence[Record], hop: str) -> list[Tile]:
    """The figures to read first."""
    found = targets.Figures(records, hop)
    out = []
    for mode, size_bytes, title, limit in (
        ("latency", 8, "half round trip", "one cache line's own"),
        ("rate", 8, "message rate", "the bare one-line stream"),
        ("bandwidth", 4096, "streaming bandwidth", "a copy from the peer's cache"),
    ):
        record = found.find(mode, size_bytes)
        if record:
            out.append(
                Tile(
                    f"{units.size(size_bytes)} {title}",
                    record.show(record.value),
                    f"{record.ratio:.2f} × {limit}",
                )
            )
    ring = found.find("ring")
    if ring:
        out.append(
            Tile(
                f"ring of {ring.processes} processes",
                ring.show(ring.value),
                f"{ring.ratio:.2f} × the same ring on bare futexes",
            )
        )
    return out


def figures(records: Sequence[Record], hop: str) -> list[Figure]:
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
        enough = [r for r in records if r.hop == other and r.samples >= targets.BATCHES_MIN]
        moved = plots.lines(enough, "latency", [VELO])
        both = latency + [
            replace(line, label=f"velo, {other} cores", index=plots.GREY) for line in moved
        ]
        bounds = list(targets.LATENCY_BOUNDS.items())
        out.append(
            Figure(
                "Latency against the limit",
                Markup(plots.by_size(both, ratio=True, log_y=True, targets=bounds)),
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
        bounds = list(targets.SENDERS_BOUNDS.items())
        svg = plots.senders([many[n] for n in sorted(many)], bounds)
        out.append(
            Figure(
                "Connected senders",
                Markup(svg),
                "Half round trip of 8 bytes when more senders are connected to the receiver than "
                "are active, as a multiple of that with one sender. Flat is best.",
            )
        )
    ring = targets.Figures(mine, hop).find("ring")
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


@dataclass(frozen=True)
class LimitRow:
    """One of the machine's limits, near and far."""

    name: str
    size: str
    near: str
    far: str


def limit_rows(records: Sequence[Record]) -> list[LimitRow]:
    """The limits by themselves, in the order in which LIMITS describes them."""
    found: dict[tuple[str, int], dict[str, Record]] = {}
    for r in records:
        if r.mode == "limit" and r.limit_name in LIMITS:
            found.setdefault((r.limit_name, r.size_bytes), {})[r.hop] = r
    order = list(LIMITS)
    return [
        LimitRow(LIMITS[name], units.size(size_bytes), *(_shown(both.get(h)) for h in CLASSES))
        for (name, size_bytes), both in sorted(
            found.items(), key=lambda item: (order.index(item[0][0]), item[0][1])
        )
    ]


def _shown(record: Record | None) -> str:
    return record.show(record.value) if record else "–"


def _table_order(record: Record) -> tuple[object, ...]:
    return (*tables.row_order(tables.row_key(record)), record.hop != NEAR)
