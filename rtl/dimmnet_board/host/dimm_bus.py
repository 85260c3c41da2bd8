# SPDX-License-Identifier: Apache-2.0
"""The memory bus of a PC as a DIMM sees it: a chipset's commands, PC-1600, in JEDEC's times.

One command at a time, each as early as the rules for its bank and the bus allow: no more than a
chipset of 2002 did for one processor. Rows stay open. Data is that of the pads' registers, as
dimmnet_ddr_host wants it.
"""

from typing import Any

from cocotb.triggers import FallingEdge, ReadOnly
from dimmnet_board.dram import ddr200

T = ddr200.cycles()
MODE, REFRESH, PRECHARGE, ACTIVATE, WRITE, READ, TERMINATE, NOP = range(8)
INPUTS = ["cs_n_i", "command_i", "bank_i", "address_i"]
DATA = ["dq_rise_i", "dq_fall_i", "dm_rise_i", "dm_fall_i"]
A10 = 1 << 10
ALL_BYTES = 0xFF


class DimmBus:
    """`dut` has the pins of dimmnet_ddr_host; `bench.cycle` counts the clocks."""

    def __init__(self, dut: Any, bench: Any, burst_words: int = 8):
        self.dut, self.bench, self.burst_words = dut, bench, burst_words
        self.sequential = False
        self.rows: dict[int, int] = {}
        # Earliest clocks for the next activate and precharge of a bank, read and write of all.
        self.next_activate = dict.fromkeys(range(ddr200.BANKS), 0)
        self.next_precharge = dict.fromkeys(range(ddr200.BANKS), 0)
        self.next_read = self.next_write = self.next_any_activate = 0
        self.refresh_due = int(ddr200.REFRESH_NS / ddr200.CLOCK_NS)
        self.refreshes = 0
        # What is on the bus, by clock: two words and their masks.
        self.sending: dict[int, tuple[int, int, int, int]] = {}

    async def tick(self) -> None:
        """To the next clock; what the pads' registers hold in it is set."""
        await FallingEdge(self.dut.clk_i)
        beat = self.sending.pop(self.bench.cycle, (0, 0, ALL_BYTES, ALL_BYTES))
        for name, value in zip(DATA, beat, strict=True):
            getattr(self.dut, name).value = value
        self.dut.cs_n_i.value = 1

    async def wait_until(self, clock: int) -> None:
        while self.bench.cycle < clock:
            await self.tick()

    def _command(self, command: int, bank: int = 0, address: int = 0) -> None:
        self.dut.cs_n_i.value, self.dut.command_i.value = 0, command
        self.dut.bank_i.value, self.dut.address_i.value = bank, address

    async def set_up(self) -> None:
        """The mode register: CAS latency, burst length, burst type."""
        mode = T["cl"] << 4 | int(not self.sequential) << 3 | self.burst_words.bit_length() - 1
        self._command(MODE, 0, mode)
        await self.tick()
        await self.wait_until(self.bench.cycle + T["mrd"])

    @staticmethod
    def place(word: int) -> tuple[int, int, int]:
        """Bank, row and column of a word of the DIMM."""
        column, rest = word % ddr200.COLUMNS, word // ddr200.COLUMNS
        return rest % ddr200.BANKS, rest // ddr200.BANKS, column

    async def _refresh(self) -> None:
        for bank in list(self.rows):
            await self.wait_until(self.next_precharge[bank])
        self._command(PRECHARGE, 0, A10)
        self.rows.clear()
        await self.tick()
        await self.wait_until(max(self.bench.cycle + T["rp"] - 1, *self.next_activate.values()))
        self._command(REFRESH)
        free = self.bench.cycle + T["rfc"]
        self.next_activate = dict.fromkeys(self.next_activate, free)
        self.refreshes += 1
        self.refresh_due += int(ddr200.REFRESH_NS / ddr200.CLOCK_NS)
        await self.tick()

    async def _open(self, bank: int, row: int) -> None:
        if self.bench.cycle >= self.refresh_due:
            await self._refresh()
        if self.rows.get(bank) == row:
            return
        if bank in self.rows:
            await self.wait_until(self.next_precharge[bank])
            self._command(PRECHARGE, bank)
            clock = self.bench.cycle
            self.next_activate[bank] = max(self.next_activate[bank], clock + T["rp"])
            await self.tick()
        await self.wait_until(max(self.next_activate[bank], self.next_any_activate))
        self._command(ACTIVATE, bank, row)
        self.rows[bank] = row
        clock = self.bench.cycle
        self.next_activate[bank] = clock + T["rc"]
        self.next_any_activate = clock + T["rrd"]
        self.next_precharge[bank] = clock + T["ras"]
        column = clock + T["rcd"]
        self.next_read, self.next_write = max(self.next_read, column), max(self.next_write, column)
        await self.tick()

    def order(self, column: int) -> list[int]:
        """The columns of a burst, in the order in which they are on the bus."""
        base, start = column & -self.burst_words, column % self.burst_words
        count = range(self.burst_words)
        if self.sequential:
            return [base + (start + place) % self.burst_words for place in count]
        return [base + (start ^ place) for place in count]

    async def read(self, word: int) -> list[int]:
        """A burst, in the order of the bus; returns in the clock after the last one."""
        bank, row, column = self.place(word)
        await self._open(bank, row)
        await self.wait_until(self.next_read)
        self._command(READ, bank, column)
        clock, beats = self.bench.cycle, self.burst_words // 2
        self.next_read = clock + beats
        self.next_write = max(self.next_write, clock + T["cl"] + beats)
        self.next_precharge[bank] = max(self.next_precharge[bank], clock + beats)
        await self.tick()
        words: list[int] = []
        await self.wait_until(clock + T["cl"])
        for _ in range(beats):
            await ReadOnly()
            assert int(self.dut.dq_oe_o.value), "nobody drives the bus"
            words += [int(self.dut.dq_rise_o.value), int(self.dut.dq_fall_o.value)]
            await self.tick()
        return words

    async def write(self, word: int, data: list[tuple[int, int]]) -> int:
        """A burst of words, each with its byte enables, in the order of the bus; returns behind the
        command, with the clock in which the last of it is on the bus."""
        bank, row, column = self.place(word)
        await self._open(bank, row)
        await self.wait_until(self.next_write)
        self._command(WRITE, bank, column)
        clock, beats = self.bench.cycle, self.burst_words // 2
        # Of a clock's data, the pads' registers have both halves a clock later.
        for beat in range(beats):
            (rise, rise_be), (fall, fall_be) = data[2 * beat], data[2 * beat + 1]
            seen = clock + T["wl"] + 1 + beat
            self.sending[seen] = (rise, fall, ALL_BYTES & ~rise_be, ALL_BYTES & ~fall_be)
        end = clock + T["wl"] + beats
        self.next_write = clock + beats
        self.next_read = max(self.next_read, end + T["wtr"])
        self.next_precharge[bank] = max(self.next_precharge[bank], end + T["wr"])
        await self.tick()
        return end - 1
