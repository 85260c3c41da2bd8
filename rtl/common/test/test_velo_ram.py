# SPDX-License-Identifier: Apache-2.0
"""A protected memory: bits are turned over behind its back."""

import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

DEPTH = 8


@pytest.mark.parametrize(("width", "old"), [(34, 0), (130, 1)])
def test_ram(simulate, width, old):
    simulate("velo_ram", {"Width": width, "Depth": DEPTH, "ReadsOld": old, "Ecc": 1})


async def read(dut, addr):
    dut.raddr_i.value = addr
    await FallingEdge(dut.clk_i)
    return int(dut.rdata_o.value), int(dut.corrected_o.value), int(dut.broken_o.value)


@cocotb.test()
async def one_wrong_bit_is_put_right_and_two_are_told_of(dut):
    rng, width = random.Random(1), len(dut.wdata_i)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    words = [rng.getrandbits(width) for _ in range(DEPTH)]
    dut.we_i.value = 1
    for addr, word in enumerate(words):
        dut.waddr_i.value, dut.wdata_i.value = addr, word
        await FallingEdge(dut.clk_i)
    dut.we_i.value = 0
    mem = dut.gen_old.mem if hasattr(dut, "gen_old") else dut.gen_any.mem
    stored = len(mem[0])
    assert stored > width
    for addr, word in enumerate(words):
        assert await read(dut, addr) == (word, 0, 0)
        kept = int(mem[addr].value)
        for bit in range(stored):
            mem[addr].value = kept ^ 1 << bit
            assert await read(dut, addr) == (word, 1, 0), bit
        for _ in range(50):
            first, second = rng.sample(range(stored), 2)
            mem[addr].value = kept ^ 1 << first ^ 1 << second
            assert (await read(dut, addr))[1:] == (0, 1), (first, second)
        mem[addr].value = kept
    # A word that is written again is whole again.
    mem[3].value = int(mem[3].value) ^ 3
    assert (await read(dut, 3))[1:] == (0, 1)
    dut.we_i.value, dut.waddr_i.value, dut.wdata_i.value = 1, 3, 5
    await FallingEdge(dut.clk_i)
    dut.we_i.value = 0
    assert await read(dut, 3) == (5, 0, 0)
