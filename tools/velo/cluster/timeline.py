# SPDX-License-Identifier: Apache-2.0
"""A recording as other tools read it: Perfetto's timeline and velo-tlm's trace."""

import json
from collections.abc import Iterator
from typing import TextIO

import numpy as np

from velo.cluster.recording import FROM_TARGET, NEVER, OPERATION_NAMES, PS_PER_US, Recording
from velo.errors import VeloError

LINKS_PID = 1000  # Nodes end at 255.
SIDES = ("sends", "receives")
NS_PER_US, PS_PER_NS = 1000, 1000
TLM_WORD_BYTES = 4


def write_perfetto(recording: Recording, file: TextIO) -> None:
    """Chrome's trace-event JSON, which ui.perfetto.dev reads.

    A process a node, two tracks a context: what it sends, what comes in. A message is a slice on
    each, from its store until the node has it, and from when it leaves the other node until it is
    in memory; the two share a flow, an arrow from one to the other. Slices of a track may not
    overlap: what is on its way at the same time is on further tracks beside. Operations on remote
    memory have tracks of their own at their requester. What links carry are counters.

    Times are whole ns, as Perfetto has them: it rounds a slice's begin and its length each by
    itself, and drops what overlaps then. The arguments have them in ps.
    """
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    separator = ""
    for event in _events(recording):
        file.write(separator + event)
        separator = ",\n"
    file.write("\n]}\n")


def _events(recording: Recording) -> Iterator[str]:
    messages = recording.messages
    source, target = (
        (messages[f"{end}_node"].astype(int) << 8 | messages[f"{end}_context"]).tolist()
        for end in ("source", "target")
    )
    times = {
        name: (messages[name] // PS_PER_NS).tolist() for name in ("stored", "taken", "published")
    }
    times["left"] = ((messages["published"] - recording.dma_ps) // PS_PER_NS).tolist()
    sending = _lanes(source, times["stored"], times["taken"])
    coming = _lanes(target, times["left"], times["published"])
    lanes = 1 + max([*sending, *coming], default=0)
    yield from _processes(recording)
    yield from _tracks("sends", source, sending, lanes)
    yield from _tracks("receives", target, coming, lanes)
    order = np.argsort(messages["stored"], kind="stable").tolist()
    for number, index in enumerate(order):
        _, a, b, c, d, tag, size, stored, offered, taken, published = messages[index].tolist()
        told = {"bytes": size, "tag": tag, "stored_ps": stored, "offered_ps": offered}
        told |= {"taken_ps": taken, "published_ps": published}
        told["latency_ns"] = (published - stored) / PS_PER_NS
        common = {"ph": "X", "cat": "message", "bind_id": hex(number), "args": told}
        out = {"name": f"{size} B to {c}.{d}", "flow_out": True, "pid": a + 1}
        out["tid"] = _tid("sends", b, sending[index], lanes)
        out |= _when(times["stored"][index], times["taken"][index])
        into = {"name": f"{size} B from {a}.{b}", "flow_in": True, "pid": c + 1}
        into["tid"] = _tid("receives", d, coming[index], lanes)
        into |= _when(times["left"][index], times["published"][index])
        yield json.dumps(out | common)
        yield json.dumps(into | common)
    yield from _operations(recording, lanes)
    yield from _counters(recording)


def _when(begin_ns: int, end_ns: int) -> dict[str, float]:
    return {"ts": begin_ns / NS_PER_US, "dur": (end_ns - begin_ns) / NS_PER_US}


def _tid(side: str, context: int, lane: int, lanes: int) -> int:
    """A track's number in its process: those of a context side by side."""
    return (2 * context + SIDES.index(side)) * lanes + lane + 1


def _operations(recording: Recording, lanes: int) -> Iterator[str]:
    """From the store of the descriptor to the notification; without one, until the node has it."""
    for number, row in enumerate(recording.operations.tolist()):
        _, a, b, c, d, op, cookie, error, size, stored, taken, notified = row
        # One name, one track: sizes are among what is told.
        name = f"{OPERATION_NAMES[op]} of {c}.{d}"
        common = {
            "cat": "remote memory",
            "id2": {"local": hex(number)},
            "name": name,
            "pid": a + 1,
            "tid": _tid("sends", b, 0, lanes),
        }
        told = {"bytes": size, "cookie": cookie, "error": error, "stored_ps": stored}
        told |= {"taken_ps": taken} | ({"notified_ps": notified} if notified != NEVER else {})
        end = notified if notified != NEVER else taken
        yield json.dumps(common | {"ph": "b", "ts": round(stored / PS_PER_US, 6), "args": told})
        yield json.dumps(common | {"ph": "e", "ts": round(end / PS_PER_US, 6)})


def _name(kind: str, pid: int, tid: int, text: str) -> str:
    return json.dumps({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": text}})


def _lanes(tracks: list[int], begins: list[int], ends: list[int]) -> list[int]:
    """The lane of each slice, so that those of a lane of a track follow each other.

    The lowest that is free; two that begin together need two, however short they are.
    """
    lanes = [0] * len(tracks)
    busy: dict[int, list[int]] = {}
    for index in sorted(range(len(tracks)), key=lambda i: (begins[i], ends[i])):
        free_from = busy.setdefault(tracks[index], [])
        free = (lane for lane, time in enumerate(free_from) if time <= begins[index])
        lane = next(free, len(free_from))
        free_from[lane : lane + 1] = [max(ends[index], begins[index] + 1)]
        lanes[index] = lane
    return lanes


def _processes(recording: Recording) -> Iterator[str]:
    for node in range(recording.nodes):
        yield _name("process_name", node + 1, 0, f"node {node}")
    yield _name("process_name", LINKS_PID, 0, f"links of {recording.topology}")


def _tracks(side: str, ports: list[int], slices: list[int], lanes: int) -> Iterator[str]:
    for port, lane in sorted(set(zip(ports, slices, strict=True))):
        node, context = port >> 8, port & 0xFF
        said = f"context {context} {side}" + (f", {lane + 1} at once" if lane else "")
        yield _name("thread_name", node + 1, _tid(side, context, lane, lanes), said)


def _counters(recording: Recording) -> Iterator[str]:
    """Per cent of each link's words; nothing is said again until it changes to none."""
    bucket_ps = recording.bucket_cycles * recording.cycle_ps
    links = recording.links[np.lexsort([recording.links[k] for k in ("start", "link", "node")])]

    def count(node: int, link: int, time_ps: float, words: tuple[int, int, int]) -> str:
        to = recording.cables[node, link]
        values = dict(
            zip(
                ("payload", "overhead", "repeated"),
                (round(100 * w / recording.bucket_cycles, 1) for w in words),
                strict=True,
            )
        )
        name = f"{node}.{link} to {to[0]}.{to[1]} [%]"
        event = {"ph": "C", "pid": LINKS_PID, "name": name, "ts": round(time_ps / PS_PER_US, 6)}
        return json.dumps(event | {"args": values})

    rows = links.tolist()
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        _, node, link, _, _, start, *words = row
        yield count(node, link, start, tuple(words))
        end = start + bucket_ps
        if (
            following is None
            or following[1:3] != (node, link)
            or following[5] > end + recording.cycle_ps
        ):
            yield count(node, link, end, (0, 0, 0))


def tlm_command(recording: Recording, trace: str) -> str:
    """What replays the trace."""
    topology = "full:2" if recording.topology == "pair" else recording.topology
    return (
        f"velo-tlm {topology} --clock-mhz {recording.clock_khz / 1000:g} "
        f"--cable-cycles {recording.cable_cycles} --trace {trace}"
    )


def write_tlm(recording: Recording, file: TextIO, path: str) -> None:
    """Messages as velo-tlm takes them, sim/tlm/README.md: in the cycle that offered them.

    Operations become messages of what they move, from whose memory is read to whose is written,
    when the node has their descriptor: what a get asks for is there at once.
    """
    if recording.word_bytes != TLM_WORD_BYTES:
        raise VeloError(
            f"velo-tlm has links of {8 * TLM_WORD_BYTES} bits, the recording's have "
            f"{8 * recording.word_bytes}"
        )
    file.write(f"# {tlm_command(recording, path)}\n# time_ps source target bytes\n")
    # Half a cycle before the edge, so that the edge meant is the next one however it is rounded.
    half_ps = round(recording.cycle_ps / 2)
    names = ("offered", "source_node", "target_node", "bytes")
    sent = np.concatenate([recording.messages, recording.lost])
    rows = list(zip(*(sent[name].tolist() for name in names), strict=True))
    for _, a, _, c, _, op, _, _, size, _, taken, _ in recording.operations.tolist():
        rows.append((taken, c, a, size) if op in FROM_TARGET else (taken, a, c, size))
    for offered, source, target, size in sorted(rows, key=lambda row: row[0]):
        file.write(f"{offered - half_ps} {source} {target} {size}\n")
