# SPDX-License-Identifier: Apache-2.0
"""Read what `velo sim --record` wrote. sim/record.h says what is in the file."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from velo.errors import VeloError

PS_PER_US = 1e6
VERSION = 2
RECORD_BYTES = 40
NEVER = (1 << 63) - 1
KIND_MESSAGE, KIND_LINK, KIND_END, KIND_OPERATION = 1, 2, 3, 4
MESSAGE = np.dtype(
    [
        ("kind", "u1"),
        ("source_node", "u1"),
        ("source_context", "u1"),
        ("target_node", "u1"),
        ("target_context", "u1"),
        ("tag", "u1"),
        ("bytes", "<u2"),
        ("stored", "<i8"),
        ("offered", "<i8"),
        ("taken", "<i8"),
        ("published", "<i8"),
    ]
)
OPERATION = np.dtype(
    [
        ("kind", "u1"),
        ("source_node", "u1"),
        ("source_context", "u1"),
        ("target_node", "u1"),
        ("target_context", "u1"),
        ("op", "u1"),
        ("cookie", "u1"),
        ("error", "u1"),
        ("bytes", "<i8"),
        ("stored", "<i8"),
        ("taken", "<i8"),
        ("notified", "<i8"),
    ]
)
OPERATION_NAMES = {1: "put", 2: "get", 3: "put immediate", 4: "fetch compare add", 5: "notify"}
"""spec/velo.toml, enum rma_op."""
FROM_TARGET = (2, 4)
"""Of these, those that move what is there."""
LINK = np.dtype(
    [
        ("kind", "u1"),
        ("node", "u1"),
        ("link", "u1"),
        ("reserved", "u1"),
        ("retransmissions", "<u4"),
        ("start", "<i8"),
        ("payload", "<i8"),
        ("overhead", "<i8"),
        ("repeated", "<i8"),
    ]
)
END = np.dtype(
    [
        ("kind", "u1", 8),
        ("now", "<i8"),
        ("published", "<i8"),
        ("lost", "<i8"),
        ("strays", "<i8"),
    ]
)

Table = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Recording:
    """What happened in a run, or a part of it. Times are in ps of virtual time."""

    topology: str
    nodes: int
    cables: dict[tuple[int, int], tuple[int, int]]
    """(node, link) -> (node, link), both ways."""
    clock_khz: int
    cable_cycles: int
    word_bytes: int
    """That a link sends in a cycle."""
    bucket_cycles: int
    dma_ps: int
    command: list[str]
    messages: Table
    """Those that arrived, in order of arrival."""
    lost: Table
    operations: Table
    """Those on remote memory, in the order in which it was known that they were over."""
    links: Table
    strays: int
    whole: bool
    """False: the simulator did not come to the end of its recording."""

    @property
    def cycle_ps(self) -> float:
        return 1e9 / self.clock_khz

    @property
    def latency(self) -> Table:
        """From the store to the word that a poll finds [ps]."""
        times: Table = self.messages["published"] - self.messages["stored"]
        return times

    @property
    def network(self) -> Table:
        """From host port to host port [ps]."""
        times: Table = self.messages["published"] - self.dma_ps - self.messages["offered"]
        return times

    @property
    def span(self) -> tuple[int, int]:
        """From the first store to the last arrival [ps]."""
        if not len(self.messages):
            return (0, 0)
        return int(self.messages["stored"].min()), int(self.messages["published"].max())

    def between(self, begin_ps: float, end_ps: float) -> "Recording":
        """Messages and operations that were stored in a time, and what links carried in it."""

        def within(table: Table, name: str) -> Table:
            return table[(table[name] >= begin_ps) & (table[name] < end_ps)]

        return Recording(
            **{
                **self.__dict__,
                "messages": within(self.messages, "stored"),
                "lost": within(self.lost, "stored"),
                "operations": within(self.operations, "stored"),
                "links": within(self.links, "start"),
            }
        )


def load(path: Path) -> Recording:
    """The recording in a file. Raises VeloError if it is none."""
    try:
        with path.open("rb") as file:
            line = file.readline(1 << 24)
            raw = np.fromfile(file, np.uint8)
    except OSError as error:
        raise VeloError(f"cannot read {path}: {error.strerror}") from error
    head = _head(path, line)
    rows = raw[: len(raw) // RECORD_BYTES * RECORD_BYTES].reshape(-1, RECORD_BYTES)
    kinds = rows[:, 0]
    messages, operations, links, ends = (
        rows[kinds == kind].view(dtype).reshape(-1)
        for kind, dtype in (
            (KIND_MESSAGE, MESSAGE),
            (KIND_OPERATION, OPERATION),
            (KIND_LINK, LINK),
            (KIND_END, END),
        )
    )
    known = len(messages) + len(operations) + len(links) + len(ends)
    if known != len(rows) or len(ends) > 1 or set(operations["op"]) - set(OPERATION_NAMES):
        raise VeloError(f"{path} is damaged: it holds records of no known kind")
    arrived = messages["published"] != NEVER
    end = ends[0] if len(ends) else None
    if end is not None and (end["published"], end["lost"]) != (arrived.sum(), (~arrived).sum()):
        raise VeloError(f"{path} is damaged: it holds not as many messages as its end says")
    return Recording(
        topology=head["topology"],
        nodes=head["nodes"],
        cables={(a, b): (c, d) for a, b, c, d in head["cables"]},
        clock_khz=head["clock_khz"],
        cable_cycles=head["cable_cycles"],
        word_bytes=head["word_bytes"],
        bucket_cycles=head["bucket_cycles"],
        dma_ps=head["dma_ps"],
        command=head["command"],
        messages=messages[arrived],
        lost=messages[~arrived],
        operations=operations,
        links=links,
        strays=int(end["strays"]) if end is not None else 0,
        whole=end is not None,
    )


def _head(path: Path, line: bytes) -> dict[str, Any]:
    try:
        head = json.loads(line)
        version = head["velo_recording"]
    except (ValueError, KeyError, TypeError):
        raise VeloError(f"{path} is no recording; velo sim --record FILE makes one") from None
    if version != VERSION:
        raise VeloError(f"{path} is of version {version}; this velo reads version {VERSION}")
    return dict(head)
