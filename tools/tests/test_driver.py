# SPDX-License-Identifier: Apache-2.0
"""The kernel's driver builds without a warning, and what it is generated from becomes C.

It is tested where there is a card: see driver/README.md.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "driver"
# Debian's headers, for the kernel that runs, for any, and those of the guests (velo vm).
HEADERS = ("lib/modules/*/build", "usr/src/linux-headers-*-amd64")


def _kernel_headers() -> Path:
    """The newest kernel headers of this machine."""
    cache = Path(os.environ.get("VELO_VM_CACHE", Path.home() / ".cache" / "velo" / "vm"))
    found = [path for pattern in HEADERS for path in Path("/").glob(pattern)]
    found += cache.glob("kernel/usr/src/linux-headers-*-amd64")
    whole = [path for path in found if (path / "Makefile").exists()]
    if not whole:
        pytest.skip("no kernel headers here (Debian: linux-headers-amd64)")
    return max(whole, key=lambda path: path.stat().st_mtime)


def _make(out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-C", str(DRIVER), f"OUT={out}", *words],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_the_module_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("systemrdl", reason="the registers' header wants systemrdl")
    flags = ["W=1"] + (["C=1"] if shutil.which("sparse") else [])
    made = _make(tmp_path, f"KDIR={_kernel_headers()}", f"KFLAGS={' '.join(flags)}")
    assert made.returncode == 0, made.stdout + made.stderr
    told = re.findall(r".*(?:warning|error):.*", made.stdout + made.stderr)
    assert told == []
    assert (tmp_path / "velo.ko").is_file()


def test_the_registers_are_where_the_hardware_has_them(tmp_path: Path) -> None:
    pytest.importorskip("systemrdl", reason="the registers' header wants systemrdl")
    made = _make(tmp_path, "sources")
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "generated/velo/regs.h").read_text(encoding="utf-8")
    numbers = dict(re.findall(r"^#define VELO_REG_(\w+) (0x[0-9a-f]+)", text, re.MULTILINE))
    # From the source itself: "} name @ 0x..." and "reg_type name @ 0x...".
    rdl = (ROOT / "spec" / "velo_regs.rdl").read_text(encoding="utf-8")
    placed = re.findall(r"(\w+)(?:\[(\d+)\])? @ (0x[0-9a-f]+)", rdl)
    assert len(placed) > 50
    for name, count, at in placed:
        assert int(numbers[name.upper()], 16) == int(at, 16), name
        if count:
            assert int(numbers[f"{name.upper()}_COUNT"], 16) == int(count), name
            assert int(numbers[f"{name.upper()}_STRIDE"], 16) == 8, name
    assert numbers["INVALIDATE_BUSY_MASK"] == "0x8000000000000000"
    assert numbers["LINK_STATUS_CRC_ERRORS_MASK"] == "0xff00"


def test_the_driver_and_user_space_share_a_plain_header(tmp_path: Path) -> None:
    """Sizes are those of every machine of 64 bits, so that no call needs to be translated."""
    source = tmp_path / "sizes.c"
    source.write_text(
        '#include "velo_card.h"\n'
        '_Static_assert(sizeof(struct velo_card_take) == 32, "");\n'
        '_Static_assert(sizeof(struct velo_card_memory) == 32, "");\n'
        '_Static_assert(sizeof(struct velo_card_arm) == 8, "");\n'
    )
    for standard in ("c99", "gnu11"):
        subprocess.run(
            ["cc", "-fsyntax-only", "-Wall", "-Werror", f"-std={standard}",
             f"-I{ROOT / 'spec'}", str(source)], check=True, timeout=60,
        )  # fmt: skip
