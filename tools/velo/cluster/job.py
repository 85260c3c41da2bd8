# SPDX-License-Identifier: Apache-2.0
"""A job on the simulated cluster, and the options that describe it."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from velo.cluster import description
from velo.errors import UsageError, VeloError
from velo.runtime import openmpi

ELF = b"\x7fELF"
# Of a node; each rank has at least one. spec/sim_channel.h.
CONTEXTS = 256
# Options that say something else than the cluster's file.
CHANGES = ("clock_mhz", "width_bits", "cable_cycles", "error_rate", "compute", "host_ns")


@dataclass(frozen=True)
class Job:
    """The program to run, and its places."""

    cluster: description.Cluster
    ranks: int
    """0: the program is no MPI program and is started once, as it is."""
    ranks_a_node: int
    layer: str
    program: Sequence[str]

    @property
    def must_use(self) -> bool:
        """Does a rank of any MPI program open a port? One that is alone over the BTL does not."""
        return self.ranks > (1 if self.layer == "btl" else 0)


def plan(args: argparse.Namespace) -> Job:
    """The job that the command line asks for."""
    words = list(args.arguments[1:] if args.arguments[:1] == ["--"] else args.arguments)
    if not words:
        raise UsageError("which program? write it, with its arguments, behind --")
    described = description.make(
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
