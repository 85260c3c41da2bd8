# SPDX-License-Identifier: Apache-2.0
"""Two hosts (root complexes of cocotbext-pcie), each with a node as its card, and one cable."""

import json
import logging
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge
from pcie.test.hard_block import HardBlock
from stream import Bench
from structs import Struct

CTX, OTHER = 1, 2  # contexts: that of messages and descriptors; that of remote memory
VELO, RMA = 0, 1
SETUP, LINKS, PAGES = 0x08, 0x80, 0x88
SENT, RECEIVED, RMA_ERRORS, LINK_STATUS = 0x40, 0x50, 0xC8, 0x100
RINGS, READ_POINTERS, ROUTES = 0x8000000, 0x8100000, 0x8200000
QUEUES, QUEUE_READ_POINTERS = 0x8300000, 0x8400000
SETTING, STORES, DROPPED, WATCH = 0x1008, 0x1010, 0x1018, 0x1800
LINES = 16
PUT, GET, REQUESTER = 1, 2, 1
# In a host's memory. Remote memory: pages that do not lie behind each other.
RING, QUEUE, TABLE, FRAMES, SIZE = 0x0, 0x4000, 0x5000, 0x8000, 1 << 16
SLOTS_LOG2, ENTRIES_LOG2 = 6, 3
SETTING_T = Struct("pcie_pkg", "pcie_setting_t")
STORES_T = Struct("pcie_pkg", "pcie_stores_t")
WATCH_T = Struct("pcie_pkg", "pcie_watch_t")
PAGE_T = Struct("velo_pkg", "registered_page_t")
CYCLES = Path(__file__).resolve().parents[3] / "build" / "rtl" / "pcie-node-cycles.json"


def test_pcie_node(simulate: Callable[..., None]) -> None:
    simulate("velo_pcie_pair", beside=["rtl/shared.vlt", "rtl/pcie_node/test/velo_pcie_pair.sv"])


class Side:
    """The ports of one of the two, by the names that they have in velo_pcie_node."""

    def __init__(self, dut: Any, prefix: str):
        self._dut, self._prefix = dut, prefix

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dut, name if name in ("clk_i", "rst_ni") else self._prefix + name)


class Face:
    """The bench as a hard block wants it."""

    def __init__(self, bench: Bench, prefix: str):
        self._bench, self.dut = bench, Side(bench.dut, prefix)

    @property
    def cycle(self) -> int:
        return self._bench.cycle


class Host:
    """A host with its card: what a driver and a process with context CTX do."""

    def __init__(self, bench: Bench, prefix: str, node: int, base: int, stall: float):
        self.bench, self.node, self.base = bench, node, base
        self.block = HardBlock(Face(bench, prefix), node, stall)
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
        """All that a driver sets after a reset."""
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
        await self.set(WATCH, WATCH_T.pack(enable=1, base=(self.base + RING) >> 12), 4)
        await self.set(SETUP, self.node)
        await self.set(ROUTES + 8 * self.node, 15)
        await self.set(ROUTES + 8 * self.peer.node, 0)
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
        await self.bench.until(lambda: bool(self.word(entry) & 1), 20000)
        note = self.word(entry)
        self.memory[entry : entry + 16] = bytes(16)
        self.notes += 1
        await self.set(QUEUE_READ_POINTERS + (CTX << 12), self.notes)
        return note >> 55 & 255, note >> 12 & 15


async def start(dut: Any, stall: float = 0.0) -> tuple[Host, Host]:
    inputs = ("rx_valid", "rx_last", "rx_keep", "rx_data", "rx_bar", "tx_ready", "config", "flr")
    names = [f"{side}_{name}_i" for side in "ab" for name in (*inputs, "tx_nonposted_ok")]
    bench = Bench(dut, names)
    logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
    low, high = (
        Host(bench, "a_", 3, 0x9000_0000, stall),
        Host(bench, "b_", 200, 0x12_3400_0000, stall),
    )
    low.peer, high.peer = high, low
    await bench.start()
    for host in (low, high):
        cocotb.start_soon(host.block.run())
    await bench.cycles(60)
    for host in (low, high):
        await host.find()
        await host.configure()
    await linked(low, high)
    return low, high


async def linked(*hosts: Host) -> None:
    for host in hosts:
        for _ in range(200):
            if await host.get(LINK_STATUS) & 1:
                break
        else:
            raise AssertionError("the link does not come up")


def payload_of(rng: random.Random) -> list[int]:
    return [rng.getrandbits(64) for _ in range(rng.randrange(8))]


@cocotb.test()
async def a_message_is_in_the_other_hosts_memory_before_the_interrupt(dut: Any) -> None:
    hosts = await start(dut, stall=0.2)
    wanted: dict[int, list[tuple[int, list[int]]]] = {host.node: [] for host in hosts}
    rng = random.Random(1)
    for number in range(60):
        host = rng.choice(hosts)
        payload = payload_of(rng)
        while not await host.credit():
            pass
        await host.send(number, payload)
        wanted[host.peer.node].append((number, payload))
        if rng.random() < 0.3:
            await host.look()
    for host in hosts:
        want = wanted[host.node]
        count = len(want)
        await host.bench.until(lambda h=host, n=count: h.there() == n, 20000)
        # The last interrupt finds all of them.
        await host.bench.until(lambda h=host, n=count: h.interrupts[-1:] == [n], 2000)
        assert all(host.interrupts)
        await host.look()
        assert host.got == want
        assert await host.get(RECEIVED) == len(want)
        assert await host.get(SENT) == len(wanted[host.peer.node])
        assert not any(host.block.events.values())


@cocotb.test()
async def remote_memory_is_put_and_got(dut: Any) -> None:
    hosts = await start(dut, stall=0.1)
    for number in range(10):
        host = hosts[number // 2 % 2]
        peer, rng = host.peer, host.rng
        op, size = (PUT, GET)[number % 2], rng.choice((1, 8, 37, 448, 513, 700))
        # Context CTX has the odd pages, OTHER the even ones.
        ours, theirs = (base + rng.randrange(4097 - size) for base in (0x1000, 0x2000))
        data = rng.randbytes(size)
        source, target = (host, ours), (peer, theirs)
        if op == GET:
            source, target = target, source
        start_at = source[0].place(source[1])
        source[0].memory[start_at : start_at + size] = data
        place = target[0].place(target[1])
        around = (
            target[0].memory[place - 1 : place],
            target[0].memory[place + size : place + size + 1],
        )
        await host.command(op, ours, theirs, size, number)
        assert await host.notification() == (number, 0)
        got = target[0].memory[place - 1 : place + size + 1]
        assert got == around[0] + data + around[1]
    for host in hosts:
        assert await host.get(RMA_ERRORS) == 0
        assert not any(host.block.events.values())


async def in_turn(hosts: tuple[Host, ...], step: Callable[[Host], Awaitable[None]]) -> None:
    for host in hosts:
        await step(host)


@cocotb.test()
async def both_rings_full_and_read_pointers_behind_stores(dut: Any) -> None:
    """Nobody looks until nothing moves any more, either way; then all of it arrives, once."""
    hosts = await start(dut)
    await in_turn(hosts, lambda host: host.set(RINGS + (CTX << 12), 1 | host.base + RING | 2 << 48))
    for host in hosts:
        host.slots = 4
    wanted: dict[int, list[tuple[int, list[int]]]] = {host.node: [] for host in hosts}

    async def fill(host: Host) -> bool:
        if not await host.credit():
            return False
        payload = payload_of(host.rng)
        await host.send(len(wanted[host.peer.node]), payload)
        wanted[host.peer.node].append((len(wanted[host.peer.node]) & 255, payload))
        return True

    stuck = 0
    while stuck < 20:
        moved = [await fill(host) for host in hosts]
        stuck = 0 if any(moved) else stuck + 1
    for host in hosts:
        assert host.there() == 4
        assert len(wanted[host.node]) > LINES + 4
    # A pointer that was to wait for the stores before it would never arrive.
    for _ in range(3000):
        await in_turn(hosts, Host.look)
        if all(len(host.got) == len(wanted[host.node]) for host in hosts):
            break
        await hosts[0].bench.cycles(10)
    for host in hosts:
        assert host.got == wanted[host.node]
        assert await host.get(DROPPED, 4) == 0
        assert not any(host.block.events.values())


@cocotb.test()
async def a_reset_of_one_leaves_no_dma_behind_and_the_other_goes_on(dut: Any) -> None:
    hosts = await start(dut)
    stays, goes = hosts
    rng, number = random.Random(5), 0
    sent: list[int] = []  # by the one that stays, in order

    async def traffic(host: Host) -> None:
        nonlocal number
        if rng.random() < 0.4:
            op, size = rng.choice((PUT, GET)), rng.randrange(1, 513)
            await host.command(
                op, 0x1000 + rng.randrange(3000), 0x2000 + rng.randrange(3000), size, 1
            )
        else:
            number += 1
            await host.send(number, [number, rng.getrandbits(64)])
            if host is stays:
                sent.append(number)

    for trial in range(4):
        for host in hosts:
            # Notifications are not looked at here: the queue is emptied, rather.
            await host.set(QUEUES + (CTX << 12), 1 | host.base + QUEUE + 0x400 * CTX | 8 << 48)
        for _ in range(rng.randrange(6, 20)):
            for host in hosts:
                if await host.credit():
                    await traffic(host)
                await host.look()
        await goes.bench.cycles(rng.randrange(60))
        seen = len(goes.got)
        goes.block.dut.flr_i.value = 1
        await goes.bench.until(lambda: bool(int(goes.block.dut.flr_done_o.value)), 10000)
        # What is on its way to memory inside the host's model arrives; then it is silent, though
        # the other one goes on to send, and so does this host.
        await goes.bench.cycles(20)
        before, packets = bytes(goes.memory), len(goes.block.sent)
        for _ in range(8):
            if await stays.credit():
                await traffic(stays)
            await goes.send(0, [0])
        await goes.bench.cycles(300)
        assert bytes(goes.memory) == before and len(goes.block.sent) == packets
        assert int(goes.block.dut.node_id_o.value) == 0
        goes.block.dut.flr_i.value = 0
        await goes.bench.cycles(60)
        assert await goes.get(STORES, 4) == 0 and await goes.get(SENT) == 0
        await goes.configure()
        await linked(*hosts)
        # Both are heard again; nothing came twice, or late behind something newer.
        for _ in range(4):
            for host in hosts:
                number += 1
                await host.send(number, [number])
                if host is stays:
                    sent.append(number)
            last = {stays: number, goes: sent[-1]}
            for host in hosts:
                await host.bench.until(lambda h=host: h.there() > h.head, 20000)
                for _ in range(2000):
                    await host.look()
                    if host.got and host.got[-1][1][0] == last[host]:
                        break
                    await host.bench.cycles(5)
                assert host.got[-1][1][0] == last[host], trial
        numbers = [words[0] for _, words in goes.got[seen:]]
        assert numbers == sorted(set(numbers)) and set(numbers) <= set(sent)


@cocotb.test()
async def it_takes_so_many_cycles_from_host_to_host(dut: Any) -> None:
    low, high = await start(dut)
    rng = random.Random(6)
    figures: dict[str, int] = {}
    for host in (low, high):
        for words in (1, 7):
            for _ in range(4):
                peer = host.peer
                peer.block.sent.clear()
                peer.block.first_cycles.clear()
                count = peer.there() + 1
                await host.send(1, list(range(words)))
                await peer.bench.until(lambda p=peer, n=count: p.there() == n)
                await peer.bench.until(lambda p=peer: len(p.block.sent) == 3)
                first, head, interrupt = (
                    cycle - host.block.rx_first_cycle for cycle in peer.block.first_cycles
                )
                key = f"{8 * words}B_{4 if peer is high else 3}DW"
                # A cycle more or less: a message may find a link's idle word under way.
                for name, value in (("first", first), ("head", head), ("interrupt", interrupt)):
                    figures[f"{name}_{key}"] = max(value, figures.get(f"{name}_{key}", 0))
                await peer.bench.cycles(rng.randrange(40, 60))
    # From the packet of an 8-byte message to the packet of its header word, which is the last one.
    figures["pcie_message_cycles"] = figures["head_8B_4DW"]
    CYCLES.write_text(json.dumps(figures, indent=2) + os.linesep, encoding="utf-8")
    assert figures["pcie_message_cycles"] <= 40
    await FallingEdge(dut.clk_i)
