# SPDX-License-Identifier: Apache-2.0
"""The PC before a board: what its stores and loads become, and the paper's ping-pong.

The boards behind the host interfaces are a program here: a BOTF packet leaves the paper's 33 clocks
after its command and has its status 46 clocks after it came (paper, section 4.2), a line a clock.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cocotb
from dimmnet_board.dram.ddr200 import CLOCK_NS
from dimmnet_board.host import pc2003 as pc
from dimmnet_board.host.dimm_bus import DATA, INPUTS, DimmBus, T
from dimmnet_board.host.figure5 import CASES, PGID, Node, figure5, payload_word
from dimmnet_board.host.layout import NAMES, privileged, register, slot, unpack
from dimmnet_board.host.pentium4 import Pentium4, pins
from slot_core import INPUTS as CORE_INPUTS
from slot_core import SlotCore
from stream import Bench

FIGURES = Path(__file__).resolve().parents[3] / "build" / "rtl" / "dimmnet-pc.json"
SEND_CLOCKS, RECEIVE_CLOCKS = 33, 46
# The Write Unit begins later: the paper's (b) is 60 ns above (a).
SODIMM_CLOCKS = 6
LIDS = (0x11, 0x22)


def test_pc(simulate: Callable[..., None]) -> None:
    simulate("dimmnet_ddr_host_pair")


class Board:
    """What a process sees of CoreLogic for BOTF, and a wire to the other board."""

    def __init__(self, core: SlotCore, bench: Bench):
        self.core, self.bench = core, bench
        self.peer = self
        self.coming: list[tuple[int, list[int]]] = []  # packets by the clock of their status
        self.sodimm: dict[int, int] = {}
        core.on_write, core.on_clock = self._write, self._clock

    def _write(self, address: int, data: int, be: int) -> None:
        if address == register("botf", 0) and be & 0xFF:
            assert be == 0xFF, "a command is one write of 8 bytes"
            command = unpack("botf", [data & (1 << 64) - 1])
            assert command["op"] == NAMES["op"]["botf"]
            packet = self.core.words(slot("write", 0, 8 * command["first"]), command["words"])
            header = unpack("packet", packet[:2])
            assert header["words"] == len(packet) - 2
            lid = self.core.words(privileged("lid"), 1)[0]
            identity = unpack("identity", self.core.words(privileged("process"), 1))
            assert (lid, identity["pgid"], identity["enabled"]) != (0, PGID, 0)
            peer = self.peer
            assert header["dst_lid"] == peer.core.words(privileged("lid"), 1)[0]
            clocks = SEND_CLOCKS + RECEIVE_CLOCKS + len(packet) - 4
            if header["memory"] == NAMES["memory"]["sodimm"]:
                clocks += SODIMM_CLOCKS
            peer.coming.append((self.bench.cycle + clocks, packet))

    def _clock(self) -> None:
        while self.coming and self.coming[0][0] <= self.bench.cycle:
            _, packet = self.coming.pop(0)
            header = unpack("packet", packet[:2])
            if header["memory"] == NAMES["memory"]["prefetch"]:
                self.core.set_words(slot("prefetch", 0, 8 * header["address"]), packet[2:])
            else:
                for place, word in enumerate(packet[2:], header["address"]):
                    self.sodimm[place] = word
            where = register("status_write", 0)
            self.core.set_words(where, [self.core.words(where, 1)[0] + header["status"]])


async def ready(dut: Any) -> tuple[list[Pentium4], list[Board]]:
    bench = Bench(dut)
    sides = [pins(dut, index) for index in (0, 1)]
    for side in sides:
        for name in INPUTS + DATA + CORE_INPUTS:
            getattr(side, name).value = int(name == "cs_n_i")
    cores = [SlotCore(side, dut.rst_ni, random.Random(index)) for index, side in enumerate(sides)]
    boards = [Board(core, bench) for core in cores]
    boards[0].peer, boards[1].peer = boards[1], boards[0]
    await bench.start()
    hosts = [Pentium4(DimmBus(side, bench)) for side in sides]
    for host in hosts:
        await host.start()
    return hosts, boards


@cocotb.test
async def stores_combine(dut: Any) -> None:
    """A full line is one burst, part of one as many writes as it has words."""
    (host, _), (board, _) = await ready(dut)
    data = list(range(100, 120))
    seen: list[int] = []
    board.core.on_write = lambda address, data, be: seen.append(be)
    await host.store(slot("llcm", 0, 64), data)
    await host.fence()
    await host.bus.bench.cycles(60)
    assert host.transactions == {"full": 2, "partial": 4, "read": 0}
    assert seen == [0xFFFF] * 8 + [0xFF, 0xFF00] * 2
    assert board.core.words(slot("llcm", 0, 64), 20) == data
    # What is stored twice before it leaves is written once.
    await host.store(slot("llcm", 0, 24), [1])
    await host.store(slot("llcm", 0, 24), [2])
    await host.fence()
    assert host.transactions["partial"] == 5
    assert await host.load_uncached(slot("llcm", 0, 24)) == 2


@cocotb.test
async def buffers_run_out(dut: Any) -> None:
    """The oldest buffer leaves when one more is wanted than there are."""
    (host, _), (board, _) = await ready(dut)
    for line in range(pc.WC_BUFFERS + 1):
        await host.store(slot("llcm", 0, 64 * line), [line + 1])
    await host.bus.bench.cycles(60)
    assert [board.core.words(slot("llcm", 0, 64 * line), 1)[0] for line in range(3)] == [1, 0, 0]
    await host.fence()
    await host.bus.bench.cycles(60)
    words = [board.core.words(slot("llcm", 0, 64 * line), 1)[0] for line in range(7)]
    assert words == list(range(1, 8))


@cocotb.test
async def the_cache_keeps_a_line_until_it_is_flushed(dut: Any) -> None:
    (host, _), (board, _) = await ready(dut)
    where = slot("prefetch", 0, 0)
    board.core.set_words(where, list(range(1, 17)))
    assert await host.load(where + 16, 12) == list(range(3, 15))
    assert host.transactions["read"] == 2
    board.core.set_words(where, list(range(21, 37)))
    start_ns = host.now_ns
    assert await host.load(where, 8) == list(range(1, 9))
    # From the cache, up to the end of a bus clock.
    assert host.now_ns - start_ns < 8 * pc.HIT_NS + CLOCK_NS
    await host.clflush(where, 8)
    assert await host.load(where, 16) == list(range(21, 29)) + list(range(9, 17))
    assert host.transactions["read"] == 3


@cocotb.test
async def a_load_takes_what_its_parts_take(dut: Any) -> None:
    """Of a register; the second time its row is open."""
    (host, _), _ = await ready(dut)
    took_ns = []
    for _ in range(2):
        await host.catch_up()
        start_ns = host.now_ns
        await host.load_uncached(register("status_write", 0))
        took_ns.append(host.now_ns - start_ns)
        await host.bus.bench.cycles(20)
    processor_ns = pc.MISS_NS + pc.FILL_NS
    bus_ns = pc.FSB_REQUEST_NS + 2 * pc.CHIPSET_NS + pc.FSB_LINE_NS
    burst_ns = (T["cl"] + 4) * CLOCK_NS
    dut._log.info("ns: %s", took_ns)
    # What is left is waiting for the edges of the bus clock: on the way there, and back.
    for one_ns, row_ns in zip(took_ns, (T["rcd"] * CLOCK_NS, 0), strict=True):
        assert 0 <= one_ns - processor_ns - bus_ns - burst_ns - row_ns < 3 * CLOCK_NS


@cocotb.test
async def the_papers_ping_pong(dut: Any) -> None:
    hosts, boards = await ready(dut)
    nodes = [Node(host, lid) for host, lid in zip(hosts, LIDS, strict=True)]
    for node in nodes:
        await node.enable()
    await hosts[0].bus.bench.cycles(100)
    sizes = [16, 48, 256, 496]
    rounds = 3
    results = await figure5(nodes[0], nodes[1], sizes, rounds)
    FIGURES.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    dut._log.info("ns: %s", results)
    board_ns = 10 * (SEND_CLOCKS + RECEIVE_CLOCKS)
    for size in sizes:
        a, b, c = (results[case][size] for case in CASES)
        assert board_ns < a < b < a + 200 and a < c
    # 16 bytes and their header are four partial writes, 48 bytes and theirs one full line.
    for case in CASES:
        assert results[case][48] < results[case][16] < results[case][256] < results[case][496]
    # The data of the last packet to SO-DIMM.
    last = [payload_word(496, rounds, "b", place) for place in range(62)]
    assert [boards[0].sodimm[place] for place in range(62)] == last
    packets = len(CASES) * len(sizes) * (rounds + 1)
    assert all(node.seen == packets for node in nodes)
