# SPDX-License-Identifier: Apache-2.0
"""The completer against a model of host memory: what a polling receiver may ever see."""

import random
from collections import defaultdict
from itertools import pairwise

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench, Sink, Source, join, packet_to_beats

NODE = 0x5A
PATIENCE, CONTEXTS, GIVE_EVERY = 50, 16, 8  # cycles; as CtxBits below and in velo_patience say
MALFORMED, CONTEXT, STALL, KIND, POISONED = 3, 4, 5, 7, 12
ZEROS = ("watchdog_enable_i", "watchdog_cycles_i", "cfg_valid_i", "read_pointer_valid_i")


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_completer(simulate, width):
    simulate("velo_completer", {"DataWidth": width, "CtxBits": 4})


def header(ctx, size, tag=0, source=0, node=NODE, kind=0, tc=0, frag=0) -> int:
    """A packet header; `source` is context and node of the sender."""
    low = tc << 1 | kind << 4 | node << 8 | ctx << 16 | frag << 24 | size << 26
    return low | tag << 36 | source << 44


class Setup:
    """The unit, its host memory, and for each context what was sent and what was read."""

    def __init__(self, dut, idle=0.0, stall=0.0, seed=1):
        self.width = len(dut.net_data_i)
        self.rng = random.Random(seed)
        self.dut = dut
        self.bench = Bench(dut, ZEROS)
        dut.node_id_i.value = NODE
        self.net = Source(self.bench, "net", idle, self.rng)
        self.sink = Sink(self.bench, "dma", ("addr", "len_bytes"), stall, self.rng)
        self.errors: list[tuple[int, int]] = []
        self.memory: dict[int, int] = {}
        self.seen_writes = 0
        self.ring: dict[int, tuple[int, int]] = {}
        self.head: dict[int, int] = defaultdict(int)

    async def start(self):
        await self.bench.start()
        cocotb.start_soon(self._watch())
        await self.bench.cycles(20)  # The table clears itself.

    async def _watch(self):
        while True:
            await ReadOnly()
            if int(self.dut.error_valid_o.value):
                self.errors.append(
                    (int(self.dut.error_code_o.value), int(self.dut.error_ctx_o.value))
                )
            await FallingEdge(self.dut.clk_i)

    async def configure(self, ctx, base, slots, enabled=1):
        self.dut.cfg_ctx_i.value, self.dut.cfg_enabled_i.value = ctx, enabled
        self.dut.cfg_base_i.value, self.dut.cfg_last_slot_i.value = base >> 6, slots - 1
        self.dut.cfg_valid_i.value = 1
        self.ring[ctx], self.head[ctx] = (base, slots), 0
        while True:
            await ReadOnly()
            ready = int(self.dut.cfg_ready_o.value)
            await FallingEdge(self.dut.clk_i)
            if ready:
                break
        self.dut.cfg_valid_i.value = 0

    async def send(self, head, payload=(), cut=None, poison=0):
        beats = packet_to_beats([head, *payload], self.width)
        await self.net.send(beats[:cut], {"poison": poison})

    def writes(self):
        """Apply finished DMA writes to memory, in order."""
        for packet in self.sink.packets[self.seen_writes :]:
            side = packet[0].side
            data = join(packet, self.width)
            spare = len(packet) * self.width - side["len_bytes"] * 8
            assert 0 <= spare < max(64, self.width)
            for word in range(side["len_bytes"] // 8):
                self.memory[side["addr"] + 8 * word] = data >> (64 * word) & (1 << 64) - 1
        self.seen_writes = len(self.sink.packets)

    def poll(self, ctx):
        """The next message of a ring: (header word, payload words), or None."""
        self.writes()
        base, slots = self.ring[ctx]
        slot = base + 64 * (self.head[ctx] % slots)
        word = self.memory.get(slot, 0)
        if not word & 1 or word >> 48 != self.head[ctx] & 0xFFFF:
            return None
        size = word >> 16 & 0xFFFF
        self.head[ctx] += 1
        return word, [self.memory[slot + 8 + 8 * i] for i in range(-(-size // 8))]

    async def free(self, ctx):
        """Give the slots that were read back."""
        self.dut.read_pointer_ctx_i.value = ctx
        self.dut.read_pointer_i.value = self.head[ctx] & 0xFFFF
        self.dut.read_pointer_valid_i.value = 1
        await FallingEdge(self.dut.clk_i)
        self.dut.read_pointer_valid_i.value = 0


def payload(rng, size):
    return [rng.getrandbits(64) for _ in range(-(-size // 8))]


@cocotb.test()
async def messages_arrive_whole_in_order_under_every_stall(dut):
    for idle, stall in ((0.0, 0.0), (0.2, 0.5), (0.0, 0.6)):
        setup = Setup(dut, idle, stall, seed=int(10 * stall) + 7)
        rng = setup.rng
        await setup.start()
        for ctx, slots in ((0, 4), (3, 1), (15, 16)):
            await setup.configure(ctx, 0x100000 + ctx * 0x10000, slots)
        messages = []
        for _ in range(120):
            ctx, size = rng.choice((0, 3, 15)), rng.randrange(57)
            head = header(
                ctx, size, rng.getrandbits(8), rng.getrandbits(16), frag=rng.getrandbits(1)
            )
            messages.append((ctx, head, payload(rng, size)))

        async def sender(setup=setup, messages=messages):
            for _, head, words in messages:
                await setup.send(head, words)

        task = cocotb.start_soon(sender())
        got = defaultdict(list)
        wanted = defaultdict(list)
        for ctx, head, words in messages:
            wanted[ctx].append((head, words))
        for _ in range(20000):
            ctx = rng.choice((0, 3, 15))
            message = setup.poll(ctx)
            if message and rng.random() < 0.7:
                await setup.free(ctx)
            if message:
                got[ctx].append(message)
            elif rng.random() < 0.3:
                await setup.free(ctx)
            await setup.bench.cycles(1)
            if sum(map(len, got.values())) == len(messages):
                break
        for ctx, expected in wanted.items():
            assert len(got[ctx]) == len(expected), ctx
            for index, ((head, words), (word, data)) in enumerate(
                zip(expected, got[ctx], strict=True)
            ):
                assert data == words
                assert word >> 48 == index and word >> 32 & 0xFFFF == head >> 44 & 0xFFFF
                assert (
                    word >> 16 & 0xFFFF == head >> 26 & 0x3FF
                    and word >> 8 & 0xFF == head >> 36 & 0xFF
                )
                assert word & 0xFF == 1 | (head >> 24 & 1) << 2
        assert not setup.errors
        await task


@cocotb.test()
async def first_word_takes_at_most_four_cycles_and_messages_leave_no_gap(dut):
    setup = Setup(dut)
    await setup.start()
    await setup.configure(1, 0x40000, 64)
    for _ in range(20):
        await setup.send(header(1, 24), payload(setup.rng, 24))
    await setup.bench.cycles(10)
    packets = setup.sink.packets
    assert len(packets) == 40
    latency = {
        packet[0].cycle - first
        for packet, first in zip(packets[::2], setup.net.first_cycles, strict=True)
    }
    dut._log.info("completer latency, cycles: %s", latency)
    assert max(latency) <= 4
    starts = [packet[0].cycle for packet in packets[::2]]
    period = {after - before for before, after in pairwise(starts)}
    # As many cycles as the packet has beats; on wider paths one more, which a link's framing hides.
    assert period == {{32: 8, 64: 5, 128: 4}[setup.width]}, period


@cocotb.test()
async def a_full_ring_stops_the_network_and_loses_nothing(dut):
    setup = Setup(dut)
    await setup.start()
    await setup.configure(2, 0x8000, 2)
    task = cocotb.start_soon(setup.send(header(2, 8, 1), [11]))
    await task
    await setup.send(header(2, 8, 2), [22])
    # Longer than what the unit takes in before it knows that there is no room.
    task = cocotb.start_soon(setup.send(header(2, 32, 3), [33, 44, 55, 66]))
    await setup.bench.cycles(300)
    assert int(dut.stalled_o.value) and int(dut.stall_ctx_o.value) == 2
    assert not task.done()
    setup.writes()
    assert [setup.memory[0x8000 + 8], setup.memory[0x8040 + 8]] == [11, 22]
    assert setup.poll(2)[1] == [11]
    await setup.free(2)
    await task
    await setup.bench.cycles(10)
    assert not int(dut.stalled_o.value)
    assert [setup.poll(2)[1], setup.poll(2)[1]] == [[22], [33, 44, 55, 66]]
    assert not setup.errors


@cocotb.test()
async def only_an_enabled_watchdog_drops_and_says_so(dut):
    setup = Setup(dut)
    await setup.start()
    await setup.configure(2, 0x8000, 1)
    await setup.configure(4, 0xC000, 1)
    dut.watchdog_cycles_i.value = PATIENCE
    await setup.send(header(2, 0))
    waiting = cocotb.start_soon(setup.send(header(2, 8), [1]))  # No room.
    await setup.bench.cycles(200)
    assert int(dut.stalled_o.value) and not setup.errors
    dut.watchdog_enable_i.value = 1
    await setup.bench.cycles(PATIENCE - 10)
    assert int(dut.stalled_o.value) and not setup.errors
    await setup.bench.cycles(20)
    assert setup.errors == [(STALL, 2)]
    await waiting
    await setup.send(header(4, 8), [5])
    await setup.bench.cycles(10)
    assert setup.poll(4)[1] == [5] and setup.poll(2) and setup.poll(2) is None


class Full(Setup):
    """Contexts whose rings of one slot are full, and the watchdog."""

    async def begin(self, contexts, cycles=PATIENCE):
        await self.start()
        for ctx in contexts:
            await self.configure(ctx, 0x10000 * (ctx + 1), 1)
            await self.send(header(ctx, 0))
        await self.bench.cycles(20)
        self.dut.watchdog_cycles_i.value, self.dut.watchdog_enable_i.value = cycles, 1

    async def stalled(self, limit=2000):
        """How many cycles the unit stands still from now on, once it does, or None."""
        for _ in range(12):
            if int(self.dut.stalled_o.value):
                break
            await FallingEdge(self.dut.clk_i)
        waited = 0
        while int(self.dut.stalled_o.value):
            waited += 1
            assert waited < limit
            await FallingEdge(self.dut.clk_i)
        return waited

    async def dropped(self, ctx):
        """Sends what finds no room: how long it holds up the unit."""
        await self.send(header(ctx, 0))
        waited = await self.stalled()
        await self.bench.cycles(2)
        assert self.errors.pop() == (STALL, ctx) and not self.errors
        return waited


@cocotb.test()
async def each_context_has_its_own_patience_and_uses_it_up_once(dut):
    setup = Full(dut)
    await setup.begin((2, 4))
    # As long as the budget, and two cycles until that is seen.
    assert PATIENCE <= await setup.dropped(2) <= PATIENCE + 2
    # One that got a cycle back waits for it, and two until that is seen.
    rest = [await setup.dropped(2) for _ in range(20)]
    assert max(rest) <= 3 and sum(rest) <= 20, rest
    assert PATIENCE <= await setup.dropped(4) <= PATIENCE + 2
    assert await setup.dropped(2) <= 3 and await setup.dropped(4) <= 3
    # A ring that has room, or gets some, is served, whether its context has patience or not.
    await setup.configure(7, 0x80000, 4)
    await setup.send(header(7, 8), [7])
    setup.head[2] = 1
    await setup.free(2)
    await setup.send(header(2, 8), [2])
    assert not await setup.stalled()
    await setup.bench.cycles(20)
    assert setup.poll(7)[1] == [7] and setup.poll(2)[1] == [2] and not setup.errors


@cocotb.test()
async def a_ring_that_is_opened_anew_has_no_patience_anew_and_a_reset_gives_it(dut):
    setup = Full(dut)
    await setup.begin((2,))
    await setup.dropped(2)
    for enabled in (0, 1):
        await setup.configure(2, 0x8000, 1, enabled)
    await setup.send(header(2, 0))
    assert not await setup.stalled()
    assert await setup.dropped(2) <= 3
    again = Full(dut, seed=2)
    await again.begin((2,))
    assert PATIENCE <= await again.dropped(2) <= PATIENCE + 2


@cocotb.test()
async def patience_comes_back_one_cycle_a_round(dut):
    setup = Full(dut)
    await setup.begin((2, 4))
    await setup.dropped(2)
    await setup.dropped(4)
    for cycles in (3, 10):
        await setup.bench.cycles(cycles * GIVE_EVERY * CONTEXTS)
        for ctx in (4, 2):
            waited = await setup.dropped(ctx)
            # The round may have been anywhere, and there are two cycles until the end is seen.
            assert cycles - 1 <= waited <= cycles + 3, (cycles, waited)
    # Never more than all of it.
    await setup.bench.cycles((PATIENCE + 10) * GIVE_EVERY * CONTEXTS)
    assert PATIENCE <= await setup.dropped(2) <= PATIENCE + 2


@cocotb.test()
async def a_reader_that_frees_at_the_last_moment_holds_others_up_no_longer(dut):
    setup = Full(dut)
    await setup.begin((2,))
    freed, waited = 0, 0
    for _ in range(40):
        sending = cocotb.start_soon(setup.send(header(2, 0)))
        lasted = 0
        for _ in range(30):
            await FallingEdge(dut.clk_i)
            lasted += int(dut.stalled_o.value)
            if lasted == 20:
                freed += 1
                setup.head[2] = freed
                await setup.free(2)
                lasted += 1
                break
        while int(dut.stalled_o.value):
            await FallingEdge(dut.clk_i)
            lasted += 1
        await sending
        waited += lasted
    # Two were read at the last moment, and that was all of the patience, but for what came back.
    assert freed == 2, freed
    assert waited <= PATIENCE + 40 * 2, waited
    assert setup.errors == [(STALL, 2)] * 38


@cocotb.test()
async def a_patience_that_changes_or_is_switched_off_holds_at_once(dut):
    setup = Full(dut)
    await setup.begin((2,), cycles=1000)
    sending = cocotb.start_soon(setup.send(header(2, 0)))
    await setup.bench.cycles(200)
    assert int(dut.stalled_o.value) and not setup.errors
    dut.watchdog_cycles_i.value = 100
    await setup.bench.cycles(4)
    assert not int(dut.stalled_o.value) and setup.errors == [(STALL, 2)]
    setup.errors.clear()
    await sending
    # Off, what waits uses nothing up, and waits for ever.
    dut.watchdog_enable_i.value = 0
    sending = cocotb.start_soon(setup.send(header(2, 0)))
    await setup.bench.cycles(2000)
    assert int(dut.stalled_o.value) and not setup.errors
    dut.watchdog_cycles_i.value, dut.watchdog_enable_i.value = 1000, 1
    assert 780 <= await setup.stalled() <= 820
    await sending
    await setup.bench.cycles(2)
    assert setup.errors == [(STALL, 2)]


@cocotb.test()
async def bad_packets_are_dropped_reported_and_harm_nobody(dut):
    setup = Setup(dut)
    await setup.start()
    await setup.configure(1, 0x8000, 64)
    words = payload(setup.rng, 56)
    beats_of_word = max(1, 64 // setup.width)
    cases = [
        (KIND, 1, header(1, 8, kind=1), words[:1], None),
        (KIND, 1, header(1, 8, tc=1), words[:1], None),
        (MALFORMED, 1, header(1, 8, node=NODE ^ 1), words[:1], None),
        (MALFORMED, 1, header(1, 57), words, None),
        (MALFORMED, 1, header(1, 64), words, None),
        (MALFORMED, 1, header(1, 16), words[:3], None),
        (MALFORMED, 1, header(1, 0), words[:1], None),
        (MALFORMED, 1, header(1, 16), [], None),
        (MALFORMED, 1, header(1, 24), words[:1], None),
        (MALFORMED, 1, header(1, 24), words[:2], 2 * beats_of_word),
        (CONTEXT, 5, header(5, 8), words[:1], None),
        (CONTEXT, 0x21, header(0x21, 8), words[:1], None),
        (CONTEXT, 5, header(5, 0), [], None),
    ]
    if setup.width == 32:
        cases.append((MALFORMED, 1, header(1, 8), [], 1))
    for index, (error, ctx, head, data, cut) in enumerate(cases):
        await setup.send(head, data, cut)
        await setup.send(header(1, 8, tag=index), [index])
        await setup.bench.cycles(20)
        assert setup.errors == [(error, ctx)], index
        setup.errors.clear()
        message = setup.poll(1)
        assert message and message[1] == [index] and message[0] >> 8 & 0xFF == index
        assert setup.poll(1) is None


@cocotb.test()
async def a_poisoned_message_is_never_seen_and_takes_no_slot(dut):
    setup = Setup(dut, idle=0.2, stall=0.3, seed=11)
    await setup.start()
    await setup.configure(2, 0x40000, 8)
    wanted, poisoned = [], 0
    for number in range(200):
        size = setup.rng.randrange(57)
        words = payload(setup.rng, size)
        poison = int(setup.rng.random() < 0.5)
        # The end of a poisoned packet comes anywhere, behind its header.
        beats = packet_to_beats([header(2, size), *words], setup.width)
        first = 2 if setup.width == 32 else 1
        cut = setup.rng.randint(first, len(beats)) if poison else None
        if poison and setup.rng.random() < 0.5:
            cut = None
        await setup.send(header(2, size, tag=number & 255), words, cut, poison)
        poisoned += poison
        if not poison:
            wanted.append((number & 255, words))
        while message := setup.poll(2):
            tag, got = wanted.pop(0)
            assert message[0] >> 8 & 255 == tag and message[1] == got
            await setup.free(2)
    await setup.bench.cycles(100)
    while message := setup.poll(2):
        tag, got = wanted.pop(0)
        assert message[0] >> 8 & 255 == tag and message[1] == got
    assert not wanted and poisoned > 50
    assert setup.errors == [(POISONED, 2)] * poisoned


@cocotb.test()
async def a_waiting_message_of_a_context_that_is_disabled_is_dropped(dut):
    setup = Setup(dut)
    await setup.start()
    await setup.configure(1, 0x8000, 1)
    await setup.send(header(1, 8), [1])
    waiting = cocotb.start_soon(setup.send(header(1, 8), [2]))
    await setup.bench.cycles(20)
    assert int(dut.stalled_o.value)
    await setup.configure(1, 0x8000, 1, enabled=0)
    await setup.bench.cycles(10)
    assert setup.errors == [(CONTEXT, 1)] and not int(dut.stalled_o.value)
    await waiting
    await setup.configure(1, 0x9000, 1)
    await setup.send(header(1, 8), [3])
    await setup.bench.cycles(20)
    assert setup.poll(1)[1] == [3]


@cocotb.test()
async def a_ring_that_is_set_inside_a_message_is_set_behind_it(dut):
    setup = Setup(dut)
    await setup.start()
    old, new, rings = 0x8000, 0x9000, set()
    for wait in range(16):
        setup.memory.clear()
        await setup.configure(1, old, 4)
        sending = cocotb.start_soon(setup.send(header(1, 24), [1, 2, 3]))
        await setup.bench.cycles(wait)
        await setup.configure(1, new, 4)
        await sending
        await setup.send(header(1, 8), [4])
        await setup.bench.cycles(30)
        messages = []
        while message := setup.poll(1):
            messages.append(message[1])
        # The first one is in either ring, whole, and the other begins with the second one.
        if old in setup.memory:
            assert messages == [[4]], wait
            assert [setup.memory[old + 8 * word] for word in (1, 2, 3)] == [1, 2, 3]
            assert setup.memory[old] & 1 and not setup.memory[old] >> 48
        else:
            assert messages == [[1, 2, 3], [4]], wait
        rings.add(old in setup.memory)
    assert rings == {False, True} and not setup.errors


@cocotb.test()
async def a_setting_waits_for_the_message_that_is_coming_in_and_no_longer(dut):
    """All other accesses to registers wait behind it: it waits for a late network or host alone."""
    setup = Setup(dut, 0.5, 0.5, seed=23)
    rng = setup.rng
    await setup.start()
    await setup.configure(0, 0x100000, 2)

    async def sender():
        while True:
            size = rng.randrange(57)
            words = payload(rng, rng.choice((size, size, 0, 400)))
            await setup.send(header(rng.choice((0, 0, 9)), size), words, poison=rng.getrandbits(1))

    cocotb.start_soon(sender())
    within, longest = False, 0
    for number in range(200):
        asks_at, waited, own = rng.randrange(40), 0, 0
        ready = False
        while not ready:
            asked = asks_at == 0
            asks_at -= not asked
            dut.cfg_ctx_i.value, dut.cfg_enabled_i.value = 3, 1
            dut.cfg_base_i.value, dut.cfg_last_slot_i.value = 0x200000 >> 6, 15
            dut.cfg_valid_i.value = int(asked)
            await ReadOnly()
            ready = asked and bool(int(dut.cfg_ready_o.value))
            offered, taken = int(dut.net_valid_i.value), int(dut.net_ready_o.value)
            written, host = int(dut.dma_valid_o.value), int(dut.dma_ready_i.value)
            late = (within and not offered) or (written and not host)
            moves = (within and offered and taken) or (written and host)
            waited += asked and not ready
            own += asked and not ready and not late and not moves
            assert own <= 4, number
            if offered and taken:
                within = not int(dut.net_eop_i.value)
            await FallingEdge(dut.clk_i)
        dut.cfg_valid_i.value = 0
        longest = max(longest, waited)
        if number % 2:  # Else its ring is full.
            while setup.poll(0):
                pass
            await setup.free(0)
    assert longest > 20  # Some came into a message.
