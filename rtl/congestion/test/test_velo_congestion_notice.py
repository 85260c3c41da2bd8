# SPDX-License-Identifier: Apache-2.0
"""Notices: senders of marked packets are told, at their pace, and requests pass as they came."""

import itertools
import random

import cocotb
import pytest
from stream import Bench, Sink, Source, join_packet, packet_to_beats

NODE = 0x21
MARK = 1 << 3
COMPLETION, CONGESTION = 2, 9


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_notice(simulate, width):
    simulate("velo_congestion_notice", {"DataWidth": width})


def request(source: int, words: int, marked: bool) -> list[int]:
    header = NODE << 8 | 8 * words << 26 | source << 52 | (MARK if marked else 0)
    return [header, *range(1, words + 1)]


async def start(dut, gap: int, enable: int = 1, stall: float = 0.0, notice_stall: float = 0.0):
    inputs = ["in_valid_i", "in_sop_i", "in_eop_i", "in_data_i", "out_ready_i", "notice_ready_i"]
    bench = Bench(dut, inputs)
    dut.node_id_i.value = NODE
    dut.enable_i.value = enable
    dut.notice_cycles_i.value = gap
    await bench.start()
    sinks = Sink(bench, "out", stall=stall), Sink(bench, "notice", stall=notice_stall)
    return bench, Source(bench, "in"), *sinks


def told(sink: Sink, width: int) -> list[int]:
    """The nodes that notices went to; each is a header and nothing else."""
    nodes = []
    for packet in sink.packets:
        header = join_packet(packet, width)
        assert header == COMPLETION << 1 | CONGESTION << 4 | (header >> 8 & 0xFF) << 8 | NODE << 52
        nodes.append(header >> 8 & 0xFF)
    return nodes


@cocotb.test
async def marks_become_notices(dut):
    width = int(dut.DataWidth.value)
    bench, source, out, notices = await start(dut, gap=0)
    for index in range(20):
        await source.send(packet_to_beats(request(index, index % 5, index % 2 == 1), width))
        await bench.cycles(4)
    await bench.cycles(10)
    assert told(notices, width) == list(range(1, 20, 2))
    for index, packet in enumerate(out.packets):
        assert join_packet(packet, width) & MARK == 0, "a unit sees the mark"
        assert join_packet(packet, width) >> 52 & 0xFF == index
    cycles = [packet[0].cycle for packet in out.packets]
    assert cycles == source.first_cycles, "a request lost a cycle"


@cocotb.test
async def notices_keep_their_distance(dut):
    width = int(dut.DataWidth.value)
    bench, source, _, notices = await start(dut, gap=50)
    for index in range(300):
        await source.send(packet_to_beats(request(index % 7, 2, True), width))
    await bench.cycles(60)
    begins = [packet[0].cycle for packet in notices.packets]
    gaps = [after - before for before, after in itertools.pairwise(begins)]
    assert len(gaps) > 5
    assert min(gaps) >= 50 and max(gaps) < 60
    assert len(set(told(notices, width))) > 3, "only some senders are told"


@cocotb.test
async def requests_do_not_wait_for_notices(dut):
    """The class of completions stands still; requests go on, and one notice is kept."""
    width = int(dut.DataWidth.value)
    bench, source, out, notices = await start(dut, gap=0, notice_stall=1.0)
    for index in range(50):
        await source.send(packet_to_beats(request(index, 3, True), width))
    assert len(out.packets) == 50 and not notices.packets
    notices.stall = 0.0
    await bench.cycles(5)
    assert told(notices, width) == [0]


@cocotb.test
async def off_means_no_notice(dut):
    width = int(dut.DataWidth.value)
    bench, source, out, notices = await start(dut, gap=0, enable=0)
    for index in range(10):
        await source.send(packet_to_beats(request(index, 1, True), width))
    await bench.cycles(5)
    assert len(out.packets) == 10 and not notices.packets
    assert all(join_packet(packet, width) & MARK == 0 for packet in out.packets)


@cocotb.test
async def random_stalls(dut):
    width = int(dut.DataWidth.value)
    rng = random.Random(7)
    bench, source, out, notices = await start(dut, gap=3, stall=0.4, notice_stall=0.4)
    source.idle = 0.2
    sent = []
    for _ in range(200):
        words = request(rng.randrange(256), rng.randrange(6), rng.random() < 0.5)
        sent.append(words)
        await source.send(packet_to_beats(words, width))
    await bench.until(lambda: len(out.packets) == 200)
    await bench.cycles(30)
    for words, packet in zip(sent, out.packets, strict=True):
        expected = packet_to_beats([words[0] & ~MARK, *words[1:]], width)
        assert [beat.data for beat in packet] == expected
    marked = [words[0] >> 52 for words in sent if words[0] & MARK]
    nodes = iter(marked)
    assert all(node in nodes for node in told(notices, width)), "a node that marked nothing"
    assert len(notices.packets) > 20
