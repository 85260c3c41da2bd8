# SPDX-License-Identifier: Apache-2.0
"""What `velo trace` shows of a recording: a summary, and a page."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from velo import units
from velo.cluster import recording
from velo.cluster.ranks import ranks_command
from velo.cluster.recording import PS_PER_US, Recording, Table
from velo.report import plots
from velo.report.page import Figure, Tile, template

TEMPLATE = Path(__file__).with_name("trace_page.html.j2")
COLUMNS_MAX = 240  # Of the heat map.
ROWS_MAX = 64  # Of the table of links.
PS_PER_NS, PS_PER_S = 1e3, 1e12


@dataclass(frozen=True)
class Stage:
    """A part of the messages' way and what it took."""

    name: str
    what: str
    mean: str
    median: str
    p99: str
    most: str


@dataclass(frozen=True)
class OperationRow:
    """Operations of a kind on remote memory; times from store to requester's notification."""

    name: str
    count: str
    failed: str
    size: str
    mean: str
    median: str
    p99: str
    most: str


@dataclass(frozen=True)
class LinkRow:
    """What one direction of a cable carried, in shares of the time that the messages took."""

    name: str
    use: str
    payload: str
    overhead: str
    repeated: str
    retransmissions: int
    busiest: str
    bandwidth: str


@dataclass(frozen=True)
class Heat:
    """How busy each link was, by time."""

    names: list[str]
    edges_us: Table
    use: Table
    """[link, time], 0 to 1."""


def percentile(values: Table, share: float) -> int:
    """The smallest value that so many per cent do not exceed."""
    return int(np.percentile(values, share, method="inverted_cdf"))


def time(ps: float) -> str:
    return units.time_ns(ps / PS_PER_NS)


def summary(run: Recording) -> str:
    """The run in two lines."""
    latency, network = run.latency, run.network
    cycles = network.mean() / run.cycle_ps
    lines = [
        f"{run.topology}, {run.nodes} nodes: {len(run.messages)} messages, {len(run.lost)} lost; "
        f"latency p50 {time(percentile(latency, 50))}, p99 {time(percentile(latency, 99))}, "
        f"max {time(latency.max())}",
        f"from host port to host port: mean {cycles:.2f} cycles, {time(network.mean())}",
    ]
    if len(run.operations):
        moved = int(run.operations["bytes"].sum())
        lines.append(f"{len(run.operations)} operations on remote memory, {moved:,} B")
    if not run.whole:
        lines.append("the recording ends before the run did")
    return "\n".join(lines)


def render(run: Recording, source: str) -> str:
    """The page as text."""
    latency = run.latency
    marks = {"p50": percentile(latency, 50), "p99": percentile(latency, 99)}
    marks |= {"max": int(latency.max())}
    links = link_rows(run)
    return template(TEMPLATE).render(
        run=run,
        source=source,
        command=shlex.join(ranks_command(run.command)),
        tiles=tiles(run, links),
        stages=stages(run),
        operations=operation_rows(run),
        figures=figures(run, marks),
        links=links[:ROWS_MAX],
        link_count=len(links),
        silent=len(run.cables) - len(links),
        begin=time(run.span[0]),
        end=time(run.span[1]),
    )


def tiles(run: Recording, links: list[LinkRow]) -> list[Tile]:
    """The figures to read first."""
    begin, end = run.span
    seconds = (end - begin) / PS_PER_S
    latency = run.latency
    lost = f", {len(run.lost)} lost" if len(run.lost) else ""
    busiest = links[0] if links else None
    return [
        Tile("messages", f"{len(run.messages):,}", f"in {time(end - begin)}{lost}"),
        Tile(
            "messages per second",
            units.rate(len(run.messages) / seconds),
            f"{units.bandwidth(int(run.messages['bytes'].sum()) / seconds)} of payload",
        ),
        Tile(
            "latency, median",
            time(percentile(latency, 50)),
            f"99 % within {time(percentile(latency, 99))}, longest {time(latency.max())}",
        ),
        Tile(
            "busiest link",
            busiest.use if busiest else "–",
            f"{busiest.name}, on average" if busiest else "nothing left a node",
        ),
    ]


def stages(run: Recording) -> list[Stage]:
    """Where the time of a message goes."""
    m = run.messages
    left = m["published"] - run.dma_ps
    found = [
        ("to the node", "processor to host port", m["offered"] - m["stored"]),
        ("into the node", "behind other stores, and its own words", m["taken"] - m["offered"]),
        ("through the network", "to the last word at the target's host port", left - m["taken"]),
        ("into memory", "until a poll can see it", m["published"] - left),
        ("host port to host port", "the hardware's part", run.network),
        ("all", "store to slot", run.latency),
    ]  # fmt: skip
    return [
        Stage(
            name,
            what,
            time(values.mean()),
            time(percentile(values, 50)),
            time(percentile(values, 99)),
            time(values.max()),
        )
        for name, what, values in found
    ]


def operation_rows(run: Recording) -> list[OperationRow]:
    """The kinds of operations that there were."""
    found = []
    for op, name in recording.OPERATION_NAMES.items():
        mine = run.operations[run.operations["op"] == op]
        if not len(mine):
            continue
        told = mine[mine["notified"] != recording.NEVER]
        took = told["notified"] - told["stored"]
        row = OperationRow(
            name,
            f"{len(mine):,}",
            f"{int((mine['error'] != 0).sum()):,}",
            f"{int(mine['bytes'].sum()):,} B",
            *(
                (time(took.mean()), *(time(percentile(took, share)) for share in (50, 99, 100)))
                if len(took)
                else ("–",) * 4
            ),
        )
        found.append(row)
    return found


def link_name(run: Recording, node: int, link: int) -> str:
    to_node, to_link = run.cables[node, link]
    return f"{node}.{link} → {to_node}.{to_link}"


def _busy(links: Table) -> Table:
    words: Table = links["payload"] + links["overhead"] + links["repeated"]
    return words


def link_rows(run: Recording) -> list[LinkRow]:
    """Every link that carried anything, the busiest first."""
    begin, end = run.span
    cycles = max((end - begin) / run.cycle_ps, 1)
    found = []
    for node, link in sorted(run.cables):
        mine = run.links[(run.links["node"] == node) & (run.links["link"] == link)]
        if not len(mine):
            continue
        words = {name: int(mine[name].sum()) for name in ("payload", "overhead", "repeated")}
        busy = _busy(mine)
        top = mine[int(busy.argmax())]
        share = {name: f"{100 * count / cycles:.1f} %" for name, count in words.items()}
        row = LinkRow(
            link_name(run, node, link),
            f"{100 * busy.sum() / cycles:.1f} %",
            share["payload"],
            share["overhead"],
            share["repeated"],
            int(mine["retransmissions"].sum()),
            f"{100 * busy.max() / run.bucket_cycles:.0f} % at {top['start'] / PS_PER_US:,.0f} µs",
            units.bandwidth(run.word_bytes * words["payload"] / (cycles * run.cycle_ps) * PS_PER_S),
        )
        found.append((int(busy.sum()), row))
    return [row for _, row in sorted(found, key=lambda one: -one[0])]


def heat(run: Recording) -> Heat:
    """Use of the links in up to COLUMNS_MAX equal parts of the messages' time."""
    bucket_ps = run.bucket_cycles * run.cycle_ps
    first = int(run.span[0] // bucket_ps)
    last = int(run.span[1] // bucket_ps)
    together = -(-(last - first + 1) // COLUMNS_MAX)
    columns = -(-(last - first + 1) // together)
    cables = sorted(run.cables)
    use = np.zeros((len(cables), columns))
    row_of = {cable: row for row, cable in enumerate(cables)}
    rows = [row_of[node, link] for node, link in run.links[["node", "link"]].tolist()]
    column = (np.rint(run.links["start"] / bucket_ps).astype(int) - first) // together
    within = (column >= 0) & (column < columns)
    np.add.at(use, (np.asarray(rows, int)[within], column[within]), _busy(run.links)[within])
    edges = (first + together * np.arange(columns + 1)) * bucket_ps / PS_PER_US
    use /= run.bucket_cycles * together
    return Heat([link_name(run, *cable) for cable in cables], edges, use)


def figures(run: Recording, marks: dict[str, int]) -> list[Figure]:
    """The pictures, the widest last."""
    begin, end = run.span
    arrivals_us = run.messages["published"] / PS_PER_US
    marks_ns = {name: ps / PS_PER_NS for name, ps in marks.items()}
    warm = heat(run)
    wide = warm.edges_us[1] - warm.edges_us[0]
    return [
        Figure(
            "Latency",
            Markup(plots.histogram(run.latency / PS_PER_NS, marks_ns)),
            "From the store to the slot in memory, host included. Both axes are logarithmic.",
        ),
        Figure(
            "Messages per second",
            Markup(plots.rate_by_time(arrivals_us, begin / PS_PER_US, end / PS_PER_US)),
            "By their arrival, over virtual time.",
        ),
        Figure(
            "Links by time",
            Markup(plots.heat_map(warm.names, warm.edges_us, warm.use)),
            f"Share of each link's words that belonged to frames, in steps of "
            f"{time(wide * PS_PER_US)}; node.link → node.link.",
        ),
    ]  # fmt: skip
