# SPDX-License-Identifier: Apache-2.0
"""The requester: each write becomes the right packet, at once, or is refused and reported."""

import os
import random
from dataclasses import dataclass

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench, Sink, Source, join_packet, packet_to_beats, words_to_beats

NODE = 0x5A
MISALIGNED, OVERSIZE, MALFORMED, NETWORK = 1, 2, 3, 11


# n, t and the bits of a source: the spec's, the paper's without sources, and one window of 256 MB.
WINDOWS = ("28,20,0", "24,16,4")
_, T_BITS, _ = map(int, os.environ.get("VELO_WINDOW", "28,20,8").split(","))


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_requester(simulate, width):
    simulate("velo_requester", {"DataWidth": width})


@pytest.mark.parametrize("window", WINDOWS)
def test_requester_with_another_window(simulate, window):
    simulate("velo_requester", {"DataWidth": 32}, window)


@dataclass
class Write:
    """One posted write and what must become of it."""

    node: int
    ctx: int
    source: int
    words: int  # of the whole line
    offset_bytes: int
    data: list[int]  # 64-bit words
    len_bytes: int = -1
    error: int = 0

    def side(self) -> dict[str, int]:
        target = self.node << T_BITS | self.ctx << 12 | (self.words - 1) << 6 | self.offset_bytes
        size = self.len_bytes if self.len_bytes >= 0 else 8 * len(self.data)
        return {"target": target, "source": self.source, "len_bytes": size}

    def packet(self) -> list[int]:
        """Header and payload in 64-bit words."""
        whole = len(self.data) == self.words
        if whole:
            frag, last, tag = 0, 0, self.data[0] >> 8 & 0xFF
            size, payload = self.data[0] >> 16 & 0xFFFF, self.data[1:]
        else:
            offset = self.offset_bytes // 8
            frag, last = 1, int(offset + len(self.data) == self.words)
            tag = last << 6 | (self.words - 1) << 3 | offset
            size, payload = 8 * len(self.data), self.data
        header = self.node << 8 | self.ctx << 16 | frag << 24 | last << 25 | size << 26
        return [header | tag << 36 | self.source << 44 | NODE << 52, *payload]


def line(rng: random.Random, size: int) -> list[int]:
    """A line: header word for `size` payload bytes, then payload."""
    header = 1 | rng.getrandbits(8) << 8 | size << 16 | rng.getrandbits(32) << 32
    return [header] + [rng.getrandbits(64) for _ in range(-(-size // 8))]


def random_write(rng: random.Random) -> Write:
    data = line(rng, rng.randrange(57))
    write = Write(
        rng.getrandbits(8), rng.getrandbits(T_BITS - 12), rng.getrandbits(8), len(data), 0, data
    )
    kind = rng.randrange(8)
    if kind < 2 and len(data) > 1:
        first = rng.randrange(len(data))
        last = rng.randrange(first, len(data) - (first == 0))
        write.data, write.offset_bytes = data[first : last + 1], 8 * first
    elif kind == 2:
        write.offset_bytes, write.error = rng.randrange(1, 8), MISALIGNED
    elif kind == 3:
        write.len_bytes, write.error = 8 * len(data) - rng.randrange(1, 8), MISALIGNED
    elif kind == 4 and len(data) > 1:
        write.words, write.error = rng.randrange(1, len(data)), OVERSIZE
    elif kind == 5:
        write.data[0] ^= 1 << rng.randrange(8)
        write.error = MALFORMED
    elif kind == 6:
        write.data[0] = write.data[0] & ~0xFFFF0000 | (8 * len(data) + 1) << 16
        write.error = OVERSIZE
    return write


class Setup:
    def __init__(self, dut, idle=0.0, stall=0.0, seed=1):
        self.width = len(dut.write_data_i)
        self.rng = random.Random(seed)
        self.dut = dut
        self.bench = Bench(dut, ("watchdog_enable_i", "watchdog_cycles_i"))
        dut.node_id_i.value = NODE
        self.source = Source(self.bench, "write", idle, self.rng)
        self.sink = self.make_sink(stall)
        self.errors: list[tuple[int, int]] = []
        self.sent = 0

    def make_sink(self, stall: float):
        return Sink(self.bench, "net", (), stall, self.rng)

    async def start(self):
        await self.bench.start()
        cocotb.start_soon(self._watch())

    async def _watch(self):
        while True:
            await ReadOnly()
            if int(self.dut.error_valid_o.value):
                code, source = self.dut.error_code_o.value, self.dut.error_source_o.value
                self.errors.append((int(code), int(source)))
            self.sent += int(self.dut.sent_o.value)
            await FallingEdge(self.dut.clk_i)

    async def send(self, write: Write):
        size = write.side()["len_bytes"]
        beats = words_to_beats(write.data, self.width)
        if len(write.data) * 64 % self.width:  # what is beside the data is of no interest
            beats[-1] |= self.rng.getrandbits(64) << 64
        await self.source.send(beats[: max(1, -(-size * 8 // self.width))], write.side())


@cocotb.test()
async def every_write_becomes_its_packet_or_a_report(dut):
    for idle, stall in ((0.0, 0.0), (0.3, 0.0), (0.0, 0.5), (0.3, 0.4)):
        setup = Setup(dut, idle, stall, seed=int(100 * (idle + 3 * stall)))
        await setup.start()
        writes = [random_write(setup.rng) for _ in range(200)]
        for write in writes:
            await setup.send(write)
        setup.sink.stall = 0.0
        await setup.bench.cycles(30)
        good = [write for write in writes if not write.error]
        bad = [(write.error, write.source) for write in writes if write.error]
        assert setup.errors == bad
        assert setup.sent == len(setup.sink.packets) == len(good)
        for write, packet in zip(good, setup.sink.packets, strict=True):
            wanted = packet_to_beats(write.packet(), setup.width)
            assert len(packet) == len(wanted)
            words = len(write.packet())
            assert join_packet(packet, setup.width) % (1 << 64 * words) == sum(
                word << 64 * index for index, word in enumerate(write.packet())
            )
        assert {code for code, _ in bad} == {MISALIGNED, OVERSIZE, MALFORMED}


@cocotb.test()
async def first_word_takes_at_most_two_cycles_and_packets_leave_no_gap(dut):
    setup = Setup(dut)
    await setup.start()
    await setup.bench.cycles(2)
    writes = [Write(1, 2, 3, 1 + words, 0, line(setup.rng, 8 * words)) for words in range(8)]
    writes += [Write(1, 2, 3, 7, 8, line(setup.rng, 8 * words)) for words in range(6)]
    for write in writes:
        await setup.send(write)
    await setup.bench.cycles(5)
    packets = setup.sink.packets
    latency = {p[0].cycle - c for p, c in zip(packets, setup.source.first_cycles, strict=True)}
    dut._log.info("requester latency, cycles: %s", latency)
    assert max(latency) <= 2
    cycles = [beat.cycle for beat in setup.sink.beats]
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles))), "a gap"
    assert join_packet(packets[0], setup.width) & 0xFFFF == 0x0100


@cocotb.test()
async def fragments_of_a_line_hold_all_of_it(dut):
    """Every way to cut every line in two, with another sender's message in between."""
    setup = Setup(dut)
    await setup.start()
    sent = []
    for size in range(1, 57, 11):
        data = line(setup.rng, size)
        for cut in range(1, len(data)):
            parts = [
                Write(7, 8, 9, len(data), 0, data[:cut]),
                Write(7, 8, 10, 2, 0, line(setup.rng, 8)),
                Write(7, 8, 9, len(data), 8 * cut, data[cut:]),
            ]
            for part in parts:
                await setup.send(part)
            sent.append((data, cut))
    await setup.bench.cycles(30)
    packets = [join_packet(packet, setup.width) for packet in setup.sink.packets]
    assert len(packets) == 3 * len(sent)
    for index, (data, cut) in enumerate(sent):
        head, other, tail = packets[3 * index : 3 * index + 3]
        assert (head >> 24 & 3, other >> 24 & 3, tail >> 24 & 3) == (1, 0, 3)
        assert (head >> 36 & 7, tail >> 36 & 7) == (0, cut)
        words = sum(word << (64 * i) for i, word in enumerate(data))
        # Behind the tail there may be padding.
        assert (head >> 64) % (1 << 64 * cut) == words % (1 << 64 * cut)
        assert (tail >> 64) % (1 << 64 * (len(data) - cut)) == words >> 64 * cut


class Network:
    """Takes a packet whole, from its first beat on, or not at all, as the node's does. It may be
    held for a while; a packet's first beat may be taken back then."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.open = False  # Room for the next packet.
        self.packets: list[list[int]] = []
        self.withdrawn = 0
        cocotb.start_soon(self._run())

    async def _run(self):
        dut, packet, offered = self.bench.dut, [], False
        while True:
            ready = self.open or bool(packet)
            dut.net_ready_i.value = int(ready)
            await ReadOnly()
            valid = bool(int(dut.rst_ni.value)) and bool(int(dut.net_valid_o.value))
            if offered and not valid:
                self.withdrawn += 1
            offered = valid and not ready
            if valid and ready:
                assert bool(int(dut.net_sop_o.value)) == (not packet), "a part of a packet"
                packet.append(int(dut.net_data_o.value))
                if int(dut.net_eop_o.value):
                    self.packets.append(packet)
                    packet = []
            await FallingEdge(dut.clk_i)


class Watched(Setup):
    def make_sink(self, stall: float):
        self.network = Network(self.bench)
        return self.network

    def watch(self, cycles: int, enable: int = 1):
        self.dut.watchdog_cycles_i.value = cycles
        self.dut.watchdog_enable_i.value = enable


@cocotb.test()
async def a_store_that_the_network_does_not_take_is_dropped_whole(dut):
    """Of every length, fragments too, with refused writes in between; what follows is whole."""
    setup = Watched(dut)
    await setup.start()
    setup.watch(20)
    lost, wrong = [], []
    for index in range(60):
        # A message without payload may be in the register alone while the next store is refused.
        data = line(setup.rng, 0 if index % 5 == 2 else setup.rng.randrange(57))
        write = Write(1, 2, index, len(data), 0, data)
        if index % 5 == 4 and len(data) > 2:
            write.data, write.offset_bytes = data[1:], 8
        elif index % 5 == 3:
            write.offset_bytes, write.error = 4, MISALIGNED
        begin = setup.bench.cycle
        await setup.send(write)
        assert setup.bench.cycle - begin < 60, "a store waits longer than the watchdog allows"
        (wrong if write.error else lost).append(write.source)
    await setup.bench.cycles(40)
    assert setup.network.packets == []
    assert setup.network.withdrawn == len(lost)
    assert [source for code, source in setup.errors if code == NETWORK] == lost
    assert [source for code, source in setup.errors if code == MISALIGNED] == wrong
    assert setup.sent == 0
    setup.network.open = True
    writes = [Write(1, 2, 3, 1 + words, 0, line(setup.rng, 8 * words)) for words in range(8)]
    for write in writes:
        await setup.send(write)
    await setup.bench.cycles(30)
    assert len(setup.network.packets) == setup.sent == len(writes)
    for write, packet in zip(writes, setup.network.packets, strict=True):
        wanted = packet_to_beats(write.packet(), setup.width)
        assert len(packet) == len(wanted)
        assert packet[: len(wanted) - 1] == wanted[:-1]


@cocotb.test()
async def what_the_network_takes_in_time_is_never_dropped(dut):
    """The network opens at every distance from the watchdog's end: each message is sent or dropped,
    never both, and off, nothing is ever dropped."""
    setup = Watched(dut)
    await setup.start()
    outcomes = set()
    for wait in range(1, 40):
        setup.watch(12, enable=int(wait % 4 != 0))
        await setup.bench.cycles(4)
        sent, errors = len(setup.network.packets), len(setup.errors)
        write = Write(1, 2, wait, 4, 0, line(setup.rng, 24))
        task = cocotb.start_soon(setup.send(write))
        await setup.bench.cycles(wait)
        setup.network.open = True
        await task
        await setup.bench.cycles(12)
        setup.network.open = False
        taken, dropped = len(setup.network.packets) - sent, len(setup.errors) - errors
        assert (taken, dropped) in ((1, 0), (0, 1))
        if wait % 4 == 0 or wait < 10:
            assert taken, "dropped too soon"
        elif wait > 20:
            assert dropped
        outcomes.add(taken)
    assert outcomes == {0, 1}


@cocotb.test()
async def a_refusal_in_the_cycle_of_a_drop_is_reported_too(dut):
    """A wrong store is offered at every distance from the watchdog's end."""
    setup = Watched(dut)
    await setup.start()
    for wait in range(1, 30):
        setup.watch(12)
        setup.errors.clear()
        await setup.send(Write(1, 2, 3, 1, 0, line(setup.rng, 0)))
        await setup.bench.cycles(wait)
        await setup.send(Write(1, 2, 4, 1, 4, line(setup.rng, 0), error=MISALIGNED))
        await setup.bench.cycles(20)
        assert sorted(setup.errors) == [(MISALIGNED, 4), (NETWORK, 3)]
