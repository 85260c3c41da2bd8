# SPDX-License-Identifier: Apache-2.0
"""Queues between Python processes, side by side, for the page and the terminal."""

from collections.abc import Sequence

from velo import units
from velo.report.page import NONE, Grid
from velo.results.records import FAR, NEAR, PYTHON, VELO_QUEUE, Record, metric

# Mode -> what its table shows.
TITLES = {
    "latency": "half a round trip of a bytes object",
    "rate": "bytes objects a second, one way",
    "idle": "of a processor, in a process that waits",
}


def grids(records: Sequence[Record], hop: str) -> list[Grid]:
    """A table for each kind of figure, a row for each queue; of the other class of cores if this
    one has none."""
    out = []
    for mode, title in TITLES.items():
        found = [r for r in records if r.mode == PYTHON + mode]
        for of_class in (hop, FAR if hop == NEAR else NEAR):
            mine = [r for r in found if r.hop == of_class]
            if mine:
                out.append(_grid(mine, f"Python ({of_class}): {title}"))
                break
    return out


def _grid(records: Sequence[Record], title: str) -> Grid:
    newest = {(r.stack, r.size_bytes): r for r in records}
    sizes = sorted({r.size_bytes for r in records})
    stacks = sorted({r.stack for r in records}, key=lambda stack: (stack != VELO_QUEUE, stack))
    rows = [
        (stack, *(_cell(newest.get((stack, s)), newest.get((VELO_QUEUE, s))) for s in sizes))
        for stack in stacks
    ]
    return Grid(title, ("queue", *(units.size(s) if s else "idle" for s in sizes)), tuple(rows))


def _cell(record: Record | None, ours: Record | None) -> str:
    """The value, and in brackets how many times as good velo.Queue is."""
    if not record:
        return NONE
    text = record.show(record.value)
    if not ours or record.stack == VELO_QUEUE or not record.size_bytes:
        return text
    less = metric(record.metric).lower_is_better
    ratio = record.value / ours.value if less else ours.value / record.value
    return f"{text} ({ratio:.3g})"
