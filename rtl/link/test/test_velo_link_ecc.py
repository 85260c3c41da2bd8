# SPDX-License-Identifier: Apache-2.0
"""A link port with a protected ring, its cable led back to itself; bits are turned over."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

VOID = 0x7777_7777
EOP = (
    32  # of a word in the ring: bit 32 says that it is the last, bit 33 that the packet is poisoned
)


def test_link_ecc(simulate: Callable[..., None]) -> None:
    simulate("velo_link", {"NumVcs": 1, "Ecc": 1})


class Setup:
    """Sends packets with wrong bits in the ring, and keeps what comes back."""

    def __init__(self, dut: Any, seed: int):
        zeros = "enable_i link_reset_i forget_i phy_up_i phy_kind_i phy_data_i phy_pause_i "
        zeros += "in_valid_i in_sop_i in_eop_i in_poison_i in_vc_i in_data_i out_freed_i"
        self.dut, self.rng = dut, random.Random(seed)
        self.bench = Bench(dut, zeros.split())
        # Words to send: data, limits, and the bits that turn over in the ring once it is there.
        self.waiting: list[tuple[int, bool, bool, int]] = []
        self.open: list[int] = []
        self.packets: list[tuple[list[int], bool]] = []  # words, poisoned
        self.cut_off = 0
        self.told: Counter[str] = Counter()
        self.noise = 0.0

    async def start(self) -> None:
        await self.bench.start()
        self.dut.enable_i.value = self.dut.phy_up_i.value = 1
        cocotb.start_soon(self._run())
        await self.bench.until(lambda: not int(self.dut.in_stop_o.value), 3000)

    def packet(self, words: list[int], wrong: dict[int, int] | None = None) -> None:
        """`wrong`: by place in the packet, the bits that turn over."""
        last = len(words) - 1
        for place, word in enumerate(words):
            self.waiting.append((word, place == 0, place == last, (wrong or {}).get(place, 0)))

    async def quiet(self, limit: int = 20000) -> None:
        """Everything was sent and is acknowledged."""
        tx = self.dut.u_tx
        await self.bench.until(
            lambda: not self.waiting and int(tx.acked_seq_q.value) == int(tx.write_seq_q.value),
            limit,
        )
        await self.bench.cycles(20)

    async def _run(self) -> None:
        dut, within, stop, turn = self.dut, False, 1, None
        ring = dut.u_tx.u_ring.u_ram.gen_any.mem
        while True:
            if turn:
                place, bits = turn
                ring[place].value = int(ring[place].value) ^ bits
                turn = None
            valid = bool(self.waiting) and (within or not stop)
            dut.in_valid_i.value = int(valid)
            if valid:
                word, sop, eop, bits = self.waiting.pop(0)
                dut.in_data_i.value, dut.in_sop_i.value, dut.in_eop_i.value = word, sop, eop
                within = not eop
                if bits:
                    turn = int(dut.u_tx.written_q.value) % len(ring), bits
            noise = 1 << self.rng.randrange(32) if self.rng.random() < self.noise else 0
            dut.phy_kind_i.value = int(dut.phy_kind_o.value)
            dut.phy_data_i.value = int(dut.phy_data_o.value) ^ noise
            await ReadOnly()
            stop = int(dut.in_stop_o.value)
            ecc = int(dut.ecc_o.value)
            self.told["broken"] += ecc & 1
            self.told["corrected"] += ecc >> 1
            if int(dut.out_valid_o.value):
                self.open.append(int(dut.out_data_o.value))
                if int(dut.out_eop_o.value):
                    if int(dut.out_again_o.value):
                        self.cut_off += 1
                    else:
                        self.packets.append((self.open, bool(int(dut.out_poison_o.value))))
                    self.open = []
            await FallingEdge(dut.clk_i)


async def ready(dut: Any, seed: int = 1) -> Setup:
    setup = Setup(dut, seed)
    await setup.start()
    # Words that are sent while the link comes up are sent twice.
    setup.packet([0])
    await setup.quiet()
    assert setup.packets.pop() == ([0], False)
    setup.told.clear()
    return setup


@cocotb.test
async def each_wrong_word_ends_as_it_should(dut: Any) -> None:
    setup = await ready(dut)
    words = [setup.rng.getrandbits(32) for _ in range(6)]
    broken = corrected = 0
    replays = int(dut.replays_o.value)
    for place in range(len(words)):
        for bits in (1 << EOP, 1 << 3, 1 << EOP | 1, 3 << EOP, 0x81):
            setup.packets.clear()
            setup.packet(words, {place: bits})
            setup.packet([1, 2, 3])
            await setup.quiet()
            lost = bits.bit_count() == 2
            if not lost:
                corrected += 1
                assert setup.packets[0] == (words, False)
            elif place < 2:
                # Of the header: it is asked for once more, and comes as one that leads nowhere.
                broken, replays = broken + 2, replays + 1
                assert setup.packets[0] == ([VOID] * 6, True), (place, bits)
            else:
                broken += 1
                left = [*words[:place], VOID, *words[place + 1 :]]
                assert setup.packets[0] == (left, True), (place, bits)
            assert setup.packets[1:] == [([1, 2, 3], False)]
            assert setup.told == Counter(broken=broken, corrected=corrected), (place, bits)
            assert int(dut.replays_o.value) == replays
    assert not int(dut.timeouts_o.value)


@cocotb.test
async def several_lost_headers_each_get_their_turn(dut: Any) -> None:
    setup = await ready(dut)
    for number in range(10):
        setup.packet([number, 5, 6], {number % 2: 3} if number in (1, 2, 5, 6) else None)
    await setup.quiet()
    assert setup.packets == [
        ([VOID] * 3, True) if number in (1, 2, 5, 6) else ([number, 5, 6], False)
        for number in range(10)
    ]
    # No number of a frame that was lost is held against a later one.
    for number in range(200):
        setup.packet([number])
    setup.packets.clear()
    await setup.quiet()
    assert setup.packets == [([number], False) for number in range(200)]


@cocotb.test
async def nothing_wrong_is_passed_for_right_on_a_bad_cable(dut: Any) -> None:
    setup = await ready(dut, seed=3)
    rng, setup.noise = setup.rng, 0.003
    sent: list[tuple[list[int], bool]] = []
    for number in range(400):
        words = [number, *(rng.getrandbits(32) for _ in range(rng.randrange(40)))]
        wrong, lost = {}, False
        for place in range(len(words)):
            if rng.random() < 0.03:
                bits = rng.sample(range(34), rng.choice((1, 2)))
                wrong[place] = sum(1 << bit for bit in bits)
                lost = lost or len(bits) == 2
        setup.packet(words, wrong)
        sent.append((words, lost))
    await setup.quiet(200_000)
    assert len(setup.packets) == len(sent)
    for (words, lost), (got, poisoned) in zip(sent, setup.packets, strict=True):
        assert poisoned == lost and len(got) == len(words)
        if lost:
            assert all(word in (good, VOID) for word, good in zip(got, words, strict=True))
        else:
            assert got == words
    assert setup.cut_off and setup.told["corrected"] > 50 and setup.told["broken"] > 50
