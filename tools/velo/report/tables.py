# SPDX-License-Identifier: Apache-2.0
"""Tables of records for the terminal; pages use the same names and order."""

import math
from collections.abc import Iterable, Sequence

from velo import units
from velo.display import Table
from velo.results import records
from velo.results.figures import BATCHES_MIN
from velo.results.records import FAR, NEAR, Record

MODES = ("limit", "latency", records.IN_PLACE, "senders", "rate", "bandwidth", "ring", "gups",
         "mpi latency", "mpi rate", "mpi matching", "mpi allreduce", "mpi barrier", "mpi gups",
         "hpcc", "netpipe", "python latency", "python rate", "python idle")  # fmt: skip
# The figures of these modes depend on the number of ranks.
RANKS_VARY = ("gups", "mpi gups", "mpi allreduce", "mpi barrier", "hpcc")
METRIC_ORDER = {name: i for i, name in enumerate(records.METRICS)}
# Of the latencies by size, those that fit on a screen.
SIZES_SHOWN = (0, 8, 32, 64, 256, 1024, 4096, 16384)


def result_table(found: Sequence[Record]) -> Table:
    """One row for each thing measured; near figures where there are any."""
    table = Table(
        "<what", ">size", ">value", ">limit", ">ratio", ">by batch", "<class", ">near/far"
    )
    groups: dict[tuple[object, ...], dict[str, Record]] = {}
    for r in found:
        groups.setdefault(row_key(r), {})[r.hop] = r
    for _, both in sorted(groups.items(), key=lambda item: row_order(item[0])):
        near, far = both.get(NEAR), both.get(FAR)
        shown = near if near and (not far or near.samples >= min(BATCHES_MIN, far.samples)) else far
        assert shown
        table.add_row(
            what(shown),
            units.size(shown.size_bytes),
            shown.show(shown.value),
            shown.show_limit(),
            shown.show_ratio(),
            quartiles(shown),
            shown.hop,
            f"{near.samples if near else 0}/{far.samples if far else 0}",
        )
    return table


def quartiles(record: Record) -> str:
    """Quartiles of the ratios of the single batches: `1.10 1.13 1.19`."""
    three = (record.ratio_q1, record.ratio_median, record.ratio_q3)
    unknown = math.isnan(record.ratio_q1) or record.metric in records.WITHOUT_LIMIT
    return "–" if unknown else " ".join(f"{q:.2f}" for q in three)


def main_points(found: Iterable[Record]) -> list[Record]:
    """What fits on a screen: of the latencies by size, those of a few sizes."""
    return [r for r in found if r.mode != "latency" or r.size_bytes in SIZES_SHOWN]


def what(record: Record) -> str:
    """What a record measures, in a few words."""
    name = records.metric(record.metric).label
    parts = [name if record.stack == records.VELO else f"{record.stack} {name}"]
    if record.mode == "limit":
        return f"limit: {records.LIMITS.get(record.limit_name, record.limit_name)}"
    if record.mode.startswith(records.BESIDE):
        parts = [f"{record.mode}, {record.stack}"]
        if record.processes > 2:
            parts.append(f"{record.processes} processes")
    if record.mode == "ring":
        parts.append(f"ring of {record.processes}")
    if record.pairs > 1:
        parts.append(f"{record.pairs} pairs")
    if record.threads > 1:
        parts.append(f"{record.threads} threads")
    if record.mode == "senders":
        parts.append(f"1 of {record.senders} senders")
    if record.mode == records.IN_PLACE:
        parts.append(record.mode)
    if record.posted:
        parts.append(f"{record.posted:,} posted")
    if record.mode in ("hpcc", "netpipe"):
        parts.append("HPCC" if record.mode == "hpcc" else "NetPIPE")
    if record.mode in RANKS_VARY:
        parts.append(f"{record.processes} ranks")
    return ", ".join(parts)


def row_key(r: Record) -> tuple[object, ...]:
    """The key that the near and the far record of one thing share."""
    return (r.stack, r.mode, r.metric, r.limit_name, r.pairs, r.threads, r.senders, r.processes,
            r.posted, r.size_bytes)  # fmt: skip


def row_order(key: tuple[object, ...]) -> tuple[object, ...]:
    """By mode and metric; velo before its peers."""
    stack, mode, metric, *rest = key
    return (
        MODES.index(str(mode)) if mode in MODES else len(MODES),
        METRIC_ORDER.get(str(metric), len(METRIC_ORDER)),
        stack != records.VELO,
        stack,
        *rest,
    )
