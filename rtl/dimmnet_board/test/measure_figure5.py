# SPDX-License-Identifier: Apache-2.0
"""Figure 5 of the DIMMnet-2 paper from two boards in two PCs; `scripts/rtl bench` runs it.

Three runs: back to back as the paper's; through a switch of 390 ns; back to back at 200 MHz, with a
memory slot of PC-3200 and a front side bus of 200 MHz. The last one is the first in clocks of 5 ns:
the processor, which stays as it is, and the wire take twice as many of them.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cocotb
import pytest
from dimmnet_board.host.figure5 import figure5
from test_dimmnet_board import WIRE_CLOCKS, ready

FOLDER = Path(__file__).resolve().parents[3] / "build" / "rtl"
SWITCH_CLOCKS = 39  # paper, section 4.2
SIZES_BYTES = [16, 64, 128, 192, 256, 320, 384, 448, 496]
ROUNDS = 4  # The mean of them: a poll sees a status up to 0.2 us late.
# Name, clocks of the wire, and how many of the model's clocks are one of 10 ns.
RUNS = (
    ("back to back", WIRE_CLOCKS, 1),
    ("through a switch", WIRE_CLOCKS + SWITCH_CLOCKS, 1),
    ("200 MHz, PC-3200", 2 * WIRE_CLOCKS, 2),
)


@pytest.mark.parametrize(("name", "wire_clocks", "scale"), RUNS, ids=[run[0] for run in RUNS])
def test_figure5(
    simulate: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    wire_clocks: int,
    scale: int,
) -> None:
    monkeypatch.setenv("DIMMNET_FIGURE5", name)
    monkeypatch.setenv("DIMMNET_CLOCK_SCALE", str(scale))
    simulate("dimmnet_board_pair", {"WireClocks": wire_clocks})


@cocotb.test
async def all_sizes(dut: Any) -> None:
    nodes = await ready(dut)
    results = await figure5(nodes[0], nodes[1], SIZES_BYTES, ROUNDS)
    name, scale = os.environ["DIMMNET_FIGURE5"], int(os.environ["DIMMNET_CLOCK_SCALE"])
    series = {
        case: [[size, round(ns / scale, 1)] for size, ns in values.items()]
        for case, values in results.items()
    }
    file = FOLDER / f"dimmnet-figure5-{name.split()[0]}.json"
    file.write_text(json.dumps({name: series}, indent=2) + "\n", encoding="utf-8")
