# SPDX-License-Identifier: Apache-2.0
"""Find which folder uses which, in the sources. docs/pictures/draw.py draws it.

A circle is an error. What follows from other arrows is left out.
"""

from collections import defaultdict
from pathlib import Path

from check_deps import (
    C_SUFFIXES,
    MAY_INCLUDE,
    area_of,
    includes,
    source_files,
    without_comments,
)

# What no #include tells: packages made of the spec, models made of the hardware, a Python module
# made of the headers.
OTHERS = {"rtl": {"spec"}, "sim": {"rtl"}, "bindings": {"include"}}
LEFT_OUT = ("tests", "tests/conformance", "tests/dimmnet", "sim/test", "adapters/libfabric/test")


def _whole(file: Path, area: str) -> str:
    """Each transport is an area, though one rule is for several."""
    return "/".join(file.parts[:2]) if area == "transports" else area


def find_uses(root: Path) -> dict[str, set[str]]:
    """For each area, the areas from which it includes anything."""
    uses: dict[str, set[str]] = defaultdict(set)
    for area, others in OTHERS.items():
        uses[area] |= others
    for file in source_files(root):
        area = area_of(file, MAY_INCLUDE)
        if area not in MAY_INCLUDE or area in LEFT_OUT or file.suffix not in C_SUFFIXES:
            continue
        area = _whole(file, area)
        code = without_comments((root / file).read_text(encoding="utf-8", errors="replace"))
        for _, _, target in includes(root, file, code):
            if target is not None:
                uses[area].add(_whole(target, area_of(target, MAY_INCLUDE)))
    for area, others in uses.items():
        others.discard(area)
    return uses


def reach(uses: dict[str, set[str]], area: str, seen: tuple[str, ...] = ()) -> set[str]:
    """All areas that can be reached from one by at least one arrow."""
    if area in seen:
        circle = " -> ".join([*seen[seen.index(area) :], area])
        raise SystemExit(f"draw_deps: a circle: {circle}")
    found: set[str] = set()
    for other in uses.get(area, set()):
        found |= {other} | reach(uses, other, (*seen, area))
    return found


def arrows(root: Path) -> dict[str, set[str]]:
    """For each area those that it uses directly, without what follows from others."""
    uses = find_uses(root)
    areas = {*uses, *(other for others in uses.values() for other in others)}
    found = {}
    for area in areas:
        direct = uses.get(area, set())
        found[area] = direct - {far for other in direct for far in reach(uses, other, (area,))}
    return found
