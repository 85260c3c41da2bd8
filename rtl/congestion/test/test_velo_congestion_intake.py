# SPDX-License-Identifier: Apache-2.0
"""The intake: notices are taken, whatever their length, and nothing else is touched."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench, Sink, Source, packet_to_beats

CONGESTION, NOTIFICATION = 9, 5


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_intake(simulate, width):
    simulate("velo_congestion_intake", {"DataWidth": width})


@cocotb.test
async def notices_are_taken_and_the_rest_passes(dut):
    width = int(dut.DataWidth.value)
    rng = random.Random(3)
    bench = Bench(dut, ["in_valid_i", "in_sop_i", "in_eop_i", "in_data_i", "out_ready_i"])
    await bench.start()
    source, sink = Source(bench, "in", idle=0.2), Sink(bench, "out", stall=0.3)
    seen = []

    async def watch():
        while True:
            await ReadOnly()
            if int(dut.notice_valid_o.value):
                seen.append(int(dut.notice_node_o.value))
            await FallingEdge(dut.clk_i)

    cocotb.start_soon(watch())
    passed, noticed = [], []
    for _ in range(300):
        node, words = rng.randrange(256), rng.randrange(4)
        kind = rng.choice([CONGESTION, NOTIFICATION])
        beats = packet_to_beats(
            [2 << 1 | kind << 4 | node << 52, *(rng.getrandbits(64) for _ in range(words))], width
        )
        if kind == CONGESTION:
            noticed.append(node)
        else:
            passed.append(beats)
        await source.send(beats)
    await bench.until(lambda: len(sink.packets) == len(passed))
    assert [[beat.data for beat in packet] for packet in sink.packets] == passed
    assert seen == noticed
    # A cut notice of one beat on the narrow path has no sender and is swallowed.
    sink.stall = 1.0
    await source.send([CONGESTION << 4])
    await source.send(packet_to_beats([CONGESTION << 4 | 77 << 52], width))
    assert seen[-1] == 77, "a notice waited for a unit"
