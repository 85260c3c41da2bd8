# SPDX-License-Identifier: Apache-2.0
"""The decoder: all 1024 codes at both disparities, and single wrong bits in a stream."""

import random
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import Timer
from code8b10b import K_VALUES, codes, encode


def test_decoder(simulate: Callable[..., None]) -> None:
    simulate("velo_8b10b_dec")


async def decode(dut: Any, code: int, disparity: int) -> tuple[int, int, int, int, int]:
    dut.code_i.value, dut.disparity_i.value = code, disparity
    await Timer(1, "ns")
    ports = (dut.value_o, dut.k_o, dut.code_error_o, dut.disparity_error_o, dut.disparity_o)
    value, k, bad, uneven, after = (int(port.value) for port in ports)
    return value, k, bad, uneven, after


@cocotb.test
async def every_code_is_a_symbol_a_disparity_error_or_a_code_error(dut: Any) -> None:
    table = codes()
    seen = {"symbol": 0, "disparity": 0, "code": 0}
    for code in range(1024):
        for disparity in (0, 1):
            value, k, bad, uneven, after = await decode(dut, code, disparity)
            here, there = table.get((code, disparity)), table.get((code, 1 - disparity))
            if here is not None:
                seen["symbol"] += 1
                assert (value, k, bad, uneven) == (*here, 0, 0), f"{code:010b}"
                assert after == encode(value, k, disparity)[1]
            elif there is not None:
                seen["disparity"] += 1
                assert (value, k, bad, uneven) == (*there, 0, 1), f"{code:010b}"
                assert after == encode(value, k, 1 - disparity)[1]
            else:
                seen["code"] += 1
                assert (bad, uneven) == (1, 0), f"{code:010b}"
    assert seen["symbol"] == 2 * 268 and seen["disparity"] > 200 and seen["code"] > 1000


@cocotb.test
async def one_wrong_bit_is_noticed_and_forgotten(dut: Any) -> None:
    rng = random.Random(2)
    for fill in (None, 0x00):
        for _ in range(200):
            sent_disparity = got_disparity = 0
            place, noticed = rng.randrange(10), []
            for index in range(30):
                k = int(rng.random() < 0.1)
                value = rng.choice(K_VALUES) if k else rng.getrandbits(8)
                if fill is not None:
                    value, k = fill, 0
                code, sent_disparity = encode(value, k, sent_disparity)
                code ^= (index == 5) << place
                *_, bad, uneven, got_disparity = await decode(dut, code, got_disparity)
                if bad or uneven:
                    noticed.append(index)
            # At most twice: where it is, and where the disparity shows it.
            assert 1 <= len(noticed) <= 2 and noticed[0] >= 5, f"{noticed}"
            assert got_disparity == sent_disparity
