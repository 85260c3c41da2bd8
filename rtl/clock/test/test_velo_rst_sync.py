# SPDX-License-Identifier: Apache-2.0
"""A reset falls without a clock and rises with it."""

from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer


def test_rst_sync(simulate: Callable[..., None]) -> None:
    simulate("velo_rst_sync", {"Stages": 3})


@cocotb.test
async def it_falls_at_once_and_rises_after_the_stages(dut: Any) -> None:
    dut.rst_ni.value, dut.clk_i.value = 1, 0
    await Timer(3, "ns")
    dut.rst_ni.value = 0
    await Timer(1, "ns")
    assert int(dut.rst_no.value) == 0, "without a clock"
    cocotb.start_soon(Clock(dut.clk_i, 10, unit="ns").start())
    for when_ns in (1, 4, 6, 9):
        await RisingEdge(dut.clk_i)
        await Timer(when_ns, "ns")
        dut.rst_ni.value = 1
        for edge in range(3):
            assert int(dut.rst_no.value) == 0, f"edge {edge}"
            await RisingEdge(dut.clk_i)
            await Timer(1, "ps")
        assert int(dut.rst_no.value) == 1
        await Timer(2500, "ps")
        dut.rst_ni.value = 0
        await Timer(1, "ps")
        assert int(dut.rst_no.value) == 0, "between two edges"
