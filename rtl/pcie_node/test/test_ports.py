# SPDX-License-Identifier: Apache-2.0
"""The three tops have the same ports and parameters, but for clocks, cables and flat structs."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyslang.driver

ROOT = Path(__file__).resolve().parents[3]
WHOLE, FLAT, CLOCKS = (f"velo_pcie_node{end}" for end in ("", "_flat", "_clocks"))


class Port(NamedTuple):
    """What must agree: direction and bits, by name."""

    name: str
    direction: str
    bits: int


@cache
def _top(name: str) -> Any:
    listing = subprocess.run(
        [ROOT / "scripts" / "rtl", "files", "pcie_node"], check=True, capture_output=True, text=True
    ).stdout.split()
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    sources = " ".join(
        f"+incdir+{ROOT / one.removeprefix('+incdir+')}" if one[0] == "+" else str(ROOT / one)
        for one in listing
    )
    assert driver.parseCommandLine(f"slang -Wnone --single-unit --top {name} {sources}")
    assert driver.processOptions() and driver.parseAllSources()
    compilation = driver.createCompilation()
    (top,) = compilation.getRoot().topInstances
    return compilation, top.body


def ports(name: str) -> dict[str, Any]:
    return {port.name: port for port in _top(name)[1].portList}


def shown(port: Any, name: str = "") -> Port:
    return Port(name or port.name, str(port.direction), port.type.bitWidth)


def parameters(name: str) -> dict[str, str]:
    return {one.name: str(one.value) for one in _top(name)[1].parameters if not one.isLocalParam}


def flattened(port: Any) -> set[Port]:
    """A port of the whole as the flat one has it: a struct's fields by their names."""
    stem, way = port.name.rsplit("_", 1)
    if not port.type.isStruct:
        flat = f"event_{port.name}" if stem in ("unexpected", "timeout") else port.name
        return {shown(port, flat)}
    # Of base address registers the field's name stands alone: rx_bar0_i.
    stem = "rx" if stem == "rx_bar" else stem
    return {
        Port(f"{stem}_{field.name}_{way}", str(port.direction), field.type.bitWidth)
        for field in port.type.canonicalType
    }


def test_flat_is_the_whole_with_its_structs_taken_apart() -> None:
    wanted = set().union(*(flattened(port) for port in ports(WHOLE).values()))
    assert {shown(port) for port in ports(FLAT).values()} == wanted
    assert parameters(FLAT) == parameters(WHOLE)


def test_the_one_with_clocks_differs_in_clocks_and_cables() -> None:
    whole, clocks = ports(WHOLE), ports(CLOCKS)
    own = {"pcie_clk_i", "core_clk_i", "link_clk_i", "wire_o", "rx_clk_i", "signal_i", "wire_i"}
    own |= {name for name in clocks if name.startswith("pcs_")}
    assert set(clocks) - own == {name for name in whole if name != "clk_i" and name[:4] != "phy_"}
    for name in set(clocks) - own:
        assert shown(clocks[name]) == shown(whole[name])
        assert str(clocks[name].type) == str(whole[name].type), "the same struct"
    assert {
        name: value
        for name, value in parameters(CLOCKS).items()
        if name not in ("HostDepth", "Coding")
    } == parameters(WHOLE)
