# SPDX-License-Identifier: Apache-2.0
"""A node's host and a network that leads back to the node, for tests of the RMA unit.

The host is as unkind as the unit allows: a posted write becomes visible some time after it was
taken; a read shows memory as it was when it was taken, even if an older write is still on its way.
"""

import random
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench, packet_to_beats, words_to_beats
from structs import Struct

NODE = 0x5A
PAGE = 4096
TABLE = 0x10_0000
TABLE_BITS = 8
READ, WRITE, ATOMIC = 1, 2, 4
PUT, GET, IMMEDIATE, UPDATE, NOTIFY = 1, 2, 3, 4, 5
REQUESTER, RESPONDER, COMPLETER, ERROR = 1, 2, 4, 8
MISALIGNED, OVERSIZE, MALFORMED, CONTEXT, STALL, KIND = 1, 2, 3, 4, 5, 7
UNREGISTERED, RIGHT, HOST, NETWORK, LOST = 8, 9, 10, 11, 14
PORT, READY, STREAM, QUERY = (
    Struct("htax_pkg", f"htax_{name}_t") for name in ("port", "ready", "stream", "read")
)
NET = Struct("velo_net_pkg", "net_stream_t")


def htax_header(addr: int = 0, size: int = 0, tag: int = 0, error: int = 0) -> int:
    return 1 << 71 | addr << 23 | size << 13 | tag << 1 | error


def descriptor(op, dst_ctx, size, local, remote, notify=0, cookie=0, node=NODE, always=0) -> list:
    """The three words of a descriptor."""
    low = op | notify << 4 | always << 7 | node << 8 | dst_ctx << 16 | cookie << 24 | size << 32
    return [low, local, remote]


def packet(kind, tc, ctx, command, data=(), size=None, source=1, node=NODE, tag=0) -> list:
    """A packet in 64-bit words: header, command, data."""
    size = 24 + 8 * len(data) if size is None else size
    head = tc << 1 | kind << 4 | node << 8 | ctx << 16 | size << 26 | tag << 36
    return [head | source << 44 | NODE << 52, *command, *data]


def command(op, size, remote, local=0, notify=0, offset=0, error=0, always=0) -> list:
    return [op | notify << 4 | always << 7 | error << 8 | size << 12 | offset << 35, remote, local]


@dataclass
class Notification:
    """One entry of a queue, as it was first seen."""

    place: int
    op: int
    error: int
    ctx: int
    node: int
    size: int
    cookie: int
    address: int

    @classmethod
    def parse(cls, word: int, address: int) -> "Notification":
        fields = word >> 4 & 15, word >> 8 & 15, word >> 12 & 15, word >> 16 & 255, word >> 24 & 255
        return cls(*fields, word >> 32 & 0x7FFFFF, word >> 55 & 255, address)


class Setup:
    """The unit, its host, its network, and what it reports."""

    def __init__(self, dut: Any, idle: float = 0.0, stall: float = 0.0, seed: int = 1):
        self.dut, self.idle, self.stall = dut, idle, stall
        self.width = len(dut.to_unit_posted_data_i)
        self.rng = random.Random(seed)
        self.driven: dict[str, int] = {}  # inputs, as they are
        self.query = 0  # a read of the window, while it is offered
        self.answer: dict[str, int] = {}  # as it is offered
        self.answer_taken = False
        zeros = (
            "table_enable_i table_base_i table_bits_i invalidate_valid_i watchdog_enable_i "
            "watchdog_cycles_i queue_valid_i read_pointer_valid_i write_done_i to_unit_i "
            "from_unit_ready_i net_in_i answer_enable_i answer_cycles_i way_none_i"
        )
        self.bench = Bench(dut, zeros.split())
        dut.node_id_i.value = NODE
        self.memory = bytearray(1 << 22)
        self.frames = iter(range(0x200, 0x400))
        self.table: dict[int, int] = {}  # page of the table: frame
        self.reads: deque = deque()
        self.writes: deque = deque()
        self.read_delay = self.write_delay = 12
        self.read_errors: set[int] = set()  # addresses that the host refuses
        self.read_spoiled: dict[int, int] = {}  # by address: beats until it fails
        self.write_open: list[int] = []
        self.descriptors: deque = deque()
        self.network: list[deque] = [deque(), deque(), deque()]
        self.network_open = [False] * 3
        self.network_block = [False] * 3
        self.packets: list[tuple[int, list[int], int]] = []  # class, beats, first cycle
        self.packet_open: list[list[int]] = [[], [], []]
        self.packet_start = [0, 0, 0]
        self.network_beats = 400  # that wait at most
        self.packet_cycles: list[int] = []  # from the first to the last beat of each of them
        self.touched: list[tuple[int, int]] = []
        self.queues: dict[int, tuple[int, int]] = {}
        self.heads: dict[int, int] = defaultdict(int)
        self.seen: dict[int, list[Notification]] = defaultdict(list)
        self.free_entries = True
        self.asleep: set[int] = set()  # contexts whose queue nobody reads
        self.watch: dict[tuple[int, int, int], Any] = {}  # (ctx, place, cookie): check when seen
        self.requester_errors: list[tuple[int, int]] = []
        self.errors: list[tuple[int, int, int]] = []
        self.counts: dict[str, int] = defaultdict(int)
        self.descriptor_cycles: list[int] = []

    async def start(self) -> None:
        await self.bench.start()
        self.dut.table_base_i.value = TABLE >> 3
        self.dut.table_bits_i.value = TABLE_BITS
        self.dut.table_enable_i.value = 1
        cocotb.start_soon(self._run())
        await self.bench.cycles(300)  # Tables clear themselves.

    # ----- memory and its registration ------------------------------------------------------------

    def register(self, page: int, ctx: int, rights: int = 7, peer: int | None = None) -> int:
        """Register a page; returns its first byte's registered address."""
        frame = self.table.setdefault(page, next(self.frames))
        entry = rights << 1 | ctx << 4 | frame << 12
        if peer is not None:
            entry |= 1 | peer << 48
        self._set_entry(page, entry)
        return page * PAGE

    def _set_entry(self, page: int, entry: int) -> None:
        place = TABLE + 8 * page
        self.memory[place : place + 8] = entry.to_bytes(8, "little")

    async def deregister(self, page: int) -> None:
        self._set_entry(page, 0)
        self.dut.invalidate_page_i.value = page
        self.dut.invalidate_valid_i.value = 1
        await FallingEdge(self.dut.clk_i)
        self.dut.invalidate_valid_i.value = 0
        while int(self.dut.invalidating_o.value):
            await FallingEdge(self.dut.clk_i)

    def place(self, address: int) -> int:
        return self.table[address // PAGE] * PAGE + address % PAGE

    def read(self, address: int, size: int) -> bytes:
        """Registered memory, page by page."""
        return bytes(self.memory[self.place(address + i)] for i in range(size))

    def write(self, address: int, data: bytes) -> None:
        for i, byte in enumerate(data):
            self.memory[self.place(address + i)] = byte

    # ----- notification queues --------------------------------------------------------------------

    async def queue(self, ctx: int, entries: int = 64, enabled: int = 1) -> None:
        base = 0x8_0000 + ctx * 0x1000
        dut = self.dut
        dut.queue_ctx_i.value, dut.queue_enabled_i.value = ctx, enabled
        dut.queue_base_i.value, dut.queue_last_entry_i.value = base >> 4, entries - 1
        dut.queue_valid_i.value = 1
        while True:
            await ReadOnly()
            ready = int(dut.queue_ready_o.value)
            await FallingEdge(dut.clk_i)
            if ready:
                break
        dut.queue_valid_i.value = 0
        if enabled:
            self.queues[ctx], self.heads[ctx] = (base, entries), 0
            self.memory[base : base + 16 * entries] = bytes(16 * entries)

    def _poll(self) -> None:
        self._drive("read_pointer_valid_i", 0)
        for ctx, (base, entries) in self.queues.items():
            if not self.free_entries or ctx in self.asleep:
                continue
            entry = base + 16 * (self.heads[ctx] % entries)
            word = int.from_bytes(self.memory[entry : entry + 8], "little")
            if not word or self.rng.random() < self.stall:
                continue
            address = int.from_bytes(self.memory[entry + 8 : entry + 16], "little")
            self.memory[entry : entry + 16] = bytes(16)
            self.heads[ctx] += 1
            notification = Notification.parse(word, address)
            assert word & 15 == 1
            self.seen[ctx].append(notification)
            check = self.watch.pop((ctx, notification.place, notification.cookie), None)
            if check:
                check(notification)
            self._drive("read_pointer_ctx_i", ctx)
            self._drive("read_pointer_i", self.heads[ctx] & 0xFFFF)
            self._drive("read_pointer_valid_i", 1)
            break

    async def until(self, condition: Any, limit: int = 20000) -> None:
        for _ in range(limit):
            if condition():
                return
            await FallingEdge(self.dut.clk_i)
        raise AssertionError("timed out")

    async def notified(self, ctx: int, count: int = 1, limit: int = 20000) -> list[Notification]:
        """Take as many notifications of a context as are said to come."""
        await self.until(lambda: len(self.seen[ctx]) >= count, limit)
        taken, self.seen[ctx] = self.seen[ctx][:count], self.seen[ctx][count:]
        return taken

    # ----- what drives the unit -------------------------------------------------------------------

    def post(
        self, words: list[int], ctx: int = 1, size: int | None = None, offset: int = 0
    ) -> None:
        size = 8 * len(words) if size is None else size
        beats = words_to_beats(words, self.width)[: -(-size * 8 // self.width)]
        header = htax_header(1 << 36 | ctx << 28 | offset, size)
        for index, beat in enumerate(beats):
            self.descriptors.append((beat, header, index == len(beats) - 1, index == 0))

    def packet_beats(self, words: list[int]) -> list[int]:
        """On a wide path the header has a beat of its own."""
        return (packet_to_beats if self.width == 128 else words_to_beats)(words, self.width)

    def packet_number(self, beats: list[int]) -> int:
        """A packet as one number, the header in its lowest 64 bits."""
        head = 64 if self.width == 128 else self.width
        rest = sum(beat << (self.width * i) for i, beat in enumerate(beats[1:]))
        return beats[0] | rest << head

    def inject(self, tc: int, words: list[int], cut: int | None = None) -> None:
        """A packet from the network, whole or cut after some words."""
        beats = self.packet_beats(words)
        if cut is not None:
            beats = beats[: len(self.packet_beats(words[:cut]))]
        assert not self.network_open[tc]
        for index, beat in enumerate(beats):
            self.network[tc].append((beat, index == 0, index == len(beats) - 1))

    def _drive(self, name: str, value: int) -> None:
        """An input from this cycle on. One that stays as it is costs nothing, and most do."""
        if self.driven.get(name) != value:
            self.driven[name] = value
            getattr(self.dut, name).value = value

    async def _run(self) -> None:
        dut, rng = self.dut, self.rng
        response: list[tuple[int, int, int]] = []  # beats still to come: data, header, eop
        shown = response_shown = False
        net_shown = [False] * 3
        while True:
            # Inputs of this cycle. An offer that was not taken stays.
            shown = bool(self.descriptors) and (shown or rng.random() >= self.idle)
            offer = {"nonposted": self.query}
            if shown:
                beat, header, eop, _ = self.descriptors[0]
                self._drive("to_unit_posted_data_i", beat)
                offer["posted"] = STREAM.pack(valid=1, eop=int(eop), header=header)
            if not response and self.reads and self.reads[0][0] <= self.bench.cycle:
                response = self.reads.popleft()[1]
            response_shown = bool(response) and rng.random() >= self.idle
            if response_shown:
                data, header, eop = response[0]
                self._drive("to_unit_response_data_i", data)
                offer["response"] = STREAM.pack(valid=1, eop=eop, header=header)
            self._drive("to_unit_i", PORT.pack(**offer))
            done = bool(self.writes) and self.writes[0][0] <= self.bench.cycle
            if done:
                _, addr, data = self.writes.popleft()
                self.memory[addr : addr + len(data)] = data
                self.touched.append((addr, len(data)))
            self._drive("write_done_i", int(done))
            posted_ready = rng.random() >= self.stall
            nonposted_ready = rng.random() >= self.stall
            takes = READY.pack(
                posted=int(posted_ready),
                nonposted=int(nonposted_ready),
                response=int(self.answer_taken),
            )
            self._drive("from_unit_ready_i", takes)
            streams = data = ready = 0
            for c in range(3):
                waiting = self.network[c]
                net_shown[c] = bool(waiting) and (net_shown[c] or rng.random() >= self.idle)
                if net_shown[c]:
                    beat, sop, eop = waiting[0]
                    streams |= NET.pack(valid=1, sop=int(sop), eop=int(eop)) << NET.bits * c
                    data |= beat << (self.width * c)
                go = not self.network_block[c] and len(waiting) < self.network_beats
                ready |= int(go and rng.random() >= self.stall) << c
            self._drive("net_in_i", streams)
            self._drive("net_in_data_i", data)
            self._drive("net_out_ready_i", ready)
            self._poll()

            # The unit's outputs for them.
            await ReadOnly()
            self._report()
            taken = READY.unpack(dut.to_unit_ready_o)
            if shown and taken["posted"]:
                if self.descriptors.popleft()[3]:
                    self.descriptor_cycles.append(self.bench.cycle)
                shown = False
            if taken["nonposted"]:
                self.query = 0
            assert taken["response"]
            if response_shown:
                response.pop(0)
            sent = PORT.unpack(dut.from_unit_o)
            write, read = STREAM.unpack_bits(sent["posted"]), QUERY.unpack_bits(sent["nonposted"])
            self.answer = STREAM.unpack_bits(sent["response"])
            if posted_ready and write["valid"]:
                self._take_write(write["header"], write["eop"])
            if nonposted_ready and read["valid"]:
                self._take_read(read["header"])
            net_taken = int(dut.net_in_ready_o.value)
            streams = int(dut.net_out_o.value)
            for c in range(3):
                if net_shown[c] and net_taken >> c & 1:
                    self.network[c].popleft()
                    net_shown[c] = False
                stream = NET.unpack_bits(streams >> NET.bits * c)
                if stream["valid"] and ready >> c & 1:
                    beat = int(dut.net_out_data_o.value) >> (self.width * c)
                    beat &= (1 << self.width) - 1
                    self._take_packet(c, beat, bool(stream["sop"]), bool(stream["eop"]))
            await FallingEdge(dut.clk_i)

    def _take_write(self, header: int, eop: int) -> None:
        self.write_open.append(int(self.dut.from_unit_posted_data_o.value))
        if not eop:
            return
        addr, size = header >> 23 & (1 << 48) - 1, header >> 13 & 1023
        assert len(self.write_open) == -(-size * 8 // self.width) > 0
        data = sum(beat << (self.width * i) for i, beat in enumerate(self.write_open))
        self.write_open = []
        last = self.writes[-1][0] if self.writes else 0
        due = self.bench.cycle + 1 + self.rng.randrange(self.write_delay)
        data_bytes = data.to_bytes(size + self.width // 8, "little")[:size]
        self.writes.append((max(last + 1, due), addr, data_bytes))

    def _take_read(self, header: int) -> None:
        addr, size, tag = header >> 23 & (1 << 48) - 1, header >> 13 & 1023, header >> 1 & 255
        due = self.bench.cycle + 1 + self.rng.randrange(self.read_delay)
        if addr in self.read_errors:
            self.reads.append((due, [(0, htax_header(tag=tag, error=1), 1)]))
            return
        count = -(-size * 8 // self.width)
        # The host rounds up to whole beats and shows what happens to be there.
        data = int.from_bytes(self.memory[addr : addr + count * self.width // 8], "little")
        mask = (1 << self.width) - 1
        beats = [
            (data >> (self.width * i) & mask, htax_header(tag=tag), int(i == count - 1))
            for i in range(count)
        ]
        if addr in self.read_spoiled:
            del beats[self.read_spoiled[addr] :]
            beats.append((0, htax_header(tag=tag, error=1), 1))
        self.reads.append((due, beats))

    def _take_packet(self, c: int, beat: int, sop: bool, eop: bool) -> None:
        assert sop == (not self.packet_open[c]), "sop out of place"
        if sop:
            self.packet_start[c] = self.bench.cycle
            assert beat >> 1 & 3 == c
        self.packet_open[c].append(beat)
        self.network_open[c] = not eop
        self.network[c].append((beat, sop, eop))
        if eop:
            self.packets.append((c, self.packet_open[c], self.packet_start[c]))
            self.packet_cycles.append(self.bench.cycle - self.packet_start[c] + 1)
            self.packet_open[c] = []

    def _report(self) -> None:
        dut = self.dut
        if int(dut.requester_error_valid_o.value):
            code, ctx = int(dut.requester_error_code_o.value), int(dut.requester_error_ctx_o.value)
            self.requester_errors.append((code, ctx))
        count = int(dut.error_count_o.value)
        if count:
            code, ctx = int(dut.error_code_o.value), int(dut.error_ctx_o.value)
            self.errors += [(code, ctx, int(dut.error_node_o.value))] * count
        for name in ("posted", "completed", "served", "atu_hit", "atu_miss", "atu_refused"):
            self.counts[name] += int(getattr(dut, f"{name}_o").value)
