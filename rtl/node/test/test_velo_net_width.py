# SPDX-License-Identifier: Apache-2.0
"""A unit of 64 bits on a network of 128: packets are put together and taken apart."""

import random

import cocotb
from stream import Bench, Sink, Source, join, join_packet, packet_to_beats

UNIT, PATH = 64, 128


def test_net_width(simulate):
    simulate("velo_net_width", {"NumClasses": 1})


def header(rng: random.Random, size: int) -> int:
    return rng.getrandbits(26) | size << 26 | rng.getrandbits(28) << 36


def packet(rng: random.Random, size: int) -> list[int]:
    """Header and payload of `size` bytes."""
    return [header(rng, size)] + [rng.getrandbits(64) for _ in range(-(-size // 8))]


class Setup:
    def __init__(self, dut, seed, idle=0.0, stall=0.0):
        self.rng = random.Random(seed)
        self.bench = Bench(dut)
        self.unit_out = Source(self.bench, "unit_out", idle, self.rng)
        self.path_out = Sink(self.bench, "path_out", (), stall, self.rng)
        self.path_in = Source(self.bench, "path_in", idle, self.rng)
        self.unit_in = Sink(self.bench, "unit_in", (), stall, self.rng)


@cocotb.test()
async def packets_of_every_length_pass_both_ways(dut):
    for idle, stall in ((0.0, 0.0), (0.4, 0.0), (0.0, 0.5), (0.3, 0.4)):
        setup = Setup(dut, int(100 * (idle + 3 * stall)), idle, stall)
        await setup.bench.start()
        rng = setup.rng
        outward = [packet(rng, rng.randrange(90)) for _ in range(100)]
        inward = [packet(rng, rng.randrange(90)) for _ in range(100)]

        async def send_out(setup=setup, packets=outward):
            for words in packets:
                await setup.unit_out.send(words)

        async def send_in(setup=setup, packets=inward, rng=rng):
            for words in packets:
                beats = packet_to_beats(words, PATH)
                beats[0] |= rng.getrandbits(64) << 64  # beside the header is nothing
                if len(words) % 2 == 0:
                    beats[-1] |= rng.getrandbits(64) << 64
                await setup.path_in.send(beats)

        tasks = [cocotb.start_soon(send_out()), cocotb.start_soon(send_in())]
        for task in tasks:
            await task
        setup.path_out.stall = setup.unit_in.stall = 0.0
        await setup.bench.cycles(10)
        assert [[beat.data for beat in beats] for beats in setup.path_out.packets] == [
            packet_to_beats(words, PATH) for words in outward
        ]
        assert [[beat.data for beat in beats] for beats in setup.unit_in.packets] == inward


@cocotb.test()
async def nothing_waits_longer_than_its_words_take(dut):
    setup = Setup(dut, 1)
    await setup.bench.start()
    packets = [packet(setup.rng, 8 * words) for words in range(8)]
    for words in packets:
        await setup.unit_out.send(words)
    # A packet that was begun goes on: one word a cycle from the unit's side, in either direction.
    assert [first - setup.unit_out.first_cycles[0] for first in setup.unit_out.first_cycles] == [
        sum(map(len, packets[:index])) for index in range(8)
    ]
    for words in packets:
        await setup.path_in.send(packet_to_beats(words, PATH))
    await setup.bench.cycles(2)
    cycles = [beat.cycle for beat in setup.unit_in.beats]
    assert cycles == list(range(cycles[0], cycles[0] + sum(map(len, packets))))
    assert cycles[0] == setup.path_in.first_cycles[0]


@cocotb.test()
async def a_packet_of_another_length_than_it_says_has_another_length_for_the_unit(dut):
    setup = Setup(dut, 2, 0.2, 0.2)
    await setup.bench.start()
    sent = []
    for says in range(10):
        for beats in range(6):
            words = [header(setup.rng, 8 * says)] + [setup.rng.getrandbits(64)] * (2 * beats)
            await setup.path_in.send(packet_to_beats(words, PATH))
            good = packet(setup.rng, 8 * says)
            await setup.path_in.send(packet_to_beats(good, PATH))
            sent.append((says, beats, good))
    setup.unit_in.stall = 0.0
    await setup.bench.cycles(30)
    packets = setup.unit_in.packets
    assert len(packets) == 2 * len(sent)
    for (says, beats, good), bad, after in zip(sent, packets[::2], packets[1::2], strict=True):
        assert join(bad[:1], UNIT) >> 26 & 0x3FF == 8 * says
        assert (len(bad) - 1 == says) == (beats == -(-says // 2))
        assert join_packet(after, UNIT) == sum(word << 64 * i for i, word in enumerate(good))
