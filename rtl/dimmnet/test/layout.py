# SPDX-License-Identifier: Apache-2.0
"""The layouts of spec/dimmnet.toml: fields to a number and back, constants and enums by name."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SPEC = tomllib.loads((ROOT / "spec" / "dimmnet.toml").read_text(encoding="utf-8"))
LAYOUTS = {layout["name"].removeprefix("dimmnet_"): layout["field"] for layout in SPEC["layout"]}
ENUMS = {
    enum["name"].removeprefix("dimmnet_"): {one["name"]: one["value"] for one in enum["values"]}
    for enum in SPEC["enum"]
}
CONSTANTS = {one["name"].removeprefix("dimmnet_"): one["value"] for one in SPEC["constant"]}
MEMORY, ACCESS, OP, KIND, ERROR = (
    ENUMS[name] for name in ("memory", "access", "op", "kind", "error")
)
WORD = (1 << 64) - 1


def pack(layout: str, **values: int) -> int:
    """A number, the first word lowest; fields that are not named have their fixed value, or 0."""
    number = 0
    for field in LAYOUTS[layout]:
        value = values.pop(field["name"], field.get("value", 0))
        assert 0 <= value < 1 << field["bits"], (layout, field["name"], value)
        number |= value << (64 * field.get("word", 0) + field["lsb"])
    assert not values, values
    return number


def unpack(layout: str, number: int) -> dict[str, int]:
    return {
        field["name"]: number >> (64 * field.get("word", 0) + field["lsb"])
        & ((1 << field["bits"]) - 1)
        for field in LAYOUTS[layout]
    }


def packet(payload: list[int], **header: Any) -> list[int]:
    """The lines of a packet, its length right unless it is named."""
    number = pack("packet", **{"words": len(payload), **header})
    return [number & WORD, number >> 64, *payload]
