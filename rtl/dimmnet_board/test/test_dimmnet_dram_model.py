# SPDX-License-Identifier: Apache-2.0
"""The SO-DIMM's model: each of JEDEC's rules just kept, and then broken by one clock."""

from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge
from dimmnet_board.dram import ddr200
from stream import Bench

POWER_UP = 20
T = ddr200.cycles()
# In the order of rule_e.
RULES = "rcd rp ras rc rrd wr wtr rfc mrd bus state refresh dll set_up mode"
MODE, REFRESH, PRECHARGE, ACTIVATE, WRITE, READ, TERMINATE, NOP = range(8)
A10, ALL = 1 << 10, 1 << 10
MRS, MRS_DLL = 0x021, 0x121

# A command: clocks since the one before, command, bank, address.
Command = tuple[int, int, int, int]
SET_UP: list[Command] = [
    (POWER_UP, PRECHARGE, 0, ALL),
    (T["rp"], MODE, 1, 0),
    (T["mrd"], MODE, 0, MRS_DLL),
    (T["mrd"], PRECHARGE, 0, ALL),
    (T["rp"], REFRESH, 0, 0),
    (T["rfc"], REFRESH, 0, 0),
    (T["rfc"], MODE, 0, MRS),
]
SETTLED: list[Command] = [*SET_UP, (T["dll"], NOP, 0, 0)]
REFRESHES_END = int(ddr200.REFRESH_NS / ddr200.CLOCK_NS) * (ddr200.REFRESH_POSTPONED + 1)
WRITTEN = T["wl"] + 1  # write to the end of its data

# The rule, commands before, the last one; it breaks the rule if it comes a clock earlier.
CASES: list[tuple[str, list[Command], Command]] = [
    ("rcd", [*SETTLED, (1, ACTIVATE, 0, 5)], (T["rcd"], READ, 0, 0)),
    ("rcd", [*SETTLED, (1, ACTIVATE, 0, 5)], (T["rcd"], WRITE, 0, 0)),
    (
        "rp",
        [*SETTLED, (1, ACTIVATE, 0, 5), (9, PRECHARGE, 0, 0)],
        (T["rp"], ACTIVATE, 0, 6),
    ),
    (
        "rp",  # a read with auto-precharge closes its bank at the end of tRAS
        [*SETTLED, (1, ACTIVATE, 0, 5), (6, READ, 0, A10)],
        (1 + T["rp"], ACTIVATE, 0, 6),
    ),
    (
        "rp",  # a write with auto-precharge closes it tWR after its data
        [*SETTLED, (1, ACTIVATE, 0, 5), (6, WRITE, 0, A10)],
        (WRITTEN + T["wr"] + T["rp"], ACTIVATE, 0, 6),
    ),
    (
        "rp",  # a refresh
        [*SETTLED, (1, ACTIVATE, 0, 5), (9, PRECHARGE, 0, ALL)],
        (T["rp"], REFRESH, 0, 0),
    ),
    ("ras", [*SETTLED, (1, ACTIVATE, 0, 5)], (T["ras"], PRECHARGE, 0, 0)),
    (
        "rc",
        [*SETTLED, (1, ACTIVATE, 0, 5), (T["ras"], PRECHARGE, 0, 0)],
        (T["rc"] - T["ras"], ACTIVATE, 0, 6),
    ),
    ("rrd", [*SETTLED, (1, ACTIVATE, 0, 5)], (T["rrd"], ACTIVATE, 3, 5)),
    (
        "wr",
        [*SETTLED, (1, ACTIVATE, 0, 5), (6, WRITE, 0, 0)],
        (WRITTEN + T["wr"], PRECHARGE, 0, 0),
    ),
    (
        "wtr",
        [*SETTLED, (1, ACTIVATE, 0, 5), (6, WRITE, 0, 0)],
        (WRITTEN + T["wtr"], READ, 0, 0),
    ),
    ("rfc", [*SETTLED, (1, REFRESH, 0, 0)], (T["rfc"], ACTIVATE, 0, 0)),
    ("mrd", [*SETTLED, (1, MODE, 1, 0)], (T["mrd"], ACTIVATE, 0, 0)),
    (
        "bus",
        [*SETTLED, (1, ACTIVATE, 0, 5), (6, READ, 0, 0)],
        (T["cl"] + 1, WRITE, 0, 0),
    ),
    # Activate to read is long over; the delay-locked loop has been reset three steps before.
    (
        "dll",
        [*SET_UP, (T["mrd"], ACTIVATE, 0, 5)],
        (T["dll"] - T["mrd"] - T["rp"] - 2 * T["rfc"] - T["mrd"], READ, 0, 0),
    ),
    ("set_up", [], (POWER_UP, PRECHARGE, 0, ALL)),
]
# Rules that have nothing to do with one distance: commands that break them, and only them.
WRONG: list[tuple[str, list[Command]]] = [
    ("state", [*SETTLED, (1, READ, 0, 0)]),
    ("state", [*SETTLED, (1, ACTIVATE, 0, 5), (9, ACTIVATE, 0, 5)]),
    ("state", [*SETTLED, (1, ACTIVATE, 0, 5), (9, REFRESH, 0, 0)]),
    ("state", [*SETTLED, (1, ACTIVATE, 0, 5), (3, READ, 0, A10), (9, READ, 0, 0)]),
    ("state", [(POWER_UP, ACTIVATE, 0, 5)]),
    ("set_up", [*SET_UP[:5], (T["rfc"], MODE, 0, MRS)]),
    ("mode", [*SET_UP[:6], (T["rfc"], MODE, 0, MRS + 1)]),
    ("mode", [*SETTLED, (1, ACTIVATE, 0, 5), (6, TERMINATE, 0, 0)]),
    ("refresh", [*SETTLED, (REFRESHES_END, NOP, 0, 0)]),
]


def test_dram_model(simulate: Callable[..., None]) -> None:
    simulate("dimmnet_dram_model", {"PowerUp": POWER_UP, "Quiet": "1'b1"})


def pins(command: int, bank: int, address: int, data: int = 0, mask: int = 0) -> int:
    """A command as dfi_t."""
    value = 0b10 << 3 | command  # clock enabled, chip selected
    for field, bits in (
        (bank, 2),
        (address, 13),
        (int(command == WRITE), 1),
        (data, 128),
        (mask, 16),
        (int(command == READ), 1),
    ):
        value = value << bits | field
    return value


class Setup:
    def __init__(self, dut: Any):
        self.dut, self.bench = dut, Bench(dut, ["dfi_i"])

    async def start(self) -> None:
        await self.bench.start()

    async def reset(self) -> None:
        self.dut.dfi_i.value = 0
        self.dut.rst_ni.value = 0
        await self.bench.cycles(2)
        self.dut.rst_ni.value = 1

    async def play(self, commands: list[Command]) -> None:
        for wait, command, bank, address in commands:
            for _ in range(wait - 1):
                self.dut.dfi_i.value = pins(NOP, 0, 0)
                await FallingEdge(self.dut.clk_i)
            self.dut.dfi_i.value = pins(command, bank, address)
            await FallingEdge(self.dut.clk_i)
        self.dut.dfi_i.value = pins(NOP, 0, 0)

    def broken(self) -> set[str]:
        value = int(self.dut.broken_o.value)
        return {name for place, name in enumerate(RULES.split()) if value >> place & 1}


@cocotb.test
async def a_clock_too_early_breaks_the_rule(dut: Any) -> None:
    setup = Setup(dut)
    await setup.start()
    for rule, before, (wait, *last) in CASES:
        await setup.reset()
        await setup.play([*before, (wait, *last)])
        assert setup.broken() == set(), (rule, before, last)
        await setup.reset()
        await setup.play([*before, (wait - 1, *last)])
        assert rule in setup.broken(), (rule, before, last)


@cocotb.test
async def what_must_not_be_is_told(dut: Any) -> None:
    setup = Setup(dut)
    await setup.start()
    for rule, commands in WRONG:
        await setup.reset()
        await setup.play(commands[:-1])
        told = setup.broken()
        await setup.play(commands[-1:])
        assert not told and rule in setup.broken(), (rule, told, setup.broken())


@cocotb.test
async def data_comes_at_its_time_only(dut: Any) -> None:
    """A masked write is read after CAS latency and the PHY's clocks, not before and not after."""
    setup = Setup(dut)
    await setup.start()
    await setup.reset()
    await setup.play([*SETTLED, (1, ACTIVATE, 2, 7), (1, NOP, 0, 0)])
    for data, mask in ((0x1111 << 112 | 0x2222, 0), ((1 << 128) - 1, 0xFFFE)):
        dut.dfi_i.value = pins(WRITE, 2, 8, data, mask)
        await FallingEdge(dut.clk_i)
    await setup.play([(9, READ, 2, 8)])
    seen = []
    for _ in range(8):
        seen.append(int(dut.rddata_o.value))
        await FallingEdge(dut.clk_i)
    want = 0x1111 << 112 | 0x22FF
    at = T["cl"] + ddr200.PHY_CLOCKS - 1
    assert [value == want for value in seen] == [place == at for place in range(8)]
    assert setup.broken() == set()
