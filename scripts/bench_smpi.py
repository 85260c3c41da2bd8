#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same MPI programs on the same cluster: by `velo sim`, and by SimGrid's SMPI.

    scripts/bench_smpi.py [--host NAME] [--only WORD] [--no-rtl] [--json build/bench-smpi.json]

SMPI (Debian: libsimgrid-dev; smpicc and smpirun in PATH) gets a platform that is made from what
velo sim has: cables and routes of the topology, the host's times (`velo sim --hosts`) as latency
and overhead, the hardware's cycles as latency, its words as bandwidth and gap. None is fitted to a
run.

* L, latency: from host port to host port, store + HARDWARE_CYCLES + dma; a further cable has
  HOP_CYCLES of its own.
* o, overhead: of a send a call and the copy of its lines; of a receive a look, a call and the copy.
* g, gap: what a message's words besides the payload take on a port; a send takes that at least.
* G, bandwidth: a full line's share of payload, of what a link carries.

Each program prints what it took itself, by MPI_Wtime(). Wall time is that of the command, and
memory the most that all processes of it had together (PSS, sampled).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from velo.cluster import description, profiles, routing  # noqa: E402

BUILD = ROOT / "build"
VELO, SHAPES = BUILD / "bin" / "velo", BUILD / "bin" / "velo-sim-shapes"
SOURCE = ROOT / "tests" / "sim" / "shapes.c"
SKIPPED = 77
LIMIT_S = 600
SAMPLE_S = 0.05
CLOCK_MHZ = 100
# Of the 32-bit path. Host port to host port with one cable, and each further one (rtl/README.md).
HARDWARE_CYCLES, HOP_CYCLES = 28, 14
WORD_BYTES = 4
# Of a message on the link (sim/tlm/params.h): most payload of a line, and what goes with it.
LINE_BYTES, FRAME_BYTES = 56, 16
# Messages to this length are sent without asking the receiver (include/velo/mq.h).
EAGER_BYTES = 16384


@dataclass(frozen=True)
class Program:
    """A shape of tests/sim/shapes.c on a cluster."""

    name: str
    topology: str
    ranks_a_node: int
    words: tuple[str, ...]
    is_for_rtl: bool = False


PROGRAMS = (
    Program("ping-pong, 8 B", "pair", 1, ("pingpong", "100", "8"), True),
    Program("ping-pong, 1 KiB", "pair", 1, ("pingpong", "100", "1024"), True),
    Program("ping-pong, 64 KiB", "pair", 1, ("pingpong", "20", "65536"), True),
    Program("halo, 8 ranks, 1 KiB", "torus:2x2x2", 1, ("halo", "10", "1024"), True),
    Program("allreduce, 8 ranks, 8 B", "torus:2x2x2", 1, ("allreduce", "10", "8"), True),
    Program("flood to one, 8 ranks, 8 B", "torus:2x2x2", 1, ("flood", "100", "8"), True),
    Program("halo, 64 ranks, 1 KiB", "torus:4x4x4", 1, ("halo", "10", "1024")),
    Program("allreduce, 64 ranks, 8 B", "torus:4x4x4", 1, ("allreduce", "10", "8")),
)


@dataclass
class Run:
    """What a run came to."""

    predicted_us: float
    wall_s: float
    memory_mb: float


def overheads(host: profiles.Profile) -> dict[str, str]:
    """SMPI's: seconds of a message, and of each byte."""
    ns = host.ns
    a_byte = ns["copy"] / LINE_BYTES * 1e-9
    send, receive = ns["call"] + ns["copy"], ns["poll"] + ns["call"] + ns["copy"]
    gap = FRAME_BYTES / WORD_BYTES * 1000 / CLOCK_MHZ
    return {
        "smpi/os": f"0:{max(send, gap) * 1e-9:.12g}:{a_byte:.6g}",
        "smpi/ois": f"0:{max(send, gap) * 1e-9:.12g}:{a_byte:.6g}",
        "smpi/or": f"0:{receive * 1e-9:.12g}:{a_byte:.6g}",
        "smpi/wtime": f"{ns['clock'] * 1e-9:.12g}",
    }


SETTINGS = {
    "smpi/simulate-computation": "no",
    "smpi/async-small-thresh": str(EAGER_BYTES),
    "smpi/send-is-detached-thresh": str(EAGER_BYTES),
    "smpi/coll-selector": "ompi",
    # What they are for is here in the platform.
    "smpi/bw-factor": "0:1",
    "smpi/lat-factor": "0:1",
    "network/weight-S": "0",
    "smpi/host-speed": "1Gf",
}


def platform(network: routing.Network, host: profiles.Profile) -> str:
    """Hosts, links and routes: those of the nodes, and the hardware's way in and out."""
    cycle_ns = 1000 / CLOCK_MHZ
    port = host.ns["store"] + host.ns["dma"] + (HARDWARE_CYCLES - HOP_CYCLES) * cycle_ns
    bytes_s = WORD_BYTES * CLOCK_MHZ * 1e6 * LINE_BYTES / (LINE_BYTES + FRAME_BYTES)

    def link(name: str, ns: float) -> str:
        return f'<link id="{name}" bandwidth="{bytes_s:.0f}Bps" latency="{ns:.0f}ns"/>'

    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1"><zone id="cluster" routing="Full">',
        *(f'<host id="node{n}" speed="1Gf"/>' for n in range(network.nodes)),
        *(link(f"out{n}", port) for n in range(network.nodes)),
        *(link(f"in{n}", 0) for n in range(network.nodes)),
        *(link(f"cable{n}.{number}", HOP_CYCLES * cycle_ns) for n, number in network.cables),
    ]
    for source in range(network.nodes):
        for target in range(network.nodes):
            cables = [f"cable{node}.{number}" for node, number, _ in network.path(source, target)]
            way = [f"out{source}", *cables, f"in{target}"]
            words = "".join(f'<link_ctn id="{each}"/>' for each in way)
            lines.append(
                f'<route src="node{source}" dst="node{target}" symmetrical="NO">{words}</route>'
            )
    return "\n".join([*lines, "</zone></platform>"]) + "\n"


class Memory(threading.Thread):
    """The most memory that a process and all below it have together."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._ended = pid, threading.Event()
        self.most_kb = 0

    def run(self) -> None:
        while True:
            self.most_kb = max(self.most_kb, sum(map(_pss_kb, _family(self._pid))))
            if self._ended.wait(SAMPLE_S):
                return

    def end(self) -> float:
        self._ended.set()
        self.join()
        return self.most_kb / 1024


def _family(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def _pss_kb(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    match = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    return int(match[1]) if match else 0


def measure(argv: list[str], env: dict[str, str]) -> Run | str:
    """One run, or why there is none."""
    begin = time.monotonic()
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | env
    ) as process:
        memory = Memory(process.pid)
        memory.start()
        try:
            said, wrong = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            return f"more than {LIMIT_S} s"
        finally:
            most_mb = memory.end()
    wall_s = time.monotonic() - begin
    match = re.search(r"took ([0-9.]+) us", said)
    if process.returncode != 0 or not match:
        return (wrong.strip().splitlines() or ["it said nothing"])[-1]
    return Run(float(match[1]), wall_s, most_mb)


def by_velo(program: Program, host: str, model: str) -> Run | str:
    """By velo sim."""
    argv = [str(VELO), "sim", "--model", model, "--host", host, "--topology", program.topology]
    argv += ["--ranks-a-node", str(program.ranks_a_node), "--", str(SHAPES), *program.words]
    return measure(argv, {})


def by_smpi(program: Program, host: str, binary: Path, folder: Path) -> Run | str:
    """By SMPI; ranks are placed as velo sim places them."""
    network = description.line(program.topology)
    profile = profiles.find(host)
    (folder / "platform.xml").write_text(platform(network, profile))
    places = [f"node{n}" for n in range(network.nodes) for _ in range(program.ranks_a_node)]
    (folder / "hosts").write_text("\n".join(places) + "\n")
    argv = ["smpirun", "-np", str(len(places)), "-platform", str(folder / "platform.xml")]
    argv += ["-hostfile", str(folder / "hosts"), "--log=root.thres:warning"]
    argv += [f"--cfg={name}:{value}" for name, value in (SETTINGS | overheads(profile)).items()]
    return measure([*argv, str(binary), *program.words], {})


def cell(run: Run | str | None) -> str:
    if run is None:
        return "–"
    if isinstance(run, str):
        return run
    return f"{run.predicted_us:,.2f} µs, {run.wall_s:.1f} s, {run.memory_mb:,.0f} MB"


def main() -> int:
    """Run all, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--host", default=profiles.DEFAULT, help="as velo sim --host")
    parser.add_argument("--only", default="", help="programs whose name has this word")
    parser.add_argument("--no-rtl", action="store_true", help="of velo sim the fast model alone")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if not (shutil.which("smpicc") and shutil.which("smpirun")):
        print("smpicc and smpirun are not there: apt-get install libsimgrid-dev", file=sys.stderr)
        return SKIPPED
    for path in (VELO, SHAPES):
        if not path.is_file():
            print(f"{path} is not there: 'scripts/build --with-sim release'", file=sys.stderr)
            return 1
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        binary = folder / "shapes"
        subprocess.run(["smpicc", "-O2", str(SOURCE), "-o", str(binary)], check=True)
        for program in (p for p in PROGRAMS if args.only in p.name):
            runs = {
                "SMPI": by_smpi(program, args.host, binary, folder),
                "fast": by_velo(program, args.host, "fast"),
                "rtl": by_velo(program, args.host, "rtl")
                if program.is_for_rtl and not args.no_rtl
                else None,
            }
            print(program.name, *(f"{name}: {cell(run)}" for name, run in runs.items()),
                  sep="\n  ", flush=True)  # fmt: skip
            found.append(asdict(program) | {
                name: asdict(run) if isinstance(run, Run) else run for name, run in runs.items()
            })  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps({"host": args.host, "runs": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
