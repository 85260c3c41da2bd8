# SPDX-License-Identifier: Apache-2.0
"""Test benches of the hardware are built at the same time, into folders named after them."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_bench_has_a_name_of_its_own() -> None:
    benches = [path.name for path in (ROOT / "rtl").glob("*/test/bench_*.cc")]
    assert len(benches) >= 6
    assert [name for name, count in Counter(benches).items() if count > 1] == []


def test_no_two_folders_of_results_have_one_name() -> None:
    """`scripts/rtl test` runs blocks beside each other: none may write where another one does."""
    folders = [
        line.split("build/rtl/")[1].split()[0]
        for run in (ROOT / "rtl").glob("*/test/run")
        for line in run.read_text().splitlines()
        if line.startswith("readonly out=$PWD/build/rtl/")
    ]
    assert len(folders) >= 2
    assert len(set(folders)) == len(folders)
