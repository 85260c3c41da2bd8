# SPDX-License-Identifier: Apache-2.0
"""A recording as other tools read it: Perfetto's timeline and velo-tlm's trace."""

import json
from collections.abc import Iterator
from typing import TextIO

import numpy as np

from velo.errors import VeloError
from velo.recording import FROM_TARGET, NEVER, OPERATION_NAMES, PS_PER_US, Recording, Table

LINKS_PID = 1000  # Nodes end at 255.
TLM_WORD_BYTES = 4


def write_perfetto(recording: Recording, file: TextIO) -> None:
    """Chrome's trace-event JSON, which ui.perfetto.dev reads.

    A process a node, two tracks a context: what it sends, what comes in. A message is a slice on
    each, from its store until the node has it, and from when it leaves the other node until it is
    in memory; an arrow leads from one to the other. Operations on remote memory, many at once, have
    tracks of their own at their requester. What links carry are counters.
    """
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    separator = ""
    for event in _events(recording):
        file.write(separator + event)
        separator = ",\n"
    file.write("\n]}\n")


def _events(recording: Recording) -> Iterator[str]:
    messages = recording.messages
    yield from _names(recording)
    order = np.argsort(messages["stored"], kind="stable")
    source = messages["source_node"].astype(int) << 8 | messages["source_context"]
    target = messages["target_node"].astype(int) << 8 | messages["target_context"]
    left = messages["published"] - recording.dma_ps
    sending = _without_overlap(source, messages["stored"], messages["taken"])
    coming = _without_overlap(target, left, messages["published"])
    rows = messages[order].tolist()
    for number, (index, row) in enumerate(zip(order.tolist(), rows, strict=True)):
        _, a, b, c, d, tag, size, stored, offered, taken, published = row
        told = (
            f'"args": {{"bytes": {size}, "tag": {tag}, "stored_ps": {stored}, '
            f'"offered_ps": {offered}, "taken_ps": {taken}, "published_ps": {published}, '
            f'"latency_ns": {(published - stored) / 1e3:.3f}}}'
        )
        out = f'"cat": "message", "pid": {a + 1}, "tid": {2 * b + 1}'
        into = f'"cat": "message", "pid": {c + 1}, "tid": {2 * d + 2}'
        begin, begin_in = stored / PS_PER_US, int(left[index]) / PS_PER_US
        long, long_in = sending[index] / PS_PER_US, coming[index] / PS_PER_US
        yield (
            f'{{"name": "{size} B to {c}.{d}", "ph": "X", {out}, "ts": {begin:.6f}, '
            f'"dur": {long:.6f}, {told}}}'
        )
        yield (
            f'{{"name": "{size} B from {a}.{b}", "ph": "X", {into}, "ts": {begin_in:.6f}, '
            f'"dur": {long_in:.6f}, {told}}}'
        )
        arrow = f'"name": "message", "id": {number}'
        yield f'{{"ph": "s", {arrow}, {out}, "ts": {begin:.6f}}}'
        yield f'{{"ph": "f", "bp": "e", {arrow}, {into}, "ts": {begin_in:.6f}}}'
    yield from _operations(recording)
    yield from _counters(recording)


def _operations(recording: Recording) -> Iterator[str]:
    """From the store of the descriptor to the notification; without one, until the node has it."""
    for number, row in enumerate(recording.operations.tolist()):
        _, a, b, c, d, op, cookie, error, size, stored, taken, notified = row
        name = f"{OPERATION_NAMES[op]}, {size} B of {c}.{d}"
        common = {
            "cat": "remote memory",
            "id": number,
            "name": name,
            "pid": a + 1,
            "tid": 2 * b + 1,
        }
        told = {"bytes": size, "cookie": cookie, "error": error, "stored_ps": stored}
        told |= {"taken_ps": taken} | ({"notified_ps": notified} if notified != NEVER else {})
        end = notified if notified != NEVER else taken
        yield json.dumps(common | {"ph": "b", "ts": round(stored / PS_PER_US, 6), "args": told})
        yield json.dumps(common | {"ph": "e", "ts": round(end / PS_PER_US, 6)})


def _without_overlap(track: Table, begin: Table, end: Table) -> list[int]:
    """How long each slice is if it ends, at the latest, where its track's next one begins."""
    order = np.lexsort((begin, track))
    ends = end[order].copy()
    same = track[order][1:] == track[order][:-1]
    ends[:-1] = np.where(same, np.minimum(ends[:-1], begin[order][1:]), ends[:-1])
    lengths = np.empty(len(begin), int)
    lengths[order] = ends - begin[order]
    return lengths.tolist()


def _names(recording: Recording) -> Iterator[str]:
    def name(kind: str, pid: int, tid: int, text: str) -> str:
        event = {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": text}}
        return json.dumps(event)

    for node in range(recording.nodes):
        yield name("process_name", node + 1, 0, f"node {node}")
    yield name("process_name", LINKS_PID, 0, f"links of {recording.topology}")
    for side, shift, text in (("source", 1, "sends"), ("target", 2, "receives")):
        columns = [recording.messages[f"{side}_{name}"] for name in ("node", "context")]
        for node, context in sorted(set(zip(*(c.tolist() for c in columns), strict=True))):
            said = f"context {context} {text}"
            yield name("thread_name", node + 1, 2 * context + shift, said)


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
