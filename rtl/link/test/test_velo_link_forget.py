# SPDX-License-Identifier: Apache-2.0
"""A link port whose other side is replaced by one with smaller buffers, or with larger ones."""

from collections.abc import Callable
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench
from test_velo_link_rx import CTL, END, START, crc

LARGE, SMALL, MTU, VCS, VC = 30, 25, 3, 6, 3
UNIT_WORDS, REFUSE_CREDITS = 8, 5
NONE, NEW, USED = range(3)
INIT_WORDS, QUIET_CYCLES = 8, 40


@pytest.mark.parametrize("width", [32, 64])
def test_link_forget(simulate: Callable[..., None], width: int) -> None:
    limits = {"InitWords": INIT_WORDS, "QuietCycles": QUIET_CYCLES, "FrameWords": 136 * 32 // width}
    simulate("velo_link", {"DataWidth": width, **limits})


def control(bits: int) -> int:
    """A control word: its 20 bits, and their CRC."""
    return crc((1 << 12) - 1, bits, 12, 20, 0x80F) << 20 | bits


class Setup:
    """The other side, which takes all frames and acknowledges none, and the switch."""

    def __init__(self, dut: Any):
        zeros = (
            "link_reset_i forget_i phy_kind_i phy_data_i phy_pause_i in_valid_i in_sop_i in_eop_i"
        )
        zeros += " in_poison_i in_vc_i in_data_i out_freed_i"
        self.dut = dut
        self.bench = Bench(dut, zeros.split())
        dut.enable_i.value = dut.phy_up_i.value = 1
        dut.in_vc_i.value = VC
        self.frames: list[list[int]] = []
        self.words: list[int] = []
        self.units = 0  # that the switch has sent

    async def start(self) -> None:
        await self.bench.start()
        self.dut.in_vc_i.value = VC
        cocotb.start_soon(self._take())
        await self.bench.cycles(QUIET_CYCLES + 10)

    async def _take(self) -> None:
        dut = self.dut
        while True:
            await ReadOnly()
            kind, word = int(dut.phy_kind_o.value), int(dut.phy_data_o.value)
            if kind == START:
                self.words = []
            elif kind == END:
                self.frames.append(self.words)
            elif kind != CTL:
                self.words.append(word)
            await FallingEdge(dut.clk_i)

    async def say(self, bits: int) -> None:
        """A control word counts when it comes twice running."""
        for _ in range(2):
            self.dut.phy_kind_i.value, self.dut.phy_data_i.value = CTL, control(bits)
            await FallingEdge(self.dut.clk_i)
        self.dut.phy_data_i.value = 1 << 31 | 1  # no control word

    async def meet(self, offer: int, session: int = NEW, tries: int = 400) -> bool:
        """Offers so many credits until the link is up; then says that nothing is in use."""
        width = len(self.dut.phy_data_i) // 64
        ability = ((width << 3 | VCS - 1) << 2 | MTU) << 7 | offer  # of version 4, modulo 4
        for _ in range(tries):
            await self.say(1 << 19 | session << 17 | ability << 1 | 1)
            if int(self.dut.up_o.value):
                for _ in range(2):
                    for vc in range(VCS):
                        await self.say(vc << 9)
                await self.bench.cycles(20)
                return True
        return False

    async def packet(self, *words: int) -> None:
        assert not int(self.dut.in_stop_o.value)
        for place, word in enumerate(words):
            self.dut.in_valid_i.value, self.dut.in_data_i.value = 1, word
            self.dut.in_sop_i.value = int(place == 0)
            self.dut.in_eop_i.value = int(place == len(words) - 1)
            self.units += place % UNIT_WORDS == 0
            await FallingEdge(self.dut.clk_i)
        self.dut.in_valid_i.value = 0

    def left(self) -> int:
        """Credits of the channel, as the switch counts them."""
        freed = int(self.dut.freed_o.value) >> 8 * VC & 255
        return (int(self.dut.credits_o.value) + freed - self.units) % 256

    def doubts(self) -> int:
        return int(self.dut.in_doubt_o.value)


def words_of(number: int) -> list[int]:
    return [number << 8 | place for place in range(UNIT_WORDS + 2)]  # two units


async def with_all_in_use(dut: Any) -> Setup:
    """All credits of a channel are in use: 10 units were sent, 20 wait in the port."""
    setup = Setup(dut)
    await setup.start()
    assert await setup.meet(LARGE) and setup.left() == LARGE
    for number in range(5):
        await setup.packet(*words_of(number))
    await setup.bench.cycles(100)
    assert setup.frames == [words_of(number) for number in range(5)]
    dut.phy_up_i.value = 0
    for number in range(5, 15):
        await setup.packet(*words_of(number))
    await setup.bench.cycles(100)
    assert setup.left() == 0 and len(setup.frames) == 5
    dut.phy_up_i.value = 1
    setup.frames.clear()
    return setup


async def forget(setup: Setup) -> None:
    setup.dut.forget_i.value = 1
    await setup.bench.cycles(4)
    setup.dut.forget_i.value = 0
    await setup.bench.cycles(QUIET_CYCLES + 10)


async def all_is_well(setup: Setup, offer: int, kept: range) -> None:
    """What was kept has come, nothing else; for all that there is room for there are credits."""
    bench = setup.bench
    await bench.cycles(400)
    assert setup.frames == [words_of(number) for number in kept]
    assert int(setup.dut.credits_o.value) == offer
    assert setup.left() == offer - 2 * len(kept)
    setup.frames.clear()
    for number in range(100, 100 + setup.left() // 2):
        await setup.packet(*words_of(number))
        await bench.cycles(4)
    await bench.cycles(400)
    assert setup.frames == [words_of(100 + index) for index in range(len(setup.frames))]
    assert setup.frames and setup.left() < 2 and int(setup.dut.restarts_o.value) == 1


@cocotb.test
@cocotb.parametrize(forgets=[True, False])
async def a_new_neighbour_with_smaller_buffers_is_taken(dut: Any, forgets: bool) -> None:
    setup = await with_all_in_use(dut)
    if forgets:
        await forget(setup)
    else:  # the neighbour itself says that it begins
        await setup.meet(SMALL, NONE, tries=4)
        assert not int(dut.up_o.value)
    assert await setup.meet(SMALL), f"refused, reason {int(dut.refuse_o.value)}"
    assert setup.doubts() == 15
    await all_is_well(setup, SMALL, range(0))


@cocotb.test
@cocotb.parametrize(offer=[LARGE, LARGE + 7])
async def nothing_is_given_up_for_buffers_that_hold_it(dut: Any, offer: int) -> None:
    setup = await with_all_in_use(dut)
    await forget(setup)
    assert await setup.meet(offer)
    assert setup.doubts() == 5
    await all_is_well(setup, offer, range(5, 15))


@cocotb.test
async def a_long_packet_that_is_half_there_is_waited_for(dut: Any) -> None:
    setup = await with_all_in_use(dut)
    last = 129 * 32 // len(dut.phy_data_i)
    dut.in_valid_i.value = dut.in_sop_i.value = 1
    dut.in_eop_i.value, dut.in_data_i.value = 0, 1
    await FallingEdge(dut.clk_i)
    dut.in_sop_i.value = 0
    await setup.bench.cycles(last // 2)
    dut.in_valid_i.value = 0
    await forget(setup)
    assert not await setup.meet(SMALL, tries=100) and not int(dut.refuse_o.value)
    assert not setup.frames and setup.doubts() == 5
    dut.in_valid_i.value = 1
    await setup.bench.cycles(last - last // 2 - 2)
    dut.in_eop_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.in_valid_i.value = 0
    setup.units += -(-last // UNIT_WORDS)
    assert await setup.meet(SMALL), f"refused, reason {int(dut.refuse_o.value)}"
    assert setup.doubts() == 16
    await all_is_well(setup, SMALL, range(0))


@cocotb.test
async def in_a_session_that_goes_on_fewer_credits_are_refused(dut: Any) -> None:
    setup = await with_all_in_use(dut)
    assert not await setup.meet(SMALL, USED, tries=100)
    assert int(dut.refuse_o.value) == REFUSE_CREDITS and not setup.doubts()
    await forget(setup)
    assert await setup.meet(SMALL) and setup.doubts() == 15
