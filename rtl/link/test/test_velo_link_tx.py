# SPDX-License-Identifier: Apache-2.0
"""The sending half of a link port against a receiver that also lies, loses frames or is silent."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

DATA, CTL, END, START = range(4)
VC_ACK = 7  # of a start word's half of the status: it has the echo
SEQUENCE, TIMEOUT = 64, 600


def test_link_tx(simulate: Callable[..., None]) -> None:
    simulate("velo_link_tx", {"TimeoutCycles": TIMEOUT})


@dataclass
class Frame:
    """One frame as it was on the cable."""

    seq: int
    echo: int
    words: list[int]


class Setup:
    """Writes packets, reads frames off the cable, and says what the test wants to the sender."""

    def __init__(self, dut: Any, seed: int):
        zeros = "came_up_i init_word_i in_valid_i in_sop_i in_eop_i in_vc_i in_data_i status_i "
        zeros += "in_poison_i ack_valid_i ack_i nak_i phy_pause_i anew_i drain_i in_hold_i"
        self.dut, self.rng = dut, random.Random(seed)
        self.bench = Bench(dut, zeros.split())
        self.dut.up_i.value = 1
        self.waiting: list[tuple[int, bool, bool]] = []  # words to write, with packet limits
        self.written = 0  # frames
        self.frames: list[Frame] = []
        self.open: Frame | None = None
        self.echo = 0
        self.acked = self.replays = 0
        self.timeouts: list[int] = []
        self.pause = 0.0  # how often the PHY has no room

    async def start(self) -> None:
        await self.bench.start()
        cocotb.start_soon(self._run())
        await self.bench.cycles(2)

    def packet(self, words: list[int]) -> None:
        last = len(words) - 1
        self.waiting += [(word, index == 0, index == last) for index, word in enumerate(words)]

    async def say(self, ack: int, nak: int) -> None:
        """The other side's status, for one cycle; it takes effect two cycles later."""
        self.dut.ack_i.value, self.dut.nak_i.value = ack % SEQUENCE, nak
        self.dut.ack_valid_i.value = 1
        await FallingEdge(self.dut.clk_i)
        self.dut.ack_valid_i.value = 0
        await self.bench.cycles(3)

    async def _run(self) -> None:
        dut, stop, within = self.dut, 1, False
        paused = [0, 0]
        while True:
            paused = [int(self.rng.random() < self.pause), *paused[:2]]
            dut.phy_pause_i.value = paused[0]
            valid = bool(self.waiting) and (within or not stop) and self.rng.random() < 0.9
            dut.in_valid_i.value = int(valid)
            if valid:
                word, sop, eop = self.waiting.pop(0)
                dut.in_data_i.value, dut.in_sop_i.value, dut.in_eop_i.value = word, sop, eop
                within = not eop
                self.written += eop
            await ReadOnly()
            stop = int(dut.in_stop_o.value)
            self.acked += int(dut.acked_o.value)
            self.replays += int(dut.replay_o.value)
            if int(dut.timeout_o.value):
                self.timeouts.append(self.bench.cycle)
            kind, word = int(dut.phy_kind_o.value), int(dut.phy_data_o.value)
            assert not paused[-1] or (kind == CTL and not word & 1), "no room for this word"
            self._read(kind, word)
            await FallingEdge(dut.clk_i)

    def _read(self, kind: int, word: int) -> None:
        if kind == START:
            if word >> 17 & 7 == VC_ACK:
                self.echo = word >> 10 & 1
            self.open = Frame(word >> 3 & 63, self.echo, [])
        elif kind == CTL:
            if not word & 1:
                self.echo = word >> 2 & 1
        elif self.open is None:
            raise AssertionError("a word of no frame")
        elif kind == DATA:
            self.open.words.append(word)
        else:
            self.frames.append(self.open)
            self.open = None


async def ready(dut: Any, seed: int = 1) -> Setup:
    setup = Setup(dut, seed)
    await setup.start()
    return setup


@cocotb.test
async def an_acknowledgement_of_what_was_not_sent_is_not_believed(dut: Any) -> None:
    setup = await ready(dut)
    for word in range(3):
        setup.packet([word])
    await setup.bench.until(lambda: len(setup.frames) == 3)
    # Also with the wish for a repetition, and what looks like one from before the beginning.
    for nak in (0, 1):
        for ack in range(4, SEQUENCE):
            await setup.say(ack, nak)
    assert not setup.acked and not setup.replays and len(setup.frames) == 3
    # All is still kept: asked for in a way that can be true, it comes again, from there on.
    for ack, nak, kept in ((0, 1, [0, 1, 2]), (1, 0, [1, 2]), (3, 1, [])):
        setup.frames.clear()
        await setup.say(ack, nak)
        await setup.bench.until(lambda kept=kept: len(setup.frames) == len(kept))
        await setup.bench.cycles(20)
        assert [(frame.seq, frame.words) for frame in setup.frames] == [(n, [n]) for n in kept]
        assert setup.echo == nak
    assert setup.acked == 2 and setup.replays == 3 and not setup.timeouts


@cocotb.test
async def everything_arrives_whatever_is_lost_or_made_up(dut: Any) -> None:
    setup = await ready(dut, seed=2)
    setup.pause = 0.2
    rng = setup.rng
    packets = [[rng.getrandbits(32) for _ in range(rng.randrange(1, 50))] for _ in range(300)]
    for packet in packets:
        setup.packet(packet)
    got: list[list[int]] = []
    expected = nak = 0
    while setup.bench.cycle < 50000:
        await setup.bench.until(lambda: bool(setup.frames), 4 * TIMEOUT)
        while setup.frames:
            frame = setup.frames.pop(0)
            echo = frame.echo
            behind = (frame.seq - expected) % SEQUENCE
            if rng.random() < 0.03 or 0 < behind < SEQUENCE // 2:
                # Lost: asked for once, until the other side has obeyed.
                nak = nak if echo != nak else 1 - nak
            elif behind == 0:
                expected += 1
                got.append(frame.words)
        if rng.random() < 0.5:
            # Beyond what was ever written, or behind what was acknowledged: no difference.
            await setup.say(setup.written + rng.randint(1, SEQUENCE // 2 - 1), rng.getrandbits(1))
        if rng.random() < 0.7:
            await setup.say(expected, nak)
        if got and got[-1] == packets[-1]:
            break
    assert got == packets
    assert setup.replays > 5


@cocotb.test
async def a_silent_receiver_is_sent_everything_again(dut: Any) -> None:
    setup = await ready(dut)
    setup.packet([7, 8])
    setup.packet([9])
    await setup.bench.until(lambda: len(setup.frames) == 6, 4 * TIMEOUT)
    assert [frame.words for frame in setup.frames] == 3 * [[7, 8], [9]]
    assert [frame.seq for frame in setup.frames] == 3 * [0, 1]
    assert len(setup.timeouts) == setup.replays == 2
    assert TIMEOUT < setup.timeouts[1] - setup.timeouts[0] < TIMEOUT + 10
    # Nothing to repeat, nothing to wait for.
    await setup.say(2, 0)
    await setup.bench.cycles(2 * TIMEOUT)
    assert len(setup.timeouts) == 2 and len(setup.frames) == 6
