# SPDX-License-Identifier: Apache-2.0
"""The address translation against a table in a model of host memory."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

PAGE, BITS, BASE = 4096, 6, 0x4000
READ, WRITE, ATOMIC = 1, 2, 4
NONE, OVERSIZE, UNREGISTERED, RIGHT, HOST = 0, 2, 8, 9, 10
CLIENTS = 3
ZEROS = (
    "invalidate_valid_i",
    "request_valid_i",
    "release_i",
    "writes_begun_i",
    "writes_done_i",
    "response_valid_i",
    "response_error_i",
)


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_atu(simulate, width):
    simulate("velo_atu", {"DataWidth": width, "NumClients": CLIENTS, "LineBits": 2})


def entry(ctx, frame, rights, peer=None) -> int:
    one = 0 if peer is None else 1 | peer << 48
    return one | rights << 1 | ctx << 4 | frame << 12


class Setup:
    def __init__(self, dut, seed=1, stall=0.3):
        self.dut, self.rng, self.stall = dut, random.Random(seed), stall
        self.width = len(dut.response_data_i)
        self.bench = Bench(dut, ZEROS)
        self.table = [0] * (1 << BITS)
        self.fail: set[int] = set()
        self.reads = 0
        self.request, self.release = [0] * CLIENTS, 0
        self.answers: list[tuple[int, int] | None] = [None] * CLIENTS
        self.asking = [False] * CLIENTS

    async def start(self):
        dut = self.dut
        dut.enable_i.value, dut.table_base_i.value, dut.table_bits_i.value = 1, BASE >> 3, BITS
        await self.bench.start()
        cocotb.start_soon(self._run())
        await self.bench.cycles(20)

    async def _run(self):
        dut, beats, delay = self.dut, [], 0
        while True:
            ready = self.rng.random() >= self.stall
            dut.nonposted_ready_i.value = int(ready)
            show = bool(beats) and delay <= 0 and self.rng.random() >= self.stall
            delay -= 1
            dut.response_valid_i.value = int(show)
            if show:
                data, eop, error = beats[0]
                dut.response_data_i.value, dut.response_eop_i.value = data, eop
                dut.response_error_i.value = error
            packed = valid = 0
            for client in range(CLIENTS):
                packed |= self.request[client] << (102 * client)
                valid |= int(self.asking[client]) << client
            dut.request_i.value, dut.request_valid_i.value = packed, valid
            dut.release_i.value, self.release = self.release, 0
            await ReadOnly()
            if show:
                beats.pop(0)
            if ready and int(dut.nonposted_valid_o.value):
                header = int(dut.nonposted_header_o.value)
                addr, size = header >> 23 & (1 << 48) - 1, header >> 13 & 1023
                assert size == 8 and BASE <= addr < BASE + (8 << BITS) and not beats
                self.reads += 1
                page, delay = (addr - BASE) // 8, self.rng.randrange(10)
                word, mask = self.table[page], (1 << self.width) - 1
                count = -(-64 // self.width)
                beats = [(word >> (self.width * i) & mask, i == count - 1, 0) for i in range(count)]
                if page in self.fail:
                    beats = [(0, 1, 1)]
            taken, answered = int(dut.request_ready_o.value), int(dut.answer_valid_o.value)
            for client in range(CLIENTS):
                if self.asking[client] and taken >> client & 1:
                    self.asking[client] = False
                if answered >> client & 1:
                    answer = int(dut.answer_o.value)
                    self.answers[client] = answer >> 48, answer & (1 << 48) - 1
            await FallingEdge(dut.clk_i)

    async def ask(self, client, address, size, ctx, peer, own, rights):
        """(error, host address); what was granted is held until given back."""
        low = rights | own << 3 | peer << 4 | ctx << 20 | size << 28
        self.request[client] = low | address << 38
        self.answers[client], self.asking[client] = None, True
        for _ in range(500):
            await FallingEdge(self.dut.clk_i)
            if self.answers[client] is not None:
                return self.answers[client]
        raise AssertionError("no answer")

    def give_back(self, client):
        self.release |= 1 << client

    async def invalidate(self, page):
        self.dut.invalidate_page_i.value, self.dut.invalidate_valid_i.value = page, 1
        await FallingEdge(self.dut.clk_i)
        self.dut.invalidate_valid_i.value = 0

    def expected(self, address, size, ctx, peer, own, rights):
        page, offset = address // PAGE, address % PAGE
        if page >= 1 << BITS:
            return UNREGISTERED, 0
        if page in self.fail:
            return HOST, 0
        word = self.table[page]
        if not word >> 1 & 7:
            return UNREGISTERED, 0
        if offset + size > PAGE:
            return OVERSIZE, 0
        wrong_peer = word & 1 and not own and word >> 48 != peer
        if word >> 4 & 255 != ctx or rights & ~(word >> 1) or wrong_peer:
            return RIGHT, 0
        return NONE, (word >> 12 & (1 << 36) - 1) * PAGE + offset


@cocotb.test()
async def every_access_is_judged_as_the_table_says(dut):
    setup = Setup(dut)
    rng = setup.rng
    for page in range(1 << BITS):
        peer = rng.choice((None, rng.randrange(4)))
        setup.table[page] = entry(rng.randrange(2), rng.getrandbits(36), rng.randrange(8), peer)
    setup.fail = {5, 9}
    await setup.start()
    seen = set()
    for _ in range(600):
        page = rng.choice((rng.randrange(8), rng.randrange(1 << BITS), rng.randrange(80)))
        offset = rng.choice((rng.randrange(PAGE), PAGE - rng.randrange(1, 80)))
        address = page * PAGE + offset | (rng.random() < 0.03) << rng.randrange(36, 64)
        request = address, rng.randrange(513), rng.randrange(2), rng.randrange(4)
        request += rng.randrange(2), rng.choice((READ, WRITE, ATOMIC))
        client = rng.randrange(CLIENTS)
        error, place = await setup.ask(client, *request)
        wanted = setup.expected(*request)
        assert (error, 0 if error else place) == wanted, request
        seen.add(error)
        if not error:
            setup.give_back(client)
    assert seen == {NONE, OVERSIZE, UNREGISTERED, RIGHT, HOST}


@cocotb.test()
async def the_cache_answers_in_five_cycles_and_never_for_another_page(dut):
    setup = Setup(dut, stall=0.0)
    for page in range(1 << BITS):
        setup.table[page] = entry(1, 0x100 + page, READ)
    await setup.start()
    # Pages 3, 7, 11 share a line of the cache.
    for page, reads in ((3, 1), (3, 1), (7, 2), (3, 3), (4, 4), (3, 4), (4, 4)):
        before = setup.bench.cycle
        assert await setup.ask(0, page * PAGE, 8, 1, 0, 0, READ) == (NONE, (0x100 + page) * PAGE)
        hit = setup.reads == reads and page in (3, 4) and setup.bench.cycle - before <= 7
        setup.give_back(0)
        assert setup.reads == reads and (hit or reads in (1, 2, 3, 4))
    # An access that was refused for want of a page is looked up again.
    setup.table[20] = 0
    assert (await setup.ask(0, 20 * PAGE, 8, 1, 0, 0, READ))[0] == UNREGISTERED
    setup.table[20] = entry(1, 5, READ)
    assert (await setup.ask(0, 20 * PAGE, 8, 1, 0, 0, READ))[0] == NONE


@cocotb.test()
async def deregistration_ends_when_every_access_and_write_is_over(dut):
    setup = Setup(dut)
    for page in range(1 << BITS):
        setup.table[page] = entry(1, page, READ | WRITE)
    await setup.start()
    for client in range(2):
        assert (await setup.ask(client, 2 * PAGE, 8, 1, 0, 0, WRITE))[0] == NONE
    setup.table[2] = 0
    await setup.invalidate(2)
    await setup.bench.cycles(30)
    assert int(dut.invalidating_o.value)
    # Nobody gets the page from here on, though the deregistration has not ended.
    assert (await setup.ask(2, 2 * PAGE, 8, 1, 0, 0, READ))[0] == UNREGISTERED
    # An access granted later, to another page, is not waited for.
    assert (await setup.ask(2, 3 * PAGE, 8, 1, 0, 0, READ))[0] == NONE
    setup.give_back(0)
    await setup.bench.cycles(20)
    assert int(dut.invalidating_o.value)
    dut.writes_begun_i.value = 3
    dut.writes_done_i.value = 0
    setup.give_back(1)
    await setup.bench.cycles(20)
    assert int(dut.invalidating_o.value)
    dut.writes_begun_i.value = 9
    dut.writes_done_i.value = 2
    await setup.bench.cycles(20)
    assert int(dut.invalidating_o.value)
    dut.writes_done_i.value = 3
    await setup.bench.cycles(3)
    assert not int(dut.invalidating_o.value)
    assert (await setup.ask(0, 2 * PAGE, 8, 1, 0, 0, READ))[0] == UNREGISTERED


@cocotb.test()
async def nothing_is_granted_while_translation_is_off(dut):
    setup = Setup(dut)
    setup.table[1] = entry(1, 1, 7)
    await setup.start()
    assert (await setup.ask(0, PAGE, 8, 1, 0, 0, READ))[0] == NONE
    setup.give_back(0)
    await setup.bench.cycles(2)
    dut.enable_i.value = 0
    reads = setup.reads
    assert (await setup.ask(0, PAGE, 8, 1, 0, 0, READ))[0] == UNREGISTERED
    assert (await setup.ask(0, 2 * PAGE, 8, 1, 0, 0, READ))[0] == UNREGISTERED
    assert setup.reads == reads


@cocotb.test()
async def a_setting_that_changes_while_an_access_is_judged_grants_nothing_else(dut):
    """Whenever the table is switched on, no page gets another one's entry in the same line."""
    setup = Setup(dut, stall=0.0)
    setup.table[3] = entry(1, 0x103, 7)
    await setup.start()
    for cycle in range(12):
        assert await setup.ask(0, 3 * PAGE, 8, 1, 0, 0, READ) == (NONE, 0x103 * PAGE)
        setup.give_back(0)
        dut.enable_i.value = 0
        await setup.bench.cycles(20)

        async def switch_on(cycle=cycle):
            await setup.bench.cycles(cycle)
            dut.enable_i.value = 1

        cocotb.start_soon(switch_on())
        assert (await setup.ask(1, 7 * PAGE, 8, 1, 0, 0, READ))[0] == UNREGISTERED, cycle
        await setup.bench.cycles(20)
        assert (await setup.ask(1, 7 * PAGE, 8, 1, 0, 0, READ))[0] == UNREGISTERED, cycle


@cocotb.test()
async def what_is_known_of_a_table_ends_with_its_setting(dut):
    """Also if the setting was another one only while an access was judged."""
    setup = Setup(dut, stall=0.0)
    await setup.start()
    for number, begin in enumerate((None, 0, 2, 3, 4, 5, 6)):
        setup.table[3] = entry(1, 0x200 + number, 7)
        if begin is not None:
            asked = cocotb.start_soon(setup.ask(1, 9 * PAGE, 8, 1, 0, 0, READ))
            await setup.bench.cycles(begin)
            dut.enable_i.value = 0
            await setup.bench.cycles(1)
            dut.enable_i.value = 1
            await asked
        assert await setup.ask(0, 3 * PAGE, 8, 1, 0, 0, READ) == (NONE, (0x200 + number) * PAGE)
        setup.give_back(0)
