# SPDX-License-Identifier: Apache-2.0
"""The card whole, with a model in the place of the vendor's block: a host works with it."""

import logging
from collections.abc import Callable
from typing import Any

import cocotb
from block_7x import NO_LIMIT, Block7x
from cocotb.triggers import Timer
from pcie_node.test.card_host import (
    GET,
    PUT,
    RECEIVED,
    RMA_ERRORS,
    SENT,
    STORES,
    Host,
    linked,
)
from stream import PERIOD_NS, Bench


def test_acorn(simulate: Callable[..., None]) -> None:
    simulate("velo_acorn", {"CtxBits": 2})


class Card:
    """The block's signals as a bench wants them; the link's being up is the reset."""

    def __init__(self, dut: Any):
        self._block = dut.u_block
        self.clk_i, self.rst_ni = dut.u_block.user_clk_out, dut.u_block.user_lnk_up

    def __getattr__(self, name: str) -> Any:
        return getattr(self._block, name)


async def start(dut: Any, seed: int, stall: float) -> Host:
    pins = Card(dut)
    names = ["user_reset_out", "m_axis_rx_tvalid", "m_axis_rx_tlast", "m_axis_rx_tdata"]
    names += ["m_axis_rx_tkeep", "m_axis_rx_tuser", "s_axis_tx_tready", "fc_nph", "cfg_to_turnoff"]
    bench = Bench(pins, names)
    logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
    block = Block7x(bench, pins, seed, stall)
    block.mixed = True
    host = Host(bench, block, 77, (0x9000_0000, 0x12_3400_0000)[seed % 2])
    await bench.start()
    await bench.cycles(300)
    cocotb.start_soon(block.run())
    await host.find()
    await host.configure()
    await linked(host)
    return host


async def messages(host: Host) -> None:
    host.got.clear()
    payloads = [[host.rng.getrandbits(64) for _ in range(words)] for words in range(8)]
    before = host.there()
    for tag, payload in enumerate(payloads):
        await host.send(tag, payload)
    await host.bench.until(lambda: host.there() == before + len(payloads), 8000)
    await host.look()
    assert host.got == list(enumerate(payloads))
    await host.bench.until(lambda: host.interrupts[-1:] == [before + len(payloads)])


async def remote_memory(host: Host) -> None:
    for number, size in enumerate((1, 37, 512, 513, 700, 1500)):
        op = (PUT, GET)[number % 2]
        ours, theirs = (base + host.rng.randrange(4097 - size) for base in (0x1000, 0x2000))
        source, target = (ours, theirs) if op == PUT else (theirs, ours)
        data, start_at, place = host.rng.randbytes(size), host.place(source), host.place(target)
        host.memory[start_at : start_at + size] = data
        around = host.memory[place - 1 : place], host.memory[place + size : place + size + 1]
        await host.command(op, ours, theirs, size, number)
        assert await host.notification() == (number, 0)
        assert host.memory[place - 1 : place + size + 1] == around[0] + data + around[1]
    assert await host.get(RMA_ERRORS) == 0


@cocotb.test
@cocotb.parametrize(seed=[1, 2, 3])
async def a_host_finds_the_card_and_works_with_it(dut: Any, seed: int) -> None:
    host = await start(dut, seed, 0.2)
    await messages(host)
    await remote_memory(host)
    await messages(host)
    assert await host.get(SENT) == await host.get(RECEIVED) == 16
    assert not any(host.block.errors.values())
    # Reads wait for credits, and all that there are get used.
    assert host.block.least_credits in (0, NO_LIMIT)
    await Timer(PERIOD_NS, "ns")


@cocotb.test()
async def the_card_is_new_when_the_link_comes_back(dut: Any) -> None:
    host = await start(dut, 4, 0.0)
    await messages(host)
    pins = host.block.pins
    pins.user_lnk_up.value = 0
    await host.bench.cycles(20)
    assert not int(pins.s_axis_tx_tvalid.value)
    pins.user_lnk_up.value = 1
    await host.bench.cycles(300)
    assert await host.get(STORES, 4) == 0 and await host.get(SENT) == 0
    await host.configure()
    await linked(host)
    await messages(host)
    await Timer(PERIOD_NS, "ns")


@cocotb.test()
async def the_power_may_go_between_packets(dut: Any) -> None:
    host = await start(dut, 5, 0.5)
    pins = host.block.pins
    assert not int(pins.cfg_turnoff_ok.value)
    pins.cfg_to_turnoff.value = 1
    await host.bench.until(lambda: bool(int(pins.cfg_turnoff_ok.value)), 100)
    pins.cfg_to_turnoff.value = 0
    await host.bench.cycles(2)
    assert not int(pins.cfg_turnoff_ok.value)
    assert [int(dut.pcie_clkreq_no.value), int(dut.led_o.value) & 0b111] == [0, 0b111]
    await Timer(PERIOD_NS, "ns")
