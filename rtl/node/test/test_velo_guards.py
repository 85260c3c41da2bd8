# SPDX-License-Identifier: Apache-2.0
"""The guards of a unit's port: each access ends once, rightly or with an error, whatever the other
side does, and what comes too late is nobody's."""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

PERIOD = 40


@pytest.mark.parametrize("guard", ["read", "load", "store"])
def test_guard(simulate: Callable[..., None], guard: str, monkeypatch: Any) -> None:
    parameters = {"read": {"NumTags": 3}, "load": {"DataWidth": 32, "TagBits": 4}, "store": {}}
    monkeypatch.setenv("COCOTB_TEST_FILTER", f"{guard}_.*")
    simulate(f"velo_{guard}_guard", parameters[guard])


def header(tag: int, addr: int = 0, error: int = 0) -> int:
    return addr << 23 | 8 << 13 | tag << 1 | error


def watch(dut: Any, enable: int = 1) -> None:
    dut.watchdog_i.value = enable << 24 | PERIOD


class Reader:
    """A unit with three tags, two reads under each at most, and a host that answers as it likes:
    soon, late, in part and then late, or never while it is `mute`; it may stop taking questions."""

    def __init__(self, dut: Any, seed: int):
        names = ("unit_read_valid_i", "host_read_ready_i", "host_answer_valid_i")
        self.dut, self.rng, self.bench = dut, random.Random(seed), Bench(dut, names)
        self.mute = self.deaf = False
        self.offer: tuple[int, int] | None = None
        self.open: list[deque[int]] = [deque() for _ in range(3)]  # addresses asked for, by tag
        self.part: list[int] = [0, 0, 0]  # beats of the oldest that came
        self.asked: dict[int, int] = {}  # at the host: number to address
        self.answer: tuple[int, int, int] | None = None  # number, address, beats left
        self.good = self.bad = self.reads = self.reported = 0

    async def run(self, cycles: int) -> None:
        dut, rng, offer = self.dut, self.rng, self.offer
        for _ in range(cycles):
            tag = rng.randrange(3)
            if offer is None and rng.random() < 0.5 and len(self.open[tag]) < 2:
                self.reads += 1
                offer = (tag, self.reads)
            dut.unit_read_valid_i.value = int(offer is not None)
            if offer is not None:
                dut.unit_read_header_i.value = header(offer[0], offer[1])
            dut.host_read_ready_i.value = int(not self.deaf and rng.random() < 0.7)
            if self.answer is None and self.asked and not self.mute and rng.random() < 0.4:
                first: dict[int, int] = {}
                for number in self.asked:  # of one tag in order
                    first.setdefault(number & 3, number)
                number = rng.choice(list(first.values()))
                self.answer = (number, self.asked.pop(number), rng.randrange(1, 4))
            shown = self.answer is not None and rng.random() < (0.05 if self.mute else 0.8)
            dut.host_answer_valid_i.value = int(shown)
            if shown and self.answer:
                dut.host_answer_header_i.value = header(self.answer[0], self.answer[1])
                dut.host_answer_eop_i.value = int(self.answer[2] == 1)
            dut.unit_answer_ready_i.value = 1
            await ReadOnly()
            if offer is not None and int(dut.unit_read_ready_o.value):
                self.open[offer[0]].append(offer[1])
                offer = None
            if int(dut.host_read_valid_o.value) and int(dut.host_read_ready_i.value):
                value = int(dut.host_read_header_o.value)
                number, addr = value >> 1 & 255, value >> 23 & (1 << 40) - 1
                assert number not in self.asked, "a number twice"
                assert self.answer is None or self.answer[0] != number, "a number twice"
                self.asked[number] = addr
            self.reported += int(dut.unanswered_o.value)
            if int(dut.unit_answer_valid_o.value):
                self._got(int(dut.unit_answer_header_o.value), int(dut.unit_answer_eop_o.value))
            if shown and self.answer:
                assert int(dut.host_answer_ready_o.value)
                number, addr, left = self.answer
                self.answer = (number, addr, left - 1) if left > 1 else None
            await FallingEdge(dut.clk_i)
        self.offer = offer

    def _got(self, value: int, eop: int) -> None:
        tag, addr, error = value >> 1 & 255, value >> 23 & (1 << 40) - 1, value & 1
        assert tag < 3
        assert self.open[tag], "an answer to nothing"
        if error:
            assert eop
            self.bad += 1
        else:
            assert addr == self.open[tag][0], "another read's data"
        if eop:
            self.open[tag].popleft()
            self.good += not error


@cocotb.test
async def read_ends_once_whatever_the_host_does(dut: Any) -> None:
    for seed in range(6):
        reader = Reader(dut, seed)
        watch(dut)
        await reader.bench.start()
        for _ in range(30):
            reader.mute, reader.deaf = reader.rng.random() < 0.4, reader.rng.random() < 0.2
            await reader.run(reader.rng.randrange(20, 6 * PERIOD))
        # The host has died: every read ends, and the unit goes on asking.
        reader.mute, reader.deaf = True, bool(seed % 2)
        await reader.run(40 * PERIOD)
        ended = reader.good + reader.bad
        await reader.run(10 * PERIOD)
        assert reader.good + reader.bad > ended, "the unit stands still"
        reader.mute = reader.deaf = False
        await reader.run(20 * PERIOD)
        good = reader.good
        await reader.run(10 * PERIOD)
        assert reader.good > good
        assert reader.bad == reader.reported > 10
        assert reader.reads - sum(map(len, reader.open)) - reader.good - reader.bad in (0, 1)


@cocotb.test
async def read_waits_with_the_watchdog_off(dut: Any) -> None:
    reader = Reader(dut, 9)
    watch(dut, enable=0)
    await reader.bench.start()
    reader.mute = True
    await reader.run(20 * PERIOD)
    assert (reader.good, reader.bad) == (0, 0)
    reader.mute = False
    await reader.run(20 * PERIOD)
    assert reader.good > 50
    assert reader.bad == 0


class Loader:
    """A host with 16 tags and a unit that takes loads and answers them, late or never."""

    def __init__(self, dut: Any, seed: int):
        names = ("load_valid_i", "unit_load_ready_i", "unit_answer_valid_i", "answer_ready_i")
        self.dut, self.rng, self.bench = dut, random.Random(seed), Bench(dut, names)
        self.mute = self.deaf = False
        self.offer: int | None = None
        self.since: dict[int, int] = {}  # by tag, the cycle in which the load was offered
        self.taken: list[tuple[int, int]] = []  # at the unit: tag, serial number
        self.serial: dict[int, int] = {}
        self.answer: tuple[int, int, int] | None = None
        self.held = self.begun = False
        self.good = self.bad = self.reported = self.strays = self.longest = 0

    async def run(self, cycles: int) -> None:
        dut, rng, offer = self.dut, self.rng, self.offer
        for _ in range(cycles):
            free = [tag for tag in range(16) if tag not in self.since]
            if offer is None and free and rng.random() < 0.3:
                offer = rng.choice(free)
                self.since[offer] = self.bench.cycle
                self.serial[offer] = self.good + self.bad + len(self.since)
            dut.load_valid_i.value = int(offer is not None)
            if offer is not None:
                dut.load_header_i.value = header(offer, self.serial[offer])
            dut.unit_load_ready_i.value = int(not self.deaf and rng.random() < 0.7)
            # An old answer under a tag that is in use again cannot be told from the new one.
            if self.answer and not self.begun and not self.held and self._is_old(self.answer[:2]):
                self.answer = None
            if self.answer is None and self.taken and not self.mute and rng.random() < 0.4:
                tag, serial = self.taken.pop(rng.randrange(len(self.taken)))
                if not self._is_old((tag, serial)):
                    self.answer = (tag, serial, rng.randrange(1, 3))
            shown = self.answer is not None and (self.held or rng.random() < 0.6)
            dut.unit_answer_valid_i.value = int(shown)
            if shown and self.answer:
                dut.unit_answer_header_i.value = header(self.answer[0], self.answer[1])
                dut.unit_answer_eop_i.value = int(self.answer[2] == 1)
            dut.answer_ready_i.value = int(rng.random() < 0.7)
            await ReadOnly()
            if int(dut.unit_load_valid_o.value) and int(dut.unit_load_ready_i.value):
                self.taken.append((offer or 0, self.serial[offer or 0]))
            got = None
            if int(dut.answer_valid_o.value) and int(dut.answer_ready_i.value):
                got = int(dut.answer_header_o.value), int(dut.answer_eop_o.value)
            if offer is not None and int(dut.load_ready_o.value):
                offer = None
            if got:
                self._got(*got)
            self.reported += int(dut.given_up_o.value)
            self.strays += int(dut.stray_o.value)
            self.held = shown and not int(dut.unit_answer_ready_o.value)
            if shown and self.answer and not self.held:
                tag, serial, left = self.answer
                self.answer = (tag, serial, left - 1) if left > 1 else None
                self.begun = self.answer is not None
            await FallingEdge(dut.clk_i)
        self.offer = offer

    def _is_old(self, one: tuple[int, int]) -> bool:
        return one[0] in self.since and self.serial[one[0]] != one[1]

    def _got(self, value: int, eop: int) -> None:
        tag, serial, error = value >> 1 & 255, value >> 23 & (1 << 40) - 1, value & 1
        assert tag in self.since, "an answer to nothing"
        assert error or serial == self.serial[tag], "another load's answer"
        if eop:
            self.longest = max(self.longest, self.bench.cycle - self.since.pop(tag))
            self.bad, self.good = self.bad + error, self.good + (not error)


@cocotb.test
async def load_ends_once_whatever_the_unit_does(dut: Any) -> None:
    for seed in range(6):
        loader = Loader(dut, seed)
        watch(dut)
        await loader.bench.start()
        for _ in range(30):
            loader.mute, loader.deaf = loader.rng.random() < 0.4, loader.rng.random() < 0.2
            await loader.run(loader.rng.randrange(20, 6 * PERIOD))
        loader.mute = True
        await loader.run(10 * PERIOD)
        assert loader.bad == loader.reported > 10
        assert loader.longest < 40 * PERIOD
        assert loader.good > 10


@cocotb.test
async def load_under_a_tag_that_waits_for_none_is_a_stray(dut: Any) -> None:
    loader = Loader(dut, 3)
    watch(dut)
    await loader.bench.start()
    await loader.bench.cycles(20)
    loader.answer = (5, 1, 2)
    for _ in range(6):
        dut.unit_answer_valid_i.value = 1
        dut.unit_answer_header_i.value = header(5)
        dut.unit_answer_eop_i.value = 1
        await ReadOnly()
        assert not int(dut.answer_valid_o.value)
        assert int(dut.stray_o.value)
        await FallingEdge(dut.clk_i)


@cocotb.test
async def store_is_taken_whole_or_swallowed_whole(dut: Any) -> None:
    bench, rng = Bench(dut, ("in_valid_i", "in_eop_i", "out_ready_i")), random.Random(1)
    watch(dut)
    await bench.start()
    whole = swallowed = given_up = 0
    for _ in range(300):
        length, ready = rng.randrange(1, 6), rng.randrange(0, 2 * PERIOD)
        taken, begin, pause = 0, bench.cycle, rng.choice((0, 2 * PERIOD))
        for beat in range(length):
            offered = bench.cycle
            while True:
                dut.in_valid_i.value, dut.in_eop_i.value = 1, int(beat == length - 1)
                # A unit that has begun may pause: it gets the rest.
                wait = (ready, pause if taken else 0)[beat > 0]
                dut.out_ready_i.value = int(bench.cycle - offered >= wait)
                await ReadOnly()
                moved = int(dut.in_ready_o.value)
                seen = int(dut.out_valid_o.value) and int(dut.out_ready_i.value)
                given_up += int(dut.given_up_o.value)
                taken += seen
                await FallingEdge(dut.clk_i)
                if moved:
                    break
        dut.in_valid_i.value = 0
        assert taken in (0, length), "a part of a store"
        whole, swallowed = whole + (taken > 0), swallowed + (taken == 0)
        assert taken or bench.cycle - begin < 2 * PERIOD
        if rng.random() < 0.5:
            await FallingEdge(dut.clk_i)
    assert swallowed == given_up > 50
    assert whole > 50
