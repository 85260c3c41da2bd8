# SPDX-License-Identifier: Apache-2.0
"""CoreLogic as its host port shows it: a memory that takes every read at once."""

import random
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly

INPUTS = ["write_ready_i", "read_ready_i", "response_valid_i", "response_data_i"]


class SlotCore:
    """Answers reads two clocks later; takes writes unless it is away, for `away` clocks at most."""

    def __init__(self, dut: Any, rst_ni: Any, rng: random.Random, away: int = 0):
        self.dut, self.rst_ni, self.rng, self.away = dut, rst_ni, rng, away
        self.memory: dict[int, int] = {}  # by byte address of a line of 128 bits
        self.reads = self.writes = 0
        self.on_write: Callable[[int, int, int], None] = lambda address, data, be: None
        self.on_clock: Callable[[], None] = lambda: None
        cocotb.start_soon(self._run())

    def words(self, address: int, count: int) -> list[int]:
        return [
            self.memory.get(at & ~15, 0) >> 8 * (at & 8) & (1 << 64) - 1
            for at in range(address, address + 8 * count, 8)
        ]

    def set_words(self, address: int, words: list[int]) -> None:
        for at, word in enumerate(words):
            byte = address + 8 * at
            shift = 8 * (byte & 8)
            old = self.memory.get(byte & ~15, 0)
            self.memory[byte & ~15] = old & ~((1 << 64) - 1 << shift) | word << shift

    def _write(self, address: int, data: int, be: int) -> None:
        self.writes += 1
        bits = sum(0xFF << 8 * byte for byte in range(16) if be >> byte & 1)
        self.memory[address] = self.memory.get(address, 0) & ~bits | data & bits
        self.on_write(address, data, be)

    async def _run(self) -> None:
        dut, away = self.dut, 0
        pipe: list[int | None] = [None, None]
        while True:
            # Away for at most so many clocks, then there for as many.
            away = away - 1 if away > -self.away else self.rng.randint(0, self.away)
            dut.write_ready_i.value = int(away <= 0)
            dut.read_ready_i.value = 1
            answer = pipe.pop(0)
            dut.response_valid_i.value = int(answer is not None)
            dut.response_data_i.value = self.rng.getrandbits(128) if answer is None else answer
            self.on_clock()
            await ReadOnly()
            asked = None
            if int(self.rst_ni.value):
                if int(dut.read_valid_o.value):
                    self.reads += 1
                    asked = self.memory.get(int(dut.read_address_o.value), 0)
                if int(dut.write_valid_o.value) and away <= 0:
                    address = int(dut.write_address_o.value)
                    self._write(address, int(dut.write_data_o.value), int(dut.write_be_o.value))
            pipe.append(asked)
            await FallingEdge(dut.clk_i)
