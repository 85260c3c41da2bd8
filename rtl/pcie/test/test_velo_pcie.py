# SPDX-License-Identifier: Apache-2.0
"""The function between a root complex (cocotbext-pcie) and a node: all ways, and all errors."""

import json
import logging
import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import cocotb
from cocotb.handle import HierarchyObject, LogicObject, PackedObject
from cocotb.triggers import FallingEdge, ReadOnly
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpAttr, TlpType
from cocotbext.pcie.core.utils import PcieId
from hard_block import BAR_BITS, DEVICE, PBA, VENDOR, HardBlock
from node_port import DMA_REQUEST, DMA_RESPONSE, NodePort
from stream import Bench
from structs import Struct

FUNCTION, SETTING, STORES, DROPPED, ERRORS, READS, WATCH = (
    *range(0x1000, 0x1030, 8),
    0x1800,
)
SHARES, CONTEXTS = 0x2000, 256
VELO, RMA, CUSTOM = 0 << 36, 1 << 36, 3 << 36  # units, in BAR2
DROPPED_T = Struct("pcie_pkg", "pcie_dropped_t")
ERRORS_T = Struct("pcie_pkg", "pcie_errors_t")
READS_T = Struct("pcie_pkg", "pcie_reads_t")
SHARE_T = Struct("pcie_pkg", "pcie_share_t")
STORES_T = Struct("pcie_pkg", "pcie_stores_t")
WATCH_T = Struct("pcie_pkg", "pcie_watch_t")
SETTING_T = Struct("pcie_pkg", "pcie_setting_t")
LINES = 16
LOW, HIGH = 0x9000_0000, 0x12_3400_0000  # host memory, below and above 4 GB
ID = 0x0100
CYCLES = Path(__file__).resolve().parents[3] / "build" / "rtl" / "pcie-cycles.json"


def test_pcie(simulate):
    simulate("velo_pcie")


class Setup:
    """The function with both its sides; set by the root complex, or by the test."""

    def __init__(self, dut: Any, seed: int, stall: float = 0.0):
        self.dut, self.rng = dut, random.Random(seed)
        inputs = ["rx_valid_i", "rx_last_i", "rx_keep_i", "rx_data_i", "rx_bar_i", "tx_ready_i"]
        inputs += [
            "tx_nonposted_ok_i",
            "config_i",
            "flr_i",
            "host_response_i",
            "host_answer_data_i",
        ]
        inputs += [
            "control_response_i",
            "control_answer_data_i",
            "dma_request_i",
            "dma_write_data_i",
        ]
        self.bench = Bench(dut, inputs)
        logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
        self.block = HardBlock(self.bench, seed + 1, stall)
        self.node = NodePort(self.bench, seed + 2, stall)
        self.tag = 0

    async def start(self, enumerated: bool = False, shares: dict[int, int] | None = None) -> None:
        """`shares`: lines by context; none: all lines for each."""
        await self.bench.start()
        cocotb.start_soon(self.block.run())
        cocotb.start_soon(self.node.run())
        await self.bench.cycles(300)  # The node's reset is longer than ours.
        await self.give_shares(shares or dict.fromkeys(range(CONTEXTS), LINES))
        if not enumerated:
            self.block.config = {
                "id": ID,
                "bus_master": 1,
                "relaxed": 1,
                "max_payload": 0,
                "max_read": 0,
                "msix_enable": 1,
            }
            # The root complex's own check of who is asked.
            self.block.function.pcie_id = PcieId.from_int(ID)
            return
        root = self.block.root
        await root.enumerate()
        self.device = root.find_device(self.block.function.pcie_id)
        await self.device.enable_device()
        await self.device.set_master()
        self.bars = [self.device.bar_addr[bar] for bar in range(6)]

    def packet(
        self, kind: TlpType, addr: int, dwords: int = 1, data: bytes = b"", **fields: Any
    ) -> Tlp:
        """A request of the test's own, which no host made."""
        tlp = Tlp()
        tlp.fmt_type = kind
        tlp.requester_id = PcieId.from_int(0x0A5)
        tlp.address, tlp.length = addr, dwords
        tlp.first_be, tlp.last_be = 0xF, 0xF if dwords > 1 else 0
        if data:
            tlp.set_data(bytearray(data))
        if tlp.is_nonposted():
            self.tag = (self.tag + 1) % 32
            tlp.tag = 0xE0 + self.tag
        for name, value in fields.items():
            setattr(tlp, name, value)
        return tlp

    def store(self, addr: int, words: list[int], long: bool = True) -> None:
        kind = TlpType.MEM_WRITE_64 if long else TlpType.MEM_WRITE
        data = b"".join(word.to_bytes(8, "little") for word in words)
        self.block.deliver(self.packet(kind, addr, len(data) // 4, data), 2)

    async def load(self, bar: int, addr: int, dwords: int = 2, **fields: Any) -> Tlp:
        kind = fields.pop("kind", TlpType.MEM_READ_64)
        request = self.packet(kind, addr, dwords, **fields)
        self.block.deliver(request, bar)
        before = len(self.block.answers)
        await self.bench.until(lambda: len(self.block.answers) > before)
        answer = self.block.answers[-1]
        assert (answer.tag, int(answer.requester_id)) == (request.tag, 0x0A5)
        assert int(answer.completer_id) == int(self.block.function.pcie_id)
        return answer

    async def register(self, addr: int) -> int:
        """A register of the function."""
        answer = await self.load(4, addr)
        assert answer.status == CplStatus.SC and answer.length == 2
        return int.from_bytes(answer.data, "little")

    def set_register(self, addr: int, value: int, bar: int = 4) -> None:
        data = value.to_bytes(8, "little")
        self.block.deliver(self.packet(TlpType.MEM_WRITE_64, addr, 2, data), bar)

    async def give_shares(self, shares: dict[int, int]) -> None:
        for context, lines in shares.items():
            self.set_register(SHARES + 8 * context, SHARE_T.pack(lines=lines))
        await self.settled()

    async def dropped_of(self, context: int) -> int:
        return SHARE_T.unpack_bits(await self.register(SHARES + 8 * context))["dropped"]

    async def settled(self) -> None:
        await self.bench.until(lambda: not self.block.arriving and not self.block.to_root.qsize())
        await self.bench.cycles(30)


def words_of(rng: random.Random, count: int) -> list[int]:
    return [rng.getrandbits(64) for _ in range(count)]


@cocotb.test()
async def a_host_finds_the_function_and_its_registers(dut: Any) -> None:
    setup = Setup(dut, 1, stall=0.2)
    await setup.start(enumerated=True)
    root, rng, node = setup.block.root, setup.rng, setup.node
    assert await setup.device.config_read_word(0) == VENDOR
    assert await setup.device.config_read_word(2) == DEVICE
    for bar, bits in BAR_BITS.items():
        assert setup.device.bar_size[bar] == 1 << bits
        assert setup.bars[bar] % (1 << bits) == 0 and setup.bars[bar]
    # Registers of the node, whole, by halves, by bytes.
    for _ in range(6):
        offset, value = 8 * rng.randrange(1 << 25), rng.getrandbits(64)
        await root.mem_write_qword(setup.bars[0] + offset, value)
        assert await root.mem_read_qword(setup.bars[0] + offset) == value
        assert node.register_writes[-1] == (offset, value)
        for size in (1, 2, 3, 4, 5, 8):
            at = rng.randrange(9 - size)
            data = await root.mem_read(setup.bars[0] + offset + at, size)
            assert bytes(data) == value.to_bytes(8, "little")[at : at + size]
    # The function's own.
    own = setup.bars[4]
    assert await root.mem_read_qword(own + FUNCTION) == 8 | LINES << 8 | 8 << 16
    await root.mem_write_qword(own + SETTING, 0xABCDEF_1234_5678)
    assert await root.mem_read_qword(own + SETTING) == 0xABCDEF_1234_5678
    await root.mem_write_dword(own + SETTING, 0x9999_8888)
    assert await root.mem_read_qword(own + SETTING) == 0xABCDEF_9999_8888
    await root.mem_write_dword(own + SETTING + 4, 0x777777)
    assert await root.mem_read_qword(own + SETTING) == 0x777777_9999_8888
    # A word of a unit that is read.
    node.units[CUSTOM | 0x4568] = 0x1122334455667788
    place = setup.bars[2] + CUSTOM + 0x4568
    assert await root.mem_read_qword(place) == 0x1122334455667788
    assert await root.mem_read_dword(place + 4) == 0x11223344
    assert not any(setup.block.events.values())


@cocotb.test()
async def messages_of_all_sizes_arrive_in_order(dut: Any) -> None:
    setup = Setup(dut, 2, stall=0.3)
    await setup.start(enumerated=True)
    rng, node = setup.rng, setup.node
    sent = []
    # By the root complex, and with short addresses, too, which hosts use for registers below 4 GB.
    for number in range(60):
        words = words_of(rng, rng.randrange(1, 9))
        offset = rng.getrandbits(28) << 6 | 8 * rng.randrange(9 - len(words))
        offset |= rng.randrange(3) << 36
        if number % 3 == 0:
            offset &= 0xFFFF_FFFF
            setup.store(offset, words, long=False)
        else:
            data = b"".join(word.to_bytes(8, "little") for word in words)
            await setup.block.root.mem_write(setup.bars[2] + offset, data)
        sent.append((offset, words))
        await setup.bench.until(lambda: len(node.stores) == len(sent))
    assert node.stores == sent
    assert not any(setup.block.events.values())


@cocotb.test()
async def stores_within_a_share_are_not_lost(dut: Any) -> None:
    """As many as there are lines, while the network stands; then as many again."""
    setup = Setup(dut, 3)
    await setup.start()
    sent = []
    for _ in range(4):
        setup.node.open = False
        for _ in range(LINES):
            words = words_of(setup.rng, setup.rng.randrange(1, 9))
            sent.append((setup.rng.getrandbits(32) << 6, words))
            setup.store(*sent[-1], long=setup.rng.random() < 0.5)
        await setup.settled()
        counts = STORES_T.unpack_bits(await setup.register(STORES))
        assert counts == {"accepted": len(sent), "taken": len(sent) - LINES}
        setup.node.open = True
        await setup.bench.until(lambda: len(setup.node.stores) == len(sent))
        await setup.bench.cycles(3)
    # A short header has an address of 32 bits.
    assert [words for _, words in setup.node.stores] == [words for _, words in sent]
    assert await setup.register(DROPPED) == 0


@cocotb.test()
async def who_overruns_its_share_loses_its_own_and_nobody_elses(dut: Any) -> None:
    """One keeps no count, one has no share; the others keep to theirs, and lose nothing."""
    setup = Setup(dut, 15, stall=0.1)
    wild, none, shares = 0x81, 0x01, {0x81: 5, 0x91: 7, 0x80: 4}
    await setup.start(shares=shares)
    rng, node = setup.rng, setup.node
    sent: dict[int, list[tuple[int, list[int]]]] = {context: [] for context in (*shares, none)}

    def arrived(context: int) -> list[tuple[int, list[int]]]:
        return [store for store in node.stores if store[0] >> 28 & 0xFF == context]

    for turn in range(600):
        if turn % 100 == 0:
            node.open = not node.open
        context = rng.choice((wild, wild, none, 0x91, 0x91, 0x80))
        orderly = context not in (wild, none)
        if orderly and len(sent[context]) - len(arrived(context)) >= shares[context]:
            await setup.bench.cycles(5)
            continue
        address = context << 28 | rng.getrandbits(22) << 6
        sent[context].append((address, words_of(rng, rng.randrange(1, 9))))
        setup.store(*sent[context][-1])
        if rng.random() < 0.3:
            await setup.settled()
    node.open = True
    await setup.settled()
    await setup.bench.cycles(300)
    for context in (0x91, 0x80):
        assert arrived(context) == sent[context] and len(sent[context]) > 30
        assert await setup.dropped_of(context) == 0
    assert not arrived(none) and await setup.dropped_of(none) == len(sent[none])
    # Of the wild one's the rest, in order.
    left = iter(sent[wild])
    assert all(store in left for store in arrived(wild)) and len(arrived(wild)) > 30
    dropped = len(sent[wild]) - len(arrived(wild))
    assert await setup.dropped_of(wild) == dropped > 30
    counts = DROPPED_T.unpack_bits(await setup.register(DROPPED))
    assert counts["count"] == dropped + len(sent[none])


@cocotb.test()
async def a_share_is_what_was_written_by_halves(dut: Any) -> None:
    setup = Setup(dut, 16)
    await setup.start(shares={7: 2})
    setup.node.open = False
    for _ in range(5):
        setup.store(7 << 28, [1])
    await setup.settled()
    assert await setup.register(SHARES + 56) == SHARE_T.pack(lines=2, dropped=3)
    # One more line for it; what was counted stays.
    packet = setup.packet(TlpType.MEM_WRITE_64, SHARES + 56, 1, bytes([3, 0, 0, 0]))
    setup.block.deliver(packet, 4)
    setup.store(7 << 28, [2])
    setup.store(7 << 28, [3])
    await setup.settled()
    assert await setup.register(SHARES + 56) == SHARE_T.pack(lines=3, dropped=4)
    # Fewer than it has under way: no more until there are fewer.
    setup.block.deliver(setup.packet(TlpType.MEM_WRITE_64, SHARES + 56, 1, bytes([1, 0, 0, 0])), 4)
    setup.block.deliver(setup.packet(TlpType.MEM_WRITE_64, SHARES + 60, 1, bytes(4)), 4)
    setup.store(7 << 28, [4])
    await setup.settled()
    assert await setup.register(SHARES + 56) == SHARE_T.pack(lines=1, dropped=1)
    setup.node.open = True
    await setup.bench.until(lambda: len(setup.node.stores) == 3)
    setup.store(7 << 28, [5])
    await setup.bench.until(lambda: len(setup.node.stores) == 4)
    assert [words[0] for _, words in setup.node.stores] == [1, 1, 2, 5]
    # Others have what they had: nothing.
    for context in (0, 6, 8, 255):
        assert await setup.register(SHARES + 8 * context) == 0
    for addr in (SHARES - 8, SHARES + 8 * CONTEXTS):
        assert await setup.register(addr) == 0


@cocotb.test()
async def shares_beyond_the_lines_end_with_the_lines(dut: Any) -> None:
    """The first ones have them; what is dropped is counted all the same."""
    setup = Setup(dut, 17)
    await setup.start(shares={1: LINES, 2: 255})
    setup.node.open = False
    for _ in range(LINES - 1):
        setup.store(1 << 28, [1])
    for _ in range(3):
        setup.store(2 << 28, [2])
    setup.store(1 << 28, [3])
    await setup.settled()
    assert [await setup.dropped_of(context) for context in (1, 2)] == [1, 2]
    setup.node.open = True
    await setup.bench.until(lambda: len(setup.node.stores) == LINES)


@cocotb.test()
async def a_register_write_passes_a_network_that_stands(dut: Any) -> None:
    """More stores than there is room for, and a read pointer behind them: it arrives."""
    setup = Setup(dut, 4)
    await setup.start()
    patience, extra = 50, 9
    setup.set_register(SETTING, SETTING_T.pack(patience=patience, timeout=1000))
    setup.node.open = False
    sent = []
    for number in range(LINES + extra):
        addr = (number + 1) << 28 | (number + 3) << 12 | 7 << 6
        sent.append((addr, words_of(setup.rng, 8)))
        setup.store(*sent[-1])
    begin = setup.bench.cycle
    setup.set_register(0x8400000, 77, bar=0)
    await setup.bench.until(lambda: bool(setup.node.register_writes))
    # Their beats, and no wait.
    assert setup.bench.cycle - begin < 10 * (LINES + extra) + 20
    assert setup.node.register_writes == [(0x8400000, 77)]
    dropped = DROPPED_T.unpack_bits(await setup.register(DROPPED))
    assert dropped == {
        "count": extra,
        "target": sent[-1][0] & 0xFFFFFFF,
        "source": LINES + extra,
        "zero_52": 0,
    }
    # It goes on with the next one for which there is room.
    setup.node.open = True
    await setup.bench.until(lambda: len(setup.node.stores) == LINES)
    sent[LINES:] = [(0x40, [5])]
    setup.store(*sent[-1])
    await setup.settled()
    assert setup.node.stores == sent
    # A load waits for the stores before it, not longer than that, and no longer than patience.
    setup.node.units[CUSTOM | 0x80] = 9
    setup.node.open = False
    setup.store(0x40, [6])
    answer = await setup.load(2, CUSTOM | 0x80)
    assert answer.status == CplStatus.CA
    assert (await setup.load(4, FUNCTION)).status == CplStatus.SC
    # One of a unit that takes stores alone is refused at once.
    setup.set_register(SETTING, SETTING_T.pack(patience=2000, timeout=1000))
    for unit in (VELO, RMA):
        begin = setup.bench.cycle
        assert (await setup.load(2, unit | 0x80)).status == CplStatus.CA
        assert setup.bench.cycle - begin < 50
    setup.node.open = True
    assert (await setup.load(2, CUSTOM | 0x80)).status == CplStatus.SC


@cocotb.test()
async def what_is_wrong_is_answered_or_dropped_and_counted(dut: Any) -> None:
    setup = Setup(dut, 5, stall=0.1)
    await setup.start()
    block, packet = setup.block, setup.packet
    write, write_64 = TlpType.MEM_WRITE, TlpType.MEM_WRITE_64
    refused = [
        (packet(write_64, 0x40, 3, bytes(12)), 2),  # no whole words
        (packet(write_64, 0x44, 2, bytes(8)), 2),
        (packet(write, 0x44, 1, bytes(4)), 2),
        (packet(write_64, 0x40, 18, bytes(72)), 2),  # longer than a line
        (packet(write_64, 0x40, 2, bytes(8), first_be=0xC), 2),
        (packet(write_64, 0x40, 2, bytes(8), last_be=0x3), 2),
        (packet(write_64, 0x40, 4, bytes(16)), 0),
        (packet(write_64, 0x40, 1, bytes(4)), 0),
        (packet(write_64, 0x40, 2, bytes(8), first_be=0xE), 0),
        (packet(write_64, 0x1008, 4, bytes(16)), 4),
        (packet(write, 0x40, 2, bytes(8)), None),
    ]
    for tlp, bar in refused:
        block.deliver(tlp, bar)
    poisoned = [(packet(write_64, 0x40, 2, bytes(8), ep=True), bar) for bar in (0, 2, 4, None)]
    for tlp, bar in poisoned:
        block.deliver(tlp, bar)
    # Too short, too long, without an address.
    malformed = 0
    for bar in (0, 2, 4):
        for kind, dwords in ((write, 2), (write_64, 2), (write_64, 8)):
            tlp = packet(kind, 0x1008, dwords, bytes(4 * dwords))
            whole = bytes(tlp.pack())
            for cut in (whole[:-4], whole + bytes(4), whole + bytes(12), whole[:8], whole[:4]):
                block.deliver(tlp, bar, cut)
                malformed += 1
    await setup.settled()
    assert not setup.node.stores and not setup.node.register_writes
    # Requests that want an answer get one.
    unsupported = [
        await setup.load(None, 0x40),
        await setup.load(2, 0x40, 1, kind=TlpType.MEM_READ_LOCKED_64),
        await setup.load(0, 0x40, 1, kind=TlpType.IO_READ),
        await setup.load(0, 0x40, 1, kind=TlpType.FETCH_ADD_64, data=bytes(4)),
        await setup.load(0, 0x40, 1, kind=TlpType.IO_WRITE, data=bytes(4)),
    ]
    assert all(answer.status == CplStatus.UR and not answer.data for answer in unsupported)
    setup.node.registers = {0x40: 0x1122334455667788}
    aborted = [
        await setup.load(0, 0x40, 3),
        await setup.load(0, 0x44, 2),
        await setup.load(4, 0x0, 4),
        await setup.load(2, CUSTOM | 0x40),  # the node refuses it
        await setup.load(0, 0x48),
    ]
    assert all(answer.status == CplStatus.CA and not answer.data for answer in aborted)
    assert [answer.byte_count for answer in aborted] == [12, 8, 16, 8, 8]
    # The byte count and the lower address, for all bytes that may be wanted of one dword or two.
    for first in range(16):
        for last in (None, 8, 3, 1, 15):
            at = 0x40 + 4 * (last is None and first % 2)
            fields = {"first_be": first, "last_be": last or 0}
            answer = await setup.load(0, at, 2 if last else 1, **fields)
            bytes_wanted = [i for i in range(4) if first >> i & 1] or [0]
            if last:
                # Of two dwords the first one has at least a byte, by the rules.
                if not first:
                    continue
                bytes_wanted += [4 + i for i in range(4) if last >> i & 1]
            assert answer.status == CplStatus.SC
            assert answer.byte_count == bytes_wanted[-1] - bytes_wanted[0] + 1
            assert answer.lower_address == (at + bytes_wanted[0]) & 0x7F
            value = 0x1122334455667788 >> (8 * (at % 8))
            size = 8 if last else 4
            assert bytes(answer.data) == (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    # With a digest: the data are what they would be without.
    for kind in (write, write_64):
        for bar, dwords in ((2, 16), (2, 2), (0, 2), (4, 2), (4, 1)):
            data = setup.rng.randbytes(4 * dwords)
            tlp = packet(kind, 0x1008, dwords, data, td=True)
            block.deliver(tlp, bar, bytes(tlp.pack()) + b"\xff\xff\xff\xff")
            await setup.settled()
            got = {
                2: lambda: setup.node.stores[-1][1],
                0: lambda: [setup.node.register_writes[-1][1]],
            }
            if bar in got:
                assert b"".join(word.to_bytes(8, "little") for word in got[bar]()) == data
            else:
                value = await setup.register(SETTING)
                assert value.to_bytes(8, "little")[: min(7, len(data))] == data[:7]
    counts = ERRORS_T.unpack_bits(await setup.register(ERRORS))
    assert counts == {
        "poisoned": len(poisoned),
        "unsupported": len(refused) + len(unsupported),
        "malformed": malformed,
        "unexpected": 0,
    }
    assert {name: block.events[name] for name in counts} == counts


@cocotb.test()
async def writes_of_all_sizes_and_alignments(dut: Any) -> None:
    setup = Setup(dut, 6, stall=0.2)
    await setup.start()
    setup.set_register(SETTING, SETTING_T.pack(patience=1000, timeout=1000))
    block, rng = setup.block, setup.rng
    for code in (0, 1, 2, 5):
        largest = 128 << min(code, 2)
        block.config |= {"max_payload": code, "relaxed": code % 2}
        writes = []
        for number in range(70):
            size = rng.choice((1, 2, 3, 4, 5, 7, 8, 16, 17, 64, rng.randrange(1, 513), 512))
            addr = rng.choice((LOW, HIGH)) + 4096 * number + rng.randrange(4097 - size)
            if number < 16:
                size = 1 + number % 8 if code % 2 else 9 + number
                addr = rng.choice((LOW, HIGH)) + 8 * number * 20 + number % 8
            writes.append((addr, rng.randbytes(size)))
            setup.node.write(*writes[-1])
        before = len(block.sent)
        expected: list[tuple[int, int]] = []  # bytes with their addresses, in order
        for addr, data in writes:
            expected += [(addr + i, byte) for i, byte in enumerate(data)]
        await setup.bench.until(lambda: not setup.node.writes, 20000)
        await setup.settled()
        seen: list[tuple[int, int]] = []
        sizes = {addr: len(data) for addr, data in writes}
        for tlp in block.sent[before:]:
            assert tlp.fmt_type == (
                TlpType.MEM_WRITE_64 if tlp.address >> 32 else TlpType.MEM_WRITE
            )
            assert 4 * tlp.length <= largest
            assert tlp.address // 4096 == (tlp.address + 4 * tlp.length - 1) // 4096
            start = tlp.address + tlp.get_first_be_offset()
            size = tlp.get_be_byte_count()
            skip = tlp.get_first_be_offset()
            seen += [(start + i, tlp.data[skip + i]) for i in range(size)]
            # Short writes announce, and pass nothing.
            if start in sizes:
                assert tlp.attr == (TlpAttr.RO if code % 2 and sizes[start] > 16 else TlpAttr(0))
        assert seen == expected


@cocotb.test()
async def reads_of_all_sizes_from_completions_in_any_order(dut: Any) -> None:
    setup = Setup(dut, 7, stall=0.2)
    await setup.start(enumerated=True)
    block, rng = setup.block, setup.rng
    block.mixed = True
    regions = {base: block.memory(base, 1 << 16) for base in (LOW, HIGH)}
    for base in regions:
        await regions[base].write(0, rng.randbytes(1 << 16))
    for code, split in ((0, True), (2, False), (2, True), (1, False)):
        block.config["max_read"] = code
        block.root.split_on_all_rcb = split
        setup.node.answers.clear()
        block.sent.clear()
        asked = {}
        for tag in range(24):
            size = rng.choice((1, 4, 8, 16, 64, rng.randrange(1, 513), 512))
            base, offset = rng.choice((LOW, HIGH)), 4096 * rng.randrange(16)
            offset += rng.randrange(4097 - size)
            asked[tag << 4 | 3] = base, offset, size
            setup.node.read(base + offset, size, tag << 4 | 3)
        count = len(asked)
        await setup.bench.until(lambda n=count: len(setup.node.answers) == n, 20000)
        for tag, (base, offset, size) in asked.items():
            data, error = setup.node.answers[tag]
            assert not error
            assert data[:size] == bytes(await regions[base].read(offset, size))
        for tlp in block.sent:
            assert 4 * tlp.length <= 128 << code
            assert tlp.address // 4096 == (tlp.address + 4 * tlp.length - 1) // 4096
    assert not any(block.events.values())


@cocotb.test()
async def nothing_passes_a_write_that_was_taken(dut: Any) -> None:
    """No read of host memory does, also if the write's last bytes begin a packet."""
    setup = Setup(dut, 31, stall=0.6)
    await setup.start()
    block, node = setup.block, setup.node
    taken = [0]

    async def watch() -> None:
        # A write of one beat is taken with it.
        while True:
            await ReadOnly()
            offered = DMA_REQUEST.unpack(dut.dma_request_i)["write_valid"]
            taken[0] += bool(offered and DMA_RESPONSE.unpack(dut.dma_response_o)["write_ready"])
            await FallingEdge(dut.clk_i)

    cocotb.start_soon(watch())
    for trial in range(7):  # the bytes of a word, before a packet's end; each read keeps its slot
        block.sent.clear()
        before = taken[0]
        boundary = LOW + 0x1000 * trial + 128
        node.write(boundary - 1 - trial, bytes(8))
        await setup.bench.until(lambda before=before: taken[0] > before)
        node.read(LOW, 8, trial)
        await setup.bench.until(lambda: len(block.sent) == 3)
        kinds = [tlp.fmt_type for tlp in block.sent]
        assert kinds == [TlpType.MEM_WRITE, TlpType.MEM_WRITE, TlpType.MEM_READ], trial


def completion(request: Tlp, data: bytes, byte_count: int, **fields: Any) -> Tlp:
    answer = Tlp.create_completion_for_tlp(request, PcieId(0, 0, 0), bool(data))
    if data:
        answer.set_data(bytearray(data))
    answer.byte_count, answer.lower_address = byte_count, request.address & 0x7F
    for name, value in fields.items():
        setattr(answer, name, value)
    return answer


@cocotb.test()
async def a_read_that_fails_ends_and_what_comes_late_harms_nothing(dut: Any) -> None:
    setup = Setup(dut, 8)
    await setup.start()
    block, node = setup.block, setup.node
    block.to_host = lambda tlp: False  # The test answers.
    timeout = 100
    setup.set_register(SETTING, SETTING_T.pack(patience=1000, timeout=timeout))

    async def asked(size: int, tag: int) -> list[Tlp]:
        block.sent.clear()
        node.read(LOW, size, tag)
        await setup.bench.until(lambda: len(block.sent) >= -(-size // 128))
        return list(block.sent)

    async def answered(tag: int, error: bool) -> bytes:
        await setup.bench.until(lambda: tag in node.answers)
        data, got_error = node.answers[tag]
        assert got_error == error
        return data

    good = bytes(range(128))
    # Refused, poisoned, without data: each ends the read with an error.
    for tag, fields in enumerate(
        ({"status": CplStatus.UR}, {"status": CplStatus.CA}, {"ep": True}, {})
    ):
        (request,) = await asked(128, tag)
        data = good if "ep" in fields else b""
        block.deliver(completion(request, data, 128, **fields), None)
        await answered(tag, True)
    # Half of it is poisoned; the other half follows, and is still that read's.
    (request,) = await asked(128, 19)
    block.deliver(completion(request, good[:64], 128, ep=True), None)
    await setup.settled()
    assert 19 not in node.answers
    block.deliver(completion(request, good[64:], 64), None)
    await answered(19, True)
    # One piece of two is refused.
    first, second = await asked(256, 20)
    block.deliver(completion(first, b"", 128, status=CplStatus.UR), None)
    block.deliver(completion(second, good, 128), None)
    await answered(20, True)
    # It is not answered at all, or by half: lost, until the host has paid.
    (lost,) = await asked(128, 21)
    begin = setup.bench.cycle
    await answered(21, True)
    assert 2 * timeout <= setup.bench.cycle - begin <= 3 * timeout + 50
    (half,) = await asked(128, 22)
    block.deliver(completion(half, good[:64], 128), None)
    await answered(22, True)
    reads = READS_T.unpack_bits(await setup.register(READS))
    assert (reads["timeouts"], reads["failed"], bin(reads["lost"]).count("1")) == (2, 6, 2)
    # Late answers reach nobody, and free the slots.
    (other,) = await asked(128, 23)
    block.deliver(completion(lost, bytes(128), 128), None)
    block.deliver(completion(half, bytes(64), 64), None)
    block.deliver(completion(other, good, 128), None)
    assert await answered(23, False) == good
    reads = READS_T.unpack_bits(await setup.register(READS))
    assert reads["lost"] == 0
    # All slots lost: reads fail at once.
    for tag in range(30, 38):
        node.read(LOW, 8, tag)
    await setup.bench.until(lambda: 37 in node.answers)
    begin = setup.bench.cycle
    node.read(LOW, 8, 40)
    await answered(40, True)
    assert setup.bench.cycle - begin < 20
    for request in [tlp for tlp in block.sent if tlp.fmt_type == TlpType.MEM_READ][-8:]:
        block.deliver(completion(request, good[:8], 8), None)
    await setup.settled()
    (request,) = await asked(8, 41)
    block.deliver(completion(request, good[:8], 8), None)
    assert await answered(41, False) == good[:8]
    # Completions that answer nothing: an old tag, two that never were, another function's.
    before = block.events["unexpected"]
    for tag in (request.tag, 0x3F, 0xFF):
        block.deliver(completion(request, good[:8], 8, tag=tag), None)
    await setup.settled()
    (request,) = await asked(8, 42)
    block.deliver(completion(request, bytes(8), 8, requester_id=PcieId.from_int(0x0777)), None)
    await setup.bench.cycles(30)
    assert 42 not in node.answers
    block.deliver(completion(request, good[:8], 8), None)
    assert await answered(42, False) == good[:8]
    assert block.events["unexpected"] - before == 4
    assert ERRORS_T.unpack_bits(await setup.register(ERRORS))["unexpected"] == before + 4


@cocotb.test()
async def interrupts_follow_what_they_announce(dut: Any) -> None:
    setup = Setup(dut, 9)
    await setup.start(enumerated=True)
    block, node, root = setup.block, setup.node, setup.block.root
    block.memory(LOW, 1 << 16)
    await setup.device.alloc_irq_vectors(8, 8)
    own = setup.bars[4]
    fired = []
    for number, vector in enumerate(setup.device.msi_vectors[:8]):
        assert (await root.mem_read_dword(own + 16 * number + 12)) & 1 == 0
        assert await root.mem_read_qword(own + 16 * number) == vector.addr

        async def note(number: int = number) -> None:
            fired.append(number)

        vector.cb.append(note)
    for number in range(8):
        region = WATCH_T.pack(enable=1, size=number % 2, base=(LOW >> 12) + 2 * number)
        await root.mem_write_qword(own + WATCH + 8 * number, region)
        assert await root.mem_read_qword(own + WATCH + 8 * number) == region
    # Beside multiples of 16, and outside the regions, nothing.
    for addr in (LOW + 8, LOW + 0x1000, LOW + 0x5008, LOW + 0xF004, LOW - 0x1000, LOW + 0x10000):
        node.write(addr, bytes(8))
    await setup.settled()
    assert not fired
    # Data, header word, interrupt, in this order.
    block.sent.clear()
    for addr, size in ((LOW + 0x3048, 24), (LOW + 0x3040, 8)):
        node.write(addr, bytes(size))
    await setup.bench.until(lambda: fired == [1])
    assert [tlp.address for tlp in block.sent[:2]] == [LOW + 0x3048, LOW + 0x3040]
    assert block.sent[2].address == setup.device.msi_vectors[1].addr and len(block.sent) == 3
    assert block.sent[2].attr == TlpAttr(0)
    # Masked: pending, and sent once when it is not masked any more. Likewise all of them.
    fired.clear()
    await root.mem_write_dword(own + 16 * 3 + 12, 1)
    for _ in range(3):
        node.write(LOW + 0x6000, bytes(16))
    await setup.settled()
    assert not fired and await root.mem_read_qword(own + PBA) == 1 << 3
    await root.mem_write_dword(own + 16 * 3 + 12, 0)
    await setup.bench.until(lambda: fired == [3])
    await setup.settled()
    assert await root.mem_read_qword(own + PBA) == 0
    for name, value in (("msix_mask", 1), ("msix_enable", 0), ("bus_master", 0)):
        fired.clear()
        node.write(LOW + 0x8010, bytes(16))
        await setup.settled()
        assert fired == [4], name
        block.config[name] = value
        if name != "bus_master":
            node.write(LOW + 0x8010, bytes(16))
            await setup.settled()
            assert fired == [4], name
        else:
            # Not even the write leaves.
            before = len(block.sent)
            node.write(LOW + 0x8010, bytes(16))
            await setup.settled()
            assert len(block.sent) == before
        del block.config[name]
        await setup.settled()
        assert fired == [4] * (2 if name != "bus_master" else 1)
    # Moderation: two at once, then one for all that came meanwhile.
    fired.clear()
    interval = 400
    await root.mem_write_dword(own + SETTING, 1000 | interval << 16)
    block.sent.clear()
    block.first_cycles.clear()
    for _ in range(20):
        node.write(LOW + 0xA000, bytes(16))
        await setup.bench.cycles(30)
    await setup.bench.cycles(interval)
    times = [
        cycle
        for tlp, cycle in zip(block.sent, block.first_cycles, strict=False)
        if tlp.address == setup.device.msi_vectors[5].addr
    ]
    assert len(times) == 3 and all(interval <= b - a for a, b in pairwise(times))
    # High addresses of tables: four dwords of header.
    fired.clear()
    block.memory(HIGH, 4096)
    await root.mem_write_qword(own + 16 * 6, HIGH + 0x10)
    await root.mem_write_dword(own + 16 * 6 + 8, 0xABCD1234)
    await setup.settled()
    node.write(LOW + 0xC000, bytes(16))
    await setup.settled()
    assert await root.mem_address_space.read(HIGH + 0x10, 4) == 0xABCD1234.to_bytes(4, "little")


@cocotb.test()
async def a_reset_of_the_function_leaves_nothing_behind(dut: Any) -> None:
    setup = Setup(dut, 10, stall=0.2)
    await setup.start()
    block, node, rng = setup.block, setup.node, setup.rng
    timeout = 60
    for trial in range(12):
        setup.set_register(SETTING, SETTING_T.pack(patience=1000, timeout=timeout))
        await setup.settled()
        block.to_host = lambda tlp: False
        block.sent.clear()
        node.answers.clear()
        setup.set_register(WATCH, WATCH_T.pack(enable=1, size=4, base=LOW >> 12))
        setup.set_register(0, HIGH)
        setup.set_register(8, 0x1234)
        # Everything is under way.
        for number in range(40):
            node.write(LOW + 1024 * number, rng.randbytes(rng.randrange(1, 513)))
        for tag in range(6):
            node.read(LOW, 200, tag)
        for _ in range(3):
            setup.store(rng.getrandbits(32), words_of(rng, 4))
        node.open = trial % 2 == 0
        await setup.bench.cycles(rng.randrange(30, 150))
        # Some reads are answered, others never or late.
        requests = [tlp for tlp in block.sent if tlp.fmt_type == TlpType.MEM_READ]
        for request in requests:
            if rng.random() < 0.5:
                size = 4 * request.length
                block.deliver(completion(request, bytes(size), size), None)
                request.seq = 1
        resets = node.reset_seen
        dut.flr_i.value = 1
        await setup.bench.until(lambda: bool(int(dut.flr_done_o.value)), 4000)
        assert node.reset_seen > resets
        # From here on it is silent, whatever the host does.
        before = len(block.sent)
        setup.store(0x40, [1])
        setup.set_register(0x40, 1, bar=0)
        for request in block.sent:
            if request.fmt_type == TlpType.MEM_READ and not request.seq:
                size = 4 * request.length
                block.deliver(completion(request, bytes(size), size), None)
        await setup.bench.until(lambda: not block.arriving)
        await setup.bench.cycles(300)
        assert len(block.sent) == before and not int(dut.tx_valid_o.value)
        stores, writes = len(node.stores), len(node.register_writes)
        node.open = True
        dut.flr_i.value = 0
        await setup.bench.cycles(20)
        assert (len(node.stores), len(node.register_writes)) == (stores, writes)
        # And it is new: counts begin at nothing, nobody has a share, and all works.
        assert await setup.register(STORES) == 0
        for context in (0, trial + 1, CONTEXTS - 1):
            assert await setup.register(SHARES + 8 * context) == 0
        setup.store(0x40, [1])
        await setup.settled()
        assert len(node.stores) == stores and await setup.dropped_of(0) == 1
        await setup.give_shares(dict.fromkeys(range(16), LINES))
        assert await setup.register(WATCH) == 0
        assert READS_T.unpack_bits(await setup.register(READS))["lost"] == 0
        setup.store(0x40, [trial])
        await setup.bench.until(lambda n=stores: len(node.stores) == n + 1)
        assert node.stores[-1] == (0x40, [trial])
        block.sent.clear()
        node.write(LOW, b"12345678")
        await setup.bench.until(lambda: bool(block.sent))
        assert bytes(block.sent[-1].data) == b"12345678"


@cocotb.test()
async def a_late_answer_of_the_node_is_nobodys(dut: Any) -> None:
    setup = Setup(dut, 13)
    await setup.start()
    node = setup.node
    setup.set_register(SETTING, SETTING_T.pack(patience=40, timeout=1000))
    node.registers = {0x40: 0x4040404040404040, 0x48: 0x4848484848484848}
    node.units = {CUSTOM | 0x80: 0x8080808080808080, CUSTOM | 0x88: 0x8888888888888888}
    for bar, first, second in ((0, 0x40, 0x48), (2, CUSTOM | 0x80, CUSTOM | 0x88)):
        node.mute = True
        for _ in range(3):
            assert (await setup.load(bar, first)).status == CplStatus.CA
        node.mute = False
        answer = await setup.load(bar, second)
        assert answer.status == CplStatus.SC and bytes(answer.data) == bytes([second & 255] * 8)


@cocotb.test()
async def a_host_that_takes_nothing_is_waited_for_and_still_served(dut: Any) -> None:
    """Packets out stand, those in go on. Reads without credits hold up nothing."""
    setup = Setup(dut, 11)
    await setup.start()
    block, node = setup.block, setup.node
    block.nonposted_ok = False
    block.to_host = lambda tlp: False
    node.read(LOW, 8, 1)
    node.write(LOW, b"12345678")
    await setup.bench.until(lambda: len(block.sent) == 1)
    assert block.sent[0].fmt_type == TlpType.MEM_WRITE
    assert (await setup.load(4, FUNCTION)).status == CplStatus.SC
    block.nonposted_ok = True
    await setup.bench.until(lambda: block.sent[-1].fmt_type == TlpType.MEM_READ)
    block.dumb = True
    node.write(LOW, bytes(512))
    for _ in range(12):
        block.deliver(setup.packet(TlpType.MEM_READ_64, FUNCTION, 2), 4)
    for number in range(6):
        setup.store(0x40 * number, [number])
        setup.set_register(8 * number, number, bar=0)
    await setup.bench.until(lambda: len(node.register_writes) == 6 and len(node.stores) == 6)
    block.dumb = False
    await setup.bench.until(lambda: len(block.answers) == 13)
    assert all(answer.status == CplStatus.SC for answer in block.answers)
    assert not any(block.events.values())


def values_of(handle: Any) -> dict[str, str]:
    """Every signal in and below a module, memories left out."""
    found = {}
    for part in handle:
        if isinstance(part, HierarchyObject):
            found |= values_of(part)
        elif isinstance(part, LogicObject | PackedObject):
            found[part._path] = str(part.value)
    return found


@cocotb.test()
async def a_function_that_has_nothing_to_do_stands_still(dut: Any) -> None:
    """A simulator may let it rest, and a chip takes little power."""
    setup = Setup(dut, 14)
    await setup.start(enumerated=True)
    setup.block.memory(LOW, 4096)
    setup.node.read(LOW, 64, 5)
    setup.node.write(LOW, bytes(64))
    setup.store(0x40, [1])
    await setup.bench.until(lambda: 5 in setup.node.answers)
    assert await setup.block.root.mem_read_dword(setup.bars[4] + FUNCTION)
    await setup.bench.cycles(300)
    before = values_of(dut)
    assert len(before) > 500
    for cycles in (1, 2, 61):
        await setup.bench.cycles(cycles)
        after = values_of(dut)
        assert not [path for path in before if before[path] != after[path]]


@cocotb.test()
async def it_takes_so_many_cycles(dut: Any) -> None:
    """Without a stall: a packet's first beat to the node's store, a DMA write's to its packet's."""
    setup = Setup(dut, 12)
    await setup.start()
    block, node = setup.block, setup.node
    block.to_host = lambda tlp: False
    figures: dict[str, int] = {}
    for long in (False, True):
        for words in (2, 8):
            count = len(node.stores)
            setup.store(0x40, words_of(setup.rng, words), long)
            await setup.bench.until(lambda n=count: len(node.stores) > n)
            cycles = node.store_cycles[-1] - block.rx_first_cycle
            figures[f"pcie_store_cycles_{8 * words}B_{4 if long else 3}DW"] = cycles
            await setup.bench.cycles(5)
    for base in (LOW, HIGH):
        for size in (8, 512):
            count = len(block.sent)
            node.write(base, bytes(size))
            await setup.bench.until(lambda n=count: len(block.sent) > n)
            await setup.bench.cycles(5)
            cycles = block.first_cycles[count] - node.write_cycles[-1]
            figures[f"pcie_dma_cycles_{size}B_{4 if base == HIGH else 3}DW"] = cycles
            await setup.bench.until(lambda: not node.writes)
            await setup.bench.cycles(300)
    # An 8-byte message is a line of 16 bytes; its address on a 64-bit machine has two dwords.
    figures["pcie_store_cycles"] = figures["pcie_store_cycles_16B_4DW"]
    figures["pcie_dma_cycles"] = max(
        value for name, value in figures.items() if name.startswith("pcie_dma")
    )
    CYCLES.write_text(json.dumps(figures, indent=2) + os.linesep, encoding="utf-8")
    assert figures["pcie_store_cycles"] <= 8
    assert figures["pcie_dma_cycles"] <= 8
    await FallingEdge(dut.clk_i)
