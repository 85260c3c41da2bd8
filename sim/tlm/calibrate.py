#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the transaction-level model with the RTL.

    calibrate.py              measure the RTL anew, write recorded.json, compare
    calibrate.py --check      measure the RTL anew, compare, write nothing
    calibrate.py --recorded   compare with recorded.json, a test of the build; needs no RTL tools

The RTL's side is rtl/bench.cc: whole Verilated nodes, built into build/tlm/rtl of the tree, some
ten minutes for build and all runs. Fails if a latency differs by more than 2 %, or a throughput
at saturation by more than 5 %.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "sim" / "tlm"
RECORDED = HERE / "recorded.json"
OUT = ROOT / "build" / "tlm" / "rtl"

LATENCY_LIMIT, SATURATION_LIMIT = 0.02, 0.05
OVERLOAD = 2.0  # words offered to a host port in a cycle: more than it takes
RTL_CYCLES, TLM_CYCLES, TLM_WARM_UP, SEED = 30000, 100000, 10000, 1
# A ring this long takes its time until its throughput has sunk.
LONG_CYCLES = 100000

SINKS = ("ring:16",)
CHAIN = "mesh:4"  # of which the unloaded latencies are taken, 1 to 3 hops
DELAYS = (0, 10)  # of a cable, for these
# Topology, cable delay, bytes, load.
LOADS = [
    *((t, 0, b, OVERLOAD) for t in ("ring:4", "torus:2x2x2", "hypercube:3") for b in (8, 24, 56)),
    *((t, 0, b, OVERLOAD) for t in ("ring:8", "torus:4x4") for b in (8, 56)),
    ("ring:4", 20, 8, OVERLOAD),
    ("ring:8", 20, 56, OVERLOAD),
    *((t, 0, 8, load) for t in ("ring:4", "torus:2x2x2", "torus:4x4") for load in (0.3, 0.7)),
    ("ring:8", 0, 8, 0.3),
    ("ring:8", 0, 56, 0.3),
    ("ring:8", 20, 8, 0.3),
    # A ring this long shows the dateline: overload halves what the ring carries.
    ("ring:16", 0, 8, 0.2),
    ("ring:16", 0, 8, OVERLOAD),
]


def run(*command: str | Path) -> str:
    return subprocess.run(
        [str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ).stdout


# ----- The RTL's side ----------------------------------------------------------------------------


def sources() -> list[str]:
    return run(ROOT / "scripts" / "rtl", "files", "node").split()


def digest() -> str:
    """A hash of all the RTL that was measured: it tells whether a recorded table is of this RTL."""
    total = hashlib.sha256()
    for name in sources():
        path = ROOT / name
        if path.suffix == ".sv" and path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def build() -> Path:
    """Verilate the node and link it with the bench."""
    OUT.mkdir(parents=True, exist_ok=True)
    tools = [ROOT / ".venv" / "rtl" / "bin", ROOT / ".venv" / "bin"]
    paths = {"platbase": str(ROOT / ".venv"), "base": str(ROOT / ".venv")}
    package = Path(sysconfig.get_path("purelib", vars=paths)) / "verilator"
    os.environ["PATH"] = ":".join([*map(str, tools), os.environ["PATH"]])
    os.environ.setdefault("VERILATOR_ROOT", str(package))
    includes = f"-I{ROOT / 'build/rtl/include'} -I{ROOT / 'rtl/switch/test'}"
    command = ["verilator", "--cc", "--exe", "--build", "-j", "1", "--quiet", "--no-assert", "-O3"]
    command += ["--top", "velo_node_flat", "--prefix", "Vtlm_node"]
    command += ["--Mdir", str(OUT), "-o", "bench"]
    command += ["--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-MULTITOP"]
    command += ["--output-split", "20000", "-CFLAGS", f"-std=c++20 {includes}"]
    command += ["-MAKEFLAGS", "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1"]
    command += ["rtl/verilator.vlt", *sources(), str(HERE / "rtl" / "bench.cc")]
    run(*command)
    return OUT / "bench"


def topology_file(name: str) -> Path:
    kind, size = name.split(":")
    path = OUT / f"{kind}-{size}"
    path.write_text(
        run(sys.executable, ROOT / "tools" / "velo" / "cluster" / "routing.py", kind, size)
    )
    return path


def measure_rtl() -> dict[str, Any]:
    bench = build()
    table: dict[str, Any] = {
        "SPDX-License-Identifier": "Apache-2.0",
        "made": "sim/tlm/calibrate.py: velo_node, six links of 32 bits, Verilated, rtl/bench.cc",
        "rtl_sha256": digest(),
        "cycles": RTL_CYCLES,
        "seed": SEED,
        "unloaded": [],
        "loaded": [],
    }
    for delay in DELAYS:
        print(f"RTL: {CHAIN}, cable of {delay} cycles, one message at a time", file=sys.stderr)
        rows = json.loads(run(bench, topology_file(CHAIN), str(delay), "latency", "1", "2", "3"))
        cycles = {str(h): [r["cycles"] for r in rows if r["hops"] == h] for h in (1, 2, 3)}
        table["unloaded"].append({"topology": CHAIN, "cable": delay, "cycles_by_hops": cycles})
    for name, delay, size, load in LOADS:
        print(f"RTL: {name}, cable of {delay}, {size} bytes, load {load}", file=sys.stderr)
        command = [bench, topology_file(name), str(delay), "load", str(size), str(load)]
        cycles = LONG_CYCLES if name in SINKS and load >= OVERLOAD else RTL_CYCLES
        row = json.loads(run(*command, str(cycles), str(SEED)))
        table["loaded"].append(
            {"topology": name, "cable": delay, "bytes": size, "load": load}
            | {"accepted": row["accepted"], "mean_latency": row["mean_latency"]}
        )
    return table


# ----- The model's -------------------------------------------------------------------------------


def compare_unloaded(program: Path, entry: dict[str, Any]) -> float:
    """The greatest difference, as a share."""
    output = run(
        program, entry["topology"], "--unloaded", "--json", "--cable-cycles", str(entry["cable"])
    )
    model = {(row["hops"], row["bytes"]): row["cycles"] for row in json.loads(output)}
    worst, exact, total = 0.0, 0, 0
    for hops, cycles in entry["cycles_by_hops"].items():
        for size, rtl in enumerate(cycles):
            tlm = model[int(hops), size]
            worst = max(worst, abs(tlm / rtl - 1))
            exact += tlm == rtl
            total += 1
    print(
        f"unloaded, cable of {entry['cable']}: 1 to 3 hops, 0 to 56 bytes: "
        f"{exact} of {total} exact, at most {100 * worst:.2f} % apart"
    )
    return worst


def compare_loaded(program: Path, entry: dict[str, Any]) -> bool:
    command = [program, entry["topology"], "--json", "--cable-cycles", str(entry["cable"])]
    command += ["--bytes", str(entry["bytes"]), "--load", str(entry["load"])]
    command += ["--cycles", str(TLM_CYCLES), "--warm-up", str(TLM_WARM_UP)]
    model = json.loads(run(*command))["results"][0]
    saturated = entry["load"] >= OVERLOAD
    if saturated:
        what, rtl, tlm, limit = "accepted", entry["accepted"], model["accepted"], SATURATION_LIMIT
    else:
        tlm = model["latency"]["mean"]["cycles"]
        what, rtl, limit = "mean latency", entry["mean_latency"], LATENCY_LIMIT
    apart = tlm / rtl - 1
    good = abs(apart) <= limit
    load = "saturated" if saturated else f"load {entry['load']}"
    print(
        f"{entry['topology']:12} cable {entry['cable']:2} {entry['bytes']:3} bytes  {load:10} "
        f"{what:13} RTL {rtl:8.4f}  TLM {tlm:8.4f}  {100 * apart:+5.2f} %"
        f"{'' if good else '  MISSED'}"
    )
    return good


def compare(program: Path, table: dict[str, Any]) -> bool:
    good = True
    for entry in table["unloaded"]:
        good &= compare_unloaded(program, entry) <= LATENCY_LIMIT
    for entry in table["loaded"]:
        good &= compare_loaded(program, entry)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--check", action="store_true", help="with the RTL as it is now")
    which.add_argument("--recorded", action="store_true", help="with the recorded table")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "bin" / "velo-tlm")
    args = parser.parse_args()
    if not args.program.is_file():
        parser.error(f"no program {args.program}: build it, or name it with --program")
    table = json.loads(RECORDED.read_text(encoding="utf-8")) if args.recorded else measure_rtl()
    if not args.check and not args.recorded:
        RECORDED.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return 0 if compare(args.program.resolve(), table) else 1


if __name__ == "__main__":
    sys.exit(main())
