# SPDX-License-Identifier: Apache-2.0
"""A board around CoreLogic: its host, its SO-DIMMs with a latency of their own, its network.

The network brings each packet for the board's own LID back to it; all others are kept in `sent`.
The test's own packets go between them, never into one.
"""

import random
from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from layout import ENUMS, WORD, pack, unpack
from stream import Bench

INPUTS = ("write_valid_i", "read_valid_i", "tx_ready_i", "rx_valid_i", "sodimm_ready_i")
MORE = ("sodimm_response_valid_i", "write_be_i", "rx_ident_i")
FIRST, MIDDLE, LAST = 1, 2, 3
LID = 0x1234
REGISTER = ENUMS["register"]
PRIVILEGED = ENUMS["privileged"]


class Board:
    def __init__(self, dut: Any, rng: random.Random, stall: float = 0.0):
        self.dut, self.rng, self.stall = dut, rng, stall
        self.bench = Bench(dut, INPUTS + MORE)
        self.memory: dict[int, int] = {}
        self.touched: set[int] = set()
        self.sent: list[list[int]] = []
        self.sent_cycle: list[int] = []
        self.lines: deque[tuple[int, int]] = deque()
        self.rx_cycle: list[int] = []
        self.network_open = True
        self.latency = (3, 3)
        self.requests: list[tuple[int, int]] = []
        self.loop = True

    async def start(self) -> None:
        await self.bench.start()
        cocotb.start_soon(self._sodimm())
        cocotb.start_soon(self._tx())
        cocotb.start_soon(self._rx())

    def _chance(self) -> int:
        return int(self.rng.random() >= self.stall)

    # ----- host -----------------------------------------------------------------------------------

    async def write_row(self, address: int, data: int, enables: int = 0xFFFF) -> int:
        """Returns the cycle in which the write was taken."""
        dut = self.dut
        dut.write_valid_i.value = 1
        dut.write_address_i.value = address
        dut.write_data_i.value = data
        dut.write_be_i.value = enables
        for _ in range(64):
            await ReadOnly()
            taken, cycle = int(dut.write_ready_o.value), self.bench.cycle
            await FallingEdge(dut.clk_i)
            if taken:
                dut.write_valid_i.value = 0
                return cycle
        raise AssertionError("the host's write waits for ever")

    async def write(self, address: int, word: int) -> int:
        """One word of 64 bits."""
        shift = address & 8
        return await self.write_row(address & ~15, word << 8 * shift, 0xFF << shift)

    async def read_row(self, address: int) -> int:
        dut = self.dut
        dut.read_valid_i.value = 1
        dut.read_address_i.value = address
        for _ in range(64):
            await ReadOnly()
            taken = int(dut.read_ready_o.value)
            await FallingEdge(dut.clk_i)
            if taken:
                break
        else:
            raise AssertionError("the host's read waits for ever")
        dut.read_valid_i.value = 0
        await FallingEdge(dut.clk_i)
        assert int(dut.response_valid_o.value), "no data two cycles later"
        return int(dut.response_data_o.value)

    async def read(self, address: int) -> int:
        return await self.read_row(address & ~15) >> 8 * (address & 8) & WORD

    @staticmethod
    def slot(wid: int, page: str, word: int) -> int:
        offset = word * 8
        return pack(
            "slot", wid=wid, page=ENUMS["page"][page] + (offset >> 12), offset=offset & 4095
        )

    async def register(self, wid: int, name: str) -> int:
        return await self.read(self.slot(wid, "register", REGISTER[name]))

    async def set_register(self, wid: int, name: str, value: int, index: int = 0) -> int:
        return await self.write(self.slot(wid, "register", REGISTER[name] + index), value)

    @staticmethod
    def privileged(word: int) -> int:
        return pack("slot", privileged=1, offset=word * 8)

    async def count(self, name: str) -> int:
        return await self.read(self.privileged(PRIVILEGED[name]))

    async def counts(self) -> dict[str, int]:
        names = [name for name in PRIVILEGED if name not in ("lid", "patience", "process")]
        return {name: await self.count(name) for name in names}

    async def set_process(
        self, wid: int, pgid: int, first: int, words: int, enabled: int = 1
    ) -> None:
        base = PRIVILEGED["process"] + 8 * wid
        await self.write(self.privileged(base + 1), first)
        await self.write(self.privileged(base + 2), words)
        identity = pack("identity", pgid=pgid, enabled=enabled)
        await self.write(self.privileged(base), identity)

    async def set_board(self, patience: int = 50, lid: int = LID) -> None:
        await self.write(self.privileged(PRIVILEGED["lid"]), lid)
        await self.write(self.privileged(PRIVILEGED["patience"]), patience)

    async def put_window(self, wid: int, word: int, words: list[int]) -> None:
        for index, one in enumerate(words):
            await self.write(self.slot(wid, "write", word + index), one)

    async def prefetch(self, wid: int, word: int, count: int) -> list[int]:
        return [await self.read(self.slot(wid, "prefetch", word + i)) for i in range(count)]

    async def llcm(self, wid: int, word: int, count: int) -> list[int]:
        return [await self.read(self.slot(wid, "llcm", word + i)) for i in range(count)]

    async def command(self, own: int, **fields: int) -> None:
        number = pack("command", **fields)
        address = self.slot(own, "register", REGISTER["command_0"])
        if self.rng.random() < 0.5:
            await self.write_row(address, number)
        else:
            await self.write(address, number & WORD)
            await self.write(address + 8, number >> 64)

    async def botf(self, wid: int, window: int, first: int, words: int) -> int:
        return await self.set_register(
            wid, "botf", pack("botf", window=window, first=first, words=words)
        )

    async def finished(self, wid: int, done: int, limit: int = 4000) -> None:
        """Until the process's `done` is so many."""
        for _ in range(limit):
            if await self.register(wid, "done") == done & 0xFFFFFFFF:
                return
        raise AssertionError("timed out")

    async def quiet(self, cycles: int = 150) -> None:
        """Until nothing has moved for a while, however slow the memory is."""
        still, began = 0, self.bench.cycle
        while still < cycles:
            assert self.bench.cycle < began + 100_000, "it never ends"
            dut = self.dut
            moves = self.lines or int(dut.rx_valid_i.value)
            moves = moves or (int(dut.tx_valid_o.value) and self.network_open)
            still = 0 if moves or int(dut.sodimm_valid_o.value) or self.pending else still + 1
            await FallingEdge(dut.clk_i)

    # ----- SO-DIMM --------------------------------------------------------------------------------

    pending: deque[tuple[int, int]]

    async def _sodimm(self) -> None:
        dut = self.dut
        self.pending = deque()
        while True:
            dut.sodimm_ready_i.value = self._chance()
            ready = self.pending and self.pending[0][0] <= self.bench.cycle
            dut.sodimm_response_valid_i.value = int(bool(ready))
            if ready:
                dut.sodimm_response_i.value = self.pending.popleft()[1]
            await ReadOnly()
            if int(dut.sodimm_valid_o.value) and int(dut.sodimm_ready_i.value):
                self._request()
            await FallingEdge(dut.clk_i)

    def _request(self) -> None:
        dut = self.dut
        address = int(dut.sodimm_address_o.value)
        assert address % 2 == 0
        self.requests.append((self.bench.cycle, address))
        self.touched |= {address, address + 1}
        if int(dut.sodimm_write_o.value):
            data, mask = int(dut.sodimm_data_o.value), int(dut.sodimm_mask_o.value)
            assert mask
            for half in range(2):
                if mask >> half & 1:
                    self.memory[address + half] = data >> 64 * half & WORD
        else:
            row = self.memory.get(address, 0) | self.memory.get(address + 1, 0) << 64
            due = self.bench.cycle + self.rng.randint(*self.latency)
            self.pending.append((due, row))

    # ----- network --------------------------------------------------------------------------------

    async def _tx(self) -> None:
        """Takes packets in; fails if a line changes, or identifiers are in disorder."""
        dut, packet, offered = self.dut, [], None
        while True:
            dut.tx_ready_i.value = self._chance() if self.network_open else 0
            await ReadOnly()
            line = None
            if int(dut.tx_valid_o.value):
                line = int(dut.tx_ident_o.value), int(dut.tx_line_o.value)
            else:
                assert int(dut.tx_ident_o.value) == 0
            assert offered is None or line == offered, "a line changed before it was taken"
            offered = None
            if line and int(dut.tx_ready_i.value):
                ident, word = line
                assert (ident == FIRST) == (not packet), "identifiers in disorder"
                packet.append(word)
                if ident == LAST:
                    self.sent_cycle.append(self.bench.cycle)
                    self._route(packet)
                    packet = []
            elif line:
                offered = line
            await FallingEdge(dut.clk_i)

    def _route(self, packet: list[int]) -> None:
        self.dut._log.debug("sent " + " ".join(f"{word:016x}" for word in packet))
        header = unpack("packet", packet[0] | packet[1] << 64)
        assert header["words"] == len(packet) - 2, "a wrong length leaves"
        assert header["src_lid"] == LID
        if header["dst_lid"] == LID and self.loop:
            self.deliver(packet)
        else:
            self.sent.append(packet)

    def deliver(self, packet: list[int], idents: list[int] | None = None) -> None:
        """Bring a packet; with other identifiers, if named."""
        right = [FIRST, *[MIDDLE] * (len(packet) - 2), LAST]
        self.lines.extend(zip(idents or right, packet, strict=True))

    async def _rx(self) -> None:
        dut = self.dut
        while True:
            offer = self.lines and self._chance()
            dut.rx_valid_i.value = int(bool(offer))
            if offer:
                dut.rx_ident_i.value, dut.rx_line_i.value = self.lines[0]
            while offer:
                await ReadOnly()
                taken = int(dut.rx_ready_o.value)
                if taken:
                    self.rx_cycle.append(self.bench.cycle)
                    self.lines.popleft()
                    break
                await FallingEdge(dut.clk_i)
            await FallingEdge(dut.clk_i)
