#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""velo-tlm computes the cables and routes that tools/velo/cluster/routing.py tabulates.

test_routes.py VELO-TLM
"""

import subprocess
import sys
from pathlib import Path

ROUTING = Path(__file__).resolve().parents[3] / "tools" / "velo" / "cluster" / "routing.py"
NAMES = [
    *(f"torus:{s}" for s in ("2", "3", "2x2x2", "3x4x5", "4x4", "5x5", "8x8x4", "16x16", "7x2x3")),
    *(f"mesh:{s}" for s in ("2", "4x3", "3x3x3", "16x16", "8x4x8")),
    *(f"ring:{n}" for n in (2, 3, 4, 7, 16, 256)),
    *(f"hypercube:{d}" for d in range(1, 7)),
    *(f"full:{n}" for n in range(2, 8)),
]


def lines(*command: str | Path) -> list[str]:
    result = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE)
    return sorted(result.stdout.decode().splitlines())


def main() -> int:
    bad = 0
    for name in NAMES:
        ours = lines(sys.argv[1], name, "--routes")
        theirs = lines(sys.executable, ROUTING, *name.split(":"))
        if ours != theirs:
            bad += 1
            first = next((a, b) for a, b in zip([*ours, ""], [*theirs, ""], strict=False) if a != b)
            print(f"{name}: '{first[0]}' should be '{first[1]}'", file=sys.stderr)
    print(f"{len(NAMES) - bad} of {len(NAMES)} topologies alike")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
