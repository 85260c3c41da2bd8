# SPDX-License-Identifier: Apache-2.0
"""One node's barriers: arrivals are counted, and what completes one is sent, by class."""

import random

import cocotb
import pytest
from stream import Bench, Sink, Source, join_packet, packet_to_beats
from structs import Struct

NODE, PARENT, CTX = 0x21, 0x42, 7
REQUEST, COMPLETION = 0, 2
KIND_VELO, KIND_BARRIER = 0, 10
FIRST_GROUP = 224


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_barrier(simulate, width):
    simulate("velo_barrier", {"DataWidth": width})


def header(tc: int, kind: int, node: int, ctx: int, tag: int, source: int, length: int = 0) -> int:
    return tc << 1 | kind << 4 | node << 8 | ctx << 16 | length << 26 | tag << 36 | source << 52


ACCESS, REPORT, STATE, SETTING, WATCHDOG = (
    Struct(package, name)
    for package, name in (
        ("velo_regfile_pkg", "barrier_access_t"),
        ("velo_regfile_pkg", "barrier_report_t"),
        ("velo_pkg", "barrier_state_t"),
        ("velo_pkg", "barrier_setting_t"),
        ("velo_regfile_pkg", "watchdog_t"),
    )
)


class Registers:
    """The side of the registers: one access a cycle, and the report."""

    def __init__(self, bench: Bench):
        self.bench, self.watchdog = bench, 0
        self.drive()

    def drive(self, **access: int) -> None:
        self.bench.dut.access_i.value = ACCESS.pack(watchdog=self.watchdog, **access)

    async def setup(self, group: int, expected: int, **fields: int) -> None:
        """Slot 1 and number 0, unless they are named."""
        fields = {"enabled": 1, "slot": 1, "parent": PARENT, "ctx": CTX} | fields
        self.drive(set=1, group=group, setting=SETTING.pack(expected=expected, **fields))
        await self.bench.cycles(1)
        self.drive()

    async def arrive(self, group: int, ctx: int = CTX) -> None:
        self.drive(arrive=1, group=group, ctx=ctx)
        await self.bench.cycles(1)
        self.drive()

    async def state(self, group: int) -> dict[str, int]:
        self.drive(read=1, group=group)
        await self.bench.cycles(1)
        state = self.report("state")
        self.drive()
        fields = {
            name: state >> lsb & (1 << bits) - 1 for name, (lsb, bits) in STATE.fields.items()
        }
        return {name: value for name, value in fields.items() if not name.startswith("zero")}

    def watch(self, cycles: int) -> None:
        self.watchdog = WATCHDOG.pack(enable=1, cycles=cycles)
        self.drive()

    def report(self, name: str) -> int:
        return REPORT.unpack(self.bench.dut.report_o)[name]


class Node:
    """All around the unit."""

    async def start(self, dut, arrival_stall: float = 0.0, release_stall: float = 0.0) -> "Node":
        inputs = ["in_valid_i", "in_eop_i", "in_data_i", "arrival_ready_i", "release_ready_i"]
        self.bench = Bench(dut, inputs)
        dut.node_id_i.value = NODE
        self.registers = Registers(self.bench)
        self.width = int(dut.DataWidth.value)
        await self.bench.start()
        self.arrivals = Sink(self.bench, "arrival", stall=arrival_stall)
        self.releases = Sink(self.bench, "release", stall=release_stall)
        self.source = Arrivals(self.bench, "in")
        return self

    async def child(self, group: int, slot: int, number: int, **other: int) -> None:
        fields = {"tc": COMPLETION, "kind": KIND_BARRIER, "node": NODE, "source": 9} | other
        words = [header(ctx=slot << 5 | group, tag=number, **fields)]
        words += [0] * ((fields.get("length", 0) + 7) // 8)
        await self.source.send(packet_to_beats(words, self.width))

    def sent(self) -> list[int]:
        return [join_packet(packet, self.width) for packet in self.arrivals.packets]

    def released(self) -> list[int]:
        return [join_packet(packet, self.width) for packet in self.releases.packets]


class Arrivals(Source):
    """A stream without `sop`."""

    def _set(self, name: str, value: int) -> None:
        if name != "sop":
            super()._set(name, value)


def up(group: int, slot: int, number: int) -> int:
    ctx = slot << 5 | group
    return header(COMPLETION, KIND_BARRIER, PARENT, ctx, number, NODE) | ctx << 44


def release(group: int, number: int) -> int:
    return header(REQUEST, KIND_VELO, FIRST_GROUP + group, CTX, number, NODE) | CTX << 44


@cocotb.test
async def the_last_arrival_sends_one(dut):
    node = await Node().start(dut)
    await node.registers.setup(3, 0b1011, slot=5, number=254)
    for number in (254, 255, 0, 1):
        await node.child(3, 3, number)
        await node.registers.arrive(3)
        await node.bench.cycles(10)
        assert (await node.registers.state(3))["arrived"] == 0b1001
        before = len(node.sent())
        await node.child(3, 1, number)
        last = node.bench.cycle - 1
        await node.bench.cycles(10)
        assert node.sent()[before:] == [up(3, 5, number)]
        # From the last beat of the last arrival to the first beat of the node's own.
        assert node.arrivals.packets[-1][0].cycle - last == 2
    assert not node.released()
    assert node.registers.report("complete") == 4 and node.registers.report("refused") == 0


@cocotb.test
async def the_root_sends_a_message_to_the_group(dut):
    node = await Node().start(dut)
    await node.registers.setup(31, 0b11, root=1, number=9)
    for number in (9, 10):
        await node.registers.arrive(31)
        await node.bench.cycles(8)
        assert node.released() == [release(31, done) for done in range(9, number)]
        await node.child(31, 1, number)
        await node.bench.cycles(8)
    assert node.released() == [release(31, 9), release(31, 10)]
    assert not node.sent()


@cocotb.test
async def what_does_not_count_changes_nothing(dut):
    node = await Node().start(dut)
    await node.registers.setup(1, 0b0111, number=5)
    await node.registers.arrive(2)  # not set up
    await node.registers.arrive(1, ctx=CTX + 1)  # not its context
    await node.child(1, 1, 4)  # the barrier before
    await node.child(1, 1, 6)  # the one after the next
    await node.child(1, 0, 5)  # no child has this slot
    await node.child(1, 3, 5)  # not expected
    await node.child(1, 1, 5, node=NODE + 1)  # another node's
    await node.child(1, 1, 5, length=8)  # no packet of one header
    await node.bench.cycles(3)
    state = await node.registers.state(1)
    assert state == {"enabled": 1, "due": 0, "expected": 7, "arrived": 0, "number": 5}
    assert node.registers.report("refused") == 8
    await node.child(1, 1, 5)
    await node.child(1, 1, 5)  # twice
    await node.registers.arrive(1)
    await node.registers.arrive(1)
    await node.bench.cycles(3)
    assert (await node.registers.state(1))["arrived"] == 0b0011
    assert node.registers.report("refused") == 10
    await node.registers.setup(1, 0b0111, number=8)
    assert (await node.registers.state(1))["arrived"] == 0, "a new setting forgets arrivals"
    await node.registers.setup(1, 0b0111, number=8, enabled=0)
    await node.child(1, 1, 8)
    await node.bench.cycles(3)
    assert node.registers.report("refused") == 11
    assert not node.sent() and not node.released()


@cocotb.test
async def an_arrival_before_the_last_one_left_is_refused(dut):
    """A host that does not wait for the release cannot fill the queue that all groups share."""
    node = await Node().start(dut, arrival_stall=1.0)
    await node.registers.setup(4, 1)
    for _ in range(40):
        await node.registers.arrive(4)
        await node.bench.cycles(1)
    assert (await node.registers.state(4))["due"] == 1
    assert node.registers.report("refused") == 39
    node.arrivals.stall = 0.0
    await node.bench.cycles(5)
    assert node.sent() == [up(4, 1, 0)]
    assert (await node.registers.state(4))["due"] == 0


@cocotb.test
async def classes_do_not_wait_for_each_other(dut):
    """The class of requests stands still: arrivals of other groups pass, and come in."""
    node = await Node().start(dut, release_stall=1.0)
    for group in range(32):
        await node.registers.setup(group, 0b10, root=group % 2)
    for group in range(32):
        await node.child(group, 1, 0)
    await node.bench.cycles(10)
    assert node.sent() == [up(group, 1, 0) for group in range(0, 32, 2)]
    assert not node.released()
    node.releases.stall = 0.0
    await node.bench.cycles(40)
    assert node.released() == [release(group, 0) for group in range(1, 32, 2)]


@cocotb.test
async def a_late_barrier_is_reported(dut):
    node = await Node().start(dut)
    seen = []

    async def watch():
        while True:
            await node.bench.cycles(1)
            if node.registers.report("late"):
                names = ("late_group", "late_missing", "late_number")
                seen.append(tuple(node.registers.report(name) for name in names))

    cocotb.start_soon(watch())
    await node.registers.setup(6, 0b1111, number=3)
    await node.registers.setup(9, 0b0011)
    await node.child(6, 2, 3)
    await node.bench.cycles(500)
    assert not seen, "off means no look"
    node.registers.watch(100)
    await node.bench.cycles(120)
    assert not seen, "at its first look it is not late"
    await node.bench.cycles(100)
    assert seen == [(6, 0b1011, 3)]
    await node.registers.arrive(6)
    await node.bench.cycles(100)
    assert seen[1:] == [(6, 0b1010, 3)]
    await node.child(6, 1, 3)
    await node.child(6, 3, 3)
    await node.bench.cycles(400)
    assert len(seen) == 2 and node.registers.report("lates") == 2
    assert node.sent() == [up(6, 1, 3)]


@cocotb.test
async def many_groups_at_random(dut):
    rng = random.Random(5)
    node = await Node().start(dut, arrival_stall=0.3, release_stall=0.3)
    node.source.idle = 0.2
    groups = {}
    for group in rng.sample(range(32), 12):
        number = rng.randrange(256)
        groups[group] = {"expected": rng.randrange(1, 256), "number": number, "missing": 0}
        groups[group]["root"] = rng.randrange(2)
        await node.registers.setup(
            group, groups[group]["expected"], root=groups[group]["root"], slot=2, number=number
        )
        groups[group]["missing"] = groups[group]["expected"]
    node.registers.watch(20)
    sent, released = [], []
    for _ in range(1500):
        group = rng.choice(list(groups))
        state = groups[group]
        if rng.random() < 0.1:
            await node.child(group, rng.randrange(8), state["number"] + 1 & 255)  # refused
        bit = rng.choice([n for n in range(8) if state["missing"] >> n & 1])
        if bit:
            await node.child(group, bit, state["number"])
        else:
            await node.registers.arrive(group)
        state["missing"] &= ~(1 << bit)
        if not state["missing"]:
            if state["root"]:
                released.append(release(group, state["number"]))
            else:
                sent.append(up(group, 2, state["number"]))
            state["number"] = state["number"] + 1 & 255
            state["missing"] = state["expected"]
            await node.bench.until(
                lambda: node.sent() == sent and node.released() == released, limit=200
            )
            await node.bench.cycles(1)
    assert len(sent) > 50 and len(released) > 50
    assert node.registers.report("complete") == len(sent) + len(released)
