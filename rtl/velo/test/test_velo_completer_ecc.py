# SPDX-License-Identifier: Apache-2.0
"""The completer with a protected table of contexts: bits of its entries are turned over."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from test_velo_completer import Setup, header

MEMORY, CTX, BASE, SLOTS = 13, 3, 0x8000, 8


@pytest.mark.parametrize("width", [32])
def test_completer_ecc(simulate, width):
    simulate("velo_completer", {"DataWidth": width, "CtxBits": 4, "Ecc": 1})


async def count(dut, told):
    while True:
        await FallingEdge(dut.clk_i)
        told[int(dut.ecc_o.value)] += 1


@cocotb.test()
async def no_message_goes_where_a_broken_entry_says(dut):
    setup, told = Setup(dut), [0, 0, 0, 0]
    await setup.start()
    await setup.configure(CTX, BASE, SLOTS)
    cocotb.start_soon(count(dut, told))
    contexts, sent = dut.u_contexts, 0

    async def message():
        await setup.send(header(CTX, 16), [7, 8])
        await setup.bench.cycles(30)
        found = setup.poll(CTX)
        await setup.free(CTX)
        return found is not None

    assert await message() and told[1:] == [0, 0, 0]
    corrected = broken = 0
    for table in (contexts.u_rings, contexts.u_write_pointers, contexts.u_read_pointers):
        for bit in range(len(table.gen_old.mem[CTX])):
            entry = table.gen_old.mem[CTX]
            entry.value = int(entry.value) ^ 1 << bit
            corrected += 1
            assert await message() and told[1:] == [broken, corrected, 0], (table, bit)
            await setup.configure(CTX, BASE, SLOTS)
        for first in range(0, len(table.gen_old.mem[CTX]) - 2, 3):
            entry = table.gen_old.mem[CTX]
            entry.value = int(entry.value) ^ 5 << first
            writes, broken = len(setup.sink.packets), broken + 1
            await setup.send(header(CTX, 16), [7, 8])
            await setup.bench.cycles(30)
            assert len(setup.sink.packets) == writes, (table, first)
            assert setup.errors == [(MEMORY, CTX)] * broken
            assert told[1:] == [broken, corrected, 0]
            # A new configuration mends the entry.
            await setup.configure(CTX, BASE, SLOTS)
            setup.memory.clear()
            assert await message()
            sent += 1
    assert sent == broken > 20
