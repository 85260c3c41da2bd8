# SPDX-License-Identifier: Apache-2.0
"""The function's parts, one at a time: what is under way when the host closes them."""

import os
from collections.abc import Callable
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench
from structs import Struct

CONFIG = Struct("velo_pcie_pkg", "config_t")
BEAT = Struct("velo_pcie_pkg", "tlp_beat_t")
ANSWER = Struct("velo_pcie_pkg", "answer_t")
WATCH_T = Struct("pcie_pkg", "pcie_watch_t")
RING = 0x9000_0000
WATCHES = 0x1800
ENABLED = {"id": 0x100, "bus_master": 1, "msix_enable": 1}


@pytest.mark.parametrize("part", ["receive", "writes", "reads", "msix"])
def test_part(simulate: Callable[..., None], part: str) -> None:
    simulate(f"velo_pcie_{part}")


def of(part: str) -> Callable[[Any], Any]:
    """A test of one module; this file is loaded for each of them."""
    return cocotb.test(skip=os.environ.get("COCOTB_TOPLEVEL") != f"velo_pcie_{part}")


async def started(dut: Any, *inputs: str) -> Bench:
    bench = Bench(dut, inputs)
    if "config_i" in inputs:
        dut.config_i.value = CONFIG.pack(**ENABLED)
    await bench.start()
    await bench.cycles(2)
    return bench


# ----- packets that come in -----------------------------------------------------------------------


def write_head(dwords: int) -> int:
    return 0x60 << 24 | dwords | 0xFF << 32


async def receive(dut: Any) -> Bench:
    inputs = ("open_i", "restart_i", "id_i", "rx_i", "rx_bar_i", "store_room_i")
    bench = await started(dut, *inputs, "stores_i", "control_ready_i", "request_room_i")
    dut.open_i.value = dut.store_room_i.value = dut.request_room_i.value = 1
    return bench


async def beat(
    dut: Any, data: int, last: bool = False, bar: int = 0, keep: int = 3
) -> dict[str, int]:
    """One beat; what came of it."""
    dut.rx_i.value = BEAT.pack(valid=1, last=int(last), keep=keep, data=data)
    dut.rx_bar_i.value = bar
    await ReadOnly()
    names = ("store_word", "store_commit", "own_write", "request_valid")
    seen = {name: int(getattr(dut, f"{name}_o").value) for name in names}
    await FallingEdge(dut.clk_i)
    dut.rx_i.value = 0
    return seen


@of("receive")
async def nothing_of_a_packet_astride_of_a_reset_is_served(dut: Any) -> None:
    bench = await receive(dut)
    # A store, and registers of both kinds: their base address register, as a bit, and length.
    for bar, dwords in ((2, 4), (1, 2), (4, 2)):
        for astride in (0, 1, 2):  # so many beats come before the reset
            for number in (1, 2):
                await beat(dut, write_head(dwords) if number == 1 else 0, bar=bar)
                if astride == number:
                    dut.open_i.value = 0
                    await bench.cycles(5)
                    dut.open_i.value = 1
                    await bench.cycles(2)
            seen = [await beat(dut, 7, 2 * number + 2 == dwords) for number in range(dwords // 2)]
            await bench.cycles(1)
            served = any(any(each.values()) for each in seen) or int(dut.control_valid_o.value)
            assert bool(served) == (not astride), (bar, astride)
            dut.control_ready_i.value = 1
            await bench.cycles(2)
            dut.control_ready_i.value = 0


@of("receive")
async def a_register_write_that_waits_ends_with_the_reset(dut: Any) -> None:
    bench = await receive(dut)
    await beat(dut, write_head(2))
    await beat(dut, 0, bar=1)
    await beat(dut, 7, True)
    await bench.cycles(3)
    assert int(dut.control_valid_o.value)
    dut.open_i.value, dut.restart_i.value = 0, 1
    await bench.cycles(2)
    dut.open_i.value, dut.restart_i.value = 1, 0
    await bench.cycles(2)
    assert not int(dut.control_valid_o.value)


@of("receive")
async def a_completion_of_a_locked_read_is_nobodys(dut: Any) -> None:
    await receive(dut)
    # Without data and with, and a read that is asked for, to see that it would be.
    for kind, asked in ((0x0B, False), (0x4B, False), (0x01, True)):
        data = kind >> 6 & 1  # a dword, which is in the second beat
        await beat(dut, kind << 24 | data)
        await beat(dut, 0, last=True, keep=2 * data + 1)
        await ReadOnly()
        assert bool(int(dut.request_valid_o.value)) == asked, kind
        answer = ANSWER.unpack(dut.answer_o)
        assert not answer["end_valid"] or not answer["mine"]
        await FallingEdge(dut.clk_i)
        await FallingEdge(dut.clk_i)


# ----- packets that leave -------------------------------------------------------------------------


class Sent:
    """Takes beats while `open`; the packets that have begun."""

    def __init__(self, dut: Any):
        self.dut, self.open, self.begun, self.within = dut, False, 0, False
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        while True:
            self.dut.tx_ready_i.value = int(self.open)
            await ReadOnly()
            tx = BEAT.unpack(self.dut.tx_o)
            if tx["valid"] and self.open:
                self.begun += not self.within
                self.within = not tx["last"]
            await FallingEdge(self.dut.clk_i)


@of("writes")
async def no_packet_of_a_write_begins_without_bus_mastering(dut: Any) -> None:
    inputs = ("config_i", "discard_i", "write_valid_i", "word_valid_i", "word_last_i", "tx_ready_i")
    for stop_at in range(1, 40, 3):
        bench = await started(dut, *inputs)
        sent = Sent(dut)
        sent.open = True
        dut.write_valid_i.value, dut.write_addr_i.value, dut.write_len_bytes_i.value = 1, RING, 512
        await bench.cycles(1)
        dut.write_valid_i.value = 0
        word = cycle = 0
        begun = None
        while word < 64:
            dut.word_valid_i.value, dut.word_last_i.value = 1, int(word == 63)
            if cycle == stop_at:
                # What has begun goes on.
                begun = sent.begun
                dut.discard_i.value = 1
            await ReadOnly()
            word += int(dut.word_ready_o.value)
            await FallingEdge(dut.clk_i)
            cycle += 1
            assert cycle < 300
        dut.word_valid_i.value = 0
        await bench.cycles(3)
        assert sent.begun == begun and int(dut.idle_o.value)
        dut.discard_i.value = 0


@of("reads")
async def no_piece_of_a_read_is_asked_for_without_bus_mastering(dut: Any) -> None:
    inputs = ("config_i", "discard_i", "forget_i", "timeout_i", "read_valid_i", "answer_ready_i")
    bench = await started(dut, *inputs, "answer_i", "tx_ready_i")
    dut.timeout_i.value, dut.answer_ready_i.value = 20, 1
    sent = Sent(dut)
    # Four pieces of 128 bytes; the second has begun.
    dut.read_valid_i.value, dut.read_addr_i.value, dut.read_beats_i.value = 1, RING, 63
    dut.read_id_i.value = 5
    await bench.cycles(1)
    dut.read_valid_i.value = 0
    sent.open = True
    await bench.until(lambda: sent.begun == 1 and not sent.within)
    sent.open = False
    await bench.cycles(3)
    dut.discard_i.value = 1
    sent.open = True
    await bench.until(lambda: bool(int(dut.answer_valid_o.value)), 200)
    assert (int(dut.answer_id_o.value), int(dut.answer_error_o.value)) == (5, 1)
    await bench.cycles(3)
    assert sent.begun == 1
    # The host owes the first piece, and nothing else.
    assert int(dut.lost_o.value).bit_count() == 1
    slot = int(dut.lost_o.value).bit_length() - 1
    dut.answer_i.value = ANSWER.pack(
        end_valid=1, mine=1, good=1, length=32, byte_count=128, tag=slot << 3
    )
    await bench.cycles(1)
    dut.answer_i.value = 0
    await bench.cycles(1)
    assert not int(dut.lost_o.value) and int(dut.idle_o.value)


# ----- interrupts ---------------------------------------------------------------------------------


class Msix:
    """The table and what leaves: address and data of each interrupt."""

    def __init__(self, dut: Any, bench: Bench):
        self.dut, self.bench, self.open, self.sent = dut, bench, True, []
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        beats: list[int] = []
        while True:
            self.dut.tx_ready_i.value = int(self.open)
            await ReadOnly()
            tx = BEAT.unpack(self.dut.tx_o)
            if tx["valid"] and self.open:
                beats.append(tx["data"])
                if tx["last"]:
                    self.sent.append((beats[1] & 0xFFFFFFFF, beats[1] >> 32))
                    beats = []
            await FallingEdge(self.dut.clk_i)

    async def set(self, addr: int, value: int, bytes_enabled: int = 0xFF) -> None:
        self.dut.own_write_i.value, self.dut.own_write_addr_i.value = 1, addr
        self.dut.own_write_data_i.value, self.dut.own_write_be_i.value = value, bytes_enabled
        await self.bench.cycles(1)
        self.dut.own_write_i.value = 0

    async def vector(self, number: int, addr: int, data: int) -> None:
        await self.set(16 * number, addr)
        await self.set(16 * number + 8, data)
        watch = WATCH_T.pack(enable=1, base=(RING >> 12) + number)
        await self.set(WATCHES + 8 * number, watch)

    async def event(self, number: int) -> None:
        self.dut.event_valid_i.value, self.dut.event_addr_i.value = 1, RING + 4096 * number
        await self.bench.cycles(1)
        self.dut.event_valid_i.value = 0


async def msix(dut: Any) -> tuple[Bench, Msix]:
    inputs = ("config_i", "open_i", "moderation_i", "own_write_i", "own_addr_i", "event_valid_i")
    bench = await started(dut, *inputs, "event_addr_i", "tx_ready_i")
    dut.open_i.value = 1
    part = Msix(dut, bench)
    for number in range(2):
        await part.vector(number, 0x1000 * (number + 1), number + 7)
    return bench, part


@of("msix")
async def what_was_read_back_as_masked_is_not_sent(dut: Any) -> None:
    bench, part = await msix(dut)
    closed = CONFIG.pack(**(ENABLED | {"bus_master": 0}))
    for way in ("vector", "function", "bus_master", "closed"):
        part.open, before = False, len(part.sent)
        await part.event(0)
        await bench.cycles(10)
        if way == "vector":
            await part.set(8, 1 << 32, 0xF0)
        elif way == "function":
            dut.config_i.value = CONFIG.pack(**ENABLED, msix_mask=1)
        elif way == "bus_master":
            dut.config_i.value = closed
        else:
            dut.open_i.value = 0
        await bench.cycles(2)
        part.open = True
        await bench.cycles(20)
        assert len(part.sent) == before, way
        assert int(dut.idle_o.value)
        # It is pending, and sent once when it may be.
        await part.set(8, 7)
        dut.config_i.value, dut.open_i.value = CONFIG.pack(**ENABLED), 1
        await bench.cycles(20)
        assert part.sent[before:] == [(0x1000, 7)], way


@of("msix")
async def an_entry_that_was_changed_is_sent_as_it_is(dut: Any) -> None:
    bench, part = await msix(dut)
    part.open = False
    await part.event(0)
    await bench.cycles(10)
    await part.set(0, 0x5000)
    await part.set(8, 99)
    part.open = True
    await bench.cycles(20)
    assert part.sent == [(0x5000, 99)]


@of("msix")
async def events_in_one_cycle_and_in_consecutive_ones_are_all_told(dut: Any) -> None:
    bench, part = await msix(dut)
    for gap in range(12):
        before = len(part.sent)
        await part.event(0)
        await bench.cycles(gap)
        await part.event(1)
        await bench.cycles(30)
        assert sorted(part.sent[before:]) == [(0x1000, 7), (0x2000, 8)], gap
    # Behind the last event comes an interrupt, wherever in the packet of the one before it was.
    for gap in range(12):
        before = len(part.sent)
        part.open = False
        await part.event(0)
        part.open = True
        await bench.cycles(gap)
        told = len(part.sent)
        await part.event(0)
        await bench.cycles(30)
        assert len(part.sent) > told and len(part.sent) - before <= 2, gap
    # Quiet: no event, no interrupt.
    before = len(part.sent)
    await bench.cycles(200)
    assert len(part.sent) == before
