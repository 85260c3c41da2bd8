# SPDX-License-Identifier: Apache-2.0
"""A card with three kinds of clocks, whose link ends where it begins: it sends to itself."""

import logging
from collections.abc import Callable
from typing import Any

import cocotb
from card_host import LINK_STATUS, PUT, RECEIVED, RMA_ERRORS, SENT, Side, card, linked
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer
from stream import PERIOD_NS, Bench


def test_pcie_node_clocks(simulate: Callable[..., None]) -> None:
    simulate("velo_pcie_node_clocks", {"NumLinks": 1, "CtxBits": 2, "CustomUnit": 0})


async def cable(dut: Any) -> None:
    """What each lane of the link sends comes back to it, seven bits late."""
    lanes, width = len(dut.signal_i), len(dut.wire_o) // len(dut.signal_i)
    bits, mask = [0] * lanes, (1 << width) - 1
    dut.signal_i.value = (1 << lanes) - 1
    while True:
        await FallingEdge(dut.link_clk_i)
        sent, back = int(dut.wire_o.value), 0
        for lane in range(lanes):
            bits[lane] |= (sent >> width * lane & mask) << 7
            back |= (bits[lane] & mask) << width * lane
            bits[lane] >>= width
        dut.wire_i.value = back
        dut.rx_clk_i.value = (1 << lanes) - 1
        await Timer(1000, "ps")
        dut.rx_clk_i.value = 0


# The core's period in ps, beside the function's 10,000: faster and slower than it.
@cocotb.test
@cocotb.parametrize(core_ps=[6400, 13700])
async def a_card_works_again_after_a_reset_of_the_function(dut: Any, core_ps: int) -> None:
    names = ("rx_valid", "rx_last", "rx_keep", "rx_data", "rx_bar", "tx_ready", "config", "flr")
    names += ("tx_nonposted_ok", "signal", "wire", "rx_clk")
    side = Side(dut, clock="pcie_clk_i")
    bench = Bench(side, [f"{name}_i" for name in names])
    logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
    host = card(bench, side, 77, 0x9000_0000, 0.1)
    clocks = [
        cocotb.start_soon(Clock(dut.core_clk_i, core_ps, unit="ps").start()),
        cocotb.start_soon(Clock(dut.link_clk_i, core_ps + 14, unit="ps").start()),
        cocotb.start_soon(cable(dut)),
    ]
    await bench.start()
    await bench.cycles(300)
    clocks.append(cocotb.start_soon(host.block.run()))
    await host.find()
    sent = 0
    for trial in range(3):
        await host.configure()
        await linked(host)
        host.got.clear()
        payloads = [[host.rng.getrandbits(64) for _ in range(words)] for words in (0, 1, 3, 7)]
        count = len(payloads)
        for tag, payload in enumerate(payloads):
            await host.send(tag, payload)
        await bench.until(lambda n=count: host.there() == n, 8000)
        await host.look()
        assert host.got == list(enumerate(payloads))
        await bench.until(lambda n=count: host.interrupts[-1:] == [n])
        # The counts are those since the reset; what has been counted has arrived.
        assert await host.get(SENT) == await host.get(RECEIVED) == count
        data, place = host.rng.randbytes(300), host.place(0x1000 + 7)
        host.memory[place : place + 300] = data
        await host.command(PUT, 0x1000 + 7, 0x2000 + 1001, 300, trial)
        assert await host.notification() == (trial, 0)
        place = host.place(0x2000 + 1001)
        assert host.memory[place : place + 300] == data
        assert await host.get(RMA_ERRORS) == 0
        status = await host.get(LINK_STATUS)
        assert status & 0xFF_FFFF_FF00 == 0, "no errors, no retransmissions"
        # More of both is under way when the reset comes.
        for tag in range(3):
            await host.send(tag, [tag] * 7)
            await host.command(PUT, 0x1000, 0x2000, 400, tag)
        await bench.cycles(host.rng.randrange(80))
        sent += len(host.block.sent)
        side.flr_i.value = 1
        await bench.until(lambda: bool(int(side.flr_done_o.value)), 10000)
        await bench.cycles(20)
        before, packets = bytes(host.memory), len(host.block.sent)
        await host.send(0, [0])
        await bench.cycles(300)
        assert bytes(host.memory) == before and len(host.block.sent) == packets
        assert int(side.node_id_o.value) == 0
        side.flr_i.value = 0
        await bench.cycles(100)
    assert sent and not any(host.block.events.values())
    for task in clocks:
        task.cancel()
    await Timer(PERIOD_NS, "ns")
