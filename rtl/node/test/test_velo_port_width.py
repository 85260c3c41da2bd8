# SPDX-License-Identifier: Apache-2.0
"""A unit of 64 bits on a crossbar of 128: transactions of any length, and what memory answers."""

import random

import cocotb
from cocotb.triggers import ReadOnly
from stream import Bench, Sink, Source, words_to_beats

UNIT, PATH = 64, 128
# htax_header_t, highest first: window 1, addr 48, len_bytes 10, port 4, tag 8, error 1.
LEN, TAG, ERROR = 13, 1, 0


def test_port_width(simulate):
    simulate("velo_port_width")


class Signals:
    """The names that Source and Sink look for, for streams that have no `sop`."""

    def __init__(self, dut):
        self._dut = dut

    def __getattr__(self, name):
        return _Nothing() if "_sop_" in name else getattr(self._dut, name)


class _Nothing:
    value = 0


class Taker(Sink):
    """A stream without `sop`."""

    def _value(self, name):
        return int(not self.open) if name == "sop" else super()._value(name)


class Setup:
    def __init__(self, dut, seed, idle, stall):
        self.rng = random.Random(seed)
        self.dut = dut
        self.bench = Bench(Signals(dut))
        self.sources = {
            name: Source(self.bench, name, idle, self.rng)
            for name in ("store", "unit_answer", "unit_write", "memory")
        }
        self.sinks = {
            name: Taker(self.bench, name, (), stall, self.rng)
            for name in ("unit_store", "answer", "write", "unit_memory")
        }

    def words(self, size):
        return [self.rng.getrandbits(64) for _ in range(-(-size // 8))]

    async def tag_of_a_read(self, size, tag):
        """The tag of one of the unit's reads on the crossbar."""
        self.dut.unit_read_header_i.value = size << LEN | tag << TAG
        await ReadOnly()
        read = int(self.dut.read_header_o.value)
        await self.bench.cycles(1)
        assert read >> LEN & 0x3FF == size
        return read >> TAG & 0xFF


def wide(setup, words):
    beats = words_to_beats(words, PATH)
    if len(words) % 2:
        beats[-1] |= setup.rng.getrandbits(64) << 64  # beside the data is nothing
    return beats


def got(setup, name):
    return [[beat.data for beat in packet] for packet in setup.sinks[name].packets]


@cocotb.test()
async def transactions_of_every_length_pass_each_way(dut):
    for idle, stall in ((0.0, 0.0), (0.3, 0.4)):
        setup = Setup(dut, int(10 * stall), idle, stall)
        await setup.bench.start()
        stores = [setup.words(1 + setup.rng.randrange(80)) for _ in range(60)]
        out = [setup.words(1 + setup.rng.randrange(80)) for _ in range(60)]
        for words in stores:
            side = {"header": (8 * len(words) - setup.rng.randrange(8)) << LEN}
            await setup.sources["store"].send(wide(setup, words), side)
        for name in ("unit_write", "unit_answer"):
            for words in out:
                await setup.sources[name].send(words)
        await setup.bench.cycles(40)
        assert got(setup, "unit_store") == stores
        for name in ("write", "answer"):
            assert got(setup, name) == [words_to_beats(words, PATH) for words in out]


@cocotb.test()
async def a_reads_tag_tells_how_much_its_answer_has(dut):
    setup = Setup(dut, 3, 0.2, 0.3)
    await setup.bench.start()
    answers = []
    for _ in range(80):
        size, tag = 1 + setup.rng.randrange(80), setup.rng.randrange(128)
        wire = await setup.tag_of_a_read(size, tag)
        words = setup.words(size)
        refused = setup.rng.randrange(8) == 0
        beats = [0] if refused else wide(setup, words)
        await setup.sources["memory"].send(beats, {"header": wire << TAG | refused << ERROR})
        assert int(dut.unit_memory_header_o.value) >> TAG & 0xFF == tag
        answers.append([0] if refused else words)
    await setup.bench.cycles(40)
    assert got(setup, "unit_memory") == answers
