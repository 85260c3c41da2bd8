# SPDX-License-Identifier: Apache-2.0
"""The reference page of registers; the header is tested by what includes it."""

import re
from pathlib import Path

import pytest

pytest.importorskip("systemrdl")

from generators import regsgen

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec" / "velo_regs.rdl"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("regs") / "registers.md"
    assert regsgen.main([str(SPEC), "--format", "md", "-o", str(out)]) == 0
    return out.read_text(encoding="utf-8")


def test_each_register_and_memory_is_listed_at_its_offset(page: str) -> None:
    source = SPEC.read_text(encoding="utf-8")
    placed = re.findall(r"(\w+)(?:\[\d+\])? @ (0x[0-9a-f]+)", source)
    listed = re.findall(r"^\| (0x[0-9a-f]+) \| \[?(\w+)", page, re.MULTILINE)
    assert len(placed) > 50
    assert sorted((name, int(at, 16)) for name, at in placed) == sorted(
        (name, int(at, 16)) for at, name in listed
    )


def test_a_register_has_a_table_of_its_fields_and_a_link_leads_there(page: str) -> None:
    assert "| [watchdog](#watchdog) |" in page
    section = page.split("(watchdog)=\n")[1].split("\n(")[0]
    assert "## `watchdog`" in section
    assert "At 0x10." in section
    assert "| 32:32 | `enable` | rw | 0x0 | Drop; else wait. |" in section
    assert "| 19:0 | `cycles` | rw | 0xfffff |" in section


def test_no_cell_of_a_table_is_broken_over_lines(page: str) -> None:
    assert all(line.endswith("|") for line in page.splitlines() if line.startswith("|"))
