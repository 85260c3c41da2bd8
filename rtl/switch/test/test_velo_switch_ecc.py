# SPDX-License-Identifier: Apache-2.0
"""A small switch with protected buffers: bits of the words in them are turned over."""

import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

VOID = 0x7777_7777
LINK, NODE = 0, 1  # ports: the link, and the node's for requests
PORTS, CHANNELS = 4, 3
HERE, THERE = 9, 5  # nodes
HOP_LOCAL = 15


def test_switch_ecc(simulate: Callable[..., None]) -> None:
    simulate("velo_switch", {"NumLinks": 1, "NumVcs": CHANNELS, "MtuBytes": 64, "Ecc": 1})


class Setup:
    """Sends packets of class request by the link and by the node, and keeps what leaves."""

    def __init__(self, dut: Any):
        zeros = "table_we_i table_node_i table_hop_i table_group_i mark_enable_i mark_cycles_i "
        zeros += "in_valid_i in_sop_i in_eop_i in_poison_i in_again_i in_vc_i in_data_i out_stop_i "
        zeros += "out_credits_i out_freed_i"
        self.dut, self.bench = dut, Bench(dut, zeros.split())
        self.waiting: list[deque[tuple[int, bool, bool, bool]]] = [deque(), deque()]
        # Of each word that will be written into an input's buffer: the bits that turn over there.
        self.bits: list[deque[int]] = [deque(), deque()]
        self.units = [0, 0]  # sent by each input
        self.open: list[list[int]] = [[] for _ in range(PORTS)]
        self.packets: list[tuple[int, list[int], bool]] = []  # port, words, poisoned
        self.freed = [[0] * CHANNELS for _ in range(PORTS)]
        self.told: Counter[str] = Counter()
        self.dropped = 0

    async def start(self) -> None:
        await self.bench.start()
        dut = self.dut
        dut.out_credits_i.value = sum(30 << 8 * port for port in range(PORTS))
        for node, hop in ((HERE, HOP_LOCAL), (THERE, LINK)):
            dut.table_we_i.value, dut.table_node_i.value, dut.table_hop_i.value = 1, node, hop
            await FallingEdge(dut.clk_i)
        dut.table_we_i.value = 0
        cocotb.start_soon(self._run())

    def packet(
        self, port: int, words: list[int], wrong: dict[int, int] | None = None, poison: bool = False
    ) -> None:
        last = len(words) - 1
        for place, word in enumerate(words):
            self.waiting[port].append((word, place == 0, place == last, poison and place == last))
            if words[0] != VOID:
                self.bits[port].append((wrong or {}).get(place, 0))
        self.units[port] += -(-len(words) // 8)

    async def quiet(self) -> None:
        await self.bench.until(lambda: not any(self.waiting), 5000)
        await self.bench.cycles(60)
        freed = int(self.dut.in_freed_o.value)
        for port in (LINK, NODE):
            assert freed >> 8 * CHANNELS * port & 255 == self.units[port] % 256, "credits are lost"

    async def _run(self) -> None:
        dut = self.dut
        buffers = [dut.gen_port[port].u_input.u_buffer for port in (LINK, NODE)]
        turns: list[tuple[int, int, int]] = []
        while True:
            for port, place, bits in turns:
                word = buffers[port].u_ram.gen_any.mem[place]
                word.value = int(word.value) ^ bits
            turns = []
            valid = sop = eop = poison = data = 0
            for port in (LINK, NODE):
                if self.waiting[port]:
                    word, first, last, bad = self.waiting[port].popleft()
                    valid |= 1 << port
                    sop, eop, poison = sop | first << port, eop | last << port, poison | bad << port
                    data |= word << 32 * port
            dut.in_valid_i.value, dut.in_sop_i.value, dut.in_eop_i.value = valid, sop, eop
            dut.in_poison_i.value, dut.in_data_i.value = poison, data
            dut.out_freed_i.value = sum(
                (self.freed[port][channel] & 255) << 8 * (CHANNELS * port + channel)
                for port in range(PORTS)
                for channel in range(CHANNELS)
            )
            await ReadOnly()
            for port in (LINK, NODE):
                if int(buffers[port].we_i.value):
                    bits = self.bits[port].popleft()
                    if bits:
                        turns.append((port, int(buffers[port].waddr_i.value), bits))
            self._take()
            await FallingEdge(dut.clk_i)

    def _take(self) -> None:
        dut = self.dut
        ecc, self.dropped = int(dut.ecc_o.value), self.dropped + int(dut.dropped_o.value) % 2
        for port in range(PORTS):
            self.told["broken"] += ecc >> 2 * port & 1
            self.told["corrected"] += ecc >> 2 * port + 1 & 1
            if int(dut.out_valid_o.value) >> port & 1:
                words = self.open[port]
                words.append(int(dut.out_data_o.value) >> 32 * port & 0xFFFF_FFFF)
                if int(dut.out_eop_o.value) >> port & 1:
                    poisoned = bool(int(dut.out_poison_o.value) >> port & 1)
                    self.packets.append((port, words, poisoned))
                    self.open[port] = []
                    channel = int(dut.out_vc_o.value) >> 3 * port & 7
                    self.freed[port][channel] += -(-len(words) // 8)


def message(dst: int, rng: random.Random, payload: int) -> list[int]:
    """A message's words: its header, and payload."""
    head = dst << 8 | 8 * payload << 26
    return [head & 0xFFFF_FFFF, head >> 32, *(rng.getrandbits(32) for _ in range(2 * payload))]


@cocotb.test
async def a_lost_word_poisons_its_packet_and_leads_it_nowhere(dut: Any) -> None:
    setup, rng = Setup(dut), random.Random(1)
    await setup.start()
    counts: Counter[str] = Counter(broken=0, corrected=0)
    ways = ((NODE, THERE, LINK), (NODE, HERE, NODE), (LINK, HERE, NODE), (LINK, THERE, LINK))
    for number, (source, dst, out) in enumerate(ways):
        words = message(dst, rng, 4)
        for place in range(len(words)):
            for bits in (1 << (place + number) % 32, 0x41 << (place + number) % 24):
                setup.packets.clear()
                setup.packet(source, words, {place: bits})
                behind = message(dst, rng, 1)
                setup.packet(source, behind)
                await setup.quiet()
                lost = bits.bit_count() == 2
                counts["broken" if lost else "corrected"] += 1
                left = [VOID if lost and n == place else word for n, word in enumerate(words)]
                assert setup.packets == [(out, left, lost), (out, behind, False)], (number, place)
                assert setup.told == counts
                if left[0] == VOID:
                    # The next switch, which does not count what was counted here.
                    setup.packets.clear()
                    setup.packet(LINK, left, poison=True)
                    await setup.quiet()
                    assert not setup.packets
                assert setup.dropped == 0


@cocotb.test
async def of_many_packets_those_with_lost_words_are_poisoned(dut: Any) -> None:
    setup, rng = Setup(dut), random.Random(2)
    await setup.start()
    expected: list[tuple[list[int], bool]] = []
    for _ in range(300):
        words = message(THERE, rng, rng.randrange(1, 8))
        wrong, lost = {}, False
        for place in range(len(words)):
            if rng.random() < 0.05:
                turned = rng.sample(range(39), rng.choice((1, 2)))
                wrong[place] = sum(1 << bit for bit in turned)
                lost = lost or len(turned) == 2
        setup.packet(NODE, words, wrong)
        await setup.bench.until(lambda: not any(setup.waiting))
        await setup.bench.cycles(rng.randrange(12))
        expected.append((words, lost))
    await setup.quiet()
    assert len(setup.packets) == len(expected)
    for (words, lost), (_, got, poisoned) in zip(expected, setup.packets, strict=True):
        assert poisoned == lost and len(got) == len(words)
        assert lost or got == words
        assert all(word in (good, VOID) for word, good in zip(got, words, strict=True))
    assert setup.told["corrected"] > 30 and setup.told["broken"] > 30
