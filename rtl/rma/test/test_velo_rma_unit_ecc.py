# SPDX-License-Identifier: Apache-2.0
"""The whole RMA unit with protected memories: bits are turned over in each of them."""

import cocotb
from cocotb.triggers import FallingEdge
from host_model import (
    COMPLETER,
    ERROR,
    GET,
    LOST,
    MALFORMED,
    NODE,
    NOTIFY,
    PAGE,
    PUT,
    READ,
    REQUESTER,
    RIGHT,
    UPDATE,
    command,
    descriptor,
    packet,
)
from test_velo_rma import OURS, THEIRS, THEM, US, quiet, ready

MEMORY = 13
# The places of the memories in `ecc_o`.
QUEUES, ASKED, SERVED, FAILURES = 1, 4, 5, 6


def test_rma_unit_ecc(simulate):
    simulate("velo_rma", {"DataWidth": 32, "CtxBits": 4, "LineBits": 3, "Ecc": 1})


class Counter:
    """What each memory has told: [broken, corrected]."""

    def __init__(self, dut):
        self.dut, self.told = dut, [[0, 0] for _ in range(8)]
        cocotb.start_soon(self._run())

    async def _run(self):
        while True:
            await FallingEdge(self.dut.clk_i)
            ecc = int(self.dut.ecc_o.value)
            for memory, told in enumerate(self.told):
                told[0] += ecc >> 2 * memory & 1
                told[1] += ecc >> 2 * memory + 1 & 1


async def spoil_next(buffer, mask):
    """Turn bits over in the next word that comes into a buffer, before it is read."""
    place = int(buffer.write_q.value)
    while int(buffer.write_q.value) == place:
        await FallingEdge(buffer.clk_i)
    word = buffer.u_ram.gen_any.mem[place % len(buffer.u_ram.gen_any.mem)]
    word.value = int(word.value) ^ mask


@cocotb.test()
async def an_update_of_a_lost_word_writes_nothing(dut):
    setup = await ready(dut)
    counter, buffer = Counter(dut), dut.u_target.u_serve.u_reader.u_buffer
    setup.write(THEIRS, (5).to_bytes(8, "little"))
    expected = 5
    for cookie, mask in enumerate((0, 1 << 7, 0x21, 1 << 31, 3 << 33)):
        words = descriptor(UPDATE, THEM, 8, OURS, THEIRS, REQUESTER, cookie, always=1)
        if mask:
            cocotb.start_soon(spoil_next(buffer, mask))
        setup.post([*words, 0, 3], ctx=US)
        (note,) = await setup.notified(US)
        await quiet(setup, 80)
        lost = bin(mask).count("1") == 2
        expected += 0 if lost else 3
        assert (note.place, note.error) == ((ERROR, MEMORY) if lost else (REQUESTER, 0)), cookie
        assert int.from_bytes(setup.read(THEIRS, 8), "little") == expected, cookie
    assert setup.errors == [(MEMORY, THEM, NODE)] * 2
    assert counter.told[SERVED] == [2, 2]


async def spoil_request(asks, beat, mask):
    """Turn bits over in a beat of the next request that comes, before it is read."""
    while int(asks.in_beat_q.value) != beat + 1:
        await FallingEdge(asks.clk_i)
    banks = 128 // len(asks.beat_data_i)
    memory = asks.gen_bank[beat % banks].u_ram.gen_any.mem
    word = memory[int(asks.write_q.value) + beat // banks]
    word.value = int(word.value) ^ mask


@cocotb.test()
async def a_request_that_was_lost_while_it_waited_ends_and_the_next_is_served(dut):
    setup = await ready(dut)
    counter, asks = Counter(dut), dut.u_target.u_serve.u_asks
    dut.answer_cycles_i.value, dut.answer_enable_i.value = 1024, 1
    setup.write(THEIRS, (5).to_bytes(8, "little"))
    expected = 5
    # The kind, who asks, how much, where to; none of these may be half of one request. As many are
    # lost as a node has slots, and one more.
    cases = [(beat, mask) for beat in (0, 1, 2, 3, 5, 6) for mask in (1 << 8, 3 << 8, 0)]
    for cookie, (beat, mask) in enumerate(cases):
        if mask:
            spoiler = cocotb.start_soon(spoil_request(asks, beat, mask))
        words = descriptor(UPDATE, THEM, 8, OURS, THEIRS, REQUESTER, cookie, always=1)
        setup.post([*words, 0, 3], ctx=US)
        (note,) = await setup.notified(US)
        await quiet(setup, 80)
        assert not mask or spoiler.done()
        lost = bin(mask).count("1") == 2
        expected += 0 if lost else 3
        outcome = (note.place, note.error, note.cookie)
        assert outcome == ((ERROR, LOST, cookie) if lost else (REQUESTER, 0, cookie))
        assert int.from_bytes(setup.read(THEIRS, 8), "little") == expected
        assert setup.errors == ([(MEMORY, 0, 0), (LOST, US, NODE)] if lost else [])
        setup.errors.clear()
    assert counter.told[ASKED] == [6, 6]


@cocotb.test()
async def data_that_were_lost_are_never_taken_for_good(dut):
    setup = await ready(dut)
    counter, buffer = Counter(dut), dut.u_target.u_serve.u_reader.u_buffer
    for cookie, mask in enumerate((1 << 9, 0x101, 0)):
        source = THEIRS + 512 * cookie
        data = setup.read(source, 200)
        if mask:
            cocotb.start_soon(spoil_next(buffer, mask))
        words = descriptor(GET, THEM, 200, OURS + 512 * cookie, source, REQUESTER, cookie)
        setup.post(words, ctx=US)
        (note,) = await setup.notified(US)
        lost = mask == 0x101
        assert (note.place, note.error) == ((ERROR, MALFORMED) if lost else (REQUESTER, 0)), cookie
        assert lost or setup.read(OURS + 512 * cookie, 200) == data
    assert counter.told[SERVED] == [1, 1]


@cocotb.test()
async def no_notification_goes_where_a_broken_entry_says(dut):
    setup = await ready(dut)
    counter = Counter(dut)
    queues = dut.u_host.u_notifier.u_queues
    tables = queues.u_rings, queues.u_write_pointers, queues.u_read_pointers
    for cookie, table in enumerate(tables):
        for mask in (4, 6):
            entry = table.gen_old.mem[THEM]
            entry.value = int(entry.value) ^ mask
            before = len(setup.touched)
            setup.post(descriptor(NOTIFY, THEM, 0, 0, 0, COMPLETER, cookie))
            if mask == 4:
                (note,) = await setup.notified(THEM)
                assert (note.place, note.error, note.cookie) == (COMPLETER, 0, cookie)
            else:
                (note,) = await setup.notified(US)
                assert (note.place, note.error, note.cookie) == (ERROR, MEMORY, cookie)
                await quiet(setup)
                # The entry that told of the failure was written.
                assert all(0x81000 <= at < 0x82000 for at, _ in setup.touched[before:])
            await setup.queue(THEM)
    assert setup.errors == [(MEMORY, THEM, NODE)] * 3
    assert counter.told[QUEUES] == [3, 3]


@cocotb.test()
async def a_failure_that_cannot_be_read_is_one(dut):
    setup = await ready(dut)
    counter = Counter(dut)
    memory = dut.u_target.u_accept.u_completer.u_failures.gen_old.mem
    setup.register(0x20, THEM, READ)
    setup.register(0x21, THEM)
    cases = (
        (THEIRS, 0, True, [0, 0]),
        (THEIRS, 2, True, [0, 1]),
        (THEIRS, 5, False, [1, 1]),
        # Of the code of this failure, both bits: it reads as none.
        (0x21 * PAGE - 8, RIGHT, False, [2, 1]),
    )
    for address, mask, told, counts in cases:
        # Two packets of one put; the bits turn over between them.
        for offset in (0, 8):
            words = command(PUT, 16, address, notify=COMPLETER, offset=offset)
            setup.inject(0, packet(1, 0, THEM, words, [mask]))
            await quiet(setup)
            if not offset:
                memory[NODE].value = int(memory[NODE].value) ^ mask
        assert counter.told[FAILURES] == counts
        assert len(setup.seen[THEM]) == int(told), (address, mask)
        setup.seen.clear()
