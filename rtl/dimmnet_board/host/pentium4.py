# SPDX-License-Identifier: Apache-2.0
"""A Pentium 4 and its chipset before one DIMM: stores that combine, fences, loads, CLFLUSH.

The processor does one thing after another. Stores go into write-combining buffers of a line; a full
one leaves as one transaction, one that a fence empties as one for each 8 bytes. Transactions go
over the front side bus to the chipset, which does them on the memory bus in their order. Writes are
posted. A load waits for its line; loads of one array ask for a few lines ahead.
"""

from typing import Any

import cocotb
from cocotb.triggers import Event
from dimmnet_board.dram.ddr200 import CLOCK_NS, COLUMNS
from dimmnet_board.host import pc2003 as pc
from dimmnet_board.host.dimm_bus import DimmBus

WORDS = pc.LINE_BYTES // 8  # of a line


class Read:
    """A line on its way."""

    def __init__(self, word: int):
        self.word, self.done = word, Event()
        self.line: list[int] = []
        self.at_ns = 0.0  # when the chipset had it


# When the memory bus sees it, its word, and the words to write with their byte enables.
Transaction = tuple[float, int, Read | list[tuple[int, int]]]


class Pentium4:
    def __init__(self, bus: DimmBus):
        assert bus.burst_words == WORDS
        self.bus = bus
        self.now_ns = 0.0  # the processor's time; never behind what it waited for
        self.bus_free_ns = 0.0  # the front side bus, for requests and data written
        self.lines_free_ns = 0.0  # and for lines read
        self.buffers: dict[int, dict[int, int]] = {}  # by line, in the order they were opened
        self.cache: dict[int, list[int]] = {}
        self.waiting: list[Transaction] = []  # for the chipset
        self.transactions = {"full": 0, "partial": 0, "read": 0}

    async def start(self) -> None:
        """Sets up the DIMM; from now on the chipset runs."""
        await self.bus.set_up()
        self.now_ns = self._clock_ns()
        cocotb.start_soon(self._chipset())

    def _clock_ns(self) -> float:
        return self.bus.bench.cycle * CLOCK_NS

    def spend(self, time_ns: float) -> None:
        self.now_ns = max(self.now_ns, self._clock_ns()) + time_ns

    async def catch_up(self) -> None:
        """Until the simulation is where the processor is."""
        while self._clock_ns() < self.now_ns:
            await self.bus.bench.cycles(1)
        self.now_ns = max(self.now_ns, self._clock_ns())

    # --- the chipset ------------------------------------------------------------------------------

    async def _chipset(self) -> None:
        while True:
            # A burst is on the bus before the next one begins: reads wait in `read`, writes here.
            if not self.waiting or self.waiting[0][0] > self._clock_ns():
                await self.bus.tick()
                continue
            _, word, what = self.waiting[0]
            if isinstance(what, Read):
                words = await self.bus.read(word)
                order = self.bus.order(word % COLUMNS)
                what.line = [words[order.index(column)] for column in sorted(order)]
                what.at_ns = self._clock_ns()
                what.done.set()
            else:
                await self.bus.write(word, what)
            self.waiting.pop(0)

    def _transfer(self, data_ns: float) -> float:
        """A transaction on the front side bus; when the memory bus sees it."""
        idle = self.now_ns >= self.bus_free_ns
        start = max(self.now_ns, self.bus_free_ns)
        request = pc.FSB_REQUEST_NS if idle else pc.FSB_NEXT_NS
        end = start + request + data_ns
        self.bus_free_ns = end
        return end + pc.CHIPSET_NS

    async def _evict(self, line: int) -> None:
        buffer = self.buffers.pop(line)
        if len(buffer) == WORDS:
            bursts = [[(buffer[place], 0xFF) for place in range(WORDS)]]
            kind, data_ns = "full", pc.FSB_LINE_NS
        else:
            bursts = [
                [(buffer.get(place, 0), 0xFF * (place == one)) for place in range(WORDS)]
                for one in sorted(buffer)
            ]
            kind, data_ns = "partial", pc.FSB_PARTIAL_NS
        for burst in bursts:
            while len(self.waiting) >= pc.CHIPSET_WRITES:
                await self.bus.bench.cycles(1)
                self.now_ns = max(self.now_ns, self._clock_ns())
            self.transactions[kind] += 1
            self.waiting.append((self._transfer(data_ns), line * WORDS, burst))

    def _ask(self, word: int) -> Read:
        read = Read(word)
        # A read has no data on its way there.
        self.waiting.append((self._transfer(0.0), word, read))
        self.transactions["read"] += 1
        return read

    async def _take(self, read: Read) -> list[int]:
        """The line's words, when it has come over chipset and front side bus."""
        await read.done.wait()
        self.now_ns = max(self.now_ns, read.at_ns + pc.CHIPSET_NS, self.lines_free_ns)
        self.now_ns += pc.FSB_LINE_NS
        self.lines_free_ns = self.now_ns
        self.spend(pc.FILL_NS)
        await self.catch_up()
        return read.line

    # --- what a program does ----------------------------------------------------------------------

    async def store(self, address: int, words: list[int]) -> None:
        """Into write-combining memory, 8 bytes at a time."""
        for place, value in enumerate(words, address // 8):
            self.spend(pc.STORE_NS)
            line, offset = divmod(place, WORDS)
            if line not in self.buffers and len(self.buffers) == pc.WC_BUFFERS:
                await self._evict(next(iter(self.buffers)))
            self.buffers.setdefault(line, {})[offset] = value
            if len(self.buffers[line]) == WORDS:
                await self._evict(line)
        await self.catch_up()

    async def fence(self) -> None:
        """SFENCE: until all that was stored has left the processor."""
        for line in list(self.buffers):
            await self._evict(line)
        self.now_ns = max(self.now_ns, self.bus_free_ns) + pc.FENCE_NS
        await self.catch_up()

    async def load_uncached(self, address: int) -> int:
        """8 bytes of write-combining memory: never cached. The chipset reads a line for them."""
        word = address // 8
        assert word // WORDS not in self.buffers, "a program would fence first"
        self.spend(pc.MISS_NS)
        return (await self._take(self._ask(word)))[word % WORDS]

    async def load(self, address: int, count: int) -> list[int]:
        """Words of write-back memory, a line at a time."""
        first, last = address // 8, address // 8 + count - 1
        lines = range(first // WORDS, last // WORDS + 1)
        missing = [line for line in lines if line not in self.cache]
        if missing:
            self.spend(pc.MISS_NS)
        coming: dict[int, Read] = {}
        words = []
        for word in range(first, last + 1):
            line = word // WORDS
            while missing and len(coming) < pc.LOADS:
                ahead = missing.pop(0)
                coming[ahead] = self._ask(max(first, ahead * WORDS))
            if line in coming:
                self.cache[line] = await self._take(coming[line])
                del coming[line]
            self.spend(pc.HIT_NS)
            words.append(self.cache[line][word % WORDS])
        await self.catch_up()
        return words

    async def clflush(self, address: int, count: int) -> None:
        """The lines of so many words: the next load reads them from memory."""
        for line in range(address // 8 // WORDS, (address // 8 + count - 1) // WORDS + 1):
            self.spend(pc.CLFLUSH_NS)
            self.cache.pop(line, None)
        await self.catch_up()


def pins(dut: Any, index: int) -> Any:
    """One DIMM's pins, of a top whose ports are arrays over its DIMMs."""

    class Pins:
        clk_i = dut.clk_i

        def __getattr__(self, name: str) -> Any:
            return getattr(dut, name)[index]

    return Pins()
