# SPDX-License-Identifier: Apache-2.0
"""A job on the simulated cluster, and the options that describe it."""

import argparse
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from velo.cluster import description, routing
from velo.errors import UsageError, VeloError
from velo.runtime import openmpi, which_mpi
from velo.runtime.run import mpi_root, only_for_ompi4

ELF = b"\x7fELF"
# Of a node; each rank has at least one. Of a large cluster a node has fewer: names have 16 bits.
# spec/sim_channel.h, sim/names.h.
CONTEXTS = 256
NAMES = 1 << 16
# Of all ranks together, unless --threads-max says otherwise. spec/sim_channel.h.
THREADS_MAX = 16384
# Of Open MPI 4.1's mpirun, measured with 64 and 128 ranks: some five a rank.
DESCRIPTORS, DESCRIPTORS_A_RANK = 64, 5
# Of DIMMnet-2: as many as a board knows peers. sim/options.cc.
BOARDS = 16
BOARD_CLOCK_MHZ = 100
# Options that say something else than the cluster's file.
CHANGES = (
    "clock_mhz", "width_bits", "cable_cycles", "error_rate", "compute", "host", "host_ns",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """The program to run, and its places."""

    cluster: description.Cluster
    ranks: int
    """0: the program is no MPI program and is started once, as it is."""
    ranks_a_node: int
    layer: str
    program: Sequence[str]
    boards: int = 0
    """Of DIMMnet-2; then the program is started once, as it is."""
    mpi: str = "ompi4"
    """One of velo.runtime.run.MPIS."""
    root: Path | None = None
    """Where that MPI is; None: in PATH."""

    @property
    def must_use(self) -> bool:
        """Does a rank of any MPI program open a port?"""
        return self.ranks > 0


def plan(args: argparse.Namespace) -> Job:
    """The job that the command line asks for."""
    words = list(args.arguments[1:] if args.arguments[:1] == ["--"] else args.arguments)
    if not words:
        raise UsageError("which program? write it, with its arguments, behind --")
    if ":" in words[:-1] and not (args.plain or args.dimmnet):
        raise UsageError("velo sim runs one program; a shell script may run another one by rank")
    described = description.make(
        args.topology,
        args.cluster,
        {name: getattr(args, name) for name in CHANGES},
    )
    nodes = described.network.nodes
    check_boards(args, described)
    once = args.plain or args.dimmnet
    ranks = 0 if once else args.ranks or nodes * args.ranks_a_node
    most = nodes * args.ranks_a_node
    contexts = contexts_a_node(nodes)
    if args.ranks_a_node > contexts:
        raise UsageError(
            f"--ranks-a-node {args.ranks_a_node}: a node of a cluster of {nodes} has {contexts} "
            "contexts, and each rank needs one; give more nodes, or fewer if they are more than "
            f"{NAMES // CONTEXTS}"
        )
    if getattr(args, "model", "rtl") == "rtl" and nodes > routing.RTL_NODES:
        raise UsageError(
            f"{nodes} nodes: the RTL has ids for {routing.RTL_NODES}; use --model fast, which has "
            f"them for {routing.MAX_NODES}"
        )
    if ranks > most:
        raise UsageError(
            f"{ranks} ranks do not fit on {nodes} nodes of {args.ranks_a_node}; give "
            "--ranks-a-node or a larger --topology"
        )
    check_threads(ranks, getattr(args, "threads_max", None) or THREADS_MAX)
    check_descriptors(ranks)
    check_dynamic(openmpi.find_program(words[0]))
    check_mpi(args)
    mpi = args.mpi or "ompi4"
    if not (args.mpi or args.layer or once):
        choice = which_mpi.choose(words, mpi_root(args))
        mpi = choice.kind
        if mpi != "ompi4":
            print(f"velo: {choice}", file=sys.stderr)
    return Job(
        described,
        ranks,
        args.ranks_a_node,
        args.layer or "mtl",
        words,
        args.dimmnet,
        mpi,
        mpi_root(args),
    )


def check_threads(ranks: int, most: int) -> None:
    """Each rank is a thread of the cluster at least."""
    if ranks > most:
        raise UsageError(
            f"{ranks} ranks: the cluster has room for {most} threads and processes of all ranks "
            "together; give --threads-max a larger number"
        )


def check_descriptors(ranks: int) -> None:
    """mpirun has pipes and a socket for each rank: without room for them it hangs."""
    needed = DESCRIPTORS + DESCRIPTORS_A_RANK * ranks
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = needed if hard == resource.RLIM_INFINITY else hard
    if needed > most:
        raise VeloError(
            f"{ranks} ranks need some {needed} open files in mpirun, and a process may have "
            f"{most}; raise that (ulimit -Hn), or start fewer ranks"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def contexts_a_node(nodes: int) -> int:
    """How many contexts a node has in a cluster of so many."""
    return min(CONTEXTS, NAMES >> (nodes - 1).bit_length())


def check_mpi(args: argparse.Namespace) -> None:
    """Options for MPI programs go together?"""
    if args.mpi not in (None, "ompi4") and args.layer:
        raise only_for_ompi4(f"--{args.layer}")
    if (args.mpi not in (None, "ompi4") or args.mpi_root) and (args.plain or args.dimmnet):
        raise UsageError("--mpi and --mpi-root are for MPI programs: leave them out")


def check_boards(args: argparse.Namespace, described: description.Cluster) -> None:
    """Boards do not go together with ranks, and have a clock of their own."""
    if not args.dimmnet:
        return
    if args.dimmnet > BOARDS:
        raise UsageError(f"--dimmnet {args.dimmnet}: give 1 to {BOARDS} boards")
    if args.ranks:
        raise UsageError("--dimmnet starts the program once: leave -n out")
    if described.host:
        raise UsageError("--host: a board of DIMMnet-2 has its own PC (sim/boards); leave it out")
    if described.clock_mhz != BOARD_CLOCK_MHZ:
        raise UsageError(f"--clock-mhz: boards of DIMMnet-2 have {BOARD_CLOCK_MHZ} MHz")


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
