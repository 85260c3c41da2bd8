# SPDX-License-Identifier: Apache-2.0
"""A trace on simulated nodes: what is computed takes its time, and the rest that of the network.

replay.py VELO
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from velo.cluster.otf2_package import load_otf2

VELO = sys.argv[1]
COMPUTE_NS = 500_000
OTF2 = load_otf2()


def write(folder: Path, round_trips: int) -> str:
    """Two ranks compute, then send eight bytes there and back. Returns the anchor file."""
    mpi = OTF2.Paradigm.MPI
    with OTF2.writer.open(str(folder), timer_resolution=10**9) as archive:
        tell, kinds = archive.definitions, OTF2.GroupType
        node = tell.system_tree_node("machine")
        ranks = tuple(
            tell.location(f"{r}", group=tell.location_group(f"{r}", system_tree_parent=node))
            for r in range(2)
        )
        tell.group("", group_type=kinds.COMM_LOCATIONS, paradigm=mpi, members=ranks)
        world = tell.comm(
            "world",
            group=tell.group("world", group_type=kinds.COMM_GROUP, paradigm=mpi, members=ranks),
        )
        region = tell.region("MPI_Something", paradigm=mpi)
        for rank, location in enumerate(ranks):
            events = archive.event_writer_from_location(location)
            events.enter(0, region)
            events.leave(0, region)
            time = COMPUTE_NS
            for number in range(2 * round_trips):
                events.enter(time, region)
                act = events.mpi_send if number % 2 == rank else events.mpi_recv
                act(time, 1 - rank, world, 0, 8)
                events.leave(time, region)
    return str(folder / "traces.otf2")


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def replayed_us(folder: Path, round_trips: int) -> tuple[float, dict[str, object]]:
    """What velo-replay says that it took, by the very command that was printed."""
    anchor = write(folder / f"archive{round_trips}", round_trips)
    scripts = folder / f"scripts{round_trips}"
    said = run(VELO, "replay", anchor, "-o", str(scripts))
    assert f"2 ranks, {2 * round_trips} messages, 0 collective operations" in said, said
    words = said.rpartition("replay it with: velo ")[2].split()
    result = folder / "result.json"
    words[1:1] = ["--json", str(result)]
    said = run(VELO, *words)
    figures: dict[str, object] = json.loads(result.read_text(encoding="utf-8"))
    return float(said.split(": ")[1].split()[0]), figures


with tempfile.TemporaryDirectory() as name:
    few, figures = replayed_us(Path(name), 50)
    many, _ = replayed_us(Path(name), 150)
    half = (many - few) / 200
    print(f"{few} and {many} us: {half:.3f} us from rank to rank")
    # A message of velo.h takes 0.52, and MPI's software is free.
    assert 0.52 < half < 0.8, half
    # What they compute takes its time.
    rest = few - 100 * half
    assert abs(rest - COMPUTE_NS / 1000) < 1, rest
    again = run(
        VELO, "sim", "-n", "2", "--json", f"{name}/again.json", "--",
        str(Path(VELO).parents[1] / "libexec" / "velo" / "velo-replay"), f"{name}/scripts50",
    )  # fmt: skip
    repeated = json.loads(Path(f"{name}/again.json").read_text(encoding="utf-8"))
    assert repeated["hash"] == figures["hash"], again
