#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run whole networks of whole nodes (rtl/bench/bench_nodes.cc) against the scoreboard.

Without arguments what the tests run; --hours for as many seeds as fit; --resets resets single nodes
(rtl/bench/reset_bench.cc); --dimmnet has CoreLogic of DIMMnet-2 in the custom slot
(rtl/bench/dimmnet_slot_bench.cc); --coverage once, with a
report; --measure the cycles of messages to groups and of barriers. A failing run prints its seed;
the same command with it repeats the run cycle by cycle.
"""

import argparse
import itertools
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from rtl_bench import CONFIGURATIONS, OUT, ROOT, build, link

TOPOLOGIES = {
    "pair": ["ring", "2"],
    "ring": ["ring", "4"],
    "torus": ["torus", "2x2x2"],
    "hypercube": ["hypercube", "3"],
}
NETWORKS = ["ring", "torus", "hypercube"]
# Networks that run once more with groups, which have fewer messages, and at which of the RUNS. The
# sources of groups, which are the roots of their barriers, are members or not.
GROUPS = {
    "ring": ["224:0:all", "225:2:1,3", "255:3:0,2"],
    "hypercube": ["224:0:all", "230:6:1,2,5", "255:3:0,3,7"],
}
GROUP_RUNS, GROUP_SHARE = [("ring", 2), ("hypercube", 1)], 0.4
# Error rate of the cables, delay, share of the messages, most payload: where a bit in a hundred is
# wrong, hardly any long frame ever arrives whole.
# The last one takes minutes with eight nodes, where links have most to do: those only with --hours.
RUNS = [("1e-6", 2, 1.0, 56), ("1e-4", 11, 1.0, 56), ("1e-3", 4, 0.6, 56), ("1e-2", 1, 0.03, 8)]


def topology(name: str, groups: bool = False) -> Path:
    path = OUT / "topologies" / ("-".join(TOPOLOGIES[name]) + "-barriers" * groups)
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        ROOT / "tools" / "velo" / "cluster" / "routing.py",
        *TOPOLOGIES[name],
    ]
    for group in GROUPS[name] if groups else []:
        command += ["--group", group]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    path.write_bytes(text)
    return path


def has_groups(width: int, units: int) -> bool:
    return width == 32 and units == 1


def build_nodes(
    coverage: bool,
    width: int = 32,
    *,
    units: int = 1,
    congestion: bool = False,
    fast: bool = False,
) -> Path:
    flags = [f"-GDataWidth={width}", f"-GNumLinks={CONFIGURATIONS[width]}"]
    # The others without groups, so that nodes without them are tested, too.
    flags += ["-GMulticast=1", "-GBarrier=1"] if has_groups(width, units) else []
    defines = f"-DVELO_DATA_WIDTH={width}"
    if units > 1:
        # Narrow ones, and messages to contexts of all of them, of one to two.
        flags += [f"-GNumVelo={units}", "-GVeloWidth=32"]
        defines += f" -DVELO_CONTEXTS={units + 1}"
    flags += ["-GCongestion=1"] if congestion else []
    flags += ["-CFLAGS", f"{defines} -I{ROOT / 'rtl/node/test'}"]
    flags += ["--coverage-line", "--coverage-toggle", "--coverage-user"] if coverage else []
    name = f"bench_nodes{width}" + f"_{units}units" * (units > 1)
    name += "_congestion" * congestion + "_coverage" * coverage + "_fast" * fast
    bench = ROOT / "rtl" / "bench" / "bench_nodes.cc"
    files = f"rtl/bench/{'node_points' if coverage else 'velo_node'}.f"
    return build("velo_node_flat", files, bench, OUT / name, flags, 2 if fast else 1)


def run(
    program: Path, width: int, network: Path, seed: int, messages: int, which: int, *more: str
) -> int | None:
    """One run; how many messages arrived, None if it failed."""
    rate, delay, share, payload = RUNS[which]
    if rate == RUNS[-1][0]:
        # As many words arrive whole as on a path of 32 bits.
        rate = str(float(rate) * 32 / width)
    command = [program, network, "--seed", str(seed), "--error-rate", rate]
    command += ["--delay", str(delay), "--messages", str(max(1, int(messages * share)))]
    command += ["--resets", "0" if rate == "1e-6" else "1"]
    command += ["--max-payload", str(payload), *more]
    result = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    print(result.stdout, end="", flush=True)
    if result.returncode == 0:
        return int(json.loads(result.stdout)["messages"])
    print("rtl-network: failed:", " ".join(str(word) for word in command), file=sys.stderr)
    return None


def read_coverage(paths: list[Path]) -> dict[str, dict[str, dict[str, int]]]:
    """Points of Verilator's coverage files by kind and source file: how often each was hit."""
    points: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            match = re.fullmatch(r"C '(.*)' (\d+)", line)
            if not match:
                continue
            fields = dict(
                part.split("\x02", 1) for part in match[1].split("\x01") if "\x02" in part
            )
            kind = fields.get("page", "?").split("/")[0].removeprefix("v_")
            # All instances of a module count together.
            place = f"{fields['l']}.{fields.get('n', '')} {fields.get('o', '')}"
            hits = points[kind][fields["f"]]
            hits[place] = hits.get(place, 0) + int(match[2])
    return points


def report(paths: list[Path], out: Path) -> None:
    points = read_coverage(paths)
    lines = ["Coverage of a run of whole nodes, all instances of a module together.", ""]
    for kind, files in sorted(points.items()):
        hit = sum(count > 0 for hits in files.values() for count in hits.values())
        total = sum(len(hits) for hits in files.values())
        print(f"coverage, {kind:8} {hit:>6} of {total:>6}  {100 * hit / total:5.1f} %")
        lines.append(f"{kind}: {hit} of {total}, {100 * hit / total:.1f} %")
        for file, hits in sorted(files.items()):
            holes = sorted(place for place, count in hits.items() if not count)
            share = 100 * (1 - len(holes) / len(hits))
            lines.append(f"  {file}: {share:.1f} % of {len(hits)}")
            # Toggles that are missing are many and dull: high bits of addresses, wide counters.
            if kind != "toggle":
                lines += [f"    line {place}" for place in holes]
        lines.append("")
    out.write_text("\n".join(lines), encoding="utf-8")
    print(out.relative_to(ROOT))


def build_small_nodes(width: int) -> Path:
    """Nodes with two links and CoreLogic of DIMMnet-2, and the program that resets them."""
    flags = [ROOT / "rtl" / "bench" / "dimmnet_slot.vlt", f"-GDataWidth={width}"]
    flags += ["-GNumLinks=2", "-GDimmnetUnit=1", "-CFLAGS"]
    flags += [" ".join([*small_flags(width), f"-I{ROOT / 'rtl/node/test'}"])]
    bench = ROOT / "rtl" / "bench" / "reset_bench.cc"
    name = "reset_bench" + f"{width}" * (width != 32)
    return build(
        "velo_node_flat", "rtl/bench/velo_node.f", bench, OUT / name, list(map(str, flags))
    )


def small_flags(width: int) -> list[str]:
    return [f"-DVELO_DATA_WIDTH={width}", "-DVELO_LINKS=2"]


def reset_nodes(resets: int, seed: int) -> int:
    """One node after the other of a ring loses all, while the others go on."""
    command = [build_small_nodes(32), topology("ring"), str(resets), str(seed)]
    return subprocess.run(command, check=False).returncode


def run_dimmnet(width: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Processes of DIMMnet-2 in the nodes' custom slots, beside messages and remote memory."""
    bench = ROOT / "rtl" / "bench" / "dimmnet_slot_bench.cc"
    program = link(build_small_nodes(width), bench, small_flags(width))
    command = [program, topology("pair"), *arguments]
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--messages", type=int, default=2000, help="of a run with few errors")
    parser.add_argument("--width", type=int, choices=CONFIGURATIONS, default=32)
    parser.add_argument("--units", type=int, choices=(1, 2, 4), default=1, help="VELO units")
    parser.add_argument("--congestion", action="store_true", help="manage it, all marked")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--hours", type=float, help="begin new seeds for so long")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="a barrier of eight nodes, or a packet of --dimmnet, as JSON",
    )
    parser.add_argument("--coverage", action="store_true", help="into build/rtl/coverage.txt")
    parser.add_argument("--resets", type=int, metavar="N", help="reset nodes of a ring N times")
    parser.add_argument(
        "--dimmnet", type=int, metavar="N", help="CoreLogic, N operations a process"
    )
    args = parser.parse_args(argv)
    if args.dimmnet is not None:
        arguments = ["--measure"] if args.measure else [str(args.dimmnet), str(args.seed)]
        result = run_dimmnet(args.width, *arguments)
        print(result.stdout, end="")
        return result.returncode
    if args.resets is not None:
        return reset_nodes(args.resets, args.seed)
    program = build_nodes(
        args.coverage,
        args.width,
        units=args.units,
        congestion=args.congestion,
        fast=args.hours is not None,
    )
    more = ["--congestion", "1"] if args.congestion else []
    if args.measure:
        command = [program, topology("hypercube", True), "--measure", "1", "--delay", "0"]
        return subprocess.run(command, check=False).returncode
    if args.coverage:
        data = [OUT / f"coverage-{which}.dat" for which in range(len(RUNS))]
        network = topology("torus")
        results = [
            run(
                program,
                args.width,
                network,
                args.seed,
                args.messages,
                which,
                "--coverage",
                str(path),
            )
            for which, path in enumerate(data)
        ]
        report([path for path in data if path.is_file()], OUT / "coverage.txt")
        return 1 if None in results else 0
    # Three links are enough for all of them but the torus, which has two a dimension.
    networks = [name for name in args.networks if args.width == 32 or name != "torus"]
    if not networks:
        parser.error(f"{args.width} bits have too few links for {', '.join(args.networks)}")
    groups = has_groups(args.width, args.units)
    start = time.monotonic()
    counts: list[int | None] = []
    for seed in itertools.count(args.seed):
        counts += [
            run(program, args.width, topology(network), seed, args.messages, which, *more)
            for network in networks
            for which in range(len(RUNS))
            if args.hours is not None or network == "ring" or RUNS[which][0] != "1e-2"
        ]
        messages = int(args.messages * GROUP_SHARE)
        counts += [
            run(program, args.width, topology(network, True), seed, messages, which, *more)
            for network, which in GROUP_RUNS
            if groups and network in networks
        ]
        if args.hours is None or time.monotonic() - start > 3600 * args.hours:
            break
    failed = counts.count(None)
    print(
        f"{args.width} bits: {len(counts)} runs, {failed} of them failed,"
        f" {sum(count or 0 for count in counts)} messages, {time.monotonic() - start:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
