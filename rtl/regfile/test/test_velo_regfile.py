# SPDX-License-Identifier: Apache-2.0
"""The register file behind its crossbar port: writes, reads, tables, counters, refusals."""

import random
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench
from structs import Struct

UNIT_VELO, UNIT_REGISTERS = 0, 2
SETUP, WATCHDOG, STALL, CUSTOM, CUSTOM_STATUS = 0x08, 0x10, 0x18, 0x30, 0x38
REQUESTER_ERROR, COMPLETER_ERROR = 0x20, 0x28
SENT, REFUSED, RECEIVED, DROPPED, UNMAPPED, LINKS = 0x40, 0x48, 0x50, 0x58, 0x60, 0x80
STRAY_RESPONSES, STRAY_COMPLETIONS = 0x68, 0x70
LINK_STATUS, LINK_CREDITS, NODE_PORT_DROPPED = 0x100, 0x140, 0x180
RINGS, READ_POINTERS, ROUTES = 0x8000000, 0x8100000, 0x8200000
PAGES, INVALIDATE, RMA_STALL, RMA_ERROR, RMA_POSTED = 0x88, 0x90, 0x98, 0xA0, 0xA8
RMA_COMPLETED, RMA_SERVED, RMA_REFUSED, RMA_ERRORS = 0xB0, 0xB8, 0xC0, 0xC8
ATU_HITS, ATU_MISSES, ATU_REFUSED, RMA_REQUESTER_ERROR = 0xD0, 0xD8, 0xE0, 0xE8
BARRIER_WATCHDOG, BARRIER_LATE, BARRIER_COUNTS = 0x1E0, 0x1E8, 0x1F0
BARRIER_ARRIVALS, BARRIERS = 0x8500000, 0x8600000
ECC_CORRECTED, ECC_UNCORRECTABLE = 0x1D0, 0x1D8
QUEUES, QUEUE_READ_POINTERS = 0x8300000, 0x8400000
(
    VELO_SETTING,
    VELO_REPORT,
    RMA_SETTING,
    RMA_REPORT,
    NETWORK_SETTING,
    NETWORK_STATE,
    LINK_STATE,
    BARRIER_ACCESS,
    BARRIER_REPORT,
) = (
    Struct("velo_regfile_pkg", f"{name}_t")
    for name in (
        "velo_setting",
        "velo_report",
        "rma_setting",
        "rma_report",
        "network_setting",
        "network_state",
        "link_state",
        "barrier_access",
        "barrier_report",
    )
)
STREAM, READ = Struct("htax_pkg", "htax_stream_t"), Struct("htax_pkg", "htax_read_t")
INPUTS = [
    "posted_i",
    "posted_data_i",
    "nonposted_i",
    "response_ready_i",
    "network_state_i",
    "custom_status_i",
    "velo_report_i",
    "rma_report_i",
    "barrier_report_i",
    "stray_response_i",
    "stray_completion_i",
    "host_stalled_i",
    "network_stalled_i",
]


def test_32_bits(simulate: Callable[..., None]) -> None:
    simulate("velo_regfile", {"DataWidth": 32})


def test_64_bits(simulate: Callable[..., None]) -> None:
    simulate("velo_regfile", {"DataWidth": 64})


def test_128_bits(simulate: Callable[..., None]) -> None:
    simulate("velo_regfile", {"DataWidth": 128})


class Registers:
    def __init__(self, dut: Any):
        self.dut = dut
        self.width = len(dut.posted_data_i)

    async def settle(self) -> None:
        await FallingEdge(self.dut.clk_i)

    @staticmethod
    def header(offset: int, unit: int, length: int, tag: int = 0) -> int:
        return 1 << 71 | (unit << 36 | offset) << 23 | length << 13 | 5 << 9 | tag << 1

    async def beat(self, port: Any, offer: int, ready: Any, limit: int = 200) -> None:
        port.value = offer
        for _ in range(limit):
            await ReadOnly()
            taken = int(ready.value)
            await self.settle()
            if taken:
                port.value = 0
                return
        raise AssertionError("a beat was not taken")

    async def write(
        self, offset: int, value: int, unit: int = UNIT_REGISTERS, length: int = 8
    ) -> None:
        beats = -(-length * 8 // self.width)
        for beat in range(beats):
            header, eop = self.header(offset, unit, length), int(beat == beats - 1)
            offer = STREAM.pack(valid=1, eop=eop, header=header)
            self.dut.posted_data_i.value = (value >> (beat * self.width)) & ((1 << self.width) - 1)
            await self.beat(self.dut.posted_i, offer, self.dut.posted_ready_o)

    async def read(
        self, offset: int, unit: int = UNIT_REGISTERS, length: int = 8, tag: int = 7
    ) -> int | None:
        """The value; nothing for an answer that is an error."""
        offer = READ.pack(valid=1, header=self.header(offset, unit, length, tag))
        await self.beat(self.dut.nonposted_i, offer, self.dut.nonposted_ready_o)
        value = beats = 0
        self.dut.response_ready_i.value = 1
        for _ in range(100):
            await ReadOnly()
            response = STREAM.unpack(self.dut.response_o)
            if response["valid"]:
                head = response["header"]
                assert (head >> 9) & 15 == 5 and (head >> 1) & 255 == tag
                value |= int(self.dut.response_data_o.value) << (beats * self.width)
                beats += 1
                if response["eop"]:
                    await self.settle()
                    self.dut.response_ready_i.value = 0
                    assert value == 0 if head & 1 else beats == max(1, 64 // self.width)
                    return None if head & 1 else value
            await self.settle()
        raise AssertionError("a read was not answered")


async def start(dut: Any) -> Registers:
    bench = Bench(dut, INPUTS)
    await bench.start()
    await bench.cycles(2)
    return Registers(dut)


@cocotb.test
async def values_and_outputs(dut: Any) -> None:
    registers = await start(dut)
    assert await registers.read(0) == 1
    await registers.write(SETUP, 0xAB)
    await registers.write(WATCHDOG, 1 << 32 | 0x12345)
    await registers.write(CUSTOM, 0xFEDCBA9876543210)
    await registers.write(LINKS, 0x812A15)
    for offset, value in (
        (SETUP, 0xAB),
        (WATCHDOG, 1 << 32 | 0x12345),
        (CUSTOM, 0xFEDCBA9876543210),
        (LINKS, 0x812A15),
    ):
        assert await registers.read(offset) == value
    assert int(dut.node_id_o.value) == 0xAB
    for setting in (
        VELO_SETTING.unpack(dut.velo_setting_o),
        RMA_SETTING.unpack(dut.rma_setting_o),
    ):
        assert (setting["watchdog_enable"], setting["watchdog_cycles"]) == (1, 0x12345)
    network = NETWORK_SETTING.unpack(dut.network_setting_o)
    assert (network["link_enable"], network["link_restart"]) == (0x15, 0x2A)
    assert network["link_forget"] == 0x81
    assert int(dut.custom_setting_o.value) == 0xFEDCBA9876543210


@cocotb.test
async def state_is_shown(dut: Any) -> None:
    registers = await start(dut)
    dut.velo_report_i.value = VELO_REPORT.pack(stalled=1, stall_ctx=0x33)
    dut.network_stalled_i.value = 1
    dut.custom_status_i.value = 0x1122334455667788
    link = LINK_STATE.pack(up=1, credits=0xABCDEF) << LINK_STATE.bits * 2  # the third link
    dut.network_state_i.value = NETWORK_STATE.pack(link=link)
    assert await registers.read(STALL) == 0x3305
    assert await registers.read(CUSTOM_STATUS) == 0x1122334455667788
    assert await registers.read(0x110) & 1 == 1
    assert await registers.read(0x108) & 1 == 0
    assert await registers.read(0x150) == 0xABCDEF


def drive(dut: Any, events: dict[str, int]) -> None:
    """These events of the VELO units and of the streams, and no other ones."""
    velo = {name: value for name, value in events.items() if name in VELO_REPORT.fields}
    dut.velo_report_i.value = VELO_REPORT.pack(**velo)
    for name in ("stray_response", "stray_completion"):
        getattr(dut, f"{name}_i").value = events.get(name, 0)


@cocotb.test
async def counters_and_last_errors(dut: Any) -> None:
    registers = await start(dut)
    rng = random.Random(1)
    counters = {
        "sent": SENT,
        "refused": REFUSED,
        "received": RECEIVED,
        "dropped": DROPPED,
        "stray_response": STRAY_RESPONSES,
        "stray_completion": STRAY_COMPLETIONS,
    }
    sums = dict.fromkeys(counters, 0)
    refusal = drop = 0
    for cycle in range(300):
        # One at a time first: no counter counts what is another's.
        among = list(counters) if cycle >= 60 else [list(counters)[cycle // 10]]
        # Of a message's fates as many as there may be units may come in a cycle.
        most = {name: 4 if name in among else 0 for name in list(counters)[:4]}
        pulses = {name: rng.randrange(1 + most.get(name, name in among)) for name in counters}
        codes = {
            "refused_code": rng.randrange(16),
            "refused_source": rng.randrange(256),
            "dropped_code": rng.randrange(16),
            "dropped_ctx": rng.randrange(256),
            "dropped_node": rng.randrange(256),
        }
        drive(dut, pulses | codes)
        if pulses["refused"]:
            refusal = codes["refused_code"] | codes["refused_source"] << 8
        if pulses["dropped"]:
            drop = codes["dropped_code"] | codes["dropped_ctx"] << 8 | codes["dropped_node"] << 16
        for name, pulse in pulses.items():
            sums[name] += pulse
        await registers.settle()
    drive(dut, {})
    for name, offset in counters.items():
        assert await registers.read(offset) == sums[name], name
    assert await registers.read(UNMAPPED) == 0
    assert await registers.read(REQUESTER_ERROR) == refusal
    assert await registers.read(COMPLETER_ERROR) == drop
    for name, offset in counters.items():
        await registers.write(offset, 0xFFFFFFFE)
        drive(dut, {name: 1})
        for _ in range(3):
            await registers.settle()
        drive(dut, {})
        assert await registers.read(offset) == 1, f"{name} does not count modulo 2**32"
    # Software clears what it has seen.
    for offset in (REQUESTER_ERROR, COMPLETER_ERROR):
        await registers.write(offset, 0)
        assert await registers.read(offset) == 0


@cocotb.test
async def each_link_has_its_own_state(dut: Any) -> None:
    registers = await start(dut)
    rng = random.Random(2)
    # Of link_state_t, the lowest first: bits, and their place in the register.
    fields = [(1, 0), (1, 1), (3, 4)] + [(8, place) for place in range(8, 64, 8)]
    for _ in range(3):
        states = [rng.getrandbits(109) for _ in range(8)]
        dropped, poisoned = rng.getrandbits(24), rng.getrandbits(24)
        dut.network_state_i.value = NETWORK_STATE.pack(
            node_port_poisoned=poisoned,
            node_port_dropped=dropped,
            link=sum(state << 109 * link for link, state in enumerate(states)),
        )
        for link, state in enumerate(states):
            status, left = 0, state
            for bits, place in fields:
                status |= (left & (1 << bits) - 1) << place
                left >>= bits
            assert await registers.read(LINK_STATUS + 8 * link) == status
            assert await registers.read(LINK_CREDITS + 8 * link) == left
        for tc in range(3):
            both = dropped >> 8 * tc & 255 | (poisoned >> 8 * tc & 255) << 8
            assert await registers.read(NODE_PORT_DROPPED + 8 * tc) == both


@cocotb.test
async def tables(dut: Any) -> None:
    """A ring's setting waits until the completer takes it; nothing else does."""
    registers = await start(dut)
    seen: list[tuple[int, int]] = []

    async def watch() -> None:
        while True:
            await ReadOnly()
            now = VELO_SETTING.unpack(dut.velo_setting_o)
            if now["read_pointer_valid"]:
                seen.append((now["read_pointer_ctx"], now["read_pointer"]))
            await FallingEdge(dut.clk_i)

    cocotb.start_soon(watch())
    await registers.write(RINGS + (9 << 12), 0xABCD00 | 5 << 48 | 1)
    for _ in range(20):
        await registers.settle()
        assert VELO_SETTING.unpack(dut.velo_setting_o)["cfg_valid"]
    now = VELO_SETTING.unpack(dut.velo_setting_o)
    assert (now["cfg_ctx"], now["cfg_enabled"]) == (9, 1)
    assert (now["cfg_base"], now["cfg_last_slot"]) == (0xABCD00 >> 6, 31)
    dut.velo_report_i.value = VELO_REPORT.pack(cfg_ready=1)
    await registers.settle()
    await registers.settle()
    assert not VELO_SETTING.unpack(dut.velo_setting_o)["cfg_valid"]
    await registers.write(READ_POINTERS + (3 << 12), 0x1234)
    await registers.write(READ_POINTERS + (4 << 12), 0x4321)
    for _ in range(5):
        await registers.settle()
    assert seen == [(3, 0x1234), (4, 0x4321)]
    assert await registers.read(READ_POINTERS) == 0, "the tables read as zero"


@cocotb.test
async def routes_are_written_for_one_cycle(dut: Any) -> None:
    registers = await start(dut)
    seen: list[tuple[int, ...]] = []

    async def watch() -> None:
        while True:
            await ReadOnly()
            now = NETWORK_SETTING.unpack(dut.network_setting_o)
            if now["route_we"]:
                seen.append((now["route_node"], now["route_hop"], now["route_group"]))
            await FallingEdge(dut.clk_i)

    cocotb.start_soon(watch())
    await registers.write(ROUTES + 8 * 0x7E, 0x5)
    await registers.write(ROUTES + 8 * 0xE1, 0x1A5C)
    assert await registers.read(ROUTES) == 0, "the table reads as zero"
    assert seen == [(0x7E, 5, 5), (0xE1, 0xC, 0x1A5C)]


@cocotb.test
async def remote_memory_settings(dut: Any) -> None:
    """Table, deregistration, queues; a queue's setting waits for the unit, nothing else does."""
    registers = await start(dut)
    seen: list[tuple[int, ...]] = []

    async def watch() -> None:
        while True:
            await ReadOnly()
            now = RMA_SETTING.unpack(dut.rma_setting_o)
            if now["invalidate"]:
                seen.append((INVALIDATE, now["invalidate_page"]))
            if now["read_pointer_valid"]:
                seen.append((QUEUE_READ_POINTERS, now["read_pointer_ctx"], now["read_pointer"]))
            await FallingEdge(dut.clk_i)

    cocotb.start_soon(watch())
    assert not RMA_SETTING.unpack(dut.rma_setting_o)["table_enable"]
    await registers.write(PAGES, 0x123456789000 | 1 << 8 | 20)
    assert await registers.read(PAGES) == 0x123456789000 | 1 << 8 | 20
    now = RMA_SETTING.unpack(dut.rma_setting_o)
    assert (now["table_enable"], now["table_base"], now["table_bits"]) == (1, 0x123456789, 20)
    await registers.write(INVALIDATE, 0xABCDEF)
    assert await registers.read(INVALIDATE) == 1 << 63 | 0xABCDEF, "busy from the write on"
    assert await registers.read(INVALIDATE) == 0xABCDEF
    dut.rma_report_i.value = RMA_REPORT.pack(invalidating=1)
    assert await registers.read(INVALIDATE) == 1 << 63 | 0xABCDEF
    await registers.write(QUEUES + (0xC3 << 12), 0xFEDCBA987650 | 4 << 48 | 1)
    for _ in range(20):
        await registers.settle()
        assert RMA_SETTING.unpack(dut.rma_setting_o)["queue_valid"]
    now = RMA_SETTING.unpack(dut.rma_setting_o)
    assert (now["queue_ctx"], now["queue_enabled"]) == (0xC3, 1)
    assert (now["queue_base"], now["queue_last_entry"]) == (0xFEDCBA98765, 15)
    dut.rma_report_i.value = RMA_REPORT.pack(queue_ready=1)
    await registers.settle()
    await registers.settle()
    assert not RMA_SETTING.unpack(dut.rma_setting_o)["queue_valid"]
    await registers.write(QUEUE_READ_POINTERS + (7 << 12), 0x8001)
    assert await registers.read(QUEUES) == 0, "the tables read as zero"
    assert await registers.read(QUEUE_READ_POINTERS) == 0
    assert seen == [(INVALIDATE, 0xABCDEF), (QUEUE_READ_POINTERS, 7, 0x8001)]


@cocotb.test
async def remote_memory_reports(dut: Any) -> None:
    registers = await start(dut)
    dut.rma_report_i.value = RMA_REPORT.pack(stalled=1, stall_ctx=0x5A)
    assert await registers.read(RMA_STALL) == 0x5A01
    dut.rma_report_i.value = RMA_REPORT.pack(descriptors_wait=1)
    assert await registers.read(RMA_STALL) == 2
    rng = random.Random(4)
    counters = {
        "posted": RMA_POSTED,
        "completed": RMA_COMPLETED,
        "served": RMA_SERVED,
        "refused": RMA_REFUSED,
        "errors": RMA_ERRORS,
        "atu_hit": ATU_HITS,
        "atu_miss": ATU_MISSES,
        "atu_refused": ATU_REFUSED,
    }
    sums = dict.fromkeys(counters, 0)
    error = refusal = 0
    for _ in range(200):
        events = {name: rng.randrange(1 << RMA_REPORT.fields[name][1]) for name in counters}
        events["completed"] %= 3
        events["errors"] %= 6
        codes = {
            name: rng.randrange(1 << RMA_REPORT.fields[name][1])
            for name in ("error_code", "error_ctx", "error_node", "refused_code", "refused_source")
        }
        dut.rma_report_i.value = RMA_REPORT.pack(**events, **codes)
        if events["errors"]:
            error = codes["error_code"] | codes["error_ctx"] << 8 | codes["error_node"] << 16
        if events["refused"]:
            refusal = codes["refused_code"] | codes["refused_source"] << 8
        for name, number in events.items():
            sums[name] += number
        await registers.settle()
    dut.rma_report_i.value = 0
    for name, offset in counters.items():
        assert await registers.read(offset) == sums[name], name
    assert await registers.read(RMA_ERROR) == error
    assert await registers.read(RMA_REQUESTER_ERROR) == refusal
    await registers.write(RMA_ERRORS, 0xFFFFFFFE)
    dut.rma_report_i.value = RMA_REPORT.pack(errors=5)
    await registers.settle()
    dut.rma_report_i.value = 0
    assert await registers.read(RMA_ERRORS) == 3, "a sum counts modulo 2**32"


@cocotb.test
async def refusals(dut: Any) -> None:
    registers = await start(dut)
    await registers.write(SETUP, 1)
    await registers.write(SETUP, 2, unit=UNIT_VELO)
    await registers.write(SETUP + 4, 3)
    await registers.write(SETUP, 4, length=16)
    assert await registers.read(SETUP, unit=UNIT_VELO) is None
    assert await registers.read(SETUP + 4) is None
    assert await registers.read(SETUP, length=4) is None
    assert await registers.read(SETUP) == 1
    assert await registers.read(UNMAPPED) == 6


@cocotb.test
async def refusals_at_once(dut: Any) -> None:
    """A write and a read that lead nowhere count as two, whenever each of them comes."""
    registers = await start(dut)
    for lag in range(5):
        read = cocotb.start_soon(registers.read(SETUP + 4))
        for _ in range(lag):
            await registers.settle()
        await registers.write(SETUP, 2, unit=UNIT_VELO)
        assert await read is None
        assert await registers.read(UNMAPPED) == 2 * (lag + 1)


@cocotb.test
async def barriers(dut: Any) -> None:
    """Accesses are there for one cycle; lateness stays until it is cleared."""
    registers = await start(dut)
    seen: list[tuple[int | str, ...]] = []

    async def watch() -> None:
        while True:
            await ReadOnly()
            now = BARRIER_ACCESS.unpack(dut.barrier_access_o)
            for kind in ("set", "arrive", "read"):
                if now[kind]:
                    rest = {"set": "setting", "arrive": "ctx", "read": "read"}[kind]
                    seen.append((kind, now["group"], now[rest]))
            await FallingEdge(dut.clk_i)

    cocotb.start_soon(watch())
    dut.barrier_report_i.value = BARRIER_REPORT.pack(
        present=1, state=0x1234567890ABCDEF, complete=5, refused=6, lates=7
    )
    await registers.write(BARRIERS + 8 * 3, 0xFEDCBA9876543210)
    await registers.write(BARRIER_ARRIVALS + (9 << 12) + 8 * 31, 0xFFFF)
    await registers.write(BARRIER_ARRIVALS + (9 << 12) + 8 * 32, 0)  # no group has this word
    assert await registers.read(BARRIERS + 8 * 30) == 0x1234567890ABCDEF
    assert await registers.read(BARRIER_ARRIVALS) == 0
    assert seen == [("set", 3, 0xFEDCBA9876543210), ("arrive", 31, 9), ("read", 30, 1)]
    assert await registers.read(BARRIER_COUNTS) == 5 | 6 << 16 | 7 << 32
    await registers.write(BARRIER_WATCHDOG, 1 << 32 | 0x654321)
    assert await registers.read(BARRIER_WATCHDOG) == 1 << 33 | 1 << 32 | 0x654321
    watchdog = BARRIER_ACCESS.unpack(dut.barrier_access_o)["watchdog"]
    assert watchdog == 1 << 24 | 0x654321
    assert await registers.read(BARRIER_LATE) == 0
    dut.barrier_report_i.value = BARRIER_REPORT.pack(
        late=1, late_missing=0x12, late_group=4, late_number=0x56
    )
    await registers.settle()
    dut.barrier_report_i.value = 0
    assert await registers.read(BARRIER_LATE) == 0x12 | 228 << 8 | 0x56 << 16
    await registers.write(BARRIER_LATE, 0)
    assert await registers.read(BARRIER_LATE) == 0


@cocotb.test
async def words_with_wrong_bits_are_counted(dut: Any) -> None:
    registers, rng = await start(dut), random.Random(5)
    corrected = broken = 0
    for _ in range(100):
        units, rma, net = [[rng.randrange(most + 1) for _ in range(2)] for most in (4, 7, 18)]
        dut.velo_report_i.value = VELO_REPORT.pack(ecc=units[0] << 6 | units[1])
        dut.rma_report_i.value = RMA_REPORT.pack(ecc=rma[0] << 6 | rma[1])
        dut.network_state_i.value = NETWORK_STATE.pack(ecc=net[0] << 6 | net[1])
        corrected += units[0] + rma[0] + net[0]
        broken += units[1] + rma[1] + net[1]
        await registers.settle()
    dut.velo_report_i.value = dut.rma_report_i.value = dut.network_state_i.value = 0
    assert await registers.read(ECC_CORRECTED) == corrected
    assert await registers.read(ECC_UNCORRECTABLE) == broken
