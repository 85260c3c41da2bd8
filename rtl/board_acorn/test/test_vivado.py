# SPDX-License-Identifier: Apache-2.0
"""What the vendor's tool would be told: its script and constraints, with stubs for its commands."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BOARD = ROOT / "rtl" / "board_acorn"
# Each command of the tool says its arguments, one a line, and gives back what stands for a thing.
STUBS = """
proc unknown {name args} {
    puts "> $name"
    foreach one $args { puts "  [string map {\\n { }} $one]" }
    return "<$name $args>"
}
proc get_property {name paths} { return {0.3 SLACK} }
proc read_xdc {path} { uplevel #0 [list source $path] }
"""
SCALES = {"Kilobytes": 10, "Megabytes": 20, "Gigabytes": 30}


def run(slack: float = 0.1) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    script = STUBS.replace("SLACK", str(slack)) + "source rtl/board_acorn/vivado/build.tcl\n"
    done = subprocess.run(
        ["tclsh"], input=script, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    calls: list[list[str]] = []
    for line in done.stdout.splitlines():
        if line.startswith("> "):
            calls.append([line[2:]])
        else:
            calls[-1].append(line[2:])
    return done, calls


@pytest.fixture(scope="module")
def calls() -> list[list[str]]:
    done, calls = run()
    assert done.returncode == 0 and not done.stderr, done.stderr
    return calls


def settings(calls: list[list[str]]) -> dict[str, str]:
    (call,) = (one for one in calls if "CONFIG.Vendor_ID" in " ".join(one))
    words = call[2].replace("{", "").replace("}", "").split()
    pairs = zip(words[::2], words[1::2], strict=True)
    return {name.removeprefix("CONFIG."): value for name, value in pairs}


def test_the_block_is_what_the_spec_says(calls: list[list[str]]) -> None:
    spec = tomllib.loads((ROOT / "spec" / "pcie.toml").read_text(encoding="utf-8"))
    facts = {one["name"].removeprefix("pcie_"): one["value"] for one in spec["constant"]}
    block = settings(calls)
    for name in ("Vendor_ID", "Subsystem_Vendor_ID"):
        assert int(block[name], 16) == facts["vendor"]
    for name in ("Device_ID", "Subsystem_ID"):
        assert int(block[name], 16) == facts["device"]
    assert int(block["Revision_ID"], 16) == facts["revision"]
    code = (block[f"Class_Code_{part}"] for part in ("Base", "Sub", "Interface"))
    assert int("".join(code), 16) == facts["class"]
    for bar in (0, 2, 4):
        size = int(block[f"Bar{bar}_Size"]) << SCALES[block[f"Bar{bar}_Scale"]]
        assert size == 1 << facts[f"bar{bar}_bits"]
        assert block[f"Bar{bar}_64bit"] == block[f"Bar{bar}_Enabled"] == "true"
    assert int(block["MSIx_Table_Size"], 16) == facts["vectors"]
    assert int(block["MSIx_PBA_Offset"], 16) == facts["msix_pba"]


def test_sources_are_the_block_without_the_vendors_modules(calls: list[list[str]]) -> None:
    (sources,) = (one[2].split() for one in calls if one[0] == "read_verilog")
    assert "rtl/board_acorn/rtl/velo_acorn.sv" in sources
    assert all((ROOT / source).is_file() for source in sources)
    assert not any("vendor" in source for source in sources)


def test_each_pin_of_the_card_has_one_place(calls: list[list[str]]) -> None:
    source = (BOARD / "rtl" / "velo_acorn.sv").read_text(encoding="utf-8")
    header = source[source.index(") (") : source.index(");")]
    wanted = set()
    for width, name in re.findall(r"(?:input|output) +logic +(?:\[(\d):0\])? *(\w+)", header):
        wanted |= {f"{name}[{bit}]" for bit in range(int(width) + 1)} if width else {name}
    places: dict[str, str] = {}
    for call in calls:
        place = re.search(r"PACKAGE_PIN (\w+)", " ".join(call))
        port = re.search(r"<get_ports \{?([^ {}>]+)\}?>", " ".join(call))
        if place and port:
            assert port[1] not in places, port[1]
            places[port[1]] = place[1]
    assert set(places) == wanted
    assert len(set(places.values())) == len(places), "two on one pin"


def test_no_bitstream_if_the_clocks_are_not_met() -> None:
    done, calls = run(slack=-0.1)
    assert "not met" in done.stderr
    names = [call[0] for call in calls]
    assert "route_design" in names and "write_bitstream" not in names
