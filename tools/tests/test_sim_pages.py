# SPDX-License-Identifier: Apache-2.0
"""The simulator's reference has the tables that the simulator prints; sim/test records them."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["models", "causes"])
def test_the_reference_has_a_table(name: str) -> None:
    table = (ROOT / "sim" / "test" / f"{name}.txt").read_text(encoding="utf-8")
    page = ROOT / "docs" / "reference" / "simulator.md"
    assert table.count("\n") > 3
    assert f"\n\n{table}\n" in page.read_text(encoding="utf-8"), f"{page} lacks:\n{table}"
