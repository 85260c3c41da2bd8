# SPDX-License-Identifier: Apache-2.0
"""A packet with a void beat must not look whole; the packets behind it must."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

ZEROS = ("hold_i", "job_valid_i", "job_command_i", "job_operands_i", "job_operand_words_i",
         "data_valid_i", "data_bad_i", "data_void_i", "net_ready_i")  # fmt: skip


@pytest.mark.parametrize("width", [32, 128])
def test_emit_ecc(simulate, width):
    simulate("velo_rma_emit", {"DataWidth": width, "Ecc": 1})


@cocotb.test()
async def a_packet_with_a_void_beat_has_one_beat_more(dut):
    rng, bench, width = random.Random(1), Bench(dut, ZEROS), len(dut.data_i) // 8
    await bench.start()
    head = 3 if width == 16 else 32 // width
    for number in range(120):
        size = rng.randrange(1, 100)
        beats, words = -(-size // width), -(-size // 8)
        body = -(-words * 8 // width)
        void = {rng.randrange(beats) for _ in range(number % 3)}
        dut.job_header_i.value = (24 + size) << 26
        dut.job_data_bytes_i.value = size
        dut.job_valid_i.value = 1
        taken, length, given = False, 0, 0
        for _ in range(2000):
            ready, there = rng.random() < 0.7, given < beats and rng.random() < 0.7
            dut.net_ready_i.value, dut.data_valid_i.value = int(ready), int(there)
            dut.data_void_i.value = int(there and given in void)
            dut.data_i.value = given
            await ReadOnly()
            taken = taken or bool(int(dut.job_ready_o.value))
            given += there and int(dut.data_ready_o.value)
            ended = False
            if ready and int(dut.net_valid_o.value):
                length += 1
                ended = bool(int(dut.net_eop_o.value))
            await FallingEdge(dut.clk_i)
            if taken:
                dut.job_valid_i.value = 0
            if ended:
                break
        assert given == beats, (number, size, void)
        assert length == head + body + bool(void), (number, size, void)
