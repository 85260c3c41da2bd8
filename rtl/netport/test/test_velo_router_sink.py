# SPDX-License-Identifier: Apache-2.0
"""A router whose link is down and up again: what is for it waits, is swallowed or arrives, once.

The link's cable leads back to where it begins. Packets for it have a route: out by the link, then
to the node.
"""

import random
from collections import deque
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench, split

HERE, LOCAL, LINK = 7, 15, 0  # a node's number, and hops
ROUTE = 1 | LINK << 4 | LOCAL << 8
PATIENCE, CABLE = 150, 7  # cycles
SETTLED = 8 + 20  # from a link's coming up to its packets' passing


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_router_sink(simulate: Any, width: int) -> None:
    simulate("velo_router", {"DataWidth": width, "NumLinks": 1, "NumVcs": 3})


class Router:
    """A router with its units' side of class request, and a cable that can be pulled."""

    def __init__(self, dut: Any, seed: int):
        self.dut, self.rng = dut, random.Random(seed)
        self.width = len(dut.phy_data_i)
        names = "table_we_i mark_enable_i dead_enable_i dead_cycles_i unit_in_valid_i unit_in_sop_i"
        names += " unit_in_eop_i unit_in_data_i link_reset_i link_forget_i phy_up_i phy_kind_i"
        names += " phy_data_i phy_pause_i link_enable_i unit_out_ready_i"
        self.bench = Bench(dut, names.split())
        self.plugged = False
        self.waits: deque[list[int]] = deque()  # packets, as beats, that the node has to send
        self.came: list[tuple[bool, int]] = []  # packets: by the link, and number
        self.sent = {False: 0, True: 0}  # numbers given, by the link or not
        self.taken = 0  # cycles in which a beat was taken
        self.dead_cycles: list[int] = []  # in which the link was dead first

    async def start(self) -> None:
        dut = self.dut
        await self.bench.start()
        dut.table_node_i.value, dut.table_hop_i.value, dut.table_we_i.value = HERE, LOCAL, 1
        await self.bench.cycles(1)
        dut.table_we_i.value, dut.link_enable_i.value, dut.unit_out_ready_i.value = 0, 1, 7
        dut.dead_cycles_i.value = PATIENCE
        cocotb.start_soon(self._run())

    def beats(self, words: list[int]) -> list[int]:
        if self.width < 128:
            return [beat for word in words for beat in split(word, 64, self.width)]
        payload = words[2:] if words[0] & 1 else words[1:]
        pairs = [
            low | high << 64 for low, high in zip(payload[::2], [*payload[1::2], 0], strict=False)
        ]
        return words[: len(words) - len(payload)] + pairs

    def post(self, by_link: bool) -> None:
        """A packet whose payload's words have its number, and whether it goes by the link."""
        number = self.sent[by_link]
        self.sent[by_link] += 1
        words = self.rng.choice((1, 2, 3, 8, 31, 56))
        header = HERE << 8 | 8 * words << 26 | (number & 0xFF) << 36
        payload = [number << 8 | by_link << 7 | (words << 1)] * words
        self.waits.append(self.beats([*[ROUTE] * by_link, header, *payload]))

    async def _run(self) -> None:
        dut, width = self.dut, self.width
        cable: deque[tuple[int, int]] = deque([(0, 0)] * CABLE)
        sending: list[int] = []
        coming: list[int] = []
        first = was_dead = False
        while True:
            kind, data = cable.popleft()
            dut.phy_up_i.value = self.plugged
            dut.phy_kind_i.value, dut.phy_data_i.value = (kind, data) if self.plugged else (0, 0)
            if not sending and self.waits:
                sending, first = self.waits.popleft(), True
            dut.unit_in_valid_i.value = int(bool(sending))
            if sending:
                dut.unit_in_sop_i.value = int(first)
                dut.unit_in_eop_i.value = int(len(sending) == 1)
                dut.unit_in_data_i.value = sending[0]
            await ReadOnly()
            cable.append((int(dut.phy_kind_o.value), int(dut.phy_data_o.value)))
            if sending and int(dut.unit_in_ready_o.value) & 1:
                sending, first = sending[1:], False
                self.taken += 1
            if int(dut.unit_out_valid_o.value) & 1:
                assert (int(dut.unit_out_sop_o.value) & 1) == (not coming)
                coming.append(int(dut.unit_out_data_o.value) & (1 << width) - 1)
                if int(dut.unit_out_eop_o.value) & 1:
                    if not int(dut.unit_out_poison_o.value) & 1:
                        self._take(coming)
                    coming = []
            dead = bool(int(dut.link_dead_o.value))
            if dead and not was_dead:
                self.dead_cycles.append(self.bench.cycle)
            was_dead = dead
            await FallingEdge(dut.clk_i)

    def _take(self, beats: list[int]) -> None:
        head = 2 if self.width == 32 else 1
        rest = sum(beat << self.width * i for i, beat in enumerate(beats[head:]))
        word = rest & (1 << 64) - 1
        size = word >> 1 & 63
        words = [rest >> 64 * i & (1 << 64) - 1 for i in range(size)]
        assert words == [word] * size and rest >> 64 * size == 0, "it is not whole"
        self.came.append((bool(word >> 7 & 1), word >> 8))

    def numbers(self, by_link: bool) -> list[int]:
        return [number for link, number in self.came if link == by_link]

    @property
    def undelivered(self) -> int:
        return int(self.dut.link_undelivered_o.value)

    @property
    def is_up(self) -> bool:
        return bool(int(self.dut.link_up_o.value))


@cocotb.test()
async def packets_for_a_link_that_is_down_stop_no_others_for_long(dut: Any) -> None:
    router = Router(dut, 1)
    await router.start()
    # Without the watchdog they do.
    for _ in range(300):
        router.post(True)
    router.post(False)
    await router.bench.cycles(3000)
    assert not router.came and router.undelivered == 0 and len(router.waits) > 200
    # With it they do not, once the link was down for so long.
    dut.dead_enable_i.value = 1
    begin, taken = router.bench.cycle, router.taken
    await router.bench.cycles(PATIENCE - 2)
    assert router.taken == taken and not router.dead_cycles
    await router.bench.until(lambda: bool(router.dead_cycles), 2 * PATIENCE)
    assert PATIENCE <= router.dead_cycles[0] - begin <= 2 * PATIENCE + 4
    await router.bench.until(lambda: bool(router.came), 300 * 150)
    assert router.came == [(False, 0)]
    await router.bench.until(lambda: router.undelivered == 300 % 256)
    # From then on the others do not wait.
    for _ in range(30):
        router.post(True)
        router.post(False)
        await router.bench.until(lambda: not router.waits, 400)
        await router.bench.until(lambda: len(router.came) == router.sent[False], 400)
    # The link comes up: all packets pass again.
    swallowed = router.undelivered
    router.plugged = True
    await router.bench.until(lambda: router.is_up)
    await router.bench.cycles(SETTLED)
    for _ in range(20):
        router.post(True)
    await router.bench.until(lambda: len(router.numbers(True)) == 20, 4000)
    assert router.numbers(True) == list(range(330, 350))
    assert router.undelivered == swallowed and not int(dut.link_dead_o.value)


@cocotb.test()
async def each_packet_is_swallowed_or_arrives_once_and_in_order(dut: Any) -> None:
    router = Router(dut, 2)
    await router.start()
    dut.dead_enable_i.value = 1
    rng, undelivered, before = router.rng, 0, 0
    downs = deaths = 0
    for trial in range(40):
        router.plugged = trial % 2 == 0
        # A short time is not enough for it to be dead; some are just about enough.
        begin = router.bench.cycle
        cycles = rng.choice((60, PATIENCE - 5, PATIENCE + 5, 2 * PATIENCE + 30, 600))
        seen = len(router.dead_cycles)
        for _ in range(cycles // 20):
            while len(router.waits) < 3:
                router.post(rng.random() < 0.7)
            await router.bench.cycles(20)
            now = router.undelivered
            undelivered, before = undelivered + (now - before) % 256, now
            if router.is_up and router.bench.cycle - begin > SETTLED:
                assert not int(dut.link_dead_o.value)
        if not router.plugged:
            downs += 1
            deaths += len(router.dead_cycles) - seen
            for cycle in router.dead_cycles[seen:]:
                assert cycle - begin >= PATIENCE
            assert cycles < 2 * PATIENCE + 20 or len(router.dead_cycles) > seen
    assert 3 < deaths < downs
    router.plugged = True
    await router.bench.until(lambda: not router.waits, 20000)
    await router.bench.cycles(3000)
    undelivered += (router.undelivered - before) % 256
    for by_link in (False, True):
        numbers = router.numbers(by_link)
        assert numbers == sorted(set(numbers)), "doubled, or out of order"
    assert len(router.numbers(False)) == router.sent[False]
    assert undelivered and len(router.numbers(True)) + undelivered == router.sent[True]
    assert int(dut.link_in_doubt_o.value) == 0
