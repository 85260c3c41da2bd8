#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure two nodes over one cable and put the figures into build/rtl-bench.json.

Figures of other benches, that are in that file already, stay. Prints the cycles of each stage in
the form of the VELO paper's figure 4, beside the paper's.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "rtl"
RESULT = ROOT / "build" / "rtl-bench.json"

# Width of the data path, and with it the number of links (design.md, section 5).
CONFIGURATIONS = {32: 6, 64: 3}
# What the paper and the target say of the 32-bit path.
ROWS = [
    ("requester_cycles", 3, 2),
    ("completer_cycles", 5, 4),
    ("host_to_host_cycles", 64, 32),
    ("node_cycles_per_8B_message", 16, 10),
]


def build(width: int, links: int) -> Path:
    folder = OUT / f"node_bench{width}"
    header = OUT / "include" / "velo" / "spec.h"
    specgen = ROOT / "tools" / "velo" / "specgen.py"
    subprocess.run([sys.executable, specgen, ROOT / "spec" / "velo.toml", "-o", header], check=True)
    listing = subprocess.run(
        [ROOT / "scripts" / "rtl", "flatten", "rtl/bench/node_pair.f"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout.split()
    flags = f"-O1 -std=c++20 -DVELO_DATA_WIDTH={width} -I{OUT / 'include'}"
    command = ["verilator", "--cc", "--exe", "--build", "-j", "2", "--quiet", "--assert"]
    command += ["-Wno-fatal", "-Wno-MULTITOP", "--top", "node_pair", "--Mdir", str(folder)]
    command += [f"-GDataWidth={width}", f"-GNumLinks={links}", "-CFLAGS", flags]
    command += ["rtl/verilator.vlt", *listing, str(ROOT / "rtl" / "bench" / "node_bench.cc")]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return folder / "Vnode_pair"


def measure(width: int, links: int, seed: int, messages: int) -> dict[str, Any]:
    program = build(width, links)
    output = subprocess.run(
        [program, str(seed), str(messages)], check=True, capture_output=True, text=True
    ).stdout
    return json.loads(output)


def show(figures: dict[str, Any]) -> None:
    print(f"{'cycles':30} {'paper':>6} {'target':>6} {'here':>7}")
    for name, paper, target in ROWS:
        print(f"{name:30} {paper:>6} {target:>6} {figures[name]:>7g}")
    total = figures["host_to_host_cycles"]
    print("\nOne 8-byte message, host port to host port, one hop:")
    for name, cycles in figures["stages"].items():
        print(f"  {name:16} {cycles:>3}  {100 * cycles / total:3.0f} %  {'#' * cycles}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--messages", type=int, default=2000, help="random ones to check")
    parser.add_argument("--widths", type=int, nargs="+", choices=CONFIGURATIONS, default=[32, 64])
    args = parser.parse_args(argv)
    results = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.is_file() else {}
    for width in args.widths:
        figures = measure(width, CONFIGURATIONS[width], args.seed, args.messages)
        if width == 32:
            results |= {name: figures[name] for name, _, _ in ROWS}
            results["stages"] = figures["stages"]
            show(figures)
        else:
            results[f"node_{width}_bit"] = figures
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"\n{RESULT.relative_to(ROOT)}")
    late = [name for name, _, target in ROWS if results.get(name, 0) > target]
    if late:
        print(f"rtl-bench: missed: {', '.join(late)}", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
