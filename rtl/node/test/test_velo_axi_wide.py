# SPDX-License-Identifier: Apache-2.0
"""AXI writes of 128 bits: words wherever in their beats, bad bursts, stalls on all sides."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

INCR, OKAY, SLVERR, WORD, BEAT = 1, 0, 2, 3, 4


def test_write(simulate: Callable[..., None]) -> None:
    simulate("velo_axi_write", {"DataWidth": 128})


@dataclass
class Burst:
    """Its address, its beats with their strobes, and what has to come of it."""

    addr: int
    beats: list[tuple[int, int]]
    size: int
    kind: int
    response: int
    write: tuple[int, list[int]] | None


def some_burst(rng: random.Random, number: int) -> Burst:
    upper, words = rng.randrange(2), rng.randint(1, 15)
    data = [rng.getrandbits(64) for _ in range(words)]
    place = 0x1000 * number + 64 + 8 * upper
    lanes = [None] * upper + data
    lanes += [None] * (len(lanes) % 2)
    beats = []
    for low, high in zip(lanes[::2], lanes[1::2], strict=True):
        strobes = 0xFF * (low is not None) | 0xFF00 * (high is not None)
        # Bytes without a strobe may be anything.
        halves = [rng.getrandbits(64) if half is None else half for half in (low, high)]
        beats.append((halves[0] | halves[1] << 64, strobes))
    # A bus may name the first byte that it writes, or the beat that it is in.
    addr = place if rng.randrange(2) else place & ~15
    size = WORD if words == 1 and rng.randrange(2) else BEAT
    if size == WORD:
        addr = place
    good = Burst(addr, beats, size, INCR, OKAY, (place, data))
    fault = rng.choice([""] * 8 + ["fixed", "size", "address", "long", "first", "later", "lane"])
    bad = Burst(addr, beats, size, INCR, SLVERR, None)
    last, strobes = beats[-1]
    if fault == "fixed":
        bad.kind = 0
    elif fault == "size":
        bad.size = 2
    elif fault == "address":
        bad.addr = addr | 4
    elif fault == "long":
        bad.beats = [(rng.getrandbits(128), 0xFFFF)] * 9
    elif fault == "first":
        bad.beats = [(beats[0][0], beats[0][1] & 0x7F7F), *beats[1:]]
    elif fault == "lane" and size == WORD:
        bad.addr = addr ^ 8
    elif fault == "later" and len(beats) > 1 and strobes == 0xFFFF:
        # It has begun, so it is passed on.
        bad.beats = [*beats[:-1], (last, 0xFF7F)]
        bad.write = (place, data)
    else:
        return good
    return bad


@cocotb.test
async def write_bursts(dut: Any) -> None:
    rng = random.Random(7)
    bench = Bench(dut, ["awvalid_i", "wvalid_i", "bready_i", "write_ready_i"])
    await bench.start()
    bursts = [some_burst(rng, number) for number in range(500)]
    index = beat = 0
    address_there = data_there = False
    got: list[tuple[int, int, list[int]]] = []
    answers: list[tuple[int, int]] = []
    taken: list[int] = []
    offered = None
    for _ in range(30000):
        if index < len(bursts):
            burst = bursts[index]
            address_there = address_there or rng.random() < 0.7
            data_there = data_there or rng.random() < 0.8
            dut.awid_i.value, dut.awaddr_i.value = index % 256, burst.addr
            dut.awlen_i.value, dut.awsize_i.value = len(burst.beats) - 1, burst.size
            dut.awburst_i.value = burst.kind
            dut.wdata_i.value, dut.wstrb_i.value = burst.beats[beat]
            dut.wlast_i.value = beat == len(burst.beats) - 1
        dut.awvalid_i.value = index < len(bursts) and address_there
        dut.wvalid_i.value = index < len(bursts) and data_there
        ready, answered = rng.random() < 0.7, rng.random() < 0.5
        dut.write_ready_i.value, dut.bready_i.value = ready, answered
        await ReadOnly()
        shown = None
        if int(dut.write_valid_o.value):
            shown = tuple(
                int(getattr(dut, f"write_{name}_o").value)
                for name in ("addr", "len_bytes", "eop", "data")
            )
        assert offered is None or shown == offered, "a beat was withdrawn or changed"
        offered = None if ready else shown
        if shown and ready:
            addr, size, eop, data = shown
            taken.append(data)
            if eop:
                got.append((addr, size, taken))
                taken = []
        if int(dut.bvalid_o.value) and answered:
            answers.append((int(dut.bid_o.value), int(dut.bresp_o.value)))
            number = len(answers) - 1
            written = sum(burst.write is not None for burst in bursts[: number + 1])
            assert len(got) >= written, "answered before it left"
        last = int(dut.awvalid_i.value) and int(dut.awready_o.value)
        moved = int(dut.wvalid_i.value) and int(dut.wready_o.value)
        assert not last or moved
        await FallingEdge(dut.clk_i)
        if moved:
            beat, data_there = beat + 1, False
        if last:
            index, beat, address_there = index + 1, 0, False
        if len(answers) == len(bursts):
            break
    assert answers == [(number % 256, burst.response) for number, burst in enumerate(bursts)]
    wanted = [burst.write for burst in bursts if burst.write]
    assert len(got) == len(wanted)
    for (addr, size, beats), (place, words) in zip(got, wanted, strict=True):
        assert (addr, size, len(beats)) == (place, 8 * len(words), -(-len(words) // 2))
        number = sum(data << (128 * i) for i, data in enumerate(beats))
        mask = (1 << 64 * len(words)) - 1
        assert number & mask == sum(word << (64 * i) for i, word in enumerate(words))
