# SPDX-License-Identifier: Apache-2.0
"""The node with clocks of its own: registers, messages to itself, a link that ends where it begins.

The host's clock has any ratio to the core's; the serializers run at the core's rate less 200 ppm.
"""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, Timer

NODE, CTX, SOURCE = 0x21, 1, 2
VELO, REGISTERS = 0, 2
RING = 0x10000
SETUP, SENT, RECEIVED, LINKS, LINK_STATUS = 0x08, 0x40, 0x50, 0x80, 0x100
RINGS, ROUTES = 0x8000000, 0x8200000
STREAMS = ("host", "control")
# Periods in ps, host and core: 1:1, 3:7, 100:99, 4:1.
RATIOS = [(6400, 6400), (3000, 7000), (10000, 9900), (25600, 6400)]


def test_node_clocks(simulate: Callable[..., None]) -> None:
    parameters = {"NumLinks": 1, "CtxBits": 2, "CustomUnit": 0}
    simulate("velo_node_clocks", parameters)


def window(unit: int, target: int) -> int:
    return unit << 36 | SOURCE << 28 | target


class Host:
    """Both ways in, and memory, in the host's clock."""

    def __init__(self, dut: Any, seed: int):
        self.dut, self.rng = dut, random.Random(seed)
        # Writes and loads of both ways in the order in which they were made; words are of 32 bits.
        self.asked: dict[str, deque] = {name: deque() for name in STREAMS}
        self.beat = dict.fromkeys(STREAMS, 0)
        self.answer: dict[str, list[int]] = {name: [] for name in STREAMS}
        self.memory: dict[int, int] = {}
        self.place: int | None = None

    def write(self, name: str, addr: int, words: list[int]) -> None:
        beats = [word >> shift & 0xFFFFFFFF for word in words for shift in (0, 32)]
        self.asked[name].append((addr, beats))

    async def read(self, name: str, addr: int) -> int:
        self.asked[name].append((addr, None))
        await self.until(lambda: len(self.answer[name]) == 2)
        low, high = self.answer[name]
        self.answer[name].clear()
        return low | high << 32

    async def until(self, condition: Callable[[], bool], limit: int = 4000) -> None:
        for _ in range(limit):
            if condition():
                return
            await FallingEdge(self.dut.host_clk_i)
        raise AssertionError("timed out")

    async def run(self) -> None:
        dut = self.dut
        while True:
            for name in STREAMS:
                self._offer(name)
            dut.dma_write_ready_i.value = int(self.rng.random() < 0.7)
            await ReadOnly()
            for name in STREAMS:
                self._collect(name)
            self._collect_memory()
            await FallingEdge(dut.host_clk_i)

    def _port(self, name: str) -> Any:
        return getattr(self.dut, name)

    def _offer(self, name: str) -> None:
        """A load is offered in the cycle after the store before it was taken, not later."""
        addr, beats = self.asked[name][0] if self.asked[name] else (0, None)
        load = bool(self.asked[name]) and beats is None
        self._port(f"{name}_read_valid_i").value = int(load)
        self._port(f"{name}_write_valid_i").value = int(beats is not None)
        self._port(f"{name}_answer_ready_i").value = int(self.rng.random() < 0.8)
        if load:
            self._port(f"{name}_read_addr_i").value = addr
            self._port(f"{name}_read_len_bytes_i").value = 8
        if beats is not None:
            place = self.beat[name]
            self._port(f"{name}_write_addr_i").value = addr
            self._port(f"{name}_write_len_bytes_i").value = 4 * len(beats)
            self._port(f"{name}_write_data_i").value = beats[place]
            self._port(f"{name}_write_eop_i").value = int(place == len(beats) - 1)

    def _taken(self, stream: str, valid: str, ready: str) -> bool:
        return bool(
            int(self._port(f"{stream}_valid_{valid}").value)
            and int(self._port(f"{stream}_ready_{ready}").value)
        )

    def _collect(self, name: str) -> None:
        if self._taken(f"{name}_write", "i", "o"):
            self.beat[name] += 1
            if self.beat[name] == len(self.asked[name][0][1]):
                self.beat[name] = 0
                self.asked[name].popleft()
        if self._taken(f"{name}_read", "i", "o"):
            self.asked[name].popleft()
        if self._taken(f"{name}_answer", "o", "i"):
            assert not int(self._port(f"{name}_answer_error_o").value)
            self.answer[name].append(int(self._port(f"{name}_answer_data_o").value))

    def _collect_memory(self) -> None:
        if not self._taken("dma_write", "o", "i"):
            return
        if self.place is None:
            self.place = int(self.dut.dma_write_addr_o.value)
        self.memory[self.place] = int(self.dut.dma_write_data_o.value)
        self.place = None if int(self.dut.dma_write_eop_o.value) else self.place + 4

    def word(self, addr: int) -> int:
        return self.memory.get(addr, 0) | self.memory.get(addr + 4, 0) << 32


async def start(dut: Any, host_ps: int, core_ps: int) -> tuple[Host, list[Any]]:
    for name in STREAMS:
        for port in ("write_valid", "read_valid", "answer_ready", "read_tag", "write_eop"):
            getattr(dut, f"{name}_{port}_i").value = 0
    for port in (
        "dma_write_ready",
        "dma_read_ready",
        "dma_answer_valid",
        "signal",
        "wire",
        "rx_clk",
    ):
        getattr(dut, f"{port}_i").value = 0
    dut.rst_ni.value = 0
    link_ps = core_ps + core_ps // 500 // 2 * 2
    tasks = []
    clocks = ((dut.host_clk_i, host_ps), (dut.core_clk_i, core_ps), (dut.link_clk_i, link_ps))
    for clock, period in clocks:
        tasks.append(cocotb.start_soon(Clock(clock, period, unit="ps").start()))
        await Timer(1234, "ps")
    tasks.append(cocotb.start_soon(cable(dut)))
    await Timer(20 * max(host_ps, core_ps), "ps")
    dut.rst_ni.value = 1
    await Timer(60 * max(host_ps, core_ps), "ps")
    host = Host(dut, host_ps)
    await FallingEdge(dut.host_clk_i)
    tasks.append(cocotb.start_soon(host.run()))
    return host, tasks


async def cable(dut: Any) -> None:
    """What the link sends comes back to it, seven bits late."""
    bits = 0
    dut.signal_i.value = 1
    while True:
        await FallingEdge(dut.link_clk_i)
        bits |= int(dut.wire_o.value) << 7
        dut.wire_i.value = bits & (1 << 40) - 1
        bits >>= 40
        dut.rx_clk_i.value = 1
        await Timer(1000, "ps")
        dut.rx_clk_i.value = 0


@cocotb.test
@cocotb.parametrize(ratio=RATIOS)
async def registers_messages_and_a_link(dut: Any, ratio: tuple[int, int]) -> None:
    host, tasks = await start(dut, *ratio)
    register = lambda offset: window(REGISTERS, offset)  # noqa: E731
    host.write("control", register(SETUP), [NODE])
    host.write("control", register(ROUTES + 8 * NODE), [15])
    host.write("control", register(RINGS + (CTX << 12)), [RING | 3 << 48 | 1])
    # A load finds what the stores right before it wrote.
    for value in (3, 2, 1):
        host.write("control", register(LINKS), [value])
        assert await host.read("control", register(LINKS)) == value
    assert int(dut.node_id_o.value) == NODE
    for number in range(6):
        payload = [host.rng.getrandbits(64) for _ in range((0, 1, 7)[number % 3])]
        header = 1 | number << 8 | 8 * len(payload) << 16
        place = NODE << 20 | CTX << 12 | len(payload) << 6
        host.write("host", window(VELO, place), [header, *payload])
        slot = RING + 64 * number
        await host.until(lambda slot=slot: bool(host.word(slot)))
        head = host.word(slot)
        assert (head >> 8 & 255, head >> 16 & 0xFFFF) == (number, 8 * len(payload))
        assert [host.word(slot + 8 + 8 * i) for i in range(len(payload))] == payload
        # What has been counted has arrived.
        assert await host.read("control", register(RECEIVED)) == number + 1
    assert await host.read("control", register(SENT)) == 6
    # The link has found the word's beginning, its lane, and itself.
    for _ in range(100):
        if await host.read("control", register(LINK_STATUS)) & 1:
            break
    assert await host.read("control", register(LINK_STATUS)) == 1, "up, no errors"
    assert int(dut.pcs_up_o.value) == 1 and int(dut.pcs_code_errors_o.value) == 0
    for task in tasks:
        task.cancel()
