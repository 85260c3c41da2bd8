# SPDX-License-Identifier: Apache-2.0
"""The whole node behind AXI4: it sends to itself, so all of it is on the way but the links.

The memory is as unkind as AXI allows: writes become visible when they are answered, which may be
late, and reads overtake them.
"""

import os
import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

NODE, CTX, OTHER, SOURCE = 0x21, 1, 2, 5
VELO, RMA, REGISTERS, CUSTOM = range(4)
RING, QUEUE, TABLE, SEGMENT, FRAME = 0x10000, 0x20000, 0x30000, 0x100000, 0x40
SETUP, CUSTOM_SETTING, SENT, RECEIVED, UNMAPPED = 0x08, 0x30, 0x40, 0x50, 0x60
PAGES, RMA_POSTED, RMA_ERRORS = 0x88, 0xA8, 0xC8
RINGS, ROUTES, QUEUES = 0x8000000, 0x8200000, 0x8300000
PUT, GET, REQUESTER, COMPLETER = 1, 2, 1, 4
OKAY, SLVERR = 0, 2


# Two widths, as it takes minutes to build: that of a beat for half a word, and that for two words.
@pytest.mark.parametrize("width", [32, pytest.param(128, marks=pytest.mark.nightly)])
def test_node(simulate: Callable[..., None], width: int) -> None:
    simulate("velo_node_axi", {"DataWidth": width, "NumLinks": 2, "CtxBits": 4})


# The paper's n = 28 and t = 20 without sources; and 256 MB for 256 nodes of 16 contexts, with them.
@pytest.mark.parametrize("window", ["28,20,0", pytest.param("24,16,4", marks=pytest.mark.nightly)])
def test_node_with_another_window(
    simulate: Callable[..., None], window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCOTB_TEST_FILTER", "messages_.*|what_is_.*|no_store_.*")
    simulate("velo_node_axi", {"DataWidth": 32, "NumLinks": 2, "CtxBits": 4}, window)


N_BITS, T_BITS, SOURCE_BITS = map(int, os.environ.get("VELO_WINDOW", "28,20,8").split(","))
if not SOURCE_BITS:
    SOURCE = 0


def window(unit: int, target: int, source: int = SOURCE) -> int:
    # Registers have all bits below the unit to themselves.
    place = source << N_BITS if SOURCE_BITS and unit != REGISTERS else 0
    return unit << max(28, N_BITS + SOURCE_BITS) | place | target


class Host:
    """Manager of the node's two slaves and memory behind its master, a cycle at a time."""

    def __init__(self, dut: Any, seed: int):
        self.dut, self.rng = dut, random.Random(seed)
        self.size = len(dut.dma_wdata_o) // 8
        self.memory: dict[int, int] = {}
        # Accesses that wait on each slave, and those that have been answered.
        self.writes: dict[str, deque] = {"host": deque(), "control": deque()}
        self.reads: dict[str, deque] = {"host": deque(), "control": deque()}
        self.written: dict[str, list[int]] = {"host": [], "control": []}
        self.answers: dict[str, list[tuple[int, int]]] = {"host": [], "control": []}
        self.beat = {"host": 0, "control": 0}
        self.gathered: dict[str, list[int]] = {"host": [], "control": []}
        self.bursts: deque = deque()  # of writes, as they came: address, then data
        self.beats: deque = deque()  # of data whose address has not come
        self.unanswered: deque = deque()
        self.pending: list[list[Any]] = []
        self.burst: list[Any] | None = None
        self.mute = self.deaf = False  # Reads are not answered; writes are not taken.

    def get(self, name: str) -> int:
        return int(getattr(self.dut, name).value)

    def set(self, **values: int) -> None:
        for name, value in values.items():
            getattr(self.dut, name).value = value

    def taken(self, valid: str, ready: str) -> bool:
        return bool(self.get(valid) and self.get(ready))

    def write(self, slave: str, addr: int, words: list[int], burst: int = 1) -> None:
        data = b"".join(word.to_bytes(8, "little") for word in words)
        # On a wide bus a write begins in the half of its address, and may end in the lower one.
        beats, at = [], addr % self.size
        while data:
            piece, data = data[: self.size - at], data[self.size - at :]
            strobes = ((1 << len(piece)) - 1) << at
            beats.append((int.from_bytes(bytes(at) + piece, "little"), strobes))
            at = 0
        self.writes[slave].append((addr, beats, burst))

    async def read(self, slave: str, addr: int) -> tuple[int, int]:
        """Value and response of one word."""
        self.reads[slave].append(addr)
        await self.until(lambda: bool(self.answers[slave]))
        return self.answers[slave].pop(0)

    def load(self, addr: int, size: int) -> bytes:
        return bytes(self.memory.get(addr + i, 0) for i in range(size))

    def store(self, addr: int, data: bytes) -> None:
        self.memory |= {addr + i: byte for i, byte in enumerate(data)}

    def word(self, addr: int) -> int:
        return int.from_bytes(self.load(addr, 8), "little")

    async def until(self, condition: Callable[[], bool], limit: int = 3000) -> None:
        for _ in range(limit):
            if condition():
                return
            await FallingEdge(self.dut.clk_i)
        raise AssertionError("timed out")

    async def settled(self) -> None:
        await self.until(lambda: not any(self.writes.values()))

    async def run(self) -> None:
        while True:
            for slave in ("host", "control"):
                self._offer(slave)
            self._offer_memory()
            await ReadOnly()
            events = [self._collect(slave) for slave in ("host", "control")]
            memory = self._collect_memory()
            await FallingEdge(self.dut.clk_i)
            for slave, (moved, last, asked) in zip(("host", "control"), events, strict=True):
                self.beat[slave] += moved
                if last:
                    self.writes[slave].popleft()
                    self.beat[slave] = 0
                if asked:
                    self.reads[slave].popleft()
            if memory and self.burst:
                self.burst[1].pop(0)
                self.burst = self.burst if self.burst[1] else None

    def _offer(self, slave: str) -> None:
        queue, log2 = self.writes[slave], self.size.bit_length() - 1
        there = bool(queue) and self.rng.random() < 0.8
        values = {"awvalid": there, "wvalid": there, "bready": 1, "rready": 1}
        if queue:
            addr, beats, burst = queue[0]
            values |= {"awaddr": addr, "awlen": len(beats) - 1, "awsize": log2, "awburst": burst}
            values |= {
                "wdata": beats[self.beat[slave]][0],
                "wlast": self.beat[slave] == len(beats) - 1,
                "wstrb": beats[self.beat[slave]][1],
            }
        asked = self.reads[slave]
        values["arvalid"] = bool(asked)
        if asked:
            values |= {"araddr": asked[0], "arlen": -(-8 // self.size) - 1, "arsize": min(log2, 3)}
            values["arburst"] = 1
        self.set(**{f"{slave}_{name}_i": value for name, value in values.items()})

    def _collect(self, slave: str) -> tuple[bool, bool, bool]:
        if self.get(f"{slave}_bvalid_o"):
            self.written[slave].append(self.get(f"{slave}_bresp_o"))
        if self.get(f"{slave}_rvalid_o"):
            # On a wide bus a word is in the half that its address names; here it is in both.
            data = self.get(f"{slave}_rdata_o")
            assert self.size < 16 or data >> 64 == data & (1 << 64) - 1
            self.gathered[slave].append(data & (1 << 64) - 1)
            if self.get(f"{slave}_rlast_o"):
                beats, self.gathered[slave] = self.gathered[slave], []
                value = sum(beat << (8 * self.size * i) for i, beat in enumerate(beats))
                self.answers[slave].append((value, self.get(f"{slave}_rresp_o")))
        moved = self.taken(f"{slave}_wvalid_i", f"{slave}_wready_o")
        last = self.taken(f"{slave}_awvalid_i", f"{slave}_awready_o")
        return moved, last, self.taken(f"{slave}_arvalid_i", f"{slave}_arready_o")

    def _offer_memory(self) -> None:
        answers = bool(self.unanswered) and self.rng.random() < 0.05
        if answers:
            for place, byte in self.unanswered.popleft():
                self.memory[place] = byte
        if self.burst is None and self.pending and not self.mute and self.rng.random() < 0.3:
            self.burst = self.pending.pop(0)  # Reads of one ID are answered in order.
        self.set(
            dma_awready_i=not self.deaf and self.rng.random() < 0.7,
            dma_wready_i=not self.deaf and self.rng.random() < 0.7,
            dma_bvalid_i=answers,
            dma_arready_i=self.rng.random() < 0.7,
            dma_rvalid_i=self.burst is not None,
        )
        if self.burst is not None:
            ident, beats = self.burst
            self.set(
                dma_rid_i=ident,
                dma_rdata_i=int.from_bytes(beats[0], "little"),
                dma_rlast_i=len(beats) == 1,
            )

    def _collect_memory(self) -> bool:
        if self.taken("dma_awvalid_o", "dma_awready_i"):
            self.bursts.append([self.get("dma_awaddr_o"), []])
        if self.taken("dma_wvalid_o", "dma_wready_i"):
            beat = self.get("dma_wstrb_o"), self.get("dma_wdata_o"), self.get("dma_wlast_o")
            self.beats.append(beat)
        # Data may come before their address.
        while self.bursts and self.beats:
            burst = self.bursts[0]
            strobes, data, last = self.beats.popleft()
            for lane in range(self.size):
                if strobes >> lane & 1:
                    burst[1].append((burst[0] + lane, data >> (8 * lane) & 255))
            burst[0] += self.size
            if last:
                self.unanswered.append(self.bursts.popleft()[1])
        if self.taken("dma_arvalid_o", "dma_arready_i"):
            addr, count = self.get("dma_araddr_o"), self.get("dma_arlen_o") + 1
            beats = [self.load(addr + i * self.size, self.size) for i in range(count)]
            self.pending.append([self.get("dma_arid_o"), beats])
        return self.taken("dma_rvalid_i", "dma_rready_o")


async def start(dut: Any) -> Host:
    inputs = ["phy_up_i", "phy_kind_i", "phy_data_i", "dma_bresp_i", "dma_rresp_i"]
    inputs += [f"dma_{name}_i" for name in ("awready", "wready", "bvalid", "arready", "rvalid")]
    for slave in ("host", "control"):
        for name in ("awvalid", "awid", "wvalid", "bready", "arvalid", "arid", "rready"):
            inputs.append(f"{slave}_{name}_i")
    bench = Bench(dut, inputs)
    await bench.start()
    host = Host(dut, 1)
    cocotb.start_soon(host.run())
    await bench.cycles(40)  # The context tables clear themselves.
    settings = {
        SETUP: NODE,
        ROUTES + 8 * NODE: 15,
        CUSTOM_SETTING: SEGMENT | 1,
        PAGES: TABLE | 1 << 8 | 4,
    }
    for ctx in (CTX, OTHER):
        settings[RINGS + (ctx << 12)] = RING * ctx | 2 << 48 | 1
        settings[QUEUES + (ctx << 12)] = QUEUE + 0x1000 * ctx | 3 << 48 | 1
    for offset, value in settings.items():
        host.write("control", window(REGISTERS, offset), [value])
    for page in range(4):  # two of each context, frames apart
        entry = 7 << 1 | (CTX + page // 2) << 4 | (FRAME + 2 * page) << 12
        host.store(TABLE + 8 * page, entry.to_bytes(8, "little"))
    await host.settled()
    return host


async def counter(host: Host, offset: int) -> int:
    value, response = await host.read("control", window(REGISTERS, offset))
    assert response == OKAY
    return value


@cocotb.test
async def messages_loads_and_remote_memory(dut: Any) -> None:
    host = await start(dut)
    rng = host.rng
    # Messages of every length: out through the slave, in through the master.
    for number in range(4):
        payload = [rng.getrandbits(64) for _ in range((0, 1, 3, 7)[number])]
        header = 1 | number << 8 | 8 * len(payload) << 16
        place = NODE << T_BITS | CTX << 12 | len(payload) << 6
        host.write("host", window(VELO, place), [header, *payload])
        slot = RING + 64 * number
        await host.until(lambda slot=slot: bool(host.word(slot)))
        head = host.word(slot)
        assert (head >> 8 & 255, head >> 16 & 0xFFFF) == (number, 8 * len(payload))
        assert head >> 32 & 0xFFFF == NODE << 8 | SOURCE
        assert [host.word(slot + 8 + 8 * i) for i in range(len(payload))] == payload
    # A store and a load of the custom unit.
    value = rng.getrandbits(64)
    host.write("host", window(CUSTOM, NODE << T_BITS | 0x48), [value])
    await host.settled()
    assert await host.read("host", window(CUSTOM, NODE << T_BITS | 0x48)) == (value, OKAY)
    # Puts and gets of bytes anywhere, and never a notification before its data. Their pages are
    # those of their context, so they need a window that has sources.
    for number in range(12 if SOURCE_BITS else 0):
        op, size = (PUT, GET)[number % 2], rng.choice((1, 5, 8, 37, 448, 700))
        ours, theirs = rng.randrange(7000), 0x2000 + rng.randrange(7000)
        data = rng.randbytes(size)
        source, target = (ours, theirs) if op == PUT else (theirs, ours)
        place = [(FRAME + 2 * (target + i >> 12) << 12) + (target + i & 4095) for i in range(size)]
        for i, byte in enumerate(data):
            host.memory[(FRAME + 2 * (source + i >> 12) << 12) + (source + i & 4095)] = byte
        beside = {spot: host.memory.get(spot, 0) for spot in (place[0] - 1, place[-1] + 1)}
        low = op | REQUESTER << 4 | NODE << 8 | OTHER << 16 | number << 24 | size << 32
        host.write("host", window(RMA, 0, CTX), [low, ours, theirs])
        entry = QUEUE + 0x1000 * CTX + 16 * (number % 8)
        await host.until(lambda entry=entry: bool(host.word(entry)))
        note = host.word(entry)
        assert (note >> 4 & 15, note >> 12 & 15, note >> 55 & 255) == (REQUESTER, 0, number)
        assert bytes(host.memory.get(spot, 0) for spot in place) == data
        assert all(host.memory.get(spot, 0) == byte for spot, byte in beside.items())
        host.store(entry, bytes(16))
        pointer = window(REGISTERS, 0x8400000 + (CTX << 12))
        host.write("control", pointer, [number + 1])
    assert await counter(host, SENT) == await counter(host, RECEIVED) == 4
    puts = 12 if SOURCE_BITS else 0
    assert (await counter(host, RMA_POSTED), await counter(host, RMA_ERRORS)) == (puts, 0)
    assert host.written["host"] == [OKAY] * (5 + puts)


@cocotb.test
async def what_is_wrong_is_answered_and_changes_nothing(dut: Any) -> None:
    host = await start(dut)
    host.write("host", window(VELO, NODE << T_BITS | CTX << 12), [1], burst=0)
    host.write("control", window(VELO, NODE << T_BITS | CTX << 12), [1])
    await host.settled()
    await host.until(lambda: bool(host.written["host"]))
    assert host.written["host"] == [SLVERR]
    assert (await host.read("host", window(VELO, 0)))[1] == SLVERR  # VELO units are not read
    assert (await host.read("host", window(RMA, 0)))[1] == SLVERR
    assert (await host.read("control", window(CUSTOM, 0)))[1] == SLVERR
    # Refused where they ended: the control port leads to registers only, and so do reads of VELO
    # units.
    assert await counter(host, UNMAPPED) == 3
    assert await counter(host, SENT) == 0
    assert not host.word(RING)


WATCHDOG, GIVEN_UP, UNANSWERED, HOST_STALLS = 0x198, 0x1A0, 0x1A8, 0x1B0
REQUESTER_ERROR, REFUSED, UNDELIVERED, LINKS, LINK_STATUS = 0x20, 0x48, 0x78, 0x80, 0x100
AWAY, NETWORK, HOST_REFUSED = 0x22, 11, 10


async def watched(dut: Any, cycles: int = 200) -> Host:
    """A node with the watchdog on, and a way to another node by a cable that is pulled."""
    host = await start(dut)
    host.write("control", window(REGISTERS, WATCHDOG), [1 << 32 | cycles])
    host.write("control", window(REGISTERS, ROUTES + 8 * AWAY), [0])
    host.write("control", window(REGISTERS, LINKS), [1])
    await host.settled()
    return host


def message(node: int, tag: int, words: int) -> tuple[int, list[int]]:
    place = node << T_BITS | CTX << 12 | words << 6
    return window(VELO, place), [1 | tag << 8 | 8 * words << 16, *range(words)]


async def put_to_itself(host: Host, count: int) -> None:
    for _ in range(count):
        low = 3 | NODE << 8 | OTHER << 16 | 8 << 32  # put_immediate
        host.write("host", window(RMA, 0, CTX), [low, 5, 0x2000])


@cocotb.test
async def no_store_waits_for_a_full_ring_for_ever(dut: Any) -> None:
    """More messages and descriptors than network and queues hold: each store is answered."""
    host = await watched(dut, 60)
    count = 120
    for tag in range(count):
        host.write("host", *message(NODE, tag, 7))
    await host.until(lambda: len(host.written["host"]) == count, 60000)
    sent, lost = await counter(host, SENT), await counter(host, UNDELIVERED)
    # The last one may still be in the requester's register.
    assert lost > 10
    assert sent > 10
    assert count - 1 <= sent + lost <= count
    assert await counter(host, REFUSED) == 0
    assert await counter(host, REQUESTER_ERROR) == NETWORK | SOURCE << 8
    # Descriptors: the queue fills, then they are given up.
    posted = 250
    await put_to_itself(host, posted)
    await host.until(lambda: len(host.written["host"]) == count + posted, 120000)
    assert await counter(host, GIVEN_UP) > 10


@cocotb.test
async def no_store_waits_for_a_pulled_cable_for_ever(dut: Any) -> None:
    """More messages than the network holds for a link that is down: each store is answered."""
    host = await watched(dut, 60)
    count = 60
    for tag in range(count):
        host.write("host", *message(AWAY, tag, 7))
    await host.until(lambda: len(host.written["host"]) == count, 30000)
    # The link is dead soon, so none is given up.
    assert await counter(host, UNDELIVERED) == 0
    assert count - 1 <= await counter(host, SENT) <= count
    swallowed = [await counter(host, LINK_STATUS + 8 * link) >> 56 for link in range(6)]
    assert sum(swallowed) > 10
    assert await counter(host, REFUSED) == 0
    # Descriptors to the node itself pass.
    posted = 250
    await put_to_itself(host, posted)
    await host.until(lambda: len(host.written["host"]) == count + posted, 120000)
    assert await counter(host, GIVEN_UP) == 0
    # Loads and stores of the custom unit.
    given_up = await counter(host, GIVEN_UP)
    for _ in range(4):
        host.write("host", window(CUSTOM, AWAY << T_BITS), [1])
    assert await host.read("host", window(CUSTOM, AWAY << T_BITS)) == (0, SLVERR)
    await host.until(lambda: len(host.written["host"]) == count + posted + 4, 5000)
    assert await counter(host, GIVEN_UP) > given_up


@cocotb.test
async def a_load_that_nobody_answers_ends_with_an_error(dut: Any) -> None:
    host = await watched(dut)
    for _ in range(3):
        assert (await host.read("host", window(CUSTOM, AWAY << T_BITS)))[1] == SLVERR
    assert await counter(host, GIVEN_UP) == 3
    # Others are served meanwhile and after it, unless they stand behind it in the network.
    host.write("host", *message(NODE, 9, 1))
    await host.settled()


@cocotb.test
async def memory_that_does_not_answer_stops_one_operation(dut: Any) -> None:
    """Reads are taken and not answered for a while: each put fails and says so; what comes too
    late is nobody's; then all works again."""
    host = await watched(dut)
    host.mute = True
    low = PUT | REQUESTER << 4 | NODE << 8 | OTHER << 16 | 8 << 32

    async def put(number: int) -> int:
        """The error in the notification of a put of eight bytes."""
        host.memory |= {(FRAME << 12) + i: 0x40 + number for i in range(8)}
        host.write("host", window(RMA, 0, CTX), [low | number << 24, 0, 0x2000])
        entry = QUEUE + 0x1000 * CTX + 16 * (number % 8)
        await host.until(lambda: bool(host.word(entry)), 6000)
        note = host.word(entry)
        assert note >> 55 & 255 == number
        host.store(entry, bytes(16))
        host.write("control", window(REGISTERS, 0x8400000 + (CTX << 12)), [number + 1])
        await host.settled()
        return note >> 12 & 15

    assert await put(0) == HOST_REFUSED
    assert await put(1) == HOST_REFUSED
    assert await counter(host, UNANSWERED) == 2
    late = len(host.pending)
    assert late == 2
    host.mute = False
    assert await put(2) == 0
    assert not host.pending
    assert host.word((FRAME + 4) << 12) == int.from_bytes(bytes([0x42] * 8), "little")
    # Never answered at all: numbers run out, and reads fail at once.
    host.mute = True
    for number in range(3, 25):
        assert await put(number) == HOST_REFUSED
    assert len(host.pending) == 16
    host.mute = False
    await host.until(lambda: not host.pending)
    for number in range(25, 30):
        assert await put(number) == 0


@cocotb.test
async def a_host_that_takes_no_writes_is_counted(dut: Any) -> None:
    host = await watched(dut)
    host.deaf = True
    host.write("host", *message(NODE, 1, 1))
    for _ in range(1000):
        await FallingEdge(dut.clk_i)
    assert await counter(host, HOST_STALLS) == 1
    assert not host.word(RING)
    host.deaf = False
    await host.until(lambda: bool(host.word(RING)))
    assert await counter(host, UNDELIVERED) == 0
