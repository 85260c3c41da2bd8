# SPDX-License-Identifier: Apache-2.0
"""`velo sim`: run a program on the simulated cluster, in virtual time."""

import argparse
import ctypes.util
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velo import cluster, helpers, routing
from velo.errors import UsageError, VeloError
from velo.runtime import openmpi
from velo.runtime.launch import Launch, complete

# What each rank runs first: it learns who it is from mpirun, and where it is, which MPI learns from
# lib/device/locality.c; from then on every call of the program that matters goes to the simulated
# cluster. mpirun itself stays in real time.
RANK = """
export VELO_SIM_RANK=$OMPI_COMM_WORLD_RANK VELO_SIM_RANKS_A_NODE={ranks_a_node}
local=$((VELO_SIM_RANK % VELO_SIM_RANKS_A_NODE))
behind=$((OMPI_COMM_WORLD_SIZE - VELO_SIM_RANK + local))
export OMPI_COMM_WORLD_LOCAL_RANK=$local OMPI_COMM_WORLD_NODE_RANK=$local
export OMPI_COMM_WORLD_LOCAL_SIZE=$((behind < {ranks_a_node} ? behind : {ranks_a_node}))
export LD_PRELOAD={preload}
exec "$@"
"""
RANK_NAME = "velo-rank"
# Where buffers are must not depend on what the launcher's threads allocate and how long its names
# are; see lib/device/memory.c. In this allocator threads can have memory of their own, lengths have
# places of their own, and when memory is given back does not depend on real time.
ALLOCATOR = "jemalloc"
CPLUSPLUS = "libstdc++.so.6"
ALLOCATOR_SETTINGS = "dss:primary,narenas:256,tcache:false,dirty_decay_ms:-1,muzzy_decay_ms:-1"
ELF = b"\x7fELF"
# Of a node; each rank has at least one. spec/sim_channel.h.
CONTEXTS = 256
# Options that say something else than the cluster's file.
CHANGES = ("clock_mhz", "width_bits", "cable_cycles", "error_rate", "compute", "host_ns")


@dataclass(frozen=True)
class Job:
    """What is to be run, where."""

    cluster: cluster.Cluster
    ranks: int
    """0: the program is no MPI program and is started once, as it is."""
    ranks_a_node: int
    layer: str
    program: Sequence[str]

    @property
    def must_use(self) -> bool:
        """Does a rank of any MPI program open a port? One that is alone over the BTL does not."""
        return self.ranks > (1 if self.layer == "btl" else 0)


def command(args: argparse.Namespace) -> None:
    """`velo sim`; ends with the exit code of the program."""
    job = plan(args)
    simulator = find_simulator(args)
    library = helpers.find_loaded("sim/libvelo.so.0", "run 'make sim'")
    # What the simulator shares with the ranks.
    area = Path(f"/dev/shm/velo-sim.{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="velo-sim-") as folder:
        # A recording tells it by this name.
        topology = Path(folder) / Path(args.topology or args.cluster or "pair").name
        topology.write_text(routing.to_text(job.cluster.network), encoding="utf-8")
        argv = [
            str(simulator),
            "--topology-file",
            str(topology),
            "--area",
            str(area),
            *job.cluster.options(),
            *options(args),
            *seeing(args),
            "--",
            *program(job, library),
        ]
        if args.print:
            print(shlex.join(argv))
            return
        sys.stdout.flush()
        # Of its own, so that jobs side by side do not meet.
        domain = f"sim-{os.getpid()}"
        env = openmpi.environment(domain)
        if job.ranks:
            env["VELO_SIM_REPEATABLE"] = "1"
            env["MALLOC_CONF"] = ALLOCATOR_SETTINGS
        # The ranks are mpirun's children, and mpirun the simulator's.
        launch = Launch(argv, env, domain, job.must_use, rank_depth=2)
        try:
            code = complete(launch)
        finally:
            # Of a simulator that was killed.
            area.unlink(missing_ok=True)
    sys.exit(code)


def find_simulator(args: argparse.Namespace) -> Path:
    """The program whose models do what is wanted."""
    if not args.wave:
        return helpers.find("velo-sim")
    try:
        return helpers.find("velo-sim-wave")
    except VeloError as error:
        raise VeloError(
            "velo-sim-wave, whose models show their signals, is not there; 'cmake --build build "
            "--target velo-sim-wave' makes it in some minutes"
        ) from error


def find_allocators() -> str:
    """The libraries that allocate the ranks' memory, as the dynamic loader is to load them."""
    name = ctypes.util.find_library(ALLOCATOR)
    if not name:
        raise VeloError(
            "libjemalloc, which allocates the ranks' memory, is not installed; 'scripts/setup sim' "
            "does it, or 'apt-get install libjemalloc2'"
        )
    # jemalloc has C++'s operators, too, and would pass by our malloc() with them.
    return f"{CPLUSPLUS}:{name}"


def plan(args: argparse.Namespace) -> Job:
    """The job that the command line asks for."""
    words = list(args.arguments[1:] if args.arguments[:1] == ["--"] else args.arguments)
    if not words:
        raise UsageError("which program? write it, with its arguments, behind --")
    described = cluster.make(
        args.topology,
        args.cluster,
        {name: getattr(args, name) for name in CHANGES},
    )
    nodes = described.network.nodes
    ranks = 0 if args.plain else args.ranks or nodes * args.ranks_a_node
    most = nodes * args.ranks_a_node
    if args.ranks_a_node > CONTEXTS:
        raise UsageError(f"--ranks-a-node {args.ranks_a_node}: a node has {CONTEXTS} contexts")
    if ranks > most:
        raise UsageError(
            f"{ranks} ranks do not fit on {nodes} nodes of {args.ranks_a_node}; give "
            "--ranks-a-node or a larger --topology"
        )
    check_dynamic(openmpi.find_program(words[0]))
    return Job(described, ranks, args.ranks_a_node, args.layer, words)


def check_dynamic(path: Path) -> None:
    """A program that is linked statically would never call us, and run in real time."""
    with path.open("rb") as file:
        if file.read(4) != ELF:
            return
        file.seek(0)
        image = file.read()
    # Type of the program header that names the dynamic loader.
    at, size, count = (
        int.from_bytes(image[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58))
    )
    kinds = [int.from_bytes(image[at + i * size :][:4], "little") for i in range(count)]
    if 3 not in kinds:
        raise VeloError(f"{path} is linked statically; only dynamic programs can be simulated")


def options(args: argparse.Namespace) -> list[str]:
    """What is passed on to the simulator as it is."""
    words = ["--seed", str(args.seed)]
    words += ["--progress"] if args.progress else []
    words += ["--result", args.json] if args.json else []
    return words


def seeing(args: argparse.Namespace) -> list[str]:
    """What is to be recorded and shown, as the simulator's options."""
    words = ["--record", args.record] if args.record else []
    window = (args.wave_from_us, args.wave_to_us)
    if not args.wave:
        if (*window, args.wave_nodes) != (None, None, None):
            raise UsageError(
                "--wave-from-us, --wave-to-us and --wave-nodes go with --wave FILE.vcd"
            )
        return words
    if None in window:
        raise UsageError("--wave needs --wave-from-us and --wave-to-us: all of a run is too much")
    words += ["--wave", args.wave]
    words += ["--wave-from-us", f"{window[0]:.12g}", "--wave-to-us", f"{window[1]:.12g}"]
    return words + (["--wave-nodes", args.wave_nodes] if args.wave_nodes else [])


def run_apart(
    words: Sequence[str], program: Sequence[str], timeout_s: float | None = None
) -> tuple[str, dict[str, Any]]:
    """`velo sim` as a process of its own: what the program printed, and the simulator's result."""
    with tempfile.TemporaryDirectory(prefix="velo-sim-") as folder:
        result = Path(folder) / "result.json"
        argv = [sys.executable, "-m", "velo", "sim", *words, "--json", str(result)]
        said = helpers.output([*argv, "--", *program], timeout_s)
        return said, json.loads(result.read_text(encoding="utf-8"))


def no_model(error: VeloError) -> str:
    """What the simulator says where a run failed for want of a model; else the error is raised."""
    if "no model of a node" not in " ".join(str(error).split()):
        raise error
    return str(error).strip().splitlines()[-1].removeprefix("velo-sim: ")


def ranks_command(command: Sequence[str]) -> list[str]:
    """What each rank runs, of the command that the simulator starts."""
    words = list(command)
    return words[words.index(RANK_NAME) + 1 :] if RANK_NAME in words else words


def program(job: Job, library: Path) -> list[str]:
    """The command that the simulator starts."""
    if job.ranks == 0:
        return ["env", f"LD_PRELOAD={library}", *job.program]
    folder = openmpi.component_folder(job.layer)
    preload = shlex.quote(f"{library}:{find_allocators()}")
    rank = RANK.format(ranks_a_node=job.ranks_a_node, preload=preload)
    words = [
        openmpi.find_mpirun(folder),
        "-n",
        str(job.ranks),
        "--oversubscribe",
        "--bind-to",
        "none",
    ]
    words += openmpi.selection(job.layer, folder, {"btl"})
    # Whatever else goes from one node to another would pass the simulated hardware by.
    words += ["--mca", "btl", "self,velo"]
    # When MPI learns of a rank of another node must not depend on real time: so at once, of all.
    words += ["--mca", "mpi_add_procs_cutoff", str(job.ranks + 1)]
    for layer in openmpi.COMPONENTS:
        words += ["--mca", f"{layer}_velo_network", "1"]
    # Who waits polls: sleeping is for processors that are shared, and virtual ones are not. In both
    # layers, since the BTL carries one-sided operations beside the MTL.
    for layer in openmpi.COMPONENTS:
        words += ["--mca", f"{layer}_velo_sleep", "0"]
    # How many polls there were before time began is by chance: it must not matter which it is.
    words += ["--mca", "btl_velo_serve_polls", "1"]
    # A rank gives up telling mpirun that it ends after two seconds, which are real ones: where many
    # share a processor that would fail a job that has gone well.
    words += ["--mca", "orte_allowed_exit_without_sync", "1"]
    return [*words, "sh", "-c", rank, RANK_NAME, *job.program]
