#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Area of the hardware's parts in Virtex-4-style LUT4 and flip-flops, beside the paper's, and their
clock rate on ECP5: the median of three seeds of nextpnr, parts alone, paths between registers.

Yosys maps, not the vendor's tool, and the parts are synthesized alone; the comparison is in kind.
A part of `family` "xc7" is a board's top: LUT6 and flip-flops of a 7-series FPGA, vendors' blocks
left open, and their share of the `chip`.
Reads rtl/synth.toml, writes build/rtl-synth.json; fails if a part is larger than its limit. A part
that is slower than wanted is named and does not fail, until all of them have been fast once. Parts
marked `slow` take an hour or so and are left out unless named.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "build" / "rtl-synth.json"
LUTS = re.compile(r"^\s+(\d+)\s+(LUT[1-6]|INV)\s*$", re.MULTILINE)
FLOPS = re.compile(r"^\s+(\d+)\s+FD\w+\s*$", re.MULTILINE)
RAMS = re.compile(r"^\s+(\d+)\s+(RAMB16|RAMB36E1)\s*$", re.MULTILINE)
HALF_RAMS = re.compile(r"^\s+(\d+)\s+RAMB18E1\s*$", re.MULTILINE)
FREQUENCY = re.compile(r"Max frequency for clock '[^']*': ([0-9.]+) MHz")
SEEDS = 3
WANTED_MHZ = 125
# LUT RAMs and shift registers take the places of so many LUTs.
LUT_RAMS = {"RAM16X1D": 2, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM32M": 4, "RAM64M": 4}
LUT_RAMS |= {"RAM256X1S": 4, "SRL16E": 1, "SRLC32E": 1}
# Virtex-4 stands for LUT4 in general, without what joins LUTs.
MAPPED = {"xc4v": "-nowidelut -noiopad -noclkbuf", "xc7": "-noiopad"}


def reader(top: str, block: str, parameters: dict[str, int]) -> str:
    """The Yosys command that reads a part with all it needs."""
    files = subprocess.run(
        [ROOT / "scripts" / "rtl", "files", block], check=True, capture_output=True, text=True
    ).stdout.split()
    generics = " ".join(f"-G {name}={value}" for name, value in parameters.items())
    return f"read_slang {generics} --top {top} {' '.join(files)}"


def cells(report: str, pattern: re.Pattern[str]) -> int:
    return sum(int(match[1]) for match in pattern.finditer(report))


def synthesize(name: str, top: str, read: str, family: str) -> dict[str, Any]:
    log = ROOT / "build" / "rtl" / f"synth-{name}.log"
    script = (
        f"{read}; "
        f"synth_xilinx -family {family} {MAPPED[family]} -flatten -top {top}; "
        "tee -q -o /dev/null check; stat"
    )
    subprocess.run(["yosys", "-q", "-l", str(log), "-p", script], check=True, cwd=ROOT)
    report = log.read_text(encoding="utf-8").rpartition("Printing statistics")[2]
    luts = cells(report, LUTS)
    for memory, places in LUT_RAMS.items():
        found = re.compile(rf"^\s+(\d+)\s+{memory}\s*$", re.MULTILINE)
        luts += places * cells(report, found)
    return {
        "lut6" if family == "xc7" else "lut4": luts,
        "ff": cells(report, FLOPS),
        "block_rams": cells(report, RAMS) + (cells(report, HALF_RAMS) + 1) // 2,
    }


def place(name: str, top: str, read: str, placer: str, router: str, seeds: int) -> float:
    """Clock rate on ECP5 in MHz, the median of the seeds 1 to `seeds`.

    Pins are left out, so only paths between registers count.
    """
    # The tool sees nothing outside the folder it runs in, so its files are named from there.
    folder = Path("build") / "rtl" / "fmax"
    (ROOT / folder).mkdir(parents=True, exist_ok=True)
    netlist = folder / f"{name}.json"
    script = f"{read}; synth_ecp5 -top {top} -json {netlist}"
    log = str(folder / f"{name}.log")
    subprocess.run(["yosys", "-q", "-l", log, "-p", script], check=True, cwd=ROOT)
    rates = []
    for seed in range(1, seeds + 1):
        command = ["nextpnr-ecp5", "--85k", "--package", "CABGA756", "--speed", "8"]
        command += ["--out-of-context", "--timing-allow-fail", "--freq", str(WANTED_MHZ)]
        command += ["--json", str(netlist), "--seed", str(seed)]
        command += ["--placer", placer, "--router", router]
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        (ROOT / folder / f"{name}-{seed}.log").write_text(output.stderr, encoding="utf-8")
        found = FREQUENCY.findall(output.stderr)
        if output.returncode or not found:
            sys.exit(f"rtl-synth: {name} was not placed; see {folder}/{name}-{seed}.log")
        rates.append(float(found[-1]))
    return statistics.median(rates)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tops", nargs="*", help="parts of rtl/synth.toml; all if none is named")
    args = parser.parse_args(argv)
    parts: dict[str, Any] = tomllib.loads((ROOT / "rtl/synth.toml").read_text(encoding="utf-8"))
    chosen = args.tops or [top for top, part in parts.items() if not part.get("slow")]
    results = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.is_file() else {}
    too_large, too_slow = [], []
    print(
        f"{'part':20} {'LUT4':>6} {'FF':>6} {'RAMB16':>6}   {'paper LUT/FF':>12} {'limit':>6}"
        f" {'ECP5 MHz':>9}"
    )
    for name, part in parts.items():
        if name not in chosen:
            continue
        # The same module may be there with other parameters, by another name.
        top = part.get("top", name)
        read = reader(top, part["block"], part.get("parameters", {}))
        area = results[name] = synthesize(name, top, read, part.get("family", "xc4v"))
        paper, limit = part.get("paper", "-"), part.get("limit")
        luts = area.get("lut4") or area["lut6"]
        row = f"{name:20} {luts:>6} {area['ff']:>6} {area['block_rams']:>6}"
        if "device" in part:
            limit = part["device"]
            paper = f"{luts / limit:.0%}/{area['ff'] / limit:.0%}"
        if "chip" in part:
            area["share"] = [
                round(used / there, 3)
                for used, there in zip(area.values(), part["chip"], strict=True)
            ]
            paper = "/".join(f"{share:.0%}" for share in area["share"])
            if max(area["share"]) > 1:
                too_large.append(name)
        print(f"{row}   {paper:>12} {limit or '-':>6}", end="", flush=True)
        rate = "-"
        if part.get("fmax"):
            area["ecp5_mhz"] = place(
                name,
                top,
                read,
                part.get("placer", "heap"),
                part.get("router", "router1"),
                part.get("seeds", SEEDS),
            )
            rate = f"{area['ecp5_mhz']:.1f}"
            if area["ecp5_mhz"] < WANTED_MHZ:
                too_slow.append(name)
        print(f" {rate:>9}", flush=True)
        if limit and max(luts, area["ff"]) > limit:
            too_large.append(name)
    RESULT.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    left_out = [top for top in parts if top not in chosen]
    if left_out and not args.tops:
        print(f"rtl-synth: left out, as they take long: scripts/rtl synth {' '.join(left_out)}")
    if too_slow:
        print(f"rtl-synth: slower than {WANTED_MHZ} MHz: {', '.join(too_slow)}", file=sys.stderr)
    if too_large:
        print(f"rtl-synth: larger than the limit: {', '.join(too_large)}", file=sys.stderr)
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
