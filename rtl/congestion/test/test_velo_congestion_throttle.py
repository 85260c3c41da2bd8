# SPDX-License-Identifier: Apache-2.0
"""The throttle: packets to a congested node keep gaps, others lose no cycle, none is lost."""

import itertools
import random

import cocotb
from stream import Bench, Sink, Source

UNIT_WORDS = 8
LEVEL_MAX = 39
RAISE_UNITS = 32
WALK = 512  # cycles, if recover is 1
LATE = 240  # a node that the walk comes to after 60,000 cycles


def test_throttle(simulate):
    simulate("velo_congestion_throttle", {"DataWidth": 32})


def gap(level: int) -> int:
    """Cycles after each unit for a destination of this level, from its definition."""
    return (4 + level % 4) << (level // 4) if level else 0


def packet(node: int, words: int, mark: int = 0) -> list[int]:
    return [node << 8, *((mark << 8 | word) & 0xFFFFFFFF for word in range(1, words))]


def node_of(beats) -> int:
    return beats[0].data >> 8 & 0xFF


async def start(dut, recover: int = 255, increase: int = 8, enable: int = 1, stall: float = 0.0):
    inputs = ["in_valid_i", "in_sop_i", "in_eop_i", "in_data_i", "out_ready_i", "notice_valid_i"]
    bench = Bench(dut, [*inputs, "notice_node_i"])
    dut.enable_i.value = enable
    dut.increase_i.value = increase
    dut.recover_cycles_i.value = recover
    await bench.start()
    return bench, Source(bench, "in"), Sink(bench, "out", stall=stall)


async def notice(bench, node: int) -> None:
    """The pulse, and the time to work it in."""
    bench.dut.notice_valid_i.value = 1
    bench.dut.notice_node_i.value = node
    await bench.cycles(1)
    bench.dut.notice_valid_i.value = 0
    await bench.cycles(8)


def gaps(sink: Sink, node: int) -> list[int]:
    """Cycles from one packet's last beat to the next one's first."""
    packets = [one for one in sink.packets if node_of(one) == node]
    return [after[0].cycle - before[-1].cycle for before, after in itertools.pairwise(packets)]


@cocotb.test
async def nothing_waits_without_a_notice(dut):
    _, source, sink = await start(dut)
    for index in range(50):
        await source.send(packet(index, 5))
    cycles = [beat.cycle for beat in sink.beats]
    assert len(cycles) == 250
    assert cycles == list(range(cycles[0], cycles[0] + 250)), "a cycle was lost"


@cocotb.test
async def a_notice_spaces_the_packets_to_its_node(dut):
    bench, source, sink = await start(dut)
    for level in (8, 16, 24):
        await notice(bench, LATE)
        sink.packets.clear()
        for _ in range(6):
            await source.send(packet(LATE, 6))
        # One cycle more: looking a packet up takes longer than the smallest gaps.
        for measured in gaps(sink, LATE):
            assert gap(level) <= measured <= max(gap(level), 4) + 1, f"level {level}: {measured}"
        await source.send(packet(LATE, UNIT_WORDS * RAISE_UNITS))


@cocotb.test
@cocotb.parametrize(between=range(6))
async def of_notices_close_together_each_counts_for_its_own_node(dut, between):
    """In consecutive cycles, too."""
    bench, source, sink = await start(dut)
    for node in (LATE, LATE + 1):
        dut.notice_valid_i.value, dut.notice_node_i.value = 1, node
        await bench.cycles(1)
        dut.notice_valid_i.value = 0
        if node == LATE:
            await bench.cycles(between)
    await bench.cycles(12)
    for node in (LATE, LATE + 1, LATE + 2):
        for _ in range(3):
            await source.send(packet(node, 6))
    for node in (LATE, LATE + 1):
        assert all(gap(8) <= measured <= gap(8) + 1 for measured in gaps(sink, node)), node
    assert max(gaps(sink, LATE + 2)) == 1


@cocotb.test
async def a_gap_grows_with_its_packet(dut):
    bench, source, sink = await start(dut)
    await notice(bench, 9)
    for words in (1, 8, 9, 17, 70, 3):
        await source.send(packet(9, words))
    for measured, words in zip(gaps(sink, 9), (1, 8, 9, 17, 70), strict=True):
        units = -(-words // UNIT_WORDS)
        assert gap(8) * units <= measured <= gap(8) * units + 1, f"{words} words: {measured}"


@cocotb.test
async def other_nodes_lose_no_cycle(dut):
    bench, source, sink = await start(dut)
    await notice(bench, 3)
    await source.send(packet(3, 4))
    for index in range(40):
        await source.send(packet(4 + index, 4))
    cycles = [beat.cycle for beat in sink.beats if beat.cycle >= sink.packets[1][0].cycle]
    assert cycles == list(range(cycles[0], cycles[0] + 160))


@cocotb.test
async def levels_end_at_the_highest(dut):
    bench, source, sink = await start(dut, increase=15)
    for _ in range(2):
        await notice(bench, 1)
        await source.send(packet(1, UNIT_WORDS * RAISE_UNITS))
    await notice(bench, 1)
    sink.packets.clear()
    for _ in range(3):
        await source.send(packet(1, 2))
    assert all(gap(LEVEL_MAX) <= one <= gap(LEVEL_MAX) + 1 for one in gaps(sink, 1))


@cocotb.test
async def a_level_is_raised_once_for_what_was_sent_before(dut):
    """Notices for the packets on their way do not add up; those for later ones raise it again."""
    bench, source, sink = await start(dut)
    for level in (8, 16, 24):
        for _ in range(10):
            await notice(bench, LATE)
            await notice(bench, 250)
        for index in range(RAISE_UNITS):
            await source.send(packet(LATE, UNIT_WORDS))
            # Other destinations' packets do not count, here or there.
            await source.send(packet(5, 2))
            if index < RAISE_UNITS - 1:
                await notice(bench, LATE)
        measured = gaps(sink, LATE)[-1]
        assert gap(level) <= measured <= gap(level) + 16, measured
    sink.packets.clear()
    await source.send(packet(250, 1))
    await source.send(packet(250, 1))
    assert gap(8) <= gaps(sink, 250)[0] <= gap(8) + 1


@cocotb.test
async def a_long_packet_counts_by_its_units(dut):
    bench, source, sink = await start(dut)
    await notice(bench, LATE)
    await source.send(packet(LATE, UNIT_WORDS * (RAISE_UNITS - 1)))
    await notice(bench, LATE)  # too early
    await source.send(packet(LATE, UNIT_WORDS + 1))
    await notice(bench, LATE)
    sink.packets.clear()
    for _ in range(3):
        await source.send(packet(LATE, 2))
    assert gap(16) <= gaps(sink, LATE)[1] <= gap(16) + 1


@cocotb.test
async def a_raise_counts_from_the_packet_at_hand(dut):
    """The level is raised while a packet waits or goes: what that packet counted before is void."""
    bench, source, sink = await start(dut)
    await notice(bench, LATE)
    for _ in range(RAISE_UNITS):
        await source.send(packet(LATE, UNIT_WORDS))
    sending = cocotb.start_soon(source.send(packet(LATE, 2)))
    await bench.cycles(3)
    await notice(bench, LATE)  # level 16
    await sending
    await notice(bench, LATE)  # too early
    sink.packets.clear()
    for _ in range(3):
        await source.send(packet(LATE, 2))
    assert gap(16) <= gaps(sink, LATE)[1] <= gap(16) + 1


@cocotb.test
async def levels_fall_with_time(dut):
    bench, source, sink = await start(dut, recover=1, increase=8)
    await notice(bench, 200)
    # One level in each walk of 512 cycles.
    await bench.cycles(512 * 4 - 20)
    sink.packets.clear()
    await source.send(packet(200, 2))
    await source.send(packet(200, 2))
    assert gap(4) <= gaps(sink, 200)[0] <= gap(5) + 2
    await bench.cycles(512 * 5)
    sink.packets.clear()
    for _ in range(10):
        await source.send(packet(200, 2))
    assert gaps(sink, 200) == [1] * 9, "it is held for ever"


@cocotb.test
async def a_level_that_fell_may_rise_again(dut):
    """A sender so slow that a level falls before it has sent its units: the next notice counts."""
    walk = 256
    bench, source, sink = await start(dut, recover=0, increase=8)
    await notice(bench, 1)
    await bench.cycles(walk + 20)  # level 7
    await notice(bench, 1)  # 15
    await notice(bench, 1)  # too early
    for _ in range(2):
        await source.send(packet(1, 1))
    assert gap(14) <= gaps(sink, 1)[0] <= gap(15) + 1


async def raise_to(bench, node: int, level: int) -> None:
    """From zero to a level above 28, if recover is 1; nothing is sent."""
    bench.dut.increase_i.value = 15
    await notice(bench, node)
    await bench.cycles(WALK // 2)  # 14
    await notice(bench, node)  # 29
    await bench.cycles(2 * WALK)  # 28
    bench.dut.increase_i.value = level - 28
    await notice(bench, node)


@cocotb.test
async def high_levels_fall_more_slowly(dut):
    """Above 28 every second walk lowers a level, above 36 every fourth."""
    bench, source, sink = await start(dut, recover=1)
    await raise_to(bench, 1, 39)
    begun = bench.cycle
    for walks, lowest, highest in ((20, 30, 32), (44, 8, 12), (60, 0, 0)):
        await bench.cycles(begun + walks * WALK - bench.cycle)
        sink.packets.clear()
        for _ in range(2):
            await source.send(packet(1, 1))
        (measured,) = gaps(sink, 1)
        assert max(gap(lowest), 1) <= measured <= gap(highest) + 1, f"{walks} walks: {measured}"


@cocotb.test
async def a_high_level_rises_after_a_fall_alone(dut):
    """Two of eight walks lower it, so two of the notices behind them may raise it."""
    bench, source, sink = await start(dut, recover=1)
    await raise_to(bench, 1, 37)
    dut.increase_i.value = 1
    for _ in range(8):
        await bench.cycles(WALK - 9)
        await notice(bench, 1)
    for _ in range(2):
        await source.send(packet(1, 1))
    (measured,) = gaps(sink, 1)
    assert gap(36) <= measured <= gap(37) + 1, measured


@cocotb.test
async def a_time_long_past_holds_nobody(dut):
    """Longer than times can tell apart: the walk keeps them true."""
    bench, source, _ = await start(dut, recover=255, increase=15)
    for _ in range(2):
        await notice(bench, 5)
        await source.send(packet(5, UNIT_WORDS * RAISE_UNITS))
    await source.send(packet(5, 2))
    await bench.cycles(140_000)
    begun = bench.cycle
    await source.send(packet(5, 2))
    assert bench.cycle - begun < 10


@cocotb.test
async def off_means_off(dut):
    bench, source, sink = await start(dut, enable=0)
    for _ in range(3):
        await notice(bench, 7)
    for _ in range(10):
        await source.send(packet(7, 3))
    assert gaps(sink, 7) == [1] * 9
    dut.enable_i.value = 1
    await bench.cycles(2)
    sink.packets.clear()
    for _ in range(10):
        await source.send(packet(7, 3))
    assert gaps(sink, 7) == [1] * 9, "it knows of notices that came while it was off"


@cocotb.test
async def an_offer_stands_through_a_notice(dut):
    """The sink fails if an offered beat is withdrawn."""
    bench, source, sink = await start(dut, stall=1.0)
    sending = cocotb.start_soon(source.send(packet(6, 3)))
    await bench.cycles(5)
    await notice(bench, 6)
    await bench.cycles(20)
    sink.stall = 0.0
    await sending
    # Now it waits for a gap and is offered; the next notice makes the gap no longer.
    await source.send(packet(6, UNIT_WORDS * RAISE_UNITS))
    sink.stall = 1.0
    sending = cocotb.start_soon(source.send(packet(6, 3)))
    await bench.cycles(gap(8) * RAISE_UNITS + 20)
    await notice(bench, 6)
    await bench.cycles(20)
    sink.stall = 0.0
    await sending
    assert len(sink.packets) == 3


@cocotb.test
async def nothing_is_lost_or_passed(dut):
    """Random packets, notices and stalls: the same packets come out, in order."""
    rng = random.Random(19)
    bench, source, sink = await start(dut, recover=0, increase=3, stall=0.3)
    sent = []

    async def disturb():
        while True:
            await bench.cycles(rng.randrange(1, 400))
            dut.notice_valid_i.value = 1
            dut.notice_node_i.value = rng.randrange(4)
            await bench.cycles(1)
            dut.notice_valid_i.value = 0

    cocotb.start_soon(disturb())
    source.idle = 0.2
    held = 0
    for index in range(300):
        one = packet(rng.randrange(4), rng.randrange(1, 20), index)
        sent.append(one)
        await source.send(one)
        held += bool(gaps(sink, one[0] >> 8) and gaps(sink, one[0] >> 8)[-1] > 20)
    await bench.until(lambda: len(sink.packets) == 300)
    assert [[beat.data for beat in one] for one in sink.packets] == sent
    assert held > 20, "no packet was ever held"
