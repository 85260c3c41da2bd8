# SPDX-License-Identifier: Apache-2.0
"""From the network to a unit: a packet's route goes, the mark of congestion that it got stays."""

import random

import cocotb
import pytest
from stream import Bench, Sink

ROUTE, MARK = 1, 1 << 3  # bits of a first word
ROUTE_BITS = 64


@pytest.mark.parametrize("width", [32, 64])
def test_rx(simulate, width):
    simulate("velo_netport_rx", {"DataWidth": width, "MessagesAtOnce": 1})


async def send(dut, bench, words) -> None:
    """As the switch does: no word waits."""
    for index, word in enumerate(words):
        dut.in_valid_i.value = 1
        dut.in_sop_i.value = index == 0
        dut.in_eop_i.value = index == len(words) - 1
        dut.in_data_i.value = word
        await bench.cycles(1)
    dut.in_valid_i.value = 0


@cocotb.test
async def the_mark_of_either_first_word_comes_with_the_header(dut):
    rng = random.Random(3)
    width = len(dut.in_data_i)
    bench = Bench(dut, ["in_valid_i", "in_sop_i", "in_eop_i", "in_poison_i", "in_data_i"])
    await bench.start()
    sink = Sink(bench, "out", stall=0.3)
    expected = []
    for index in range(400):
        routed, marked = rng.random() < 0.5, rng.random() < 0.5
        packet = [rng.getrandbits(width) for _ in range(rng.randrange(2, 12))]
        header = packet[0] & ~(ROUTE | MARK | 0xF0)  # kind: a VELO message
        in_header = header | MARK * (marked and not routed)
        words = [in_header, *packet[1:]]
        if routed:
            # Route words' other bits are of no interest; the mark is in the first.
            more = [rng.getrandbits(width) for _ in range(ROUTE_BITS // width - 1)]
            first = rng.getrandbits(width) & ~MARK | ROUTE | MARK * marked
            words = [first, *more, *words]
        await send(dut, bench, words)
        expected.append([header | MARK * marked, *packet[1:]])
        await bench.until(lambda count=index: len(sink.packets) >= count - 8)
    await bench.until(lambda: len(sink.packets) == len(expected))
    assert [[beat.data for beat in one] for one in sink.packets] == expected
