# SPDX-License-Identifier: Apache-2.0
"""Drivers for valid/ready streams: one that sends beats, one that takes them in and checks rules.

Both act between clock edges: inputs are set after the falling edge and outputs looked at then, so
nothing depends on the order of events in the simulator.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

PERIOD_NS = 10


@dataclass
class Beat:
    """One beat as it was taken, with the cycle in which that was."""

    data: int
    sop: bool
    eop: bool
    cycle: int
    side: dict[str, int] = field(default_factory=dict)


class Bench:
    """Clock, reset and the cycle count."""

    def __init__(self, dut: Any, inputs_zero: Sequence[str] = ()):
        self.dut, self.cycle = dut, 0
        for name in inputs_zero:
            getattr(dut, name).value = 0

    async def start(self) -> None:
        self.dut.rst_ni.value = 0
        cocotb.start_soon(Clock(self.dut.clk_i, PERIOD_NS, unit="ns").start())
        for _ in range(3):
            await FallingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1
        cocotb.start_soon(self._count())

    async def _count(self) -> None:
        while True:
            await RisingEdge(self.dut.clk_i)
            self.cycle += 1

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            await FallingEdge(self.dut.clk_i)

    async def until(self, condition: Callable[[], bool], limit: int = 2000) -> None:
        for _ in range(limit):
            if condition():
                return
            await FallingEdge(self.dut.clk_i)
        raise AssertionError("timed out")


class Source:
    """Sends packets of beats; `side` are signals that hold for a whole packet."""

    def __init__(self, bench: Bench, prefix: str, idle: float = 0.0, rng: Any = random):
        self.bench, self.prefix, self.idle, self.rng = bench, prefix, idle, rng
        self.first_cycles: list[int] = []
        self._set("valid", 0)

    def _signal(self, name: str, direction: str = "i") -> Any:
        return getattr(self.bench.dut, f"{self.prefix}_{name}_{direction}")

    def _set(self, name: str, value: int) -> None:
        self._signal(name).value = value

    async def send(self, words: Sequence[int], side: dict[str, int] | None = None) -> None:
        """Call right after a falling edge; returns right after the last beat's."""
        for name, value in (side or {}).items():
            self._set(name, value)
        for index, word in enumerate(words):
            while self.rng.random() < self.idle:
                self._set("valid", 0)
                await FallingEdge(self.bench.dut.clk_i)
            self._set("valid", 1)
            self._set("sop", index == 0)
            self._set("eop", index == len(words) - 1)
            self._set("data", word)
            if index == 0:
                self.first_cycles.append(self.bench.cycle)
            while True:
                await ReadOnly()
                taken = int(self._signal("ready", "o").value)
                await FallingEdge(self.bench.dut.clk_i)
                if taken:
                    break
        self._set("valid", 0)


class Sink:
    """Takes beats in, if ready; fails if an offered beat is withdrawn or changed."""

    def __init__(
        self,
        bench: Bench,
        prefix: str,
        side: Sequence[str] = (),
        stall: float = 0.0,
        rng: Any = random,
    ):
        self.bench, self.prefix, self.side = bench, prefix, tuple(side)
        self.stall, self.rng = stall, rng
        self.beats: list[Beat] = []
        self.packets: list[list[Beat]] = []
        self.open: list[Beat] = []
        cocotb.start_soon(self._run())

    def _value(self, name: str) -> int:
        return int(getattr(self.bench.dut, f"{self.prefix}_{name}_o").value)

    async def _run(self) -> None:
        ready = getattr(self.bench.dut, f"{self.prefix}_ready_i")
        offered: Beat | None = None
        while True:
            ready.value = int(self.rng.random() >= self.stall)
            await ReadOnly()
            beat = None
            if int(self.bench.dut.rst_ni.value) and self._value("valid"):
                side = {name: self._value(name) for name in self.side}
                flags = bool(self._value("sop")), bool(self._value("eop"))
                beat = Beat(self._value("data"), *flags, self.bench.cycle, side)
            if offered is not None:
                assert beat is not None, f"{self.prefix}: valid was dropped"
                shown = (beat.data, beat.sop, beat.eop, beat.side)
                assert shown == (offered.data, offered.sop, offered.eop, offered.side)
            offered = beat if beat is not None and not int(ready.value) else None
            if beat is not None and int(ready.value):
                self._take(beat)
            await FallingEdge(self.bench.dut.clk_i)

    def _take(self, beat: Beat) -> None:
        assert beat.sop == (not self.open), f"{self.prefix}: sop out of place"
        assert not self.open or beat.side == self.open[0].side
        self.beats.append(beat)
        self.open.append(beat)
        if beat.eop:
            self.packets.append(self.open)
            self.open = []


def split(value: int, bits_total: int, width: int) -> list[int]:
    """A number as beats, the lowest first; a narrower number than a beat gets one of its own."""
    beats = max(1, -(-bits_total // width))
    return [(value >> (index * width)) & ((1 << width) - 1) for index in range(beats)]


def words_to_beats(words: Sequence[int], width: int) -> list[int]:
    """64-bit words as beats."""
    total = sum(word << (64 * index) for index, word in enumerate(words))
    return split(total, 64 * len(words), width) if words else []


def packet_to_beats(words: Sequence[int], width: int) -> list[int]:
    """A packet's header and payload as beats; on a wide path the header has one of its own."""
    return words_to_beats(words[:1], width) + words_to_beats(words[1:], width)


def join(beats: Sequence[Beat], width: int) -> int:
    return sum(beat.data << (index * width) for index, beat in enumerate(beats))


def join_packet(beats: Sequence[Beat], width: int) -> int:
    """A packet as a number, the header in its lowest 64 bits."""
    head = max(1, 64 // width)
    return join(beats[:head], width) | join(beats[head:], width) << 64
