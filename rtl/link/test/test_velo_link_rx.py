# SPDX-License-Identifier: Apache-2.0
"""The receiving half of a link port, where a start word's short CRC fits what was not sent."""

from collections.abc import Callable
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

DATA, CTL, END, START = range(4)
INPUTS = "came_up_i anew_i fresh_i ack_base_i phy_kind_i phy_data_i"


@pytest.mark.parametrize("width", [32, 64])
def test_link_rx(simulate: Callable[..., None], width: int) -> None:
    simulate("velo_link_rx", {"DataWidth": width})


def crc(bits: int, data: int, width: int, count: int, poly: int) -> int:
    """The remainder `bits` of `width` bits after `count` bits of data, the highest first."""
    for place in reversed(range(count)):
        top = (bits >> width - 1 ^ data >> place) & 1
        bits = (bits << 1 ^ (poly if top else 0)) & (1 << width) - 1
    return bits


class Setup:
    """Sends frames, takes in what comes out: words, poison, `again` with first and last word."""

    def __init__(self, dut: Any):
        self.dut = dut
        self.width = len(dut.phy_data_i)
        self.bench = Bench(dut, INPUTS.split())
        dut.up_i.value = 1
        self.copies: list[tuple[list[int], int, int, int]] = []
        self.words: list[int] = []
        self.first_again = 0

    async def start(self) -> None:
        await self.bench.start()
        cocotb.start_soon(self._take())

    async def word(self, kind: int, data: int) -> None:
        self.dut.phy_kind_i.value, self.dut.phy_data_i.value = kind, data
        await FallingEdge(self.dut.clk_i)
        self.dut.phy_kind_i.value, self.dut.phy_data_i.value = CTL, 1 << 31 | 1

    async def frame(self, seq: int, words: list[int], vc: int = 0, cut_after: int = 0) -> None:
        """The whole frame, or so many words and then a word that is none."""
        low = 7 << 17 | seq << 3 | vc
        head = (1 << 12) - 1
        for one in words[: 64 // self.width]:
            head = crc(head, one, 12, self.width, 0x80F)
        whole = crc(0xFFFFFFFF, low, 32, self.width, 0x1EDC6F41)
        await self.word(START, crc(head, low, 12, 20, 0x80F) << 20 | low)
        for one in words[: cut_after or None]:
            await self.word(DATA, one)
            whole = crc(whole, one, 32, self.width, 0x1EDC6F41)
        await self.word(*((CTL, 0) if cut_after else (END, whole)))
        await self.bench.cycles(4)

    async def _take(self) -> None:
        dut = self.dut
        while True:
            await ReadOnly()
            if int(dut.out_valid_o.value):
                again = int(dut.out_again_o.value)
                if int(dut.out_sop_o.value):
                    self.words, self.first_again = [], again
                self.words.append(int(dut.out_data_o.value))
                if int(dut.out_eop_o.value):
                    poison = int(dut.out_poison_o.value)
                    last_again = again if len(self.words) > 1 else 0
                    self.copies.append((self.words, poison, self.first_again, last_again))
            await FallingEdge(dut.clk_i)


RIGHT, OTHER = [10, 20, 30, 40], [11, 20, 33]


async def ready(dut: Any) -> Setup:
    setup = Setup(dut)
    await setup.start()
    return setup


@cocotb.test()
async def a_packet_that_was_cut_off_is_told_when_it_comes_again(dut: Any) -> None:
    setup = await ready(dut)
    await setup.frame(0, RIGHT)
    await setup.frame(1, RIGHT, cut_after=3)
    await setup.frame(1, RIGHT, cut_after=3)
    await setup.frame(1, RIGHT)
    await setup.frame(2, RIGHT)
    cut = (RIGHT[:3], 1)
    assert setup.copies == [
        (RIGHT, 0, 0, 0),
        (*cut, 0, 1),
        (*cut, 1, 1),
        (RIGHT, 0, 1, 0),
        (RIGHT, 0, 0, 0),
    ]


@cocotb.test()
async def a_header_that_was_believed_wrongly_names_another_packet(dut: Any) -> None:
    setup = await ready(dut)
    await setup.frame(0, OTHER, cut_after=3)
    await setup.frame(0, RIGHT, cut_after=3)
    await setup.frame(0, RIGHT, cut_after=3)
    await setup.frame(0, RIGHT, vc=1, cut_after=3)
    await setup.frame(0, RIGHT)
    assert [copy[2] for copy in setup.copies] == [0, 0, 1, 0, 0]
    assert [copy[1] for copy in setup.copies] == [1, 1, 1, 1, 0]
    assert setup.copies[-1][0] == RIGHT


@cocotb.test()
async def a_copy_of_which_no_word_left_is_not_what_was_cut_off(dut: Any) -> None:
    """On a wide path a believed header is kept until its second word comes."""
    setup = await ready(dut)
    await setup.frame(0, OTHER, cut_after=3)
    await setup.frame(0, RIGHT, cut_after=64 // setup.width - 1 or 1)
    await setup.frame(0, RIGHT)
    assert [copy[2] for copy in setup.copies] == [0, 0]
    assert setup.copies[-1][:2] == (RIGHT, 0)


@cocotb.test()
async def one_word_has_no_place_of_a_longer_copy(dut: Any) -> None:
    """The end of a packet of one word fell over: its copy has two, the packet itself one."""
    setup = await ready(dut)
    if setup.width == 32:
        return
    await setup.frame(0, [10, 77], cut_after=2)
    await setup.frame(0, [10])
    assert setup.copies == [([10, 77], 1, 0, 1), ([10], 0, 0, 0)]
