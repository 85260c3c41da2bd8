# SPDX-License-Identifier: Apache-2.0
"""The layouts and names of spec/dimmnet.toml for a host in a simulation."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SPEC = tomllib.loads((ROOT / "spec" / "dimmnet.toml").read_text(encoding="utf-8"))
FIELDS = {one["name"].removeprefix("dimmnet_"): one["field"] for one in SPEC["layout"]}
NAMES = {
    one["name"].removeprefix("dimmnet_"): {value["name"]: value["value"] for value in one["values"]}
    for one in SPEC["enum"]
}
CONSTANTS = {one["name"].removeprefix("dimmnet_"): one["value"] for one in SPEC["constant"]}


def pack(layout: str, **values: int) -> list[int]:
    """Words; fields that are not named have their fixed value, or 0."""
    words = [0] * (1 + max(field.get("word", 0) for field in FIELDS[layout]))
    for field in FIELDS[layout]:
        value = values.pop(field["name"], field.get("value", 0))
        assert 0 <= value < 1 << field["bits"], (layout, field["name"], value)
        words[field.get("word", 0)] |= value << field["lsb"]
    assert not values, values
    return words


def unpack(layout: str, words: list[int]) -> dict[str, int]:
    return {
        field["name"]: words[field.get("word", 0)] >> field["lsb"] & (1 << field["bits"]) - 1
        for field in FIELDS[layout]
    }


def slot(page: str, wid: int, offset: int) -> int:
    """Byte address of a process's page; offsets behind it go on in the next page."""
    first = NAMES["page"][page] + (offset >> 12)
    return pack("slot", page=first, wid=wid, offset=offset & 0xFFF)[0]


def register(name: str, wid: int) -> int:
    return slot("register", wid, 8 * NAMES["register"][name])


def privileged(name: str, more: int = 0) -> int:
    word = NAMES["privileged"][name] + more
    return pack("slot", privileged=1, offset=8 * word)[0]
