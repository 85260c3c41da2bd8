# SPDX-License-Identifier: Apache-2.0
"""The custom unit between a host, its memory and a network that also send what is wrong."""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench, packet_to_beats, split, words_to_beats
from structs import Struct

NODE, PEER, CTX, SEGMENT = 0x21, 0x34, 5, 0x7_0000_0000
REQUEST, RESPONSE, CUSTOM = 0, 1, 9
STORE, LOAD = 16, 8
PORT, READY, STREAM, READ = (
    Struct("htax_pkg", f"htax_{name}_t") for name in ("port", "ready", "stream", "read")
)
NET = Struct("velo_net_pkg", "net_stream_t")


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_gsm(simulate: Callable[..., None], width: int) -> None:
    simulate("velo_gsm", {"DataWidth": width})


def packet(tc: int, size: int, words: list[int], tag: int = 0, node: int = NODE) -> list[int]:
    """A packet of the network in words; `size` is what its header says of it."""
    head = tc << 1 | CUSTOM << 4 | node << 8 | CTX << 16 | size << 26 | tag << 36
    return [head | CTX << 44 | PEER << 52, *words]


def fields(head: int) -> tuple[int, int, int]:
    """Of a header: node it goes to, bytes of payload, tag."""
    return head >> 8 & 255, head >> 26 & 1023, head >> 36 & 255


def htax_header(addr: int = 0, size: int = 8, tag: int = 0, error: int = 0) -> int:
    return addr << 23 | size << 13 | tag << 1 | error


def initial(addr: int) -> int:
    """The content of memory where nothing was written."""
    return (addr * 0x9E3779B97F4A7C15 >> 3) & (1 << 64) - 1


class Setup:
    """The unit and all around it, a cycle at a time; each stream stalls as often as is said."""

    def __init__(self, dut: Any, stall: float = 0.3, seed: int = 1):
        zeros = ["to_unit_i", "from_unit_ready_i", "net_in_i", "net_out_ready_i"]
        self.dut, self.stall, self.rng = dut, stall, random.Random(seed)
        self.bench = Bench(dut, zeros)
        self.width = len(dut.to_unit_posted_data_i)
        dut.node_id_i.value = NODE
        # Beats that are still to go in: data, header, whether it is the last.
        self.stores: deque[tuple[int, int, int]] = deque()
        self.loads: deque[int] = deque()
        self.answers: deque[tuple[int, int, int]] = deque()
        self.packets: list[deque[tuple[int, int]]] = [deque(), deque()]
        self.memory: dict[int, int] = {}
        self.refused_reads: set[int] = set()
        self.odd_reads: dict[int, int] = {}  # words in the answer
        self.reads = 0
        self.open: dict[str, list[int]] = {"answer": [], "write": [], "0": [], "1": []}
        self.sent: list[list[list[int]]] = [[], []]  # packets that came out
        self.answered: list[tuple[int, int | None]] = []  # tag, value or an error

    async def start(self, enabled: int = 1) -> None:
        self.dut.setting_i.value = SEGMENT | enabled
        await self.bench.start()
        cocotb.start_soon(self._run())

    def request(self, words: list[int], beats: int | None = None, tc: int = REQUEST) -> None:
        # On a wide path the header has a beat of its own.
        data = (packet_to_beats if self.width == 128 else words_to_beats)(words, self.width)[:beats]
        self.packets[tc] += [(beat, int(i == len(data) - 1)) for i, beat in enumerate(data)]

    def store(self, addr: int, words: list[int], size: int | None = None) -> None:
        beats = words_to_beats(words, self.width)
        head = htax_header(addr, 8 * len(words) if size is None else size)
        self.stores += [(beat, head, int(i == len(beats) - 1)) for i, beat in enumerate(beats)]

    def status(self) -> tuple[int, int, int]:
        """Refused, dropped, loads that wait."""
        value = int(self.dut.status_o.value)
        return value & 255, value >> 8 & 255, value >> 16

    async def _run(self) -> None:
        dut, mask = self.dut, (1 << self.width) - 1
        shown = dict.fromkeys(("store", "load", "memory", "0", "1"), False)
        while True:
            waiting = {"store": self.stores, "load": self.loads, "memory": self.answers}
            waiting |= {"0": self.packets[0], "1": self.packets[1]}
            for name, queue in waiting.items():
                # An offer that was not taken stays.
                shown[name] = bool(queue) and (shown[name] or self.rng.random() >= self.stall)
            offer: dict[str, int] = {}
            for name, channel, beats in (
                ("store", "posted", self.stores),
                ("memory", "response", self.answers),
            ):
                if shown[name]:
                    data, head, eop = beats[0]
                    offer[channel] = STREAM.pack(valid=1, eop=eop, header=head)
                    getattr(dut, f"to_unit_{channel}_data_i").value = data
            if shown["load"]:
                offer["nonposted"] = READ.pack(valid=1, header=self.loads[0])
            dut.to_unit_i.value = PORT.pack(**offer)
            streams = data = 0
            for c in (0, 1):
                if shown[str(c)]:
                    streams |= NET.pack(valid=1, eop=self.packets[c][0][1]) << NET.bits * c
                    data |= self.packets[c][0][0] << (self.width * c)
            dut.net_in_i.value, dut.net_in_data_i.value = streams, data
            takes = {
                channel: int(self.rng.random() >= self.stall)
                for channel in ("response", "posted", "nonposted")
            }
            dut.from_unit_ready_i.value = READY.pack(**takes)
            dut.net_out_ready_i.value = sum((self.rng.random() >= self.stall) << c for c in (0, 1))
            await ReadOnly()
            ready = READY.unpack(dut.to_unit_ready_o)
            for name, channel in (
                ("store", "posted"),
                ("load", "nonposted"),
                ("memory", "response"),
            ):
                if shown[name] and ready[channel]:
                    waiting[name].popleft()
                    shown[name] = False
            taken = int(dut.net_in_ready_o.value)
            sent, moves = int(dut.net_out_o.value), int(dut.net_out_ready_i.value)
            for c in (0, 1):
                if shown[str(c)] and taken >> c & 1:
                    self.packets[c].popleft()
                    shown[str(c)] = False
                stream = NET.unpack_bits(sent >> NET.bits * c)
                if stream["valid"] and moves >> c & 1:
                    beat = int(dut.net_out_data_o.value) >> (self.width * c) & mask
                    self._sent(c, beat, stream)
            self._collect_host(takes)
            await FallingEdge(dut.clk_i)

    def _whole(self, name: str, beat: int, eop: int) -> list[int] | None:
        """The beats of a stream so far, if this one ends them; the words they make."""
        self.open[name].append(beat)
        if not eop:
            return None
        value = sum(data << (self.width * i) for i, data in enumerate(self.open[name]))
        words = split(value, self.width * len(self.open[name]), 64)
        if self.width == 128:
            # A word alone, or a header's beat and then as many words as the header says.
            alone = name in ("answer", "write")
            words = words[:1] if alone else [words[0], *words[2:][: fields(words[0])[1] // 8]]
        self.open[name] = []
        return words

    def _sent(self, c: int, beat: int, stream: dict[str, int]) -> None:
        assert stream["sop"] == (not self.open[str(c)])
        if words := self._whole(str(c), beat, stream["eop"]):
            self.sent[c].append(words)

    def _collect_host(self, takes: dict[str, int]) -> None:
        dut, sent = self.dut, PORT.unpack(self.dut.from_unit_o)
        answer, write = STREAM.unpack_bits(sent["response"]), STREAM.unpack_bits(sent["posted"])
        read = READ.unpack_bits(sent["nonposted"])
        if answer["valid"] and takes["response"]:
            head, data = answer["header"], int(dut.from_unit_response_data_o.value)
            words = self._whole("answer", data, answer["eop"])
            if words is not None:
                assert head & 1 or len(words) == 1
                self.answered.append((head >> 1 & 255, None if head & 1 else words[0]))
        if write["valid"] and takes["posted"]:
            head, data = write["header"], int(dut.from_unit_posted_data_o.value)
            words = self._whole("write", data, write["eop"])
            if words is not None:
                assert head >> 13 & 1023 == 8 and len(words) == 1
                self.memory[head >> 23 & (1 << 48) - 1] = words[0]
        if read["valid"] and takes["nonposted"]:
            head = read["header"]
            addr = head >> 23 & (1 << 48) - 1
            assert head >> 13 & 1023 == 8
            self.reads += 1
            bad = int(addr in self.refused_reads)
            words = [self.memory.get(addr, initial(addr))] * self.odd_reads.get(addr, 1 - bad)
            # A refusal is one beat, but may have data, which then mean nothing.
            beats = words_to_beats(words, self.width) or [0]
            self.answers += [(beat, htax_header(error=bad), 0) for beat in beats[:-1]]
            self.answers.append((beats[-1], htax_header(error=bad), 1))

    async def others_go_on(self, tag: int) -> None:
        """A store and a load from the network, and a load and a store of the host, are served."""
        for sent in self.sent:
            sent.clear()
        self.answered.clear()
        value, place = self.rng.getrandbits(64), 8 * self.rng.randrange(1 << 17)
        self.request(packet(REQUEST, STORE, [place, value]))
        await self.bench.until(lambda: self.memory.get(SEGMENT + place) == value)
        self.request(packet(REQUEST, LOAD, [place], tag))
        await self.bench.until(lambda: bool(self.sent[RESPONSE]))
        ((head, got),) = self.sent[RESPONSE]
        assert (fields(head), got) == ((PEER, 8, tag), value)
        self.store(PEER << 20 | place, [value])
        await self.bench.until(lambda: len(self.sent[REQUEST]) == 1)
        self.loads.append(htax_header(PEER << 20 | place, 8, tag))
        await self.bench.until(lambda: len(self.sent[REQUEST]) == 2)
        store, load = self.sent[REQUEST]
        assert (fields(store[0])[:2], store[1:]) == ((PEER, STORE), [place, value])
        assert (fields(load[0]), load[1:]) == ((PEER, LOAD, tag), [place])
        await self.bench.cycles(2)
        assert self.status()[2] == 1
        self.request(packet(RESPONSE, 8, [value], tag), tc=RESPONSE)
        await self.bench.until(lambda: bool(self.answered))
        assert self.answered == [(tag, value)]
        await self.bench.cycles(2)
        assert self.status()[2] == 0


def bad_requests(width: int) -> list[tuple[list[int], int | None]]:
    """Packets that no node sends, each with what is left of it."""
    place, value = 0x48, 0xDEAD
    cases: list[tuple[list[int], int | None]] = [
        (packet(REQUEST, STORE, [place, value], node=NODE ^ 1), None),
        (packet(REQUEST, LOAD, [place], node=PEER), None),
        # The header does not fit the packet.
        (packet(REQUEST, LOAD, [place, value]), None),
        (packet(REQUEST, STORE, [place]), None),
        (packet(REQUEST, 0, [place]), None),
        (packet(REQUEST, 24, [place, value, value]), None),
        (packet(REQUEST, STORE, [place, value, value]), None),
        (packet(REQUEST, STORE, [place, *range(60)]), None),
        (packet(REQUEST, LOAD, []), None),
        # Outside the segment, or not of one word of it.
        (packet(REQUEST, STORE, [1 << 20, value]), None),
        (packet(REQUEST, LOAD, [1 << 63]), None),
        (packet(REQUEST, STORE, [place + 4, value]), None),
        (packet(REQUEST, LOAD, [place + 1]), None),
    ]
    if width == 128:
        # A word in a beat's padding, and padding in place of a word: as good as right.
        cases = cases[:2] + cases[4:]
    if width == 32:
        good = packet(REQUEST, STORE, [place, value])
        cases += [(good, cut) for cut in (1, 3, 5)]
    return cases


@cocotb.test
async def bad_requests_are_dropped_counted_and_harm_nobody(dut: Any) -> None:
    setup = Setup(dut)
    await setup.start()
    for index, (words, cut) in enumerate(bad_requests(setup.width)):
        before, reads = dict(setup.memory), setup.reads
        setup.sent[RESPONSE].clear()
        setup.request(words, cut)
        await setup.bench.until(lambda index=index: setup.status()[1] == index + 1)
        await setup.bench.cycles(20)
        assert setup.status() == (0, index + 1, 0)
        assert (setup.memory, setup.reads) == (before, reads), index
        assert not setup.sent[RESPONSE], index
        await setup.others_go_on(index)


@cocotb.test
async def without_a_segment_stores_are_dropped_and_loads_get_no_value(dut: Any) -> None:
    setup = Setup(dut)
    await setup.start(enabled=0)
    setup.request(packet(REQUEST, STORE, [8, 1]))
    setup.request(packet(REQUEST, LOAD, [8], tag=7))
    await setup.bench.until(lambda: bool(setup.sent[RESPONSE]))
    ((head,),) = setup.sent[RESPONSE]
    assert fields(head) == (PEER, 0, 7)
    assert setup.status() == (0, 1, 0) and not setup.memory and not setup.reads
    dut.setting_i.value = SEGMENT | 1
    await setup.others_go_on(8)


@cocotb.test
async def memory_that_refuses_or_answers_wrongly_makes_a_load_without_value(dut: Any) -> None:
    setup = Setup(dut)
    await setup.start()
    setup.refused_reads = {SEGMENT + 0x40, SEGMENT + 0xC0}
    setup.odd_reads = {SEGMENT + 0x80: 3, SEGMENT + 0xC0: 1}
    for tag, place in enumerate((0x40, 0x80, 0xC0, 0x40)):
        setup.sent[RESPONSE].clear()
        setup.request(packet(REQUEST, LOAD, [place], tag))
        await setup.bench.until(lambda: bool(setup.sent[RESPONSE]))
        ((head,),) = setup.sent[RESPONSE]
        assert fields(head) == (PEER, 0, tag)
        await setup.others_go_on(0x80 + tag)
    # An answer that nobody asked for is not taken for the next one's.
    setup.answers += [(0xBAD, htax_header(), 0)] * (64 // setup.width - 1)
    setup.answers.append((0xBAD, htax_header(), 1))
    await setup.bench.until(lambda: not setup.answers)
    await setup.others_go_on(0x90)
    assert setup.status() == (0, 0, 0)


@cocotb.test
async def stray_responses_are_dropped_and_bad_ones_answer_with_an_error(dut: Any) -> None:
    setup = Setup(dut)
    await setup.start()
    value = 0x1234_5678_9ABC_DEF0
    # Nobody waits, or it is another's.
    strays = [(packet(RESPONSE, 8, [value], 3), None), (packet(RESPONSE, 0, [], 3), None)]
    strays += [(packet(RESPONSE, 8, [value], 3, node=NODE ^ 1), None)]
    strays += [(packet(RESPONSE, 8, [value] * 9, 3), None)]
    strays += [(packet(RESPONSE, 8, [value], 3), 1)] if setup.width == 32 else []
    dropped = 0
    for words, cut in strays:
        setup.answered.clear()
        setup.request(words, cut, RESPONSE)
        dropped += 1
        await setup.bench.until(lambda dropped=dropped: setup.status()[1] == dropped)
        await setup.bench.cycles(20)
        assert setup.status() == (0, dropped, 0) and not setup.answered
        await setup.others_go_on(dropped)
    # While a load waits, an answer of another node comes, and a packet without header: neither is
    # the load's answer.
    setup.answered.clear()
    setup.loads.append(htax_header(PEER << 20, 8, 0x55))
    await setup.bench.until(lambda: setup.status()[2] == 1)
    others = strays[2:3] + strays[4:]
    for words, cut in others:
        setup.request(words, cut, RESPONSE)
    dropped += len(others)
    await setup.bench.until(lambda: setup.status()[1] == dropped)
    assert setup.status()[2] == 1 and not setup.answered
    setup.request(packet(RESPONSE, 8, [value], 0x55), tc=RESPONSE)
    await setup.bench.until(lambda: bool(setup.answered))
    assert setup.answered == [(0x55, value)]
    # An answer without a value, or that contradicts itself, is an error; the load is over.
    for tag, words in enumerate(
        (
            packet(RESPONSE, 0, [], 0),
            packet(RESPONSE, 8, [], 1),
            packet(RESPONSE, 0, [value], 2),
            packet(RESPONSE, 16, [value, value], 3),
            packet(RESPONSE, 8, [value, value, value], 4),
        )
    ):
        setup.answered.clear()
        setup.sent[REQUEST].clear()
        setup.loads.append(htax_header(PEER << 20, 8, tag))
        await setup.bench.until(lambda: bool(setup.sent[REQUEST]))
        assert setup.status()[2] == 1
        setup.request(words, tc=RESPONSE)
        await setup.bench.until(lambda: bool(setup.answered))
        assert setup.answered == [(tag, None)]
        await setup.others_go_on(0x80 + tag)
    assert setup.status() == (0, dropped, 0)


@cocotb.test
async def accesses_that_are_not_of_one_word_are_refused(dut: Any) -> None:
    setup = Setup(dut)
    await setup.start()
    refused = 0
    # More words than the length says: on a wide path one more is in the beat's padding.
    more = [1, 2, 3] if setup.width == 128 else [1, 2]
    for addr, words, size in ((4, [1], 8), (0, [1, 2], 16), (0, [1], 4), (0, more, 8)):
        setup.sent[REQUEST].clear()
        setup.store(PEER << 20 | addr, words, size)
        refused += 1
        await setup.bench.until(lambda refused=refused: setup.status()[0] == refused)
        await setup.bench.cycles(20)
        assert not setup.sent[REQUEST]
        await setup.others_go_on(refused)
    for tag, (addr, size) in enumerate(((1, 8), (0, 4), (0, 16), (0, 0))):
        setup.answered.clear()
        setup.sent[REQUEST].clear()
        setup.loads.append(htax_header(PEER << 20 | addr, size, tag))
        await setup.bench.until(lambda: bool(setup.answered))
        refused += 1
        await setup.bench.cycles(20)
        assert setup.answered == [(tag, None)] and not setup.sent[REQUEST]
        assert setup.status() == (refused, 0, 0)
        await setup.others_go_on(tag)


@cocotb.test
@cocotb.parametrize(stall=(0.0, 0.5))
async def refused_loads_in_a_row_are_each_answered_once(dut: Any, stall: float) -> None:
    """They come without a pause, good ones and their answers among them."""
    setup = Setup(dut, stall, seed=3)
    await setup.start()
    rng, expected, good = setup.rng, [], []
    for tag in range(120):
        bad = rng.random() < 0.6
        setup.loads.append(htax_header(PEER << 20 | 8 * tag, 4 if bad else 8, tag))
        expected.append((tag, None if bad else tag))
        if not bad:
            good.append(tag)
    answered = 0
    for _ in range(4000):
        for head, _place in setup.sent[REQUEST][answered:]:
            tag = fields(head)[2]
            setup.request(packet(RESPONSE, 8, [tag], tag), tc=RESPONSE)
            answered += 1
        if len(setup.answered) >= len(expected):
            break
        await setup.bench.cycles(1)
    await setup.bench.cycles(50)
    assert [fields(head)[2] for head, _place in setup.sent[REQUEST]] == good
    assert sorted(setup.answered, key=lambda answer: answer[0]) == expected
    assert setup.status() == (len(expected) - len(good), 0, 0)


@cocotb.test
async def a_load_does_not_overtake_a_store(dut: Any) -> None:
    setup = Setup(dut, stall=0.0)
    await setup.start()
    for tag in range(8):
        # Offered in the same cycle, or when the store is in part, or whole, on its way.
        place = 8 * tag
        setup.sent[REQUEST].clear()
        setup.answered.clear()
        setup.store(PEER << 20 | place, [tag])
        await setup.bench.cycles(tag % 4)
        setup.loads.append(htax_header(PEER << 20 | place, 8, tag))
        await setup.bench.until(lambda: len(setup.sent[REQUEST]) == 2)
        sizes = [fields(head)[1] for head, *_ in setup.sent[REQUEST]]
        assert sizes == [STORE, LOAD], tag
        setup.request(packet(RESPONSE, 8, [tag], tag), tc=RESPONSE)
        await setup.bench.until(lambda: bool(setup.answered))


@cocotb.test
@cocotb.parametrize(stall=(0.0, 0.5))
async def good_ones_among_bad_ones_are_all_served_in_order(dut: Any, stall: float) -> None:
    """Both directions at once, the network and the host full of faults; nothing waits for ever."""
    setup = Setup(dut, stall, seed=7)
    await setup.start()
    rng, bad = setup.rng, bad_requests(setup.width)
    expected, memory = [], {}
    dropped = 0
    for number in range(200):
        place = 8 * rng.randrange(16)
        fault = rng.random() < 0.4
        if fault:
            setup.request(*rng.choice(bad))
            dropped += 1
        elif rng.random() < 0.5:
            memory[place] = rng.getrandbits(64)
            setup.request(packet(REQUEST, STORE, [place, memory[place]]))
        else:
            place += 0x80 if rng.random() < 0.3 else 0
            setup.refused_reads = {SEGMENT + 8 * n for n in range(16, 32)}
            value = [] if place >= 0x80 else [memory.get(place, initial(SEGMENT + place))]
            setup.request(packet(REQUEST, LOAD, [place], number & 255))
            expected.append(((PEER, 8 * len(value), number & 255), value))
    # One load of the host at a time, its answer right, wrong or another's first.
    for tag in range(60):
        setup.answered.clear()
        setup.loads.append(htax_header(PEER << 20, 8, tag))
        await setup.bench.until(lambda: setup.status()[2] == 1)
        if rng.random() < 0.4:
            setup.request(packet(RESPONSE, 8, [1], tag, node=PEER), tc=RESPONSE)
            dropped += 1
        good = rng.random() < 0.6
        setup.request(packet(RESPONSE, 8 if good else 0, [tag] * good, tag), tc=RESPONSE)
        await setup.bench.until(lambda: bool(setup.answered))
        assert setup.answered == [(tag, tag if good else None)]
        await setup.bench.cycles(2)
    await setup.bench.until(lambda: not setup.packets[0], 20000)
    await setup.bench.until(lambda: len(setup.sent[RESPONSE]) == len(expected), 20000)
    assert [(fields(head), words) for head, *words in setup.sent[RESPONSE]] == expected
    await setup.bench.cycles(50)
    assert {addr - SEGMENT: value for addr, value in setup.memory.items()} == memory
    assert setup.status() == (0, dropped, 0)
