# SPDX-License-Identifier: Apache-2.0
"""A recording as an archive of OTF2, for Vampir, otf2-print and whatever else reads such traces."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from velo.cluster.otf2_package import load_otf2
from velo.cluster.recording import NEVER, Recording
from velo.errors import VeloError, making

PS_PER_S = 10**12
UNTIL = "until_ps"
"""Of a send: when the node has the message."""
FETCH_AND_ADD = 5
"""Of OTF2's types of atomic operations."""
Context = tuple[int, int]


class Operation(NamedTuple):
    """An operation on remote memory: an event writer's method, and what that is told of sizes."""

    name: str
    sizes: Callable[[int], dict[str, Any]]


def _of_bytes(size: int) -> dict[str, Any]:
    return {"bytes": size}


OPERATIONS = {
    1: Operation("rma_put", _of_bytes),
    2: Operation("rma_get", _of_bytes),
    3: Operation("rma_put", _of_bytes),
    4: Operation(
        "rma_atomic",
        lambda size: {"type": FETCH_AND_ADD, "bytes_sent": size, "bytes_received": size},
    ),
    # It writes a notification and nothing else.
    5: Operation("rma_put", _of_bytes),
}
"""By spec/velo.toml, enum rma_op."""


class Event(NamedTuple):
    """What a context did or saw; those of a context are sorted by time, then as they are here."""

    time_ps: int
    order: int
    name: str
    """Of a method of OTF2's event writer."""
    told: dict[str, Any]


def write(recording: Recording, folder: Path) -> None:
    """One location a context. Messages are sent in region `send`, from the store until the node has
    the message or the context does something else; they are received when they are in memory.
    Operations on remote memory are those of one window, from the store of the descriptor to the
    notification. A tick is a picosecond of virtual time. What did not arrive is left out: a send
    without its receive is an error to those who read traces."""
    otf2 = load_otf2()
    if folder.exists():
        raise VeloError(f"{folder} is there; an archive goes into a new folder")
    with making(folder):
        try:
            _write(recording, folder, otf2)
        except otf2.error_type as error:
            raise VeloError(f"{folder} cannot be written: {error}") from error


def _write(recording: Recording, folder: Path, otf2: Any) -> None:
    contexts = sorted(set(_contexts(recording)))
    ranks = {context: rank for rank, context in enumerate(contexts)}
    with otf2.writer.open(str(folder), timer_resolution=PS_PER_S) as archive:
        tell = archive.definitions
        cluster = tell.system_tree_node(recording.topology, class_name="cluster")
        nodes = {
            node: tell.system_tree_node(f"node {node}", class_name="node", parent=cluster)
            for node in sorted({node for node, _ in contexts})
        }
        locations = {
            (node, context): tell.location(
                f"{node}.{context}",
                group=tell.location_group(
                    f"context {context} of node {node}", system_tree_parent=nodes[node]
                ),
            )
            for node, context in contexts
        }
        of_mpi = {"paradigm": otf2.Paradigm.MPI, "members": tuple(locations.values())}
        tell.group("", group_type=otf2.GroupType.COMM_LOCATIONS, **of_mpi)
        members = tell.group("contexts", group_type=otf2.GroupType.COMM_GROUP, **of_mpi)
        comm = tell.comm("contexts", group=members)
        window = tell.rma_win("remote memory", comm=comm)
        regions = {name: tell.region(name) for name in ("context", "send")}
        events = _events(recording, ranks, comm, window)
        last_ps = recording.span[1]
        for context, location in locations.items():
            writer = archive.event_writer_from_location(location)
            own = sorted(events.get(context, []), key=lambda event: event[:2])
            writer.enter(0, regions["context"])
            for event in _with_regions(own, regions["send"]):
                getattr(writer, event.name)(event.time_ps, **event.told)
            end_ps = max([last_ps, *(event.time_ps for event in own[-1:])])
            writer.leave(end_ps, regions["context"])


def _contexts(recording: Recording) -> Iterator[Context]:
    for table in (recording.messages, recording.operations):
        for end in ("source", "target"):
            yield from zip(
                table[f"{end}_node"].tolist(), table[f"{end}_context"].tolist(), strict=True
            )


def _events(
    recording: Recording, ranks: dict[Context, int], comm: Any, window: Any
) -> dict[Context, list[Event]]:
    events: dict[Context, list[Event]] = {context: [] for context in ranks}
    for row in recording.messages.tolist():
        _, a, b, c, d, tag, size, stored, _, taken, published = row
        told = {"communicator": comm, "msg_tag": tag, "msg_length": size}
        sent = {"receiver": ranks[c, d], UNTIL: taken}
        events[a, b].append(Event(stored, 0, "mpi_send", told | sent))
        events[c, d].append(Event(published, 1, "mpi_recv", told | {"sender": ranks[a, b]}))
    for number, row in enumerate(recording.operations.tolist()):
        _, a, b, c, d, op, _, _, size, stored, _, notified = row
        told = {"win": window, "matching_id": number}
        posted = told | {"remote": ranks[c, d]} | OPERATIONS[op].sizes(size)
        events[a, b].append(Event(stored, 2, OPERATIONS[op].name, posted))
        if notified != NEVER:
            events[a, b].append(Event(notified, 3, "rma_op_complete_non_blocking", told))
    return events


def _with_regions(events: list[Event], send: Any) -> Iterator[Event]:
    """Each send in a region that ends when it is done, or when the next event comes."""
    for number, event in enumerate(events):
        if event.name != "mpi_send":
            yield event
            continue
        told = dict(event.told)
        until_ps = told.pop(UNTIL)
        if number + 1 < len(events):
            until_ps = min(until_ps, events[number + 1].time_ps)
        yield Event(event.time_ps, 0, "enter", {"region": send})
        yield event._replace(told=told)
        yield Event(until_ps, 0, "leave", {"region": send})
