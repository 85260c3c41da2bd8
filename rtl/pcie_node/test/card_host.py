# SPDX-License-Identifier: Apache-2.0
"""A host with a node as its card: what its driver and a process do, by loads and stores."""

import random
from typing import Any

from pcie.test.hard_block import HardBlock
from stream import Bench
from structs import Struct

CTX, OTHER = 1, 2  # contexts: that of messages and descriptors; that of remote memory
VELO, RMA = 0, 1
SETUP, LINKS, PAGES = 0x08, 0x80, 0x88
SENT, RECEIVED, UNDELIVERED, RMA_ERRORS, LINK_STATUS = 0x40, 0x50, 0x78, 0xC8, 0x100
RMA_REQUESTER_ERROR, ACCESS_WATCHDOG, ANSWER_WATCHDOG = 0xE8, 0x198, 0x1F8
RINGS, READ_POINTERS, ROUTES = 0x8000000, 0x8100000, 0x8200000
QUEUES, QUEUE_READ_POINTERS = 0x8300000, 0x8400000
SETTING, STORES, DROPPED, WATCH, SHARES = 0x1008, 0x1010, 0x1018, 0x1800, 0x2000
LINES = 16
PUT, GET, REQUESTER = 1, 2, 1
# In a host's memory. Remote memory: pages that do not lie behind each other.
RING, QUEUE, TABLE, FRAMES, SIZE = 0x0, 0x4000, 0x5000, 0x8000, 1 << 16
SLOTS_LOG2, ENTRIES_LOG2 = 6, 3
SETTING_T = Struct("pcie_pkg", "pcie_setting_t")
SHARE_T = Struct("pcie_pkg", "pcie_share_t")
STORES_T = Struct("pcie_pkg", "pcie_stores_t")
WATCH_T = Struct("pcie_pkg", "pcie_watch_t")
PAGE_T = Struct("velo_pkg", "registered_page_t")


class Side:
    """A card's ports by their names in velo_pcie_node; `prefix`: what is before them here."""

    def __init__(self, dut: Any, prefix: str = "", clock: str = "clk_i"):
        self._dut, self._prefix, self._clock = dut, prefix, clock

    def __getattr__(self, name: str) -> Any:
        if name == "clk_i":
            return getattr(self._dut, self._clock)
        return getattr(self._dut, name if name == "rst_ni" else self._prefix + name)


class Face:
    """The bench as a hard block wants it."""

    def __init__(self, bench: Bench, side: Side):
        self._bench, self.dut = bench, side

    @property
    def cycle(self) -> int:
        return self._bench.cycle


class Host:
    """A host with its card: what a driver and a process with context CTX do."""

    def __init__(self, bench: Bench, block: HardBlock, node: int, base: int):
        self.bench, self.node, self.base, self.block = bench, node, base, block
        self.block.mixed = True
        self.rng = random.Random(node)
        self.memory = self.block.memory(base, SIZE)
        self.peer: Host = self
        self.head = self.notes = 0  # slots and entries that were looked at
        self.sent = self.taken = 0
        self.interrupts: list[int] = []  # by each, the messages that were in the ring by then
        self.got: list[tuple[int, list[int]]] = []  # tag and payload of messages

    async def find(self) -> None:
        root = self.block.root
        await root.enumerate()
        self.device = root.find_device(self.block.function.pcie_id)
        await self.device.enable_device()
        await self.device.set_master()
        await self.device.alloc_irq_vectors(8, 8)
        self.bars = [self.device.bar_addr[bar] for bar in range(6)]

        async def interrupt() -> None:
            self.interrupts.append(self.there())

        self.device.msi_vectors[0].cb.append(interrupt)

    async def set(self, offset: int, value: int, bar: int = 0) -> None:
        await self.block.root.mem_write_qword(self.bars[bar] + offset, value)

    async def get(self, offset: int, bar: int = 0) -> int:
        return await self.block.root.mem_read_qword(self.bars[bar] + offset)

    async def configure(self, slots_log2: int = SLOTS_LOG2) -> None:
        """All that a driver sets after a reset. CTX has all lines for stores."""
        self.slots = 1 << slots_log2
        self.head = self.notes = self.sent = self.taken = 0
        self.memory[0:FRAMES] = bytes(FRAMES)
        for page in range(4):
            entry = PAGE_T.pack(rights=7, ctx=OTHER, frame=(self.frame(page) + self.base) >> 12)
            if page % 2:
                entry = PAGE_T.pack(rights=7, ctx=CTX, frame=(self.frame(page) + self.base) >> 12)
            self.memory[TABLE + 8 * page : TABLE + 8 * page + 8] = entry.to_bytes(8, "little")
        vector = self.device.msi_vectors[0]
        await self.set(0, vector.addr, 4)
        await self.set(8, vector.data, 4)
        await self.set(SETTING, SETTING_T.pack(patience=2000, timeout=2000), 4)
        await self.set(SHARES + 8 * CTX, SHARE_T.pack(lines=LINES), 4)
        await self.set(WATCH, WATCH_T.pack(enable=1, base=(self.base + RING) >> 12), 4)
        await self.set(SETUP, self.node)
        await self.set(ROUTES + 8 * self.peer.node, 0)
        await self.set(ROUTES + 8 * self.node, 15)
        for context in (CTX, OTHER):
            await self.set(
                QUEUES + (context << 12),
                1 | self.base + QUEUE + 0x400 * context | ENTRIES_LOG2 << 48,
            )
        await self.set(RINGS + (CTX << 12), 1 | self.base + RING | slots_log2 << 48)
        await self.set(PAGES, self.base + TABLE | 1 << 8 | 2)
        await self.set(LINKS, 1)

    @staticmethod
    def frame(page: int) -> int:
        return FRAMES + 0x2000 * (page ^ 1)

    def place(self, address: int) -> int:
        """Where a byte of registered memory is."""
        return self.frame(address >> 12) + address % 4096

    def word(self, offset: int) -> int:
        return int.from_bytes(self.memory[offset : offset + 8], "little")

    def there(self) -> int:
        """The messages that have come, looked at or not."""
        count = self.head
        while count < self.head + self.slots:
            word = self.word(RING + 64 * (count % self.slots))
            if not (word & 1 and word >> 48 == count & 0xFFFF):
                break
            count += 1
        return count

    async def send(self, tag: int, payload: list[int]) -> None:
        """One message for the peer, with a credit in hand."""
        words = [1 | (tag & 255) << 8 | 8 * len(payload) << 16, *payload]
        place = self.peer.node << 20 | CTX << 12 | len(payload) << 6
        data = b"".join(word.to_bytes(8, "little") for word in words)
        self.sent += 1
        address = self.bars[2] + (VELO << 36 | CTX << 28 | place)
        await self.block.root.mem_write(address, data)

    async def look(self) -> None:
        """Take what is in the ring, and give its slots back."""
        looked, there = self.head, self.there()
        for count in range(looked, there):
            slot = RING + 64 * (count % self.slots)
            head = self.word(slot)
            assert head >> 32 & 0xFFFF == self.peer.node << 8 | CTX
            size = head >> 16 & 0xFFFF
            assert size % 8 == 0 and size <= 56
            words = [self.word(slot + 8 + i) for i in range(0, size, 8)]
            self.got.append((head >> 8 & 255, words))
        self.head = there
        if there != looked:
            await self.set(READ_POINTERS + (CTX << 12), there & 0xFFFF)

    async def credit(self) -> bool:
        """Whether there is a line free, by the counts, if it is not known."""
        if self.sent - self.taken >= LINES:
            counts = STORES_T.unpack_bits(await self.get(STORES, 4))
            self.taken = counts["taken"]
        return self.sent - self.taken < LINES

    async def command(self, op: int, ours: int, theirs: int, size: int, cookie: int) -> None:
        low = op | REQUESTER << 4 | self.peer.node << 8 | OTHER << 16 | cookie << 24 | size << 32
        data = b"".join(word.to_bytes(8, "little") for word in (low, ours, theirs))
        self.sent += 1
        await self.block.root.mem_write(self.bars[2] + (RMA << 36 | CTX << 28), data)

    async def notification(self) -> tuple[int, int]:
        """Cookie and error of the next one."""
        entry = QUEUE + 0x400 * CTX + 16 * (self.notes % (1 << ENTRIES_LOG2))
        await self.bench.until(lambda: bool(self.word(entry) & 1), 3000)
        note = self.word(entry)
        self.memory[entry : entry + 16] = bytes(16)
        self.notes += 1
        await self.set(QUEUE_READ_POINTERS + (CTX << 12), self.notes)
        return note >> 55 & 255, note >> 12 & 15


def card(bench: Bench, side: Side, node: int, base: int, stall: float) -> Host:
    """A host whose card has the ports of velo_pcie_node."""
    return Host(bench, HardBlock(Face(bench, side), node, stall), node, base)


async def linked(*hosts: Host) -> None:
    for host in hosts:
        for _ in range(200):
            if await host.get(LINK_STATUS) & 1:
                break
        else:
            raise AssertionError("the link does not come up")
