#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure node, switch, links and SO-DIMMs in cycles and put the figures into build/rtl-bench.json.

Two nodes over one cable are measured here, the bare switch and a chain of routers by
rtl/switch/test/run. Prints the table of targets, and the cycles of each stage in the form of the
VELO paper's figure 4. Fails if a target is missed. With --node-only it is a test of the nodes, and
leaves the JSON alone.
"""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

from papers import figure4

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "rtl"
RESULT = ROOT / "build" / "rtl-bench.json"

# Width of the data path, and with it the number of links (design.md, section 5).
CONFIGURATIONS = {32: 6, 64: 3, 128: 3}


class Row(NamedTuple):
    """A figure, what the paper had, and what is wanted, if anything: at most, or at least."""

    name: str
    paper: str
    target: float | None
    at_most: bool = True

    def met(self, value: float) -> bool:
        if self.target is None:
            return True
        return value <= self.target if self.at_most else value >= self.target

    def wanted(self) -> str:
        return "-" if self.target is None else f"{'<=' if self.at_most else '>='} {self.target:g}"


# What the papers and the targets say of the 32-bit path.
ROWS = [
    Row("requester_cycles", "3", 2),
    Row("completer_cycles", "5", 4),
    Row("host_to_host_cycles", "64", 28),
    # A message to a node whose RMA unit has 16 gets of a page to answer first.
    Row("message_behind_gets_cycles", "-", 64),
    Row("cycles_per_8B_get", "-", 22),
    Row("switch_hop_cycles", "-", 6),
    Row("link_hop_cycles", "-", 14),
    Row("link_hop_cycles_512B", "-", 16),
    Row("cycles_per_8B_message", "16", 10),
    Row("payload_efficiency_56B", "-", 0.75, at_most=False),
    Row("payload_efficiency_56B_cable33", "-", None),
    Row("payload_efficiency_64B_cable33", "-", 0.75, at_most=False),
    Row("payload_efficiency_64B_cable47", "-", 0.72, at_most=False),
    Row("switch_saturation", "-", 0.85, at_most=False),
    # A put's data between the headers of its packets, and with them.
    Row("rma_put_bytes_per_cycle_128", "-", 16, at_most=False),
    Row("rma_put_sustained_128", "-", None),
    # Eight nodes of a hypercube: a message to all, a barrier, and a barrier made of messages.
    Row("multicast_8_host_cycles", "-", None),
    Row("barrier_8_cycles", "-", None),
    Row("barrier_8_software_cycles", "-", None),
    # Units of 32 bits on a path of 128, 8-byte messages. What limits four is the host port's words.
    Row("velo_units_2_speedup", "-", 1.9, at_most=False),
    Row("velo_units_4_speedup", "-", None),
    Row("host_port_words_used", "-", 0.95, at_most=False),
    # Eight nodes; of the rate without the hot spot, and of the hot node's rate without management.
    Row("congestion_victim_unmanaged", "-", 0.5),
    Row("congestion_victim_managed", "-", 0.9, at_most=False),
    Row("congestion_hot_managed", "-", 0.8, at_most=False),
    # The PCI Express function, 64 bits, beside the node's own: first beat of a packet to the node's
    # store, an 8-byte message; first beat of the node's DMA write to the packet's.
    Row("pcie_store_cycles", "-", 8),
    Row("pcie_dma_cycles", "-", 8),
    # Two cards and a cable, 8 bytes: the message's packet in, to its header word's packet out.
    Row("pcie_message_cycles", "-", 40),
    # DIMMnet-2, 64 bits, two lines: first line in to first word out, first word in to first line
    # out; what of both is for retransmission, for which the paper expects 0.1 to 0.2 us.
    Row("dimmnet_swif_tx_cycles", "-", 6),
    Row("dimmnet_swif_rx_cycles", "-", 6),
    Row("dimmnet_retransmission_cycles", "10-20", 2),
    # The whole board, a BOTF packet of 16 bytes: command to last word out; first word in to status.
    Row("dimmnet_send_cycles", "33", 20),
    Row("dimmnet_receive_cycles", "46", 24),
    # The same in the custom slot of a node: command at the node's host port to last word into the
    # network; first word out of it to status; one hop, command to status.
    Row("dimmnet_slot_send_cycles", "33", 20),
    Row("dimmnet_slot_receive_cycles", "46", 24),
    Row("dimmnet_slot_host_cycles", "-", None),
    # DIMMnet-2: reads of single words in DDR-200 SO-DIMMs, as a share of the rate that tRC, tRRD
    # and the data bus allow; the worst pattern of each kind.
    Row("dimmnet_sodimm_strided_share", "-", 0.8, at_most=False),
    Row("dimmnet_sodimm_list_share", "-", 0.8, at_most=False),
    # CoreLogic of DIMMnet-2, 16 bytes by BOTF; the paper's figures are with its network interface.
    Row("dimmnet_core_send_cycles", "33", 16),
    Row("dimmnet_core_receive_cycles", "46", 18),
]

STAGE_NAMES = {
    "htax_out": "host port, crossbar",
    "htax_in": "crossbar, host port",
    "netport_out": "network port",
    "switch_out": "switch",
    "link_out": "link, sending",
    "link_in": "link, receiving",
    "switch_in": "switch",
    "netport_in": "network port",
}


def environment() -> dict[str, str]:
    """The tools of scripts/rtl-setup first, so that this file also runs by itself."""
    first = f"{ROOT / '.venv/rtl/bin'}:{ROOT / '.venv/bin'}"
    return os.environ | {"PATH": f"{first}:{os.environ['PATH']}"}


def build(
    top: str, listing: str, bench: Path, folder: Path, flags: list[str], optimise: int = 1
) -> Path:
    """Verilate `top` from a list of files and link it with a C++ bench."""
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
    # One is the best for the time of build and run together, if the run is one of minutes.
    command += ["-MAKEFLAGS", f"OPT_FAST=-O{optimise} OPT_SLOW=-O0 OPT_GLOBAL=-O{optimise}"]
    command += ["rtl/verilator.vlt", "rtl/shared.vlt", *files, str(bench)]
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


def link(model: Path, bench: Path, flags: list[str]) -> Path:
    """Another program with the model that build() has made for the first one."""
    folder, program = model.parent, model.parent / bench.stem
    verilator = Path(sysconfig.get_path("purelib")) / "verilator" / "include"
    include = [folder, verilator, verilator / "vltstd", OUT / "include"]
    include += [ROOT / "rtl/switch/test", ROOT / "rtl/node/test"]
    # As its makefile says.
    objects = [folder / f"{model.name}__ALL.a", *sorted(folder.glob("verilated*.o"))]
    command = ["c++", "-std=c++20", "-O1", *(f"-I{path}" for path in include), *flags, bench]
    subprocess.run([*command, *objects, "-pthread", "-latomic", "-o", program], check=True)
    return program


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
    return {"links": links} | json.loads(output)


def write_topology(*name: str) -> Path:
    path = OUT / "topologies" / "-".join(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, ROOT / "tools" / "velo" / "cluster" / "routing.py", *name]
    path.write_bytes(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return path


def measure_congestion(seed: int) -> dict[str, Any]:
    """A victim beside the traffic to a hot node whose host takes one word in four; a ring of 8."""
    program = build(
        "velo_node_flat",
        "rtl/bench/velo_node.f",
        ROOT / "rtl" / "bench" / "congestion_bench.cc",
        OUT / "congestion_bench",
        [
            *("-GNumLinks=2", "-GCongestion=1"),
            *("-CFLAGS", f"-DVELO_DATA_WIDTH=32 -DVELO_LINKS=2 -I{ROOT / 'rtl/node/test'}"),
        ],
    )
    command = [program, write_topology("ring", "8"), "2", "1", "--pace", "4", "--seed", str(seed)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: dict[str, Any] = json.loads(output)
    return figures


def measure_units(units: int, seed: int) -> dict[str, Any]:
    """The message rate of nodes with so many VELO units of 32 bits on a path of 128."""
    program = build(
        "velo_node_flat",
        "rtl/bench/velo_node.f",
        ROOT / "rtl" / "bench" / "units_bench.cc",
        OUT / f"units_bench{units}",
        [
            *("-GDataWidth=128", "-GNumLinks=3", f"-GNumVelo={units}", "-GVeloWidth=32"),
            *("-CFLAGS", f"-DVELO_DATA_WIDTH=128 -DVELO_LINKS=3 -I{ROOT / 'rtl/node/test'}"),
        ],
    )
    # Each node has a cable to each other one.
    topology = write_topology("full", "4")
    figures = {}
    for payload in (8, 24, 56):
        command = [program, topology, str(payload), "4000", str(seed)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        figures[f"{payload}B"] = json.loads(output)
    return figures


def measure_dimmnet() -> dict[str, int]:
    """A packet out of CoreLogic and one into it."""
    program = build(
        "dimmnet_core",
        "rtl/dimmnet/files.f",
        ROOT / "rtl" / "bench" / "dimmnet_bench.cc",
        OUT / "dimmnet_bench",
        [],
    )
    output = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: dict[str, int] = json.loads(output)
    return figures


def compare_congestion(results: dict[str, Any], seed: int) -> None:
    figures = results["congestion"] = measure_congestion(seed)
    results["congestion_victim_unmanaged"] = figures["share_unmanaged"]
    results["congestion_victim_managed"] = figures["share_managed"]
    results["congestion_hot_managed"] = figures["managed"]["hot"] / figures["unmanaged"]["hot"]


def compare_units(results: dict[str, Any], seed: int) -> None:
    results["velo_units"] = {str(units): measure_units(units, seed) for units in (1, 2, 4)}
    one, two, four = (results["velo_units"][str(units)]["8B"] for units in (1, 2, 4))
    results["velo_units_2_speedup"] = one["cycles_per_message"] / two["cycles_per_message"]
    results["velo_units_4_speedup"] = one["cycles_per_message"] / four["cycles_per_message"]
    results["host_port_words_used"] = four["dma_words_used"]


def measure_sodimm(results: dict[str, Any]) -> None:
    """Reads through DIMMnet-2's SO-DIMM interface; the test that makes them leaves the figures."""
    test = ROOT / "rtl" / "dimmnet_board" / "test" / "test_dimmnet_ddr_sodimm.py"
    command = [sys.executable, "-m", "pytest", "-q", test]
    # A missed share fails the test, but its figures are there for the table.
    path = OUT / "dimmnet-sodimm.json"
    path.unlink(missing_ok=True)
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=environment())
    figures = json.loads(path.read_text(encoding="utf-8"))
    results["dimmnet_sodimm"] = figures
    for kind in ("strided", "list"):
        results[f"dimmnet_sodimm_{kind}_share"] = figures[f"{kind}_share"]


def measure_pcie(results: dict[str, Any]) -> None:
    """The PCI Express function, alone and with its node; the measuring tests leave the figures."""
    only = {"COCOTB_TEST_FILTER": "it_takes_so_many_cycles"}
    for block, names in (
        ("pcie", ("pcie_store_cycles", "pcie_dma_cycles")),
        ("pcie_node", ("pcie_message_cycles",)),
    ):
        test = ROOT / "rtl" / block / "test" / f"test_velo_{block}.py"
        command = [sys.executable, "-m", "pytest", "-q", test]
        path = OUT / f"{block.replace('_', '-')}-cycles.json"
        path.unlink(missing_ok=True)
        # A missed target fails the test, but its figures are there for the table.
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=environment() | only)
        figures = json.loads(path.read_text(encoding="utf-8"))
        results[block] = figures
        for name in names:
            results[name] = figures[name]


def measure_boards(results: dict[str, Any]) -> None:
    """Two whole boards of DIMMnet-2 in two PCs: cycles, and the paper's figure 5."""
    folder = ROOT / "rtl" / "dimmnet_board" / "test"
    tests = [folder / "test_dimmnet_board.py", folder / "measure_figure5.py"]
    command = [sys.executable, "-m", "pytest", "-q", *tests]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment())
    results |= json.loads((OUT / "dimmnet-board.json").read_text(encoding="utf-8"))
    results["dimmnet_figure5"] = {}
    for path in sorted(OUT.glob("dimmnet-figure5-*.json")):
        results["dimmnet_figure5"] |= json.loads(path.read_text(encoding="utf-8"))


def show_targets(results: dict[str, Any]) -> list[str]:
    """Print the table of targets; returns the rows that were missed."""
    print(f"\n{'32-bit path':38} {'paper':>7} {'wanted':>8} {'here':>8}")
    for row in ROWS:
        value = results.get(row.name)
        if value is None:  # of a width that was not asked for
            continue
        verdict = "" if row.target is None else "met" if row.met(value) else "MISSED"
        print(f"{row.name:38} {row.paper:>7} {row.wanted():>8} {value:>8.4g}  {verdict}")
    return [row.name for row in ROWS if row.name in results and not row.met(results[row.name])]


def show_stages(results: dict[str, Any]) -> None:
    """Print where the cycles of one message go, in the form of the paper's figure 4."""
    columns = [results["stages"]]
    names = ["32 bits"]
    for width in list(CONFIGURATIONS)[1:]:
        if wide := results.get(f"node_{width}_bit"):
            columns.append(wide["stages"])
            names.append(f"{width} bits")

    def line(name: str, paper: int | None, stages: tuple[str, ...], mark: str) -> str:
        parts = [f"{name:26}", f"{paper if paper is not None else '':>6}"]
        parts.append(f"{f'{100 * paper / 64:.0f} %' if paper is not None else '':>6}")
        for column in columns:
            cycles = sum(column[stage] for stage in stages)
            parts.append(f"{cycles:>8} {100 * cycles / sum(column.values()):>4.0f} %")
        here = sum(columns[0][stage] for stage in stages)
        return " ".join(parts) + f"  {mark * here}"

    widths = "".join(f"{name:>16}" for name in names)
    print("\nOne 8-byte message, host port to host port, one hop, PHY without delay, cycles")
    print(f"{'':26} {'paper':>13}{widths[1:]}")
    for name, paper, stages in figure4.MODULES:
        print(line(name, paper, stages, "#"))
        if len(stages) > 1:
            for stage in stages:
                print(line("  " + STAGE_NAMES[stage], None, (stage,), "-"))
    print(line("all", 64, tuple(columns[0]), ""))
    alike = figure4.alike()
    names = tuple(name for _, _, stages in alike for name in stages)
    print(line(figure4.ALIKE, sum(cycles for _, cycles, _ in alike), names, ""))


def combine(results: dict[str, Any], figures: dict[str, Any]) -> None:
    """Put the figures of two nodes of one width beside those of the links."""
    if figures["data_width"] == 128:
        results["rma_put_bytes_per_cycle_128"] = figures["rma_put_bytes_per_cycle"]
        results["rma_put_sustained_128"] = figures["rma_put_sustained_bytes_per_cycle"]
    if figures["data_width"] != 32:
        results[f"node_{figures['data_width']}_bit"] = figures
        return
    # Links and nodes have to keep up with each other: the slower of the two counts.
    rate = figures["node_cycles_per_8B_message"]
    results["node_cycles_per_8B_message"] = rate
    results["cycles_per_8B_message"] = max(rate, results["link_cycles_per_8B_message"])
    results |= {name: figures[name] for name in figures if name.endswith("_cycles")}
    results["stages"] = figures["stages"]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--messages", type=int, default=2000, help="random ones to check")
    parser.add_argument(
        "--widths", type=int, nargs="+", choices=CONFIGURATIONS, default=list(CONFIGURATIONS)
    )
    parser.add_argument("--node-only", action="store_true", help="only check the nodes")
    args = parser.parse_args(argv)
    if not args.node_only and 32 not in args.widths:
        parser.error("the table is that of 32 bits")
    nodes = []
    for width in args.widths:
        print(f"rtl-bench: two nodes, {width} bits", flush=True)
        nodes.append(measure_node(width, args.seed, args.messages))
    if args.node_only:
        print(json.dumps(nodes, indent=2))
        return 0
    print("rtl-bench: switch and links", flush=True)
    run = ROOT / "rtl" / "switch" / "test" / "run"
    subprocess.run([run, "bench"], check=True, stdout=subprocess.DEVNULL, env=environment())
    print("rtl-bench: SWIF", flush=True)
    swif = ROOT / "rtl" / "dimmnet_swif" / "test" / "run"
    subprocess.run([swif, "bench"], check=True, stdout=subprocess.DEVNULL, env=environment())
    results = json.loads(RESULT.read_text(encoding="utf-8"))
    for figures in nodes:
        combine(results, figures)
    print("rtl-bench: one, two and four VELO units, 128 bits", flush=True)
    compare_units(results, args.seed)
    print("rtl-bench: congestion, eight nodes", flush=True)
    compare_congestion(results, args.seed)
    print("rtl-bench: CoreLogic of DIMMnet-2", flush=True)
    results |= measure_dimmnet()
    print("rtl-bench: eight nodes with barriers", flush=True)
    network = [sys.executable, ROOT / "scripts" / "rtl_network.py", "--measure"]
    output = subprocess.run(network, check=True, stdout=subprocess.PIPE, text=True).stdout
    results |= json.loads(output)
    print("rtl-bench: CoreLogic in the custom slots of two nodes", flush=True)
    slot = [*network, "--dimmnet", "0"]
    output = subprocess.run(slot, check=True, stdout=subprocess.PIPE, text=True).stdout
    results |= json.loads(output)
    print("rtl-bench: DIMMnet-2's SO-DIMMs", flush=True)
    measure_sodimm(results)
    print("rtl-bench: DIMMnet-2's boards", flush=True)
    measure_boards(results)
    print("rtl-bench: the PCI Express function", flush=True)
    measure_pcie(results)
    RESULT.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    missed = show_targets(results)
    show_stages(results)
    print(f"\n{RESULT.relative_to(ROOT)}")
    if missed:
        print(f"rtl-bench: missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
