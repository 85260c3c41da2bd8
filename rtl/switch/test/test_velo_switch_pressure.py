# SPDX-License-Identifier: Apache-2.0
"""Pressure on an output: when packets that leave by it get a mark, cycle by cycle."""

import random

import cocotb
from cocotb.triggers import ReadOnly
from stream import Bench

LATE = 3  # cycles from the queues to the mark


def test_pressure(simulate):
    simulate("velo_switch_pressure", {"NumPorts": 3, "CyclesBits": 16})


class Model:
    """The definition: a step a cycle between nothing and twice the threshold."""

    def __init__(self) -> None:
        self.count, self.pressed, self.mark = 0, False, False

    def step(self, waits: int, more: int, cycles: int, enable: int) -> None:
        self.mark = bool(enable and (self.pressed or cycles == 0) and self.count >= cycles)
        if not enable:
            self.count = 0
        elif self.pressed and self.count < 2 * cycles:
            self.count += 1
        elif (not self.pressed or self.count > 2 * cycles) and self.count:
            self.count -= 1
        self.pressed = bool(enable and (more or waits.bit_count() >= 2))


async def start(dut, cycles: int, enable: int = 1) -> Bench:
    bench = Bench(dut, ["waits_i", "more_i"])
    dut.enable_i.value = enable
    dut.cycles_i.value = cycles
    await bench.start()
    await bench.cycles(4)
    return bench


async def drive(bench, waits: int, more: int, count: int = 1) -> list[int]:
    """The mark in each of so many cycles with these inputs."""
    marks = []
    for _ in range(count):
        bench.dut.waits_i.value = waits
        bench.dut.more_i.value = more
        await ReadOnly()
        marks.append(int(bench.dut.mark_o.value))
        await bench.cycles(1)
    return marks


@cocotb.test
async def marks_begin_after_the_threshold_and_end_with_the_pressure(dut):
    bench = await start(dut, 20)
    for waits, more in ((0b101, 0), (0b001, 0b001), (0b111, 0b110)):
        await drive(bench, 0, 0, 60)
        marks = await drive(bench, waits, more, 60)
        # In the first cycle the count begins, after 20 it is at the threshold.
        assert marks == [0] * (20 + LATE - 1) + [1] * (60 - 20 - LATE + 1)
        marks = await drive(bench, 0b010, 0, 30)
        assert marks == [1] * (LATE - 1) + [0] * (30 - LATE + 1), "a mark without pressure"


@cocotb.test
async def one_packet_is_no_pressure(dut):
    bench = await start(dut, 4)
    for waits in (0b001, 0b010, 0b100, 0):
        assert not any(await drive(bench, waits, 0, 50))


@cocotb.test
async def a_pause_does_not_begin_the_count_anew(dut):
    bench = await start(dut, 10)
    await drive(bench, 0b011, 0, 40)  # the count stands at 20
    await drive(bench, 0, 0, 8)
    assert all((await drive(bench, 0b011, 0, 10))[LATE - 1 :]), "the count was lost"
    await drive(bench, 0, 0, 40)
    assert not any(await drive(bench, 0b011, 0, 10)), "it never came down"


@cocotb.test
async def off_means_no_mark(dut):
    bench = await start(dut, 2, enable=0)
    assert not any(await drive(bench, 0b111, 0b111, 50))
    dut.enable_i.value = 1
    marks = await drive(bench, 0b111, 0b111, 10)
    assert not any(marks[:LATE]), "it counted while it was off"
    assert marks[-1]


@cocotb.test
async def as_defined_with_random_queues(dut):
    """Threshold and enable change on the way, too; a lowered limit is come down to."""
    rng = random.Random(7)
    bench = await start(dut, 6)
    model, cycles, enable, queue, marks = Model(), 6, 1, (0, 0), 0
    for index in range(8000):
        if rng.random() < 0.2:
            queue = (rng.randrange(8), rng.choice((0, 0, 0, rng.randrange(8))))
        if rng.random() < 0.005:
            cycles, enable = rng.choice((0, 1, 3, 12, 40)), int(rng.random() < 0.9)
            dut.cycles_i.value, dut.enable_i.value = cycles, enable
        expected = model.mark
        assert (await drive(bench, *queue))[0] == expected, f"cycle {index}"
        model.step(*queue, cycles, enable)
        marks += expected
    assert 500 < marks < 7500
