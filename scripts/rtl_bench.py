#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure node, switch and links in cycles and put the figures into build/rtl-bench.json.

Two nodes over one cable are measured here, the bare switch and a chain of routers by
rtl/switch/test/run. Prints the table of targets, and the cycles of each stage in the form of the
VELO paper's figure 4. Fails if a target is missed.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "rtl"
RESULT = ROOT / "build" / "rtl-bench.json"

# Width of the data path, and with it the number of links (design.md, section 5).
CONFIGURATIONS = {32: 6, 64: 3}


class Row(NamedTuple):
    """A figure, what the paper had, and what is wanted: at most, or at least."""

    name: str
    paper: str
    target: float
    at_most: bool = True

    def met(self, value: float) -> bool:
        return value <= self.target if self.at_most else value >= self.target


# What the papers and the targets say of the 32-bit path.
ROWS = [
    Row("requester_cycles", "3", 2),
    Row("completer_cycles", "5", 4),
    Row("host_to_host_cycles", "64", 32),
    Row("switch_hop_cycles", "-", 6),
    Row("link_hop_cycles", "-", 14),
    Row("cycles_per_8B_message", "16", 10),
    Row("payload_efficiency_64B", "-", 0.75, at_most=False),
    Row("switch_saturation", "-", 0.85, at_most=False),
]


def environment() -> dict[str, str]:
    """The tools of scripts/rtl-setup first, so that this file also runs by itself."""
    first = f"{ROOT / '.venv/rtl/bin'}:{ROOT / '.venv/bin'}"
    return os.environ | {"PATH": f"{first}:{os.environ['PATH']}"}


def build(top: str, listing: str, bench: Path, folder: Path, flags: list[str]) -> Path:
    """Verilate `top` from a list of files and link it with a C++ bench."""
    header = OUT / "include" / "velo" / "spec.h"
    specgen = ROOT / "tools" / "velo" / "specgen.py"
    subprocess.run([sys.executable, specgen, ROOT / "spec" / "velo.toml", "-o", header], check=True)
    files = subprocess.run(
        [ROOT / "scripts" / "rtl", "flatten", listing],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    ).stdout.split()
    includes = f"-I{OUT / 'include'} -I{ROOT / 'rtl/switch/test'}"
    command = ["verilator", "--cc", "--exe", "--build", "-j", "2", "--quiet", "--assert", "-O3"]
    command += ["-Wno-fatal", "-Wno-MULTITOP", "--top", top, "--Mdir", str(folder), *flags]
    command += ["--output-split", "30000", "-CFLAGS", f"-std=c++20 {includes}"]
    # Optimised for the time of build and run together.
    command += ["-MAKEFLAGS", "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1"]
    command += ["rtl/verilator.vlt", *files, str(bench)]
    log = folder.with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        result = subprocess.run(
            command,
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(),
            check=False,
        )
    if result.returncode:
        sys.exit(log.read_text(encoding="utf-8")[-3000:] + f"\nrtl-bench: {top} was not built")
    return folder / f"V{top}"


def measure_node(width: int, seed: int, messages: int) -> dict[str, Any]:
    links = CONFIGURATIONS[width]
    program = build(
        "node_pair",
        "rtl/bench/node_pair.f",
        ROOT / "rtl" / "bench" / "node_bench.cc",
        OUT / f"node_bench{width}",
        [f"-GDataWidth={width}", f"-GNumLinks={links}", "-CFLAGS", f"-DVELO_DATA_WIDTH={width}"],
    )
    command = [program, str(seed), str(messages)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output)


def read_results() -> dict[str, Any]:
    return json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.is_file() else {}


def show(results: dict[str, Any]) -> list[str]:
    """Print table and stages; returns the rows that were missed."""
    missed = []
    print(f"\n{'32-bit path, in cycles':28} {'paper':>6} {'target':>8} {'here':>8}")
    for row in ROWS:
        value = results[row.name]
        verdict = "met" if row.met(value) else "MISSED"
        target = f"{'<=' if row.at_most else '>='} {row.target:g}"
        print(f"{row.name:28} {row.paper:>6} {target:>8} {value:>8.4g}  {verdict}")
        if not row.met(value):
            missed.append(row.name)
    total = results["host_to_host_cycles"]
    print("\nOne 8-byte message, host port to host port, one hop, PHY without delay:")
    for name, cycles in results["stages"].items():
        print(f"  {name:16} {cycles:>3}  {100 * cycles / total:3.0f} %  {'#' * cycles}")
    return missed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--messages", type=int, default=2000, help="random ones to check")
    parser.add_argument("--widths", type=int, nargs="+", choices=CONFIGURATIONS, default=[32, 64])
    parser.add_argument("--node-only", action="store_true", help="leave out switch and links")
    args = parser.parse_args(argv)
    if not args.node_only:
        print("rtl-bench: switch and links", flush=True)
        run = ROOT / "rtl" / "switch" / "test" / "run"
        subprocess.run([run, "bench"], check=True, stdout=subprocess.DEVNULL, env=environment())
    for width in args.widths:
        print(f"rtl-bench: two nodes, {width} bits", flush=True)
        figures = measure_node(width, args.seed, args.messages)
        results = read_results()
        if width == 32:
            # Links and nodes have to keep up with each other: the slower of the two counts.
            rate = figures["node_cycles_per_8B_message"]
            links = results.get("link_cycles_per_8B_message", results.get("cycles_per_8B_message"))
            if links is not None:
                results["link_cycles_per_8B_message"] = links
            results["cycles_per_8B_message"] = max(rate, links or 0)
            results |= {name: figures[name] for name in figures if name.endswith("_cycles")}
            results["node_cycles_per_8B_message"] = rate
            results["stages"] = figures["stages"]
        else:
            results[f"node_{width}_bit"] = figures
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    missed = [] if args.node_only else show(read_results())
    print(f"\n{RESULT.relative_to(ROOT)}")
    if missed:
        print(f"rtl-bench: missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
