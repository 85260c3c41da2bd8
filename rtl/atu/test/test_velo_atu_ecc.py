# SPDX-License-Identifier: Apache-2.0
"""The translation with a protected cache: bits of its lines are turned over."""

import cocotb
from cocotb.triggers import FallingEdge
from test_velo_atu import CLIENTS, NONE, PAGE, READ, Setup, entry


def test_atu_ecc(simulate):
    simulate("velo_atu", {"NumClients": CLIENTS, "LineBits": 2, "Ecc": 1})


async def count(dut, told):
    while True:
        await FallingEdge(dut.clk_i)
        told[int(dut.ecc_o.value)] += 1


@cocotb.test()
async def a_wrong_line_is_put_right_or_fetched_afresh(dut):
    setup, told = Setup(dut), [0, 0, 0, 0]
    setup.table[6] = entry(1, 0x1234, READ)
    await setup.start()
    cocotb.start_soon(count(dut, told))
    line = dut.u_cache.u_lines.gen_old.mem[6 % 4]
    request, granted = (6 * PAGE, 8, 1, 0, 0, READ), (NONE, 0x1234 * PAGE)

    async def ask(reads, broken, corrected):
        assert await setup.ask(0, *request) == granted
        setup.give_back(0)
        assert (setup.reads, told[1], told[2]) == (reads, broken, corrected)

    await ask(1, 0, 0)
    await ask(1, 0, 0)
    kept, corrected = int(line.value), 0
    for bit in range(len(line)):
        line.value = kept ^ 1 << bit
        corrected += 1
        await ask(1, 0, corrected)
    for number, bit in enumerate(range(0, len(line) - 7, 5)):
        line.value = kept ^ 1 << bit ^ 1 << bit + 7
        await ask(2 + number, 1 + number, corrected)
        # The line holds the entry that was fetched.
        await ask(2 + number, 1 + number, corrected)
    # A line that nobody asks for is nobody's business.
    dut.u_cache.u_lines.gen_old.mem[1].value = 3
    before = told[1:3]
    await ask(setup.reads, *before)
