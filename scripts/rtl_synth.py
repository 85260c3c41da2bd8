#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Area of the hardware's parts in Virtex-4-style LUT4 and flip-flops, beside the paper's.

Yosys maps, not the vendor's tool, and the parts are synthesized alone; the comparison is in kind.
Reads rtl/synth.toml, writes build/rtl-synth.json; fails if a part is larger than its limit.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "build" / "rtl-synth.json"
LUTS = re.compile(r"^\s+(\d+)\s+(LUT[1-4]|INV)\s*$", re.MULTILINE)
FLOPS = re.compile(r"^\s+(\d+)\s+FD\w+\s*$", re.MULTILINE)
RAMS = re.compile(r"^\s+(\d+)\s+RAMB16\s*$", re.MULTILINE)
LUT_RAMS = re.compile(r"^\s+(\d+)\s+RAM16X1D\s*$", re.MULTILINE)


def synthesize(top: str, block: str, parameters: dict[str, int]) -> dict[str, int]:
    files = subprocess.run(
        [ROOT / "scripts" / "rtl", "files", block], check=True, capture_output=True, text=True
    ).stdout.split()
    generics = " ".join(f"-G {name}={value}" for name, value in parameters.items())
    log = ROOT / "build" / "rtl" / f"synth-{top}.log"
    script = (
        f"read_slang {generics} --top {top} {' '.join(files)}; "
        f"synth_xilinx -family xc4v -nowidelut -noiopad -noclkbuf -flatten -top {top}; "
        "tee -q -o /dev/null check; stat"
    )
    subprocess.run(["yosys", "-q", "-l", str(log), "-p", script], check=True, cwd=ROOT)
    report = log.read_text(encoding="utf-8").rpartition("Printing statistics")[2]
    sums = {
        name: sum(int(match[1]) for match in pattern.finditer(report))
        for name, pattern in (("luts", LUTS), ("flops", FLOPS), ("rams", RAMS), ("pairs", LUT_RAMS))
    }
    # A 16-deep dual-port LUT RAM takes the place of two LUTs.
    return {
        "lut4": sums["luts"] + 2 * sums["pairs"],
        "ff": sums["flops"],
        "block_rams": sums["rams"],
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tops", nargs="*", help="parts of rtl/synth.toml; all if none is named")
    args = parser.parse_args(argv)
    parts: dict[str, Any] = tomllib.loads((ROOT / "rtl/synth.toml").read_text(encoding="utf-8"))
    results = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.is_file() else {}
    too_large = []
    print(f"{'part':20} {'LUT4':>6} {'FF':>6} {'RAMB16':>6}   {'paper LUT/FF':>12} {'limit':>6}")
    for top, part in parts.items():
        if args.tops and top not in args.tops:
            continue
        area = results[top] = synthesize(top, part["block"], part.get("parameters", {}))
        paper, limit = part.get("paper", "-"), part.get("limit")
        row = f"{top:20} {area['lut4']:>6} {area['ff']:>6} {area['block_rams']:>6}"
        print(f"{row}   {paper:>12} {limit or '-':>6}")
        if limit and max(area["lut4"], area["ff"]) > limit:
            too_large.append(top)
    RESULT.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if too_large:
        print(f"rtl-synth: larger than the limit: {', '.join(too_large)}", file=sys.stderr)
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
