# SPDX-License-Identifier: Apache-2.0
"""The encoder against the equations of the paper, and against what the code promises."""

import random
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import Timer
from code8b10b import K_VALUES, encode

COMMA_FREE = [value for value in K_VALUES if value != 0xFC]  # K28.7 makes commas with what follows


def test_encoder(simulate: Callable[..., None]) -> None:
    simulate("velo_8b10b_enc")


async def encoded(dut: Any, value: int, k: int, disparity: int) -> tuple[int, int]:
    dut.value_i.value, dut.k_i.value, dut.disparity_i.value = value, k, disparity
    await Timer(1, "ns")
    return int(dut.code_o.value), int(dut.disparity_o.value)


@cocotb.test
async def every_symbol_is_the_papers(dut: Any) -> None:
    points = [(value, 0) for value in range(256)] + [(value, 1) for value in K_VALUES]
    for value, k in points:
        for disparity in (0, 1):
            code, after = await encoded(dut, value, k, disparity)
            assert (code, after) == encode(value, k, disparity), f"{value:02x} {k} {disparity}"
            # Balanced, or two more of what the disparity lacks.
            weight = code.bit_count()
            assert weight == 5 + (2 * after - 1) * (after != disparity)


@cocotb.test
async def known_symbols_of_the_standard(dut: Any) -> None:
    # IEEE 802.3, tables 36-1 and 36-2, abcdei fghj.
    known = {
        (0x00, 0, 0): "1001110100",
        (0x00, 0, 1): "0110001011",
        (0x4A, 0, 0): "0101010101",
        (0xB5, 0, 0): "1010101010",
        (0xF1, 0, 0): "1000110111",
        (0xEB, 0, 1): "1101001000",
        (0xBC, 1, 0): "0011111010",
        (0xBC, 1, 1): "1100000101",
        (0x1C, 1, 0): "0011110100",
        (0xFB, 1, 0): "1101101000",
        (0xFD, 1, 1): "0100010111",
        (0xFE, 1, 0): "0111101000",
    }
    for (value, k, disparity), text in known.items():
        code, _ = await encoded(dut, value, k, disparity)
        assert "".join(str(code >> bit & 1) for bit in range(10)) == text, f"{value:02x}"


@cocotb.test
async def runs_are_short_and_commas_only_where_sent(dut: Any) -> None:
    rng = random.Random(1)
    disparity, running, longest, last, total = 0, 0, 0, 2, 0
    window, place = 0, 0
    for _ in range(30000):
        k = int(rng.random() < 0.1)
        value = rng.choice(COMMA_FREE) if k else rng.choice((rng.getrandbits(8), 0, 0xFF, 0x55))
        code, disparity = await encoded(dut, value, k, disparity)
        for bit in (code >> place_in & 1 for place_in in range(10)):
            running = running + 1 if bit == last else 1
            longest, last = max(longest, running), bit
            total += 2 * bit - 1
            assert abs(total) <= 4
            window, place = (window >> 1 | bit << 6), place + 1
            if place >= 7 and window in (0b1111100, 0b0000011):
                # abcdeif of the symbol that has just reached its f, K28.1 or K28.5.
                assert place % 10 == 7 and k and value in (0x3C, 0xBC)
    assert longest == 5
