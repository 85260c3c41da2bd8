#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run velo-sim with the test clients, and look at what it says and leaves behind.

run_tests.py VELO_SIM CLIENTS ROUTING [CASE...]
"""

import contextlib
import ctypes
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import captures

SECONDS = 120
STORE_PS, DMA_PS, CYCLE_PS = 110_000, 110_000, 10_000
HOST_TO_HOST_CYCLES = 28  # rtl/node/README.md
# Remote memory, 8 bytes between neighbours, translations known: cycles of the hardware, ways over
# the cable and reads of memory (there and back, twice DMA_PS) from the store of the descriptor
# until data or a notification leave the node; DMA_PS later they are seen.
REMOTE = {
    "put_data": (74, 1, 1),
    "put_owner": (87, 1, 1),
    "put_requester": (143, 2, 1),
    "put_immediate_owner": (74, 1, 0),
    "put_immediate_requester": (130, 2, 0),
    "get_owner": (81, 1, 1),
    "get_requester": (138, 2, 1),
    "update_owner": (104, 1, 1),
    "update_requester": (161, 2, 1),
    "notify_owner": (63, 1, 0),
    "notify_requester": (119, 2, 0),
}

SKIPPED = 77
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
NEVER = (1 << 63) - 1


@dataclass(frozen=True)
class Message:
    """A message as it was recorded; times in ps."""

    source: tuple[int, int]
    target: tuple[int, int]
    tag: int
    size: int
    stored: int
    offered: int
    taken: int
    published: int


@dataclass(frozen=True)
class Operation:
    """An operation on remote memory as it was recorded; times in ps."""

    source: tuple[int, int]
    target: tuple[int, int]
    op: int
    cookie: int
    error: int
    size: int
    stored: int
    taken: int
    notified: int


@dataclass(frozen=True)
class Recording:
    """The records of a recording; those of links summed over all time, by node and link."""

    head: dict[str, Any]
    messages: list[Message]
    operations: list[Operation]
    links: dict[tuple[int, int], Counter[str]]
    end: tuple[int, int, int, int]


def read_recording(path: Path) -> Recording:
    head, records = path.read_bytes().split(b"\n", 1)
    messages, operations, end = [], [], None
    links: dict[tuple[int, int], Counter[str]] = {}
    for (record,) in struct.iter_unpack("40s", records):
        assert end is None, "something after the end"
        if record[0] == 1:
            _, a, b, c, d, tag, *rest = struct.unpack("<6BH4q", record)
            messages.append(Message((a, b), (c, d), tag, *rest))
        elif record[0] == 2:
            _, node, link, _, repeats, _, payload, overhead, repeated = struct.unpack(
                "<4BI4q", record
            )
            sums = links.setdefault((node, link), Counter())
            sums.update(payload=payload, overhead=overhead, repeated=repeated)
            sums.update(retransmissions=repeats, buckets=1)
        elif record[0] == 4:
            _, a, b, c, d, *rest = struct.unpack("<8B4q", record)
            operations.append(Operation((a, b), (c, d), *rest))
        else:
            assert record[0] == 3, record
            end = struct.unpack("<8x4q", record)
    assert end is not None, "no end"
    return Recording(json.loads(head), messages, operations, links, end)


class SkipError(Exception):
    """Something that a test needs is not there."""


class Runner:
    """velo-sim, its clients, and a folder for what they leave."""

    def __init__(self, velo_sim: str, clients: str, routing: str, folder: Path) -> None:
        self.velo_sim = velo_sim
        self.clients = clients
        self.routing = routing
        self.folder = folder

    def topology(self, kind: str, size: str) -> Path:
        path = self.folder / f"{kind}{size}.topology"
        text = subprocess.run(
            [sys.executable, self.routing, kind, size], check=True, capture_output=True
        )
        path.write_bytes(text.stdout)
        return path

    def command(self, options: list[str], command: list[str]) -> list[str]:
        defaults = {
            "--topology-file": str(self.topology("mesh", "2")),
            "--area": str(self.folder / "area"),
        }
        for name, value in defaults.items():
            if name not in options:
                options = [*options, name, value]
        return [self.velo_sim, *options, "--", *command]

    def run(self, options: list[str], *case: str, status: int = 0) -> tuple[str, dict[str, Any]]:
        result = self.folder / "result.json"
        done = subprocess.run(
            self.command(["--result", str(result), *options], [self.clients, *case]),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == status, f"{done.returncode}, not {status}: {done.stderr}"
        self.check_nothing_left()
        figures = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
        return done.stdout + done.stderr, figures

    def record(self, options: list[str], *case: str) -> tuple[Recording, bytes, dict[str, Any]]:
        path = self.folder / "run.rec"
        _, figures = self.run([*options, "--record", str(path)], *case)
        return read_recording(path), path.read_bytes(), figures

    def check_nothing_left(self) -> None:
        files = list(self.folder.glob("velo-sim.*"))
        assert not files, f"left behind: {files}"


def test_latency_is_that_of_the_hardware_and_the_host_model(runner: Runner) -> None:
    text, _ = runner.run([], "latency")
    expected = STORE_PS + HOST_TO_HOST_CYCLES * CYCLE_PS + DMA_PS
    assert f"latency_ps {expected}\n" in text, text


def test_latency_follows_clock_cable_and_constants(runner: Runner) -> None:
    options = ["--clock-mhz", "200", "--cable-cycles", "10", "--store-ns", "200", "--dma-ns", "50"]
    text, _ = runner.run(options, "latency")
    expected = 200_000 + (HOST_TO_HOST_CYCLES + 10) * CYCLE_PS // 2 + 50_000
    assert f"latency_ps {expected}\n" in text, text


def test_a_run_says_which_host_it_had(runner: Runner) -> None:
    for options, host in (
        ([], "ht200-fitted"),
        (["--store-ns", "200", "--gap-ns", "50"], "ht200-fitted with store=200,gap=50"),
        (["--host", "a server", "--store-ns", "200"], "a server"),
    ):
        text, figures = runner.run(options, "latency")
        assert figures["host"] == host, figures
        assert text.splitlines()[-1] == f"velo-sim: host {host}; repeatable: yes", text


def check_remote(text: str, store_ps: int, cycle_ps: int, cable: int, dma_ps: int) -> None:
    found = dict(line.rsplit("_ps ", 1) for line in text.splitlines() if "_ps " in line)
    for name, (cycles, ways, reads) in REMOTE.items():
        expected = store_ps + (cycles + ways * cable) * cycle_ps + (2 * reads + 1) * dma_ps
        assert int(found[name]) == expected, f"{name}: {found[name]}, not {expected}"


def test_remote_memory_takes_what_hardware_and_host_model_take(runner: Runner) -> None:
    text, figures = runner.run([], "remote")
    check_remote(text, STORE_PS, CYCLE_PS, 0, DMA_PS)
    assert figures["lost_accesses"] == 0
    options = ["--clock-mhz", "200", "--cable-cycles", "10", "--store-ns", "200", "--dma-ns", "50"]
    text, _ = runner.run(options, "remote")
    check_remote(text, 200_000, CYCLE_PS // 2, 10, 50_000)


def test_remote_memory_repeats_itself_and_does_not_depend_on_skipping(runner: Runner) -> None:
    runs = [runner.run(options, "remote")[1] for options in ([], [], ["--no-skip"])]
    assert runs[0]["notifications"] > 0
    for what in ("hash", "virtual_time_ps"):
        assert len({run[what] for run in runs}) == 1, what


def test_remote_memory_that_is_not_granted_or_not_there_is_refused(runner: Runner) -> None:
    _, figures = runner.run([], "remote_refused")
    assert figures["lost_accesses"] == 3


def test_a_put_that_nobody_is_told_of_is_seen_by_those_who_wait(runner: Runner) -> None:
    runner.run([], "remote_untold")


def test_remote_operations_end_when_their_owner_dies(runner: Runner) -> None:
    text, _ = runner.run([], "remote_death")
    assert "refused 40\n" in text, text


def test_calls_answer_what_the_contract_says(runner: Runner) -> None:
    runner.run([], "calls")


def test_a_call_that_is_changed_meanwhile_is_answered_as_it_was(runner: Runner) -> None:
    runner.run([], "meddling")


def test_the_hash_is_the_same_again(runner: Runner) -> None:
    hashes = {runner.run([], "all_to_all", "4", "40")[1]["hash"] for _ in range(5)}
    assert len(hashes) == 1, hashes


def test_ranks_that_stand_still_while_others_end_change_nothing(runner: Runner) -> None:
    hashes = {runner.run([], "all_to_all", "4", "40", rest)[1]["hash"] for rest in ("0", "200000")}
    assert len(hashes) == 1, hashes


def test_skipping_changes_nothing(runner: Runner) -> None:
    for options in ([], ["--cable-cycles", "9"], ["--error-rate", "3e-5", "--seed", "7"]):
        for case in (["ping_pong", "200"], ["all_to_all", "4", "20"]):
            _, with_skip = runner.run(options, *case)
            _, without = runner.run([*options, "--no-skip"], *case)
            assert with_skip["hash"] == without["hash"]
            assert with_skip["virtual_time_ps"] == without["virtual_time_ps"]
            skipped = without["evaluated_node_cycles"] - with_skip["evaluated_node_cycles"]
            assert skipped > 0 or case[0] == "all_to_all", "nothing was skipped"


def test_errors_on_cables_lose_nothing(runner: Runner) -> None:
    _, figures = runner.run(["--error-rate", "1e-3"], "all_to_all", "4", "20")
    assert figures["messages"] == 4 * 3 * 20
    assert figures["bad_words"] > 0


def test_a_larger_network(runner: Runner) -> None:
    topology = str(runner.topology("torus", "2x2"))
    hashes = set()
    for _ in range(2):
        _, figures = runner.run(["--topology-file", topology], "all_to_all", "8", "5")
        assert figures["messages"] == 8 * 7 * 5
        hashes.add(figures["hash"])
    assert len(hashes) == 1, hashes


def test_a_recording_knows_each_step_of_a_message(runner: Runner) -> None:
    recording, _, figures = runner.record(["--cable-cycles", "3"], "latency")
    at = 100_000_000
    offered = at + STORE_PS
    left = offered + (HOST_TO_HOST_CYCLES + 3) * CYCLE_PS
    # A line of two words is four beats, the first of them in the cycle of the offer's edge.
    taken = offered + 3 * CYCLE_PS
    assert recording.messages == [Message((0, 1), (1, 2), 0, 8, at, offered, taken, left + DMA_PS)]
    assert recording.end == (figures["virtual_time_ps"], 1, 0, 0)
    # A start word, two words of header, two of payload, an end word.
    words = {"payload": 2, "overhead": 4, "repeated": 0, "retransmissions": 0, "buckets": 1}
    assert recording.links == {(0, 0): words}, recording.links
    head = recording.head
    assert (head["topology"], head["nodes"], head["clock_khz"]) == ("mesh2.topology", 2, 100_000)
    assert head["cables"] == [[0, 0, 1, 1], [1, 1, 0, 0]] and head["cable_cycles"] == 3


def test_a_recording_knows_each_operation_on_remote_memory(runner: Runner) -> None:
    recording, _, figures = runner.record([], "remote")
    text, _ = runner.run([], "remote")
    took = dict(re.findall(r"(\w+_requester_ps) (\d+)", text))
    # Each operation twice, alike but for the translations; then a put that nobody is told of.
    ops = [op.op for op in recording.operations]
    names = ("put", "get", "put_immediate", "update", "notify")
    assert ops == [1, 1, 3, 3, 2, 2, 4, 4, 5, 5, 1], ops
    for number, op in enumerate(recording.operations):
        assert (op.source, op.target, op.error) == ((0, 1), (1, 2), 0), op
        assert op.size == (0 if op.op == 5 else 8), op
        assert op.stored == (number + 1) * 100_000_000, op
        # Three words, of an update five, of two beats each.
        assert op.taken - op.stored - STORE_PS == (10 if op.op == 4 else 6) * CYCLE_PS, op
        if number % 2 == 1:
            assert op.notified - op.stored == int(took[f"{names[op.op - 1]}_requester_ps"]), op
    assert recording.operations[-1].notified == NEVER
    assert not recording.messages and figures["messages"] == 0


def test_a_recording_knows_why_an_operation_failed(runner: Runner) -> None:
    recording, _, _ = runner.record([], "remote_refused")
    mine = [op.error for op in recording.operations if op.source[0] == 0]
    assert len(mine) == 9 and sum(error != 0 for error in mine) == 7, mine


def test_recording_changes_nothing_and_repeats_itself(runner: Runner) -> None:
    for options in ([], ["--cable-cycles", "9"], ["--error-rate", "3e-5", "--seed", "7"]):
        _, plain = runner.run(options, "all_to_all", "4", "20")
        _, first, figures = runner.record(options, "all_to_all", "4", "20")
        _, again, _ = runner.record(options, "all_to_all", "4", "20")
        _, evaluated, _ = runner.record([*options, "--no-skip"], "all_to_all", "4", "20")
        assert plain["hash"] == figures["hash"]
        assert first == again == evaluated, "recordings differ"


def test_a_recording_is_whole_and_in_order(runner: Runner) -> None:
    topology = str(runner.topology("torus", "2x2"))
    options = ["--topology-file", topology, "--error-rate", "1e-5"]
    recording, _, figures = runner.record(options, "all_to_all", "8", "9")
    assert len(recording.messages) == figures["messages"] == 8 * 7 * 9
    assert recording.end[1:] == (8 * 7 * 9, 0, 0)
    last: dict[Any, Message] = {}
    for message in recording.messages:
        assert message.stored + STORE_PS <= message.offered < message.taken < message.published
        before = last.get((message.source, message.target))
        if before:
            assert before.stored < message.stored and before.taken < message.taken
            assert before.published < message.published
        last[message.source, message.target] = message
    sizes = {size: sum(m.size == size for m in recording.messages) for size in range(8, 57, 8)}
    assert min(sizes.values()) > 0 and sum(sizes.values()) == 8 * 7 * 9, sizes


def test_links_carry_what_the_messages_hold(runner: Runner) -> None:
    for options in ([], ["--error-rate", "1e-4"]):
        recording, _, figures = runner.record(options, "all_to_all", "4", "40")
        assert (figures["bad_words"] > 0) == bool(options)
        for node, link in ((0, 0), (1, 1)):
            crossed = [m for m in recording.messages if m.source[0] == node != m.target[0]]
            payload, framing = sum(m.size // 4 for m in crossed), 4 * len(crossed)
            carried = recording.links[node, link]
            if not options:
                assert carried["payload"] == payload and carried["overhead"] == framing, carried
                assert carried["repeated"] == carried["retransmissions"] == 0, carried
                continue
            # A frame that was cut short is sent again, whole.
            assert 0.9 * payload < carried["payload"] <= payload, carried
            assert carried["repeated"] >= 6 * carried["retransmissions"] > 0, carried
            first = carried["payload"] + carried["overhead"]
            assert first + carried["repeated"] > payload + framing, carried


def test_what_is_dropped_is_recorded_as_lost(runner: Runner) -> None:
    recording, _, figures = runner.record([], "dropped")
    assert figures["messages"] == 2
    by_time = sorted(recording.messages, key=lambda message: message.stored)
    assert [m.published == NEVER for m in by_time] == [False, True, False], by_time
    assert recording.end[1:] == (2, 1, 0)


def test_a_recording_that_cannot_be_written_is_refused(runner: Runner) -> None:
    for path in ("/nonexistent/run.rec", "/dev/full"):
        command = runner.command(["--record", path], ["true"])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and f"{path}: cannot be written" in done.stderr, done.stderr


def capture(runner: Runner, options: list[str], *case: str) -> list[captures.Frame]:
    """The frames of a run, which tshark has to see in the same way."""
    path = runner.folder / "run.pcapng"
    text, _ = runner.run([*options, "--capture", str(path)], *case)
    frames = captures.read(path)
    assert f"{path} has {len(frames)} frames\n" in text, text
    dissector = Path(runner.velo_sim).parents[2] / "share" / "velo" / "wireshark" / "velo.lua"
    assert captures.dissected(path, dissector) == [captures.shown(frame) for frame in frames]
    return frames


def test_a_capture_has_each_message_that_crossed_a_cable(runner: Runner) -> None:
    case = ("all_to_all", "4", "40")
    for options in ([], ["--error-rate", "1e-4"]):
        frames = capture(runner, options, *case)
        recording, _, _ = runner.record(options, *case)
        sent = Counter(
            (m.source, m.target, m.tag, m.size)
            for m in recording.messages
            if m.source[0] != m.target[0]
        )
        first = [frame for frame in frames if not frame.is_repeated]
        heads = [(p.source, p.target, p.tag, p.len) for f in first if (p := f.packet)]
        # A frame that is cut short before its packet's header is sent again, whole.
        assert len(first) == sent.total()
        assert not Counter(heads) - sent and len(heads) > 0.99 * len(first)
        repeats = sum(link["retransmissions"] for link in recording.links.values())
        assert len(frames) - len(first) == repeats and (repeats > 0) == bool(options), repeats
        for frame in frames:
            assert frame.way == ((0, 0), (1, 1)) or frame.way == ((1, 1), (0, 0)), frame
            is_whole = frame.packet and len(frame.packet.payload) == frame.packet.len
            assert is_whole or (options and frame.crc == 0), frame
        times = [frame.time_ps for frame in frames]
        stored = min(message.stored for message in recording.messages)
        assert times[0] > stored and all(time % CYCLE_PS == 0 for time in times)


def test_a_capture_has_the_packets_of_remote_memory(runner: Runner) -> None:
    frames = capture(runner, [], "remote")
    kinds = Counter(frame.packet.kind for frame in frames if frame.packet)
    expected = {"put", "get_request", "get_response", "put_immediate", "notification"}
    expected |= {"fetch_compare_add_request", "fetch_compare_add_response"}
    assert expected <= set(kinds), kinds


def test_capturing_changes_nothing_and_repeats_itself(runner: Runner) -> None:
    path = runner.folder / "run.pcapng"
    for options in ([], ["--error-rate", "3e-5", "--seed", "7"]):
        _, plain = runner.run(options, "all_to_all", "4", "20")
        seen = []
        for more in ([], [], ["--no-skip"]):
            words = [*options, *more, "--capture", str(path)]
            _, figures = runner.run(words, "all_to_all", "4", "20")
            assert figures["hash"] == plain["hash"]
            seen.append(path.read_bytes())
        assert seen[0] == seen[1] == seen[2], "captures differ"


def test_a_capture_that_cannot_be_written_is_refused(runner: Runner) -> None:
    for path in ("/nonexistent/run.pcapng", "/dev/full"):
        command = runner.command(["--capture", path], ["true"])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and f"{path}: cannot be written" in done.stderr, done.stderr


def test_who_sleeps_in_real_time_is_set_aside(runner: Runner) -> None:
    runner.run([], "aside")
    runner.run([], "napping")


def test_a_repeatable_run_ends_if_someone_sleeps(runner: Runner) -> None:
    # The process sleeps as well, but for threads that wake now and then.
    text, _ = runner.run([], "aside", "1", "8", status=124)
    assert "sleeps in read" in text, text


def test_who_computes_for_long_is_named(runner: Runner) -> None:
    text, _ = runner.run([], "busy", "5")
    assert re.search(r"process \d+ thread \d+ rank 0 at \d+ ns has computed for 3 s", text), text
    text, _ = runner.run([], "busy", "1")
    assert "computed" not in text, text


def test_who_dies_holds_up_nobody(runner: Runner) -> None:
    runner.run([], "death")


def test_fences_without_a_call_between_them(runner: Runner) -> None:
    runner.run([], "fences")


def test_progress_is_one_line_on_a_terminal_and_none_in_a_short_log(runner: Runner) -> None:
    text, _ = runner.run(["--progress"], "ping_pong", "200")
    last = [line for line in text.splitlines() if line.startswith("velo-sim:")]
    assert len(last) == 2 and "virtual time" in last[0] and "repeatable" in last[1], text
    ours, theirs = os.openpty()
    command = runner.command(["--progress"], [runner.clients, "forever"])
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as sim:
        said = b""
        while said.count(b" skipped") < 2:
            said += os.read(ours, 4096)
        sim.send_signal(signal.SIGTERM)
        sim.wait(SECONDS)
    lines = said.split(b"\r\x1b[K")[1:]
    shown = re.compile(rb"velo-sim: at [\d.]+ us, 0 messages, \S+ node-cycles/s, [\d.]+ % skipped")
    assert len(lines) >= 2 and all(shown.fullmatch(line) for line in lines), said
    os.close(ours)
    os.close(theirs)


def test_a_signal_ends_everything(runner: Runner) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        command = runner.command([], [runner.clients, "forever"])
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as sim:
            assert sim.stdout is not None
            sim.stdout.readline()
            sim.send_signal(number)
            started = time.monotonic()
            sim.communicate(timeout=SECONDS)
            assert sim.returncode == 128 + number, sim.returncode
            assert time.monotonic() - started < 30
        runner.check_nothing_left()
        mine = Path(runner.clients).stat()
        for entry in Path("/proc").glob("[0-9]*/exe"):
            try:
                other = entry.stat()
            except OSError:
                continue
            assert (other.st_dev, other.st_ino) != (mine.st_dev, mine.st_ino), f"left: {entry}"


def test_the_exit_code_is_that_of_the_command(runner: Runner) -> None:
    for script, status in (("exit 7", 7), ("kill -KILL $$", 128 + signal.SIGKILL)):
        command = runner.command([], ["sh", "-c", script])
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        assert done.returncode == status, done.stderr
        runner.check_nothing_left()


def test_a_command_that_does_not_use_the_cluster_hears_of_it(runner: Runner) -> None:
    done = subprocess.run(
        runner.command([], ["true"]), capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert "nobody used the cluster" in done.stderr, done.stderr
    text, _ = runner.run([], "fences")
    assert "nobody used the cluster" not in text, text


def read_vcd(path: Path, scope: str, name: str) -> list[tuple[int, int]]:
    """When a one-bit signal changed, and to what; of a top module's port."""
    changes, code, at, time_ps = [], "", "", 0
    with path.open(encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:2] == ["$scope", "module"] and not at:
                at = words[2]
            elif words[:1] == ["$var"] and at == scope and words[4] == name:
                code = code or words[3]
            elif line.startswith(" $upscope"):
                at = ""
            elif line[0] == "#":
                time_ps = int(line[1:])
            elif line[0] in "01" and words[0][1:] == code:
                changes.append((time_ps, int(line[0])))
    assert code, f"no {scope}.{name}"
    return changes


def wave_runner(runner: Runner) -> Runner:
    program = Path(runner.velo_sim).with_name("velo-sim-wave")
    if not program.exists():
        raise SkipError(f"{program} is not there; build velo-sim-wave")
    return Runner(str(program), runner.clients, runner.routing, runner.folder)


def test_a_waveform_shows_a_message_to_the_picosecond(runner: Runner) -> None:
    path = runner.folder / "run.vcd"
    pair = ["--topology-file", str(runner.topology("full", "2"))]
    window = ["--wave", str(path), "--wave-from-us", "100.05", "--wave-to-us", "100.5"]
    _, plain = runner.run(pair, "latency")
    text, figures = wave_runner(runner).run([*pair, *window], "latency")
    assert figures["hash"] == plain["hash"] and "run.vcd shows 45 cycles\n" in text
    offered = 100_000_000 + STORE_PS
    left = offered + HOST_TO_HOST_CYCLES * CYCLE_PS
    # Inputs come with the clock's low half, registers change with its edge.
    half = CYCLE_PS // 2
    begin = 100_050_000 + half
    host = [(begin, 0), (offered - half, 1), (offered - half + 4 * CYCLE_PS, 0)]
    assert read_vcd(path, "node0", "host_write_valid_i") == host
    dma = [(begin, 0), (left - 4 * CYCLE_PS, 1), (left, 0)]
    assert read_vcd(path, "node1", "dma_write_valid_o") == dma
    edges = read_vcd(path, "node1", "clk_i")
    assert edges == [(begin + i * half, i % 2) for i in range(90)]
    # Nodes that come from rest have the state that they would have without rest.
    shown = path.read_bytes()
    wave_runner(runner).run([*pair, *window, "--no-skip"], "latency")
    assert path.read_bytes() == shown, "what is shown depends on skipping"
    # The list of nodes comes last, and must not take the command for a node.
    options = [*pair, *window, "--area", str(runner.folder / "area"), "--wave-nodes", "1"]
    wave_runner(runner).run(options, "latency", "-x")
    assert read_vcd(path, "node1", "dma_write_valid_o") == dma
    assert "module node0 " not in path.read_text(encoding="utf-8")


def test_a_waveform_changes_nothing(runner: Runner) -> None:
    pair = ["--topology-file", str(runner.topology("full", "2"))]
    path = runner.folder / "run.vcd"
    window = ["--wave", str(path), "--wave-from-us", "9.013", "--wave-to-us", "12"]
    for options in ([], ["--cable-cycles", "9"], ["--error-rate", "3e-5"], ["--no-skip"]):
        for case in (["ping_pong", "20"], ["all_to_all", "4", "20"]):
            _, plain, _ = runner.record([*pair, *options], *case)
            _, shown, _ = wave_runner(runner).record([*pair, *options, *window], *case)
            assert plain == shown, f"{options} {case}: recordings differ"
            lines = path.read_text(encoding="utf-8").splitlines()
            times = [line for line in lines if line.startswith("#")]
            assert (times[0], times[-1]) == ("#9025000", "#12000000"), f"{options} {case}"


def test_a_window_in_which_nothing_runs(runner: Runner) -> None:
    pair = ["--topology-file", str(runner.topology("full", "2"))]
    path = runner.folder / "run.vcd"
    window = ["--wave-from-us", "1e6", "--wave-to-us", "1000001"]
    text, _ = wave_runner(runner).run([*pair, "--wave", str(path), *window], "latency")
    assert "shows 0 cycles: nothing ran in that time" in text
    for options, why in (
        (["--wave", str(path), "--wave-nodes", "2"], "nodes end at 1"),
        (["--wave", "/nonexistent/run.vcd"], "cannot be written"),
    ):
        command = wave_runner(runner).command([*pair, *options, *window], ["true"])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and why in done.stderr, done.stderr


def test_what_cannot_be_is_refused(runner: Runner) -> None:
    bad = runner.folder / "bad"
    bad.write_text("cable 0 0 1 0\n", encoding="utf-8")
    taken = runner.folder / "taken"
    lock = os.open(taken, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for options, why in (
        (["--topology-file", str(bad)], "no way back"),
        (["--topology-file", "/nonexistent"], "cannot be read"),
        (["--area", "/proc/area"], "/proc"),
        (["--area", str(taken)], f"{taken}: another cluster has this file"),
        (["--links", "1", "--topology-file", str(runner.topology("torus", "2x2"))], "needs 4"),
        (["--wave", "x.vcd", "--wave-from-us", "1", "--wave-to-us", "2"], "build velo-sim-wave"),
    ):
        command = runner.command(options, ["true"])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and why in done.stderr, done.stderr


def test_memory_that_runs_out_is_an_error(runner: Runner) -> None:
    """On a file system that is too small for the nodes, and on one that contexts fill."""
    # In a name space of its own.
    space = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    for size, status, why in (
        ("300k", 1, "0 MiB are free"),
        ("4m", 124, "has no room for 256 KiB more, which a context of node 1 needs"),
    ):
        mount = f'mount -t tmpfs -o size={size} none /mnt && exec "$@"'
        options = ["--area", "/mnt/area", "--model", "fast"]
        command = runner.command(options, [runner.clients, "calls"])
        done = subprocess.run(
            [*space, "sh", "-c", mount, "sh", *command],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == status and why in done.stderr, (done.returncode, done.stderr)


def both_models(runner: Runner, options: list[str], *case: str) -> tuple[Any, Any]:
    """The figures of the RTL and of the fast model."""
    _, rtl = runner.run(options, *case)
    _, fast = runner.run([*options, "--model", "fast"], *case)
    assert (rtl["model"], fast["model"]) == ("rtl", "fast")
    assert rtl["messages"] == fast["messages"], (rtl, fast)
    return rtl, fast


def check_close(rtl: float, fast: float, percent: float) -> None:
    assert abs(fast - rtl) <= rtl * percent / 100, f"RTL {rtl}, fast {fast}"


def test_the_fast_model_has_the_hashes_of_the_rtl(runner: Runner) -> None:
    for options in (
        [],
        ["--cable-cycles", "9"],
        ["--cable-cycles", "44", "--clock-mhz", "156"],
        ["--topology-file", str(runner.topology("torus", "2x3"))],
        ["--topology-file", str(runner.topology("full", "5"))],
    ):
        for case in (["latency"], ["ping_pong", "50", "2"], ["ping_pong", "50", "8"], ["dropped"]):
            rtl, fast = both_models(runner, options, *case)
            for figure in ("hash", "virtual_time_ps", "cycles"):
                assert rtl[figure] == fast[figure], (options, case, figure, rtl, fast)
            assert fast["evaluated_node_cycles"] < fast["node_cycles"]


def test_the_fast_model_is_close_under_load(runner: Runner) -> None:
    for network, ranks in (("mesh", "2"), "4"), (("torus", "2x2"), "8"):
        options = ["--topology-file", str(runner.topology(*network))]
        rtl, fast = both_models(runner, options, "all_to_all", ranks, "40")
        check_close(rtl["virtual_time_ps"], fast["virtual_time_ps"], 3)


def test_the_fast_model_waits_for_full_rings(runner: Runner) -> None:
    held, time_ps = [], []
    for model in ("rtl", "fast"):
        text, figures = runner.run(["--model", model], "overfull")
        held.append({int(a): int(b) for a, b in re.findall(r"held (\d) (\d+)", text)})
        time_ps.append(figures["virtual_time_ps"])
    check_close(time_ps[0], time_ps[1], 1)
    # Of the lines of each sender as many fit into ring, network and the way to its node.
    assert held[0].keys() == held[1].keys() == {1, 2}, held
    assert all(abs(held[0][rank] - held[1][rank]) <= 4 for rank in held[0]), held


def test_the_fast_model_has_the_times_of_remote_memory(runner: Runner) -> None:
    fast = ["--model", "fast"]
    for options, times in (
        ([], (STORE_PS, CYCLE_PS, 0, DMA_PS)),
        (
            ["--clock-mhz", "200", "--cable-cycles", "10", "--store-ns", "200", "--dma-ns", "50"],
            (200_000, CYCLE_PS // 2, 10, 50_000),
        ),
    ):
        text, _ = runner.run([*options, *fast], "remote")
        check_remote(text, *times)
        for case in ("remote", "remote_untold"):
            rtl, fast_figures = both_models(runner, options, case)
            for figure in ("hash", "virtual_time_ps", "notifications"):
                assert rtl[figure] == fast_figures[figure], (options, case, figure)
    _, figures = runner.run(fast, "remote_refused")
    assert (figures["lost_accesses"], figures["notifications"]) == (3, 9), figures
    text, _ = runner.run(fast, "remote_death")
    assert "refused 40\n" in text, text


def test_the_fast_model_is_close_at_long_operations(runner: Runner) -> None:
    """Each operation of several packets, alone and both ways at once."""
    took = []
    for model in ("rtl", "fast"):
        text, _ = runner.run(["--model", model], "remote_long")
        took.append({name: int(ps) for name, ps in re.findall(r"(rank .*): (\d+) ps", text)})
    rtl, fast = took
    assert rtl.keys() == fast.keys() and len(rtl) == 42, (rtl, fast)
    for name in rtl:
        check_close(rtl[name], fast[name], 3)


def test_the_fast_model_lets_as_many_gets_wait(runner: Runner) -> None:
    """Each of many gets and updates, and the put and the message behind them."""
    for network, ranks, percent in (("mesh", "2"), "2", 0), (("full", "5"), "5", 3):
        took = []
        for model in ("rtl", "fast"):
            options = ["--model", model, "--topology-file", str(runner.topology(*network))]
            text, _ = runner.run(options, "remote_many", ranks)
            took.append([(of, int(ps)) for of, ps in re.findall(r"(rank .*): (\d+) ps", text)])
        assert len(took[0]) == len(took[1]) == 108, took
        for (rtl_of, rtl), (fast_of, fast) in zip(*took, strict=True):
            assert rtl_of == fast_of
            check_close(rtl, fast, percent)


def test_the_fast_model_repeats_itself(runner: Runner) -> None:
    options = ["--model", "fast", "--topology-file", str(runner.topology("torus", "2x2"))]
    hashes = {runner.run(options, "all_to_all", "8", "5")[1]["hash"] for _ in range(20)}
    assert len(hashes) == 1, hashes
    hashes = {runner.run(["--model", "fast"], "remote_long")[1]["hash"] for _ in range(3)}
    assert len(hashes) == 1, hashes


def test_the_fast_model_refuses_what_it_lacks(runner: Runner) -> None:
    """Each part that the table calls refused, with the sentence that the table has."""
    sentences = set(re.findall(r"“(.*)”", models_table(runner)))
    said_so: set[str] = set()
    recording = str(runner.folder / "run.rec")
    for options, why in (
        (["--width", "64"], "data paths of 64 and 128 bits"),
        (["--error-rate", "1e-6"], "bit errors"),
        (["--split-one-in", "3"], "lines that a host splits"),
        (["--card", f"0={runner.folder / 'card'}"], "cards of guests"),
        (["--boards", "2"], "boards of DIMMnet-2"),
        (["--record", recording], "recordings"),
        (["--capture", recording], "captures of frames"),
        (["--wave", "x.vcd", "--wave-from-us", "1", "--wave-to-us", "2"], "waveforms"),
    ):
        command = runner.command([*options, "--model", "fast"], ["true"])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = {one for one in sentences if one in done.stderr}
        assert done.returncode == 1 and len(said) == 1, (options, done.stderr)
        assert f"does not have this: {why}" in said.copy().pop() and not Path(recording).exists()
        said_so |= said
    for part, why in (
        ("split", "lines that a host splits"),
        ("multicast", "multicast and barriers"),
        ("barrier", "multicast and barriers"),
        ("congestion", "congestion management"),
        ("custom", "the custom unit"),
    ):
        text, _ = runner.run(["--model", "fast"], "lacking", part, status=124)
        said = {one for one in sentences if one in text}
        assert len(said) == 1 and f"does not have this: {why}" in said.copy().pop(), text
        said_so |= said
    assert said_so == sentences, sentences - said_so
    text, _ = runner.run(["--model", "fast"], "calls", status=124)
    assert "does not have the register at 0x" in text, text


def test_the_fast_model_has_more_nodes_than_256(runner: Runner) -> None:
    """Names have 16 bits: 300 nodes leave seven of them to the context."""
    options = ["--model", "fast", "--topology-file", str(runner.topology("ring", "300"))]
    hashes = {runner.run(options, "many_nodes", "300")[1]["hash"] for _ in range(2)}
    assert len(hashes) == 1, hashes


def test_what_the_fast_model_lacks_is_recorded(runner: Runner) -> None:
    is_recorded(models_table(runner), "models.txt")


def test_why_a_run_may_not_repeat_itself_is_recorded(runner: Runner) -> None:
    is_recorded(printed(runner, "--causes"), "causes.txt")


def is_recorded(table: str, name: str) -> None:
    """tools/tests/test_sim_pages.py holds the reference to what is recorded.

    A page is no input here, so that a change of one runs no simulator.
    """
    file = Path(__file__).with_name(name)
    assert table.count("\n") > 3
    assert table == file.read_text(encoding="utf-8"), f"{file} is not:\n{table}"


def models_table(runner: Runner) -> str:
    return printed(runner, "--models")


def printed(runner: Runner, option: str) -> str:
    command = [runner.velo_sim, option]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_simulators_share_no_processor_while_there_are_others(runner: Runner) -> None:
    """Each client prints its processor, and runs until its input ends."""
    leave_other_simulators()
    processors = sorted(os.sched_getaffinity(0))
    for processor in processors:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as name:
            try:
                name.bind(f"\0velo-sim.processor.{processor}")
            except OSError:
                raise SkipError("another simulator runs on this machine") from None
    for _ in range(5):  # They may come to different ones by chance.
        taken = run_side_by_side(runner, len(processors) + 1)
        # There is one simulator too many: it shares a processor with another.
        assert sorted(taken[:-1]) == processors and taken[-1] in processors, taken


def leave_other_simulators() -> None:
    """Go to a network's namespace of our own, where that is permitted: simulators take processors
    by names of sockets, which those of other checkouts have as well."""
    user = 0 if os.geteuid() == 0 else CLONE_NEWUSER
    ctypes.CDLL(None).unshare(CLONE_NEWNET | user)


def run_side_by_side(runner: Runner, count: int) -> list[int]:
    """The processor of each simulator, all running at the same time."""
    taken: list[int] = []
    with contextlib.ExitStack() as jobs:
        for number in range(count):
            options = ["--area", str(runner.folder / f"area{number}")]
            job = subprocess.Popen(
                runner.command(options, ["sh", "-c", "echo; cat"]),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            jobs.callback(job.communicate)
            assert job.stdout
            job.stdout.readline()
            while len(processors := os.sched_getaffinity(job.pid)) > 1:
                time.sleep(0.01)  # It is about to pin itself.
            taken += processors
    return taken


def main(argv: list[str]) -> int:
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name in argv[4:] or tests:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="velo-sim-") as folder:
            try:
                tests[name](Runner(*argv[1:4], Path(folder)))
            except SkipError as skipped:
                print(skipped)
                return SKIPPED
        print(f"ok {time.monotonic() - started:6.1f} s  {name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
