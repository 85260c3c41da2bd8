#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw which folder uses which, as found in the sources, into docs/internals/architecture.md.

Without --write, fail if the drawing there is another one, or if there is a circle. What follows
from other arrows is left out.
"""

import argparse
import re
import sys
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

PAGE = Path("docs/internals/architecture.md")
# What no #include tells: packages made of the spec, models made of the hardware, a Python module
# made of the headers.
OTHERS = {"rtl": {"spec"}, "sim": {"rtl"}, "bindings": {"include"}}
LEFT_OUT = ("tests", "tests/conformance", "tests/dimmnet", "sim/test", "adapters/libfabric/test")
BLOCK = re.compile(r"```mermaid\n.*?```", re.DOTALL)


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


def draw(root: Path) -> str:
    """The drawing: one arrow a line, from the folder that uses to the one that is used."""
    uses = find_uses(root)
    areas = sorted({*uses, *(other for others in uses.values() for other in others)})
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {area.replace("/", "_")}["{area}"]' for area in areas]
    for area in areas:
        direct = uses.get(area, set())
        implied = {far for other in direct for far in reach(uses, other, (area,))}
        lines += [
            f"    {area.replace('/', '_')} --> {other.replace('/', '_')}"
            for other in sorted(direct - implied)
        ]
    return "\n".join([*lines, "```"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the drawing into the page")
    write = parser.parse_args().write
    root = Path(__file__).parents[1]
    page = root / PAGE
    text = page.read_text(encoding="utf-8")
    drawn = BLOCK.sub(lambda _: draw(root), text, count=1)
    if write:
        page.write_text(drawn, encoding="utf-8")
    elif drawn != text or not BLOCK.search(text):
        print(f"{PAGE}: the drawing is of another tree; run scripts/draw_deps.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
