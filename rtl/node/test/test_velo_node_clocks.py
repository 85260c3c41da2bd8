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
from structs import Struct

NODE, CTX, SOURCE = 0x21, 1, 2
VELO, REGISTERS = 0, 2
RING = 0x10000
SETUP, SENT, RECEIVED, LINKS, LINK_STATUS = 0x08, 0x40, 0x50, 0x80, 0x100
RINGS, ROUTES = 0x8000000, 0x8200000
STREAMS = ("host", "control")
WRITE, READ, ANSWER, HOST_REQUEST, HOST_RESPONSE, DMA_REQUEST, DMA_RESPONSE = (
    Struct("velo_host_pkg", f"{name}_t")
    for name in (
        "host_write",
        "host_read",
        "host_answer",
        "host_request",
        "host_response",
        "dma_request",
        "dma_response",
    )
)
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
        self.request: dict[str, dict[str, int]] = {}  # what is offered now
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
            ready = int(self.rng.random() < 0.7)
            dut.dma_response_i.value = DMA_RESPONSE.pack(write_ready=ready)
            await ReadOnly()
            for name in STREAMS:
                self._collect(name)
            self._collect_memory(ready)
            await FallingEdge(dut.host_clk_i)

    def _offer(self, name: str) -> None:
        """A load is offered in the cycle after the store before it was taken, not later."""
        addr, beats = self.asked[name][0] if self.asked[name] else (0, None)
        fields = {"answer_ready": int(self.rng.random() < 0.8)}
        if self.asked[name] and beats is None:
            fields |= {"read_valid": 1, "read": READ.pack(addr=addr, len_bytes=8)}
        if beats is not None:
            place = self.beat[name]
            write = WRITE.pack(
                addr=addr, len_bytes=4 * len(beats), eop=int(place == len(beats) - 1)
            )
            fields |= {"write_valid": 1, "write": write}
            getattr(self.dut, f"{name}_write_data_i").value = beats[place]
        self.request[name] = fields
        getattr(self.dut, f"{name}_request_i").value = HOST_REQUEST.pack(**fields)

    def _collect(self, name: str) -> None:
        request = self.request[name]
        response = HOST_RESPONSE.unpack(getattr(self.dut, f"{name}_response_o"))
        if request.get("write_valid") and response["write_ready"]:
            self.beat[name] += 1
            if self.beat[name] == len(self.asked[name][0][1]):
                self.beat[name] = 0
                self.asked[name].popleft()
        if request.get("read_valid") and response["read_ready"]:
            self.asked[name].popleft()
        if response["answer_valid"] and request["answer_ready"]:
            assert not ANSWER.unpack_bits(response["answer"])["error"]
            self.answer[name].append(int(getattr(self.dut, f"{name}_answer_data_o").value))

    def _collect_memory(self, ready: int) -> None:
        request = DMA_REQUEST.unpack(self.dut.dma_request_o)
        if not (request["write_valid"] and ready):
            return
        write = WRITE.unpack_bits(request["write"])
        if self.place is None:
            self.place = write["addr"]
        self.memory[self.place] = int(self.dut.dma_write_data_o.value)
        self.place = None if write["eop"] else self.place + 4

    def word(self, addr: int) -> int:
        return self.memory.get(addr, 0) | self.memory.get(addr + 4, 0) << 32


async def start(dut: Any, host_ps: int, core_ps: int) -> tuple[Host, list[Any]]:
    for port in ("host_request", "control_request", "dma_response", "signal", "wire", "rx_clk"):
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
