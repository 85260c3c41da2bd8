# SPDX-License-Identifier: Apache-2.0
"""The FIFO between two clocks: nothing lost, doubled or reordered at any ratio; rate, latency."""

import random
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer

# Periods in ps, push and pop: 1:1, 3:7, 7:3, 100:99, 1:4, 4:1, and one ratio of no small numbers.
RATIOS = [(10000, 10000), (3000, 7000), (7000, 3000), (10000, 9900), (2000, 8000), (8000, 2000)]
RATIOS += [(6410, 5004)]
DEPTH, STAGES = 16, 2


def test_cdc_fifo(simulate: Callable[..., None]) -> None:
    simulate("velo_cdc_fifo", {"Depth": DEPTH, "Stages": STAGES})


class Bench:
    """Both sides; words are their own numbers."""

    def __init__(self, dut: Any, push_ps: int, pop_ps: int, seed: int):
        self.dut, self.rng = dut, random.Random(seed)
        self.push_ps, self.pop_ps = push_ps, pop_ps
        self.sent = self.got = self.pop_edges = 0
        self.offer = self.take = 1.0  # how often
        self.refused = 0

    async def start(self) -> None:
        dut = self.dut
        for name in ("push_valid_i", "push_data_i", "pop_ready_i"):
            getattr(dut, name).value = 0
        dut.rst_ni.value = dut.pop_rst_ni.value = 0
        push, pop = (
            Clock(dut.clk_i, self.push_ps, unit="ps"),
            Clock(dut.pop_clk_i, self.pop_ps, unit="ps"),
        )
        self.clocks = [cocotb.start_soon(push.start())]
        await Timer(self.rng.randrange(1, self.pop_ps), "ps")
        self.clocks.append(cocotb.start_soon(pop.start()))
        await Timer(5 * max(self.push_ps, self.pop_ps), "ps")
        dut.rst_ni.value = dut.pop_rst_ni.value = 1
        self.tasks = [cocotb.start_soon(self._push()), cocotb.start_soon(self._pop())]

    def stop(self) -> None:
        for task in self.tasks + self.clocks:
            task.cancel()

    async def _push(self) -> None:
        dut = self.dut
        while True:
            await FallingEdge(dut.clk_i)
            valid = self.rng.random() < self.offer
            dut.push_valid_i.value, dut.push_data_i.value = int(valid), self.sent & 0xFFFFFFFF
            await RisingEdge(dut.clk_i)
            if valid and int(dut.push_ready_o.value):
                self.sent += 1
            self.refused += valid and not int(dut.push_ready_o.value)

    async def _pop(self) -> None:
        dut = self.dut
        while True:
            await FallingEdge(dut.pop_clk_i)
            ready = self.rng.random() < self.take
            dut.pop_ready_i.value = int(ready)
            await RisingEdge(dut.pop_clk_i)
            self.pop_edges += 1
            if int(dut.pop_valid_o.value) and ready:
                assert int(dut.pop_data_o.value) == self.got & 0xFFFFFFFF, f"word {self.got}"
                self.got += 1
                assert self.got <= self.sent

    async def cycles(self, count: int) -> None:
        await Timer(count * max(self.push_ps, self.pop_ps), "ps")


@cocotb.test
@cocotb.parametrize(ratio=RATIOS)
async def words_come_once_in_order_at_full_rate(dut: Any, ratio: tuple[int, int]) -> None:
    bench = Bench(dut, *ratio, seed=1)
    await bench.start()
    await bench.cycles(600)
    # The slower side sets the rate, and nothing else does.
    assert bench.got > 570, f"{bench.got} words in 600 cycles of the slower clock"
    bench.offer = 0.0
    await bench.cycles(20)
    assert bench.got == bench.sent
    bench.stop()


@cocotb.test
@cocotb.parametrize(ratio=RATIOS)
async def it_fills_and_empties_with_any_pauses(dut: Any, ratio: tuple[int, int]) -> None:
    bench = Bench(dut, *ratio, seed=2)
    await bench.start()
    for offer, take in ((1.0, 0.1), (0.1, 1.0), (0.5, 0.5), (1.0, 0.0), (0.0, 1.0)):
        bench.offer, bench.take = offer, take
        await bench.cycles(150)
        if take == 0.0:
            assert bench.sent - bench.got == DEPTH and bench.refused
    assert bench.got == bench.sent > 100
    bench.stop()


@cocotb.test
async def latency_is_one_edge_more_than_the_stages(dut: Any) -> None:
    bench = Bench(dut, 10000, 10000, seed=3)
    await bench.start()
    bench.offer = 0.0
    await bench.cycles(10)
    for _ in range(10):
        bench.offer = 1.0
        before = bench.sent
        while bench.sent == before:
            await RisingEdge(dut.clk_i)
            await Timer(1, "ps")
        bench.offer, begin = 0.0, bench.pop_edges
        while not int(dut.pop_valid_o.value):
            await RisingEdge(dut.pop_clk_i)
            await Timer(1, "ps")
        assert bench.pop_edges - begin in (STAGES, STAGES + 1)
        await bench.cycles(20)
    bench.stop()
