# SPDX-License-Identifier: Apache-2.0
"""The kernel's driver builds without a warning, and what it is generated from becomes C.

It is tested where there is a card: see driver/README.md.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

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


UAPI = DRIVER / "include/uapi/linux/velo.h"
ENUMS = [("velo", "enum", "error"), ("velo", "enum", "rma_op"), ("velo", "enum", "rma_place")]
# Of each layout number: tables of spec/ that it stands for, and their hash as the number has it.
# Where this fails, and a process that knows the old layout would go wrong with the new one, the
# number goes up.
LAYOUTS = {
    "RING": (1, "5345810750b8", [
        ("velo", "address"), ("velo", "line"), ("velo", "header"),
        ("velo", "constant", "slot_fragment"), ("velo", "layout", "fragment_tag"),
    ]),
    "QUEUE": (1, "db1042e748ca", [("velo", "layout", "rma_notification"), *ENUMS]),
    "DESCRIPTOR": (1, "ea568bcd32fb", [
        ("velo", "layout", "rma_descriptor"), ("velo", "layout", "rma_operands"),
        ("velo", "layout", "registered_address"), *ENUMS[1:],
    ]),
    "STORES": (1, "81523f8a22cc", [("pcie", "layout", "pcie_stores")]),
}  # fmt: skip


def _without_docs(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_docs(item) for key, item in value.items() if key != "doc"}
    return [_without_docs(item) for item in value] if isinstance(value, list) else value


def _of_spec(package: str, *names: str) -> Any:
    tables = tomllib.loads((ROOT / "spec" / f"{package}.toml").read_text(encoding="utf-8"))
    found = tables[names[0]]
    return found if len(names) == 1 else next(row for row in found if row["name"] == names[1])


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_that_changes_gets_another_number(name: str) -> None:
    number, digest, tables = LAYOUTS[name]
    text = json.dumps([_without_docs(_of_spec(*table)) for table in tables], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:12] == digest, f"VELO_CARD_{name}_LAYOUT"
    stated = rf"^#define VELO_CARD_{name}_LAYOUT {number}$"
    assert re.search(stated, UAPI.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_driver_and_user_space_share_a_plain_header(tmp_path: Path) -> None:
    """Places are those of every machine, so that no call needs to be translated; and they stay."""
    places = {
        "take": ("size", "flags", "number", "store_lines", "node", "opened", "ring_slots",
                 "queue_entries", "ring_layout", "queue_layout", "descriptor_layout",
                 "stores_layout"),
        "withdraw": ("size", "flags", "first_page"),
    }  # fmt: skip
    at = {(call, name): 4 * i for call, names in places.items() for i, name in enumerate(names)}
    at |= {
        ("enter", name): offset
        for name, offset in (
            ("size", 0), ("flags", 4), ("address", 8), ("len_bytes", 16), ("rights", 24),
            ("peer", 28), ("first_page", 32), ("reserved", 36),
        )
    }  # fmt: skip
    arm = (("size", 0), ("flags", 4), ("ring_head", 8), ("queue_head", 10), ("ready", 12))
    at |= {("arm", name): offset for name, offset in arm}
    calls = {"TAKE": 0xB900, "ENTER": 0xB901, "WITHDRAW": 0xB902, "ARM": 0xB903}
    claims = [
        f"offsetof(struct velo_card_{call}, {name}) == {offset}"
        for (call, name), offset in at.items()
    ]
    claims += [f"VELO_CARD_{call} == {number:#x}" for call, number in calls.items()]
    source = tmp_path / "places.c"
    claimed = "".join(f'_Static_assert({claim}, "");\n' for claim in claims)
    source.write_text("#include <stddef.h>\n#include <linux/velo.h>\n" + claimed)
    for standard in ("c99", "gnu11"):
        subprocess.run(
            ["cc", "-fsyntax-only", "-Wall", "-Werror", f"-std={standard}",
             f"-I{DRIVER / 'include/uapi'}", str(source)], check=True, timeout=60,
        )  # fmt: skip


def test_each_break_of_the_driver_has_its_place() -> None:
    """So that by day none falls away with its line, of those that guests try at night."""
    breaks = tomllib.loads((DRIVER / "selftests/breaks.toml").read_text(encoding="utf-8"))["break"]
    for found in breaks:
        count = (DRIVER / found["file"]).read_text(encoding="utf-8").count(found["text"])
        assert count == 1, found["name"]
        program = DRIVER / "selftests" / f"{found.get('program', 'calls')}.c"
        assert f'{{ "{found["by"]}"' in program.read_text(encoding="utf-8"), found["name"]


def test_each_file_of_sysfs_is_described() -> None:
    source = (DRIVER / "sysfs.c").read_text(encoding="utf-8")
    made = set(re.findall(r"&dev_attr_(\w+)\.attr", source)) | {"counters/<counter>"}
    described = (DRIVER / "Documentation/ABI/testing/sysfs-class-velo").read_text(encoding="utf-8")
    told = re.findall(r"^What:\t+/sys/class/velo/velo<N>/(\S+)$", described, re.MULTILINE)
    assert sorted(told) == sorted(made)
    for field in ("Date", "KernelVersion", "Contact", "Description"):
        assert len(re.findall(rf"^{field}:", described, re.MULTILINE)) == len(told), field
