# SPDX-License-Identifier: Apache-2.0
"""The AXI4 wrapper's parts against small models of a manager, a node and a memory, with stalls."""

import os
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

WIDTH, BYTES, INCR, OKAY, SLVERR, SIZE = 32, 4, 1, 0, 2, 2


def test_write(simulate: Callable[..., None]) -> None:
    simulate("velo_axi_write")


def test_read(simulate: Callable[..., None]) -> None:
    simulate("velo_axi_read")


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_master(simulate: Callable[..., None], width: int) -> None:
    simulate("velo_axi_master", {"DataWidth": width, "IdBits": 17 if width == 128 else 16})


class Pins:
    """Inputs are set after the falling edge, outputs looked at just before the rising one."""

    def __init__(self, dut: Any, seed: int):
        self.dut, self.rng = dut, random.Random(seed)

    def set(self, **values: int) -> None:
        for name, value in values.items():
            getattr(self.dut, name).value = value

    def get(self, name: str) -> int:
        return int(getattr(self.dut, name).value)

    def taken(self, valid: str, ready: str) -> bool:
        return bool(self.get(valid) and self.get(ready))

    async def edge(self) -> None:
        await FallingEdge(self.dut.clk_i)


async def start(dut: Any, inputs: list[str], seed: int) -> Pins:
    bench = Bench(dut, inputs)
    await bench.start()
    await bench.cycles(1)
    return Pins(dut, seed)


def of(module: str) -> Callable[[Any], Any]:
    """A test of one module; this file is loaded for each of them."""
    return cocotb.test(skip=os.environ.get("COCOTB_TOPLEVEL") != module)


@of("velo_axi_write")
async def write_bursts(dut: Any) -> None:
    """Good bursts become one write each, with OKAY; bad ones none, with SLVERR. Those that turn out
    bad under way become a write, as it has begun, but are not told to be good."""
    pins = await start(dut, ["awvalid_i", "wvalid_i", "bready_i", "write_ready_i"], 1)
    rng = pins.rng
    bursts = []
    for number in range(300):
        beats = rng.randint(1, 18)
        fault = rng.choice([None] * 5 + ["fixed", "size", "strobe", "address", "hole", "end"])
        if beats == 1 and fault in ("hole", "end"):
            fault = "strobe"
        bursts.append(
            (number % 256, number * 64, beats, fault, [rng.getrandbits(32) for _ in range(beats)])
        )
    wanted, responses = [], []
    for ident, addr, beats, fault, data in bursts:
        responses.append((ident, SLVERR if fault else OKAY))
        if fault in (None, "hole", "end"):
            wanted.append((addr, beats * BYTES, data))
    got: list[tuple[int, int, list[int]]] = []
    answers: list[tuple[int, int]] = []
    open_data: list[int] = []
    index = beat = 0
    address_there = data_there = False
    for _ in range(20000):
        if index < len(bursts):
            ident, addr, beats, fault, data = bursts[index]
            address_there = address_there or rng.random() < 0.6
            data_there = data_there or rng.random() < 0.8
            holed = {"strobe": 0, "hole": 1, "end": beats - 1}.get(fault or "", -1)
            pins.set(
                awvalid_i=address_there,
                awid_i=ident,
                awaddr_i=addr + (2 if fault == "address" else 0),
                awlen_i=beats - 1,
                awsize_i=1 if fault == "size" else SIZE,
                awburst_i=0 if fault == "fixed" else INCR,
                wvalid_i=data_there,
                wdata_i=data[beat],
                wlast_i=beat == beats - 1,
                wstrb_i=7 if beat == holed else 15,
            )
        else:
            pins.set(awvalid_i=0, wvalid_i=0)
        pins.set(write_ready_i=rng.random() < 0.7, bready_i=rng.random() < 0.5)
        await ReadOnly()
        if pins.taken("write_valid_o", "write_ready_i"):
            open_data.append(pins.get("write_data_o"))
            if pins.get("write_eop_o"):
                got.append((pins.get("write_addr_o"), pins.get("write_len_bytes_o"), open_data))
                open_data = []
        if pins.taken("bvalid_o", "bready_i"):
            answers.append((pins.get("bid_o"), pins.get("bresp_o")))
        last = pins.taken("awvalid_i", "awready_o")
        moved = pins.taken("wvalid_i", "wready_o")
        assert not last or moved
        await pins.edge()
        if moved:
            beat, data_there = beat + 1, False
        if last:
            index, beat, address_there = index + 1, 0, False
        if len(answers) == len(bursts):
            break
    assert answers == responses
    assert got == wanted


@of("velo_axi_read")
async def read_bursts(dut: Any) -> None:
    """Every burst gets its beats, the node's refusals and bad bursts as errors, in any order."""
    pins = await start(dut, ["arvalid_i", "rready_i", "read_ready_i", "answer_valid_i"], 2)
    rng = pins.rng
    bursts = [
        (
            rng.randrange(16),
            number * 64,
            rng.randint(1, 8),
            rng.choice(["", "", "", "fixed", "refuse"]),
        )
        for number in range(300)
    ]
    wanted: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
    for ident, addr, beats, fault in bursts:
        data = [0] * beats if fault else [addr + beat for beat in range(beats)]
        wanted[ident].append((SLVERR if fault else OKAY, data))
    refuse = {addr for _, addr, _, fault in bursts if fault == "refuse"}
    got: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
    rest: dict[int, list[int]] = defaultdict(list)
    asked: list[tuple[int, int, int]] = []  # tag, address, bytes
    answer: tuple[int, int, int] | None = None
    beat = index = 0
    offered = False
    for _ in range(20000):
        if index < len(bursts):
            ident, addr, beats, fault = bursts[index]
            offered = offered or rng.random() < 0.7
            pins.set(
                arvalid_i=offered,
                arid_i=ident,
                araddr_i=addr,
                arlen_i=beats - 1,
                arsize_i=SIZE,
                arburst_i=0 if fault == "fixed" else INCR,
            )
        else:
            pins.set(arvalid_i=0)
        if answer is None and asked and rng.random() < 0.5:
            answer = asked.pop(rng.randrange(len(asked)))
            beat = 0
        if answer is not None:
            tag, place, length = answer
            error = place in refuse
            end = error or beat == length // BYTES - 1
            pins.set(
                answer_valid_i=1,
                answer_tag_i=tag,
                answer_error_i=error,
                answer_eop_i=end,
                answer_data_i=place + beat,
            )
        else:
            pins.set(answer_valid_i=0)
        pins.set(read_ready_i=rng.random() < 0.7, rready_i=rng.random() < 0.6)
        await ReadOnly()
        if pins.taken("read_valid_o", "read_ready_i"):
            asked.append(
                (pins.get("read_tag_o"), pins.get("read_addr_o"), pins.get("read_len_bytes_o"))
            )
        if pins.taken("rvalid_o", "rready_i"):
            ident = pins.get("rid_o")
            rest[ident].append(pins.get("rdata_o"))
            if pins.get("rlast_o"):
                got[ident].append((pins.get("rresp_o"), rest.pop(ident)))
        moved = pins.taken("arvalid_i", "arready_o")
        taken = pins.taken("answer_valid_i", "answer_ready_o")
        await pins.edge()
        if moved:
            index, offered = index + 1, False
        if taken:
            beat += 1
            if end:
                answer = None
        if sum(map(len, got.values())) == len(bursts):
            break
    assert got == wanted


def known_byte(addr: int) -> int:
    return (addr * 0x9E3779B1 >> 8) & 255


@of("velo_axi_master")
@cocotb.parametrize(slave=["any", "address last", "address first"])
async def master(dut: Any, slave: str) -> None:
    """DMA accesses of any place and length as bursts: every byte in its lane, no other touched."""
    inputs = [
        "dma_write_valid_i",
        "dma_read_valid_i",
        "dma_answer_ready_i",
        "awready_i",
        "wready_i",
    ]
    pins = await start(dut, [*inputs, "bvalid_i", "arready_i", "rvalid_i"], 3)
    rng = pins.rng
    size = len(dut.dma_write_data_i) // 8
    # Addresses are such that bursts do not meet and do not cross 4 KiB.
    writes = [
        (n * 512 + rng.randrange(64), rng.randbytes(rng.choice((1, 3, 8, 16, 64, 448))))
        for n in range(200)
    ]
    reads = [
        (n, 0x10000 + n * 512 + rng.randrange(64), rng.choice((1, 4, 8, 37, 448)))
        for n in range(100)
    ]
    bad_reads = {tag for tag, _, _ in reads if rng.random() < 0.2}
    memory: dict[int, int] = {}
    got_reads: dict[int, bytes | None] = {}
    addresses: list[tuple[int, int]] = []
    answer: list[int] = []
    pending: list[tuple[int, int, int]] = []
    burst: tuple[int, int, int] | None = None
    sent: list[tuple[int, int, bool]] = []  # beats that came: strobes, data, the last
    windex = wbeat = rindex = rbeat = errors = 0
    written = unanswered = answered = taken = must_be_answered = 0
    read_offered = False
    for _ in range(60000):
        pins.set(dma_write_valid_i=windex < len(writes))
        if windex < len(writes):
            addr, data = writes[windex]
            piece = data[wbeat * size : (wbeat + 1) * size]
            piece += rng.randbytes(size - len(piece))
            pins.set(
                dma_write_addr_i=addr,
                dma_write_len_bytes_i=len(data),
                dma_write_data_i=int.from_bytes(piece, "little"),
                dma_write_eop_i=(wbeat + 1) * size >= len(data),
            )
        if not read_offered and rindex < len(reads) and rng.random() < 0.2:
            read_offered, must_be_answered = True, taken
        pins.set(dma_read_valid_i=read_offered)
        if read_offered:
            tag, addr, length = reads[rindex]
            pins.set(dma_read_tag_i=tag, dma_read_addr_i=addr, dma_read_len_bytes_i=length)
        if burst is None and pending and rng.random() < 0.5:
            burst, rbeat = pending.pop(0), 0
        bad_response = rng.random() < 0.1
        responds = unanswered > 0 and rng.random() < 0.1
        pins.set(rvalid_i=burst is not None, bvalid_i=responds, bresp_i=SLVERR * bad_response)
        errors += responds and bad_response
        if burst is not None:
            ident, addr, beats = burst
            place = addr + rbeat * size
            shown = bytes(known_byte(each) for each in range(place, place + size))
            bad = ident in bad_reads and rbeat == beats // 2
            pins.set(
                rid_i=0,
                rdata_i=int.from_bytes(shown, "little"),
                rlast_i=rbeat == beats - 1,
                rresp_i=SLVERR if bad else OKAY,
            )
        for name in ("awready_i", "wready_i", "arready_i", "dma_answer_ready_i"):
            pins.set(**{name: rng.random() < 0.7})
        if slave == "address last":
            # It takes an address only when all data of its burst have come, as a slave may.
            pins.set(awready_i=bool(sent) and sent[-1][2])
        elif slave == "address first":
            pins.set(wready_i=bool(addresses) and rng.random() < 0.7)
        await ReadOnly()
        if pins.taken("awvalid_o", "awready_i"):
            addresses.append((pins.get("awaddr_o"), pins.get("awlen_o") + 1))
            assert pins.get("awaddr_o") % size == 0
        if pins.taken("wvalid_o", "wready_i"):
            sent.append((pins.get("wstrb_o"), pins.get("wdata_o"), bool(pins.get("wlast_o"))))
        while addresses and sent:
            place, beats = addresses[0]
            strobes, value, is_last = sent.pop(0)
            for lane in range(size):
                if strobes >> lane & 1:
                    assert place + lane not in memory
                    memory[place + lane] = value >> (8 * lane) & 255
            addresses[0] = place + size, beats - 1
            assert is_last == (beats == 1)
            if beats == 1:
                addresses.pop(0)
                written, unanswered = written + 1, unanswered + 1
        if responds:
            unanswered, answered = unanswered - 1, answered + 1
        if pins.taken("arvalid_o", "arready_i"):
            # Writes that were taken before the read was offered are answered: they can be seen.
            assert answered - responds >= must_be_answered
            tag, addr, length = reads[rindex]
            first, last = addr // size, (addr + length - 1) // size
            assert (pins.get("araddr_o"), pins.get("arlen_o")) == (first * size, last - first)
            # A slave may mix the beats of reads of different IDs, so all have one.
            assert pins.get("arid_o") == 0
            pending.append((tag, first * size, last - first + 1))
        if pins.taken("dma_answer_valid_o", "dma_answer_ready_i"):
            answer.append(pins.get("dma_answer_data_o"))
            if pins.get("dma_answer_eop_o"):
                words = b"".join(word.to_bytes(size, "little") for word in answer)
                failed = pins.get("dma_answer_error_o")
                got_reads[pins.get("dma_answer_tag_o")] = None if failed else words
                answer = []
        write_moved = pins.taken("dma_write_valid_i", "dma_write_ready_o")
        read_moved = pins.taken("dma_read_valid_i", "dma_read_ready_o")
        answer_moved = pins.taken("rvalid_i", "rready_o")
        await pins.edge()
        if write_moved:
            wbeat += 1
            if wbeat * size >= len(writes[windex][1]):
                windex, wbeat, taken = windex + 1, 0, taken + 1
        if read_moved:
            rindex, read_offered = rindex + 1, False
        if answer_moved and burst is not None:
            rbeat += 1
            if rbeat == burst[2]:
                burst = None
        if len(got_reads) == len(reads) and answered == len(writes):
            break
    assert written == len(writes)
    assert memory == {addr + i: byte for addr, data in writes for i, byte in enumerate(data)}
    for tag, addr, length in reads:
        words = got_reads[tag]
        assert (words is None) == (tag in bad_reads)
        if words is not None:
            assert len(words) == -(-length // size) * size
            assert words[:length] == bytes(known_byte(addr + i) for i in range(length))
    assert pins.get("write_errors_o") == errors % 256
