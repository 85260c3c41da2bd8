# SPDX-License-Identifier: Apache-2.0
"""The DDR host interface between a PC's memory bus and a CoreLogic that is a memory."""

import random
from collections.abc import Callable
from typing import Any

import cocotb
from dimmnet_board.host.dimm_bus import DATA, INPUTS, PRECHARGE, READ, TERMINATE, DimmBus, T
from slot_core import INPUTS as CORE_INPUTS
from slot_core import SlotCore
from stream import Bench

LINES = 1 << 17  # of the slot
SLOT_WORDS = 2 * LINES


def test_ddr_host(simulate: Callable[..., None]) -> None:
    simulate("dimmnet_ddr_host")


async def ready(
    dut: Any, seed: int, away: int = 0, burst: int = 8, sequential: bool = False
) -> tuple[DimmBus, SlotCore]:
    bench = Bench(dut, INPUTS + DATA + CORE_INPUTS)
    dut.cs_n_i.value = 1
    core = SlotCore(dut, dut.rst_ni, random.Random(seed), away)
    await bench.start()
    bus = DimmBus(dut, bench, burst)
    bus.sequential = sequential
    await bus.tick()
    await bus.set_up()
    return bus, core


async def random_traffic(bus: DimmBus, core: SlotCore, seed: int, count: int) -> None:
    rng, words = random.Random(seed), {}
    # Bursts that meet again, in the slot and above it.
    places = [rng.randrange(SLOT_WORDS) for _ in range(20)]
    places += [SLOT_WORDS + rng.randrange(SLOT_WORDS) for _ in range(3)]
    for _ in range(count):
        word = rng.choice(places) ^ rng.randrange(8)
        if bus.sequential:
            word &= ~1
        base = word & ~(bus.burst_words - 1)
        order = [base + column % bus.burst_words for column in bus.order(word % 1024)]
        if rng.random() < 0.5:
            data = [(rng.getrandbits(64), rng.choice((0xFF, 0, rng.getrandbits(8)))) for _ in order]
            await bus.write(word, data)
            for place, (value, be) in zip(order, data, strict=True):
                bits = sum(0xFF << 8 * byte for byte in range(8) if be >> byte & 1)
                words[place] = words.get(place, 0) & ~bits | value & bits
        else:
            if core.away:
                # A host that reads what it wrote is not that quick.
                await bus.wait_until(bus.bench.cycle + 24)
            got = await bus.read(word)
            assert got == [words.get(place, 0) if place < SLOT_WORDS else 0 for place in order]
        if rng.random() < 0.2:
            await bus.wait_until(bus.bench.cycle + rng.randrange(20))


@cocotb.test
async def reads_see_writes_before_them(dut: Any) -> None:
    for burst, sequential in ((8, False), (4, False), (2, False), (8, True), (4, True)):
        bus, core = await ready(dut, burst, burst=burst, sequential=sequential)
        await random_traffic(bus, core, burst, 600)
        assert bus.refreshes and core.reads and core.writes


@cocotb.test
async def writes_wait_for_a_core_that_is_away(dut: Any) -> None:
    bus, core = await ready(dut, 5, away=4)
    await random_traffic(bus, core, 5, 400)


@cocotb.test
async def a_read_is_answered_after_cas_latency(dut: Any) -> None:
    """Row open, line of 64 bytes: the first word is on the bus two clocks after its command."""
    bus, core = await ready(dut, 1)
    core.memory = {16 * line: line << 64 | line + 500 for line in range(64)}
    await bus.read(0)
    start = bus.bench.cycle
    words = await bus.read(8)
    assert words == [504, 4, 505, 5, 506, 6, 507, 7]
    assert bus.bench.cycle - start == T["cl"] + 4


@cocotb.test
async def a_burst_ends_early(dut: Any) -> None:
    """By a terminate, by a precharge of its bank but not of another, by another read."""
    bus, core = await ready(dut, 2)
    core.memory = {16 * line: line + 1 for line in range(64)}
    for command, bank, after, ends in (
        (TERMINATE, 0, 1, 1),
        (TERMINATE, 0, 3, 3),
        (PRECHARGE, 0, 2, 2),
        (PRECHARGE, 1, 2, 4),
        (READ, 0, 2, 6),
    ):
        await bus.read(0)
        await bus.wait_until(bus.bench.cycle + 10)
        reads, driven = core.reads, 0
        bus._command(READ, 0, 8)
        for clock in range(1, 14):
            await bus.tick()
            if clock == after:
                bus._command(command, bank, 16)
            driven += int(dut.dq_oe_o.value)
        assert (core.reads - reads, driven) == (ends, ends), (command, bank, after)
        if command == PRECHARGE and bank == 0:
            bus.rows.clear()
