# SPDX-License-Identifier: Apache-2.0
"""The SO-DIMM interface before SO-DIMMs that fail on a broken rule: right data, and how fast."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge
from dimmnet_board.dram.row_bound import activates, command_bound, row_bound
from stream import Bench

INPUTS = "req_valid_i req_write_i req_addr_i req_data_i req_mask_i"
SODIMM_WORDS = 1 << 25
POWER_UP = 40  # clocks instead of 20,000
FIGURES = Path(__file__).resolve().parents[3] / "build" / "rtl" / "dimmnet-sodimm.json"
MASK = (1 << 64) - 1

Request = tuple[int, bool, int, int]  # first word, write, data, mask


def test_sodimm(simulate: Callable[..., None]) -> None:
    simulate("dimmnet_ddr_sodimm_bench", {"PowerUp": POWER_UP})


class Port:
    """Offers requests as fast as they are taken, and keeps the responses with their cycles."""

    def __init__(self, dut: Any):
        self.dut, self.bench = dut, Bench(dut, INPUTS.split())
        self.responses: list[tuple[int, int]] = []
        self.first_taken = self.last_taken = 0

    async def start(self) -> None:
        """The first requests come while the SO-DIMMs are still being set up."""
        await self.bench.start()

    async def run(self, requests: Sequence[Request], idle: float = 0.0, seed: int = 1) -> None:
        """Returns after the last response. `req_ready_o` and responses are registers' values."""
        dut, rng = self.dut, random.Random(seed)
        self.responses = []
        waiting: Iterator[Request] = iter(requests)
        reads = sum(not request[1] for request in requests)
        next_one = next(waiting, None)
        offered, quiet = False, 0
        self.first_taken = 0
        while next_one or offered or len(self.responses) < reads:
            if not offered and next_one and rng.random() >= idle:
                dut.req_valid_i.value = 1
                dut.req_addr_i.value, dut.req_write_i.value = next_one[0], int(next_one[1])
                dut.req_data_i.value, dut.req_mask_i.value = next_one[2], next_one[3]
                offered, next_one = True, next(waiting, None)
            elif not offered:
                dut.req_valid_i.value = 0
            taken = offered and bool(int(dut.req_ready_o.value))
            if taken:
                self.last_taken = self.bench.cycle
                self.first_taken = self.first_taken or self.last_taken
            await FallingEdge(dut.clk_i)
            if taken:
                offered = False
            if int(dut.rsp_valid_o.value):
                self.responses.append((int(dut.rsp_data_o.value), self.bench.cycle))
                quiet = 0
            quiet += 1
            assert quiet < 3000, f"{len(self.responses)} of {reads} responses came"
        dut.req_valid_i.value = 0


async def ready(dut: Any) -> Port:
    port = Port(dut)
    await port.start()
    return port


@cocotb.test
async def reads_give_what_was_written(dut: Any) -> None:
    port = await ready(dut)
    rng = random.Random(2)
    # Few lines of a few rows of all banks and both SO-DIMMs, so that they meet again.
    rows = [rng.randrange(1 << 15) << 10 for _ in range(6)] + [0, (1 << 15) - 1 << 10]
    lines = [row + 2 * rng.randrange(512) + s * SODIMM_WORDS for row in rows for s in (0, 1)
             for _ in range(6)]  # fmt: skip
    memory: dict[int, int] = {}
    for idle in (0.0, 0.4, 0.97):
        requests: list[Request] = []
        expected: list[int] = []
        for _ in range(300 if idle > 0.9 else 2500):
            word, write = rng.choice(lines), rng.random() < 0.5
            data, mask = rng.getrandbits(128), rng.randrange(4)
            requests.append((word, write, data, mask))
            for half in (0, 1):
                if write and mask >> half & 1:
                    memory[word + half] = data >> 64 * half & MASK
            if not write:
                expected.append(memory.get(word, 0) | memory.get(word + 1, 0) << 64)
        await port.run(requests, idle)
        assert [data for data, _ in port.responses] == expected
    for sodimm in (0, 1):
        cycles = port.bench.cycle
        assert int(dut.refreshes_o.value.to_unsigned()) >> 32 * sodimm & 0xFFFFFFFF >= cycles // 800


@cocotb.test
async def a_quick_bank_waits_for_a_slow_one(dut: Any) -> None:
    """More reads of an open row than a lane has room for, behind some that each open a row."""
    port = await ready(dut)
    slow = [4096 * row for row in range(15)]
    quick = [1024 + 2 * column for column in range(45)]
    words = slow + quick
    await port.run([(word, True, word << 64 | ~word & MASK, 3) for word in words])
    for _ in range(3):
        await port.run([(word, False, 0, 0) for word in words])
        assert [data for data, _ in port.responses] == [word << 64 | ~word & MASK for word in words]


@cocotb.test
async def a_read_alone(dut: Any) -> None:
    """How long a read takes with nothing else under way, row closed and row open."""
    port = await ready(dut)
    await port.bench.cycles(POWER_UP + 300)
    latency = []
    for word in (0x4000, 0x4002):
        await port.run([(word, False, 0, 0)])
        latency.append(port.responses[0][1] - port.first_taken)
        await port.bench.cycles(20)
    figures = {"read_cycles_closed": latency[0], "read_cycles_open": latency[1]}
    write_figures(figures)
    assert latency[1] < latency[0] < 40


def patterns(count: int) -> dict[str, list[int]]:
    """Elements of 8 bytes in one SO-DIMM: `strided_`, `list_`, by what they do to the rows."""
    rng = random.Random(3)
    row = 1024  # words
    strides = {
        "in_a_row": 2,  # 16 bytes
        "odd": 37,  # 296 bytes: some 28 elements a row
        "row_to_row": row,  # each another bank
        "bank_and_column": row + 6,
        "two_banks": 2 * row,
        "one_bank": 4 * row,  # another row of the same bank each time
    }
    lists = {
        "random": lambda: rng.randrange(SODIMM_WORDS),
        "random_in_four_rows": lambda: rng.randrange(4 * row),
        "random_in_64_rows": lambda: rng.randrange(64 * row),
        "random_in_a_bank": lambda: rng.randrange(SODIMM_WORDS // 4096) * 4096 + rng.randrange(row),
    }
    result = {
        f"strided_{name}": [step * place % SODIMM_WORDS for place in range(count)]
        for name, step in strides.items()
    }
    return result | {f"list_{name}": [draw() for _ in range(count)] for name, draw in lists.items()}


@cocotb.test
async def reads_are_as_fast_as_rows_allow(dut: Any) -> None:
    port = await ready(dut)
    await port.bench.cycles(POWER_UP + 300)
    results: dict[str, dict[str, float]] = {}
    for name, words in patterns(1500).items():
        before = int(dut.activates_o.value.to_unsigned())
        await port.run([(word & ~1, False, 0, 0) for word in words])
        made = int(dut.activates_o.value.to_unsigned()) - before & 0xFFFFFFFF
        clocks = port.responses[-1][1] - port.first_taken
        results[name] = {
            "elements_per_cycle": len(words) / clocks,
            "row_bound": len(words) / row_bound(words),
            "command_bound": len(words) / command_bound(words),
            "activates": made,
            "activates_needed": activates(words),
            "share": row_bound(words) / clocks,
        }
        dut._log.info("%s %s", name, results[name])
        # A bound that is beaten is none.
        assert results[name]["share"] <= 1
        await port.bench.cycles(30)
    shares = {
        kind: min(one["share"] for name, one in results.items() if name.startswith(kind))
        for kind in ("strided", "list")
    }
    write_figures({"patterns": results, **{f"{kind}_share": shares[kind] for kind in shares}})
    assert min(shares.values()) >= 0.8, shares


def write_figures(figures: dict[str, Any]) -> None:
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    FIGURES.write_text(json.dumps(known | figures, indent=2) + "\n", encoding="utf-8")
