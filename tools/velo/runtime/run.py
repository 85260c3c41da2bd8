# SPDX-License-Identifier: Apache-2.0
"""`velo run`: start an MPI program with Open MPI over velo."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from velo import units
from velo.arguments import checked

# Those of our options that take no value.
OWN_WORDS = ("--mtl", "--btl", "--no-coll", "--print", "--dry-run", "-h", "--help")


def register(commands: Any) -> None:
    """The command line of `velo run`."""
    parser = commands.add_parser(
        "run",
        help="run an MPI program over velo",
        usage="velo run -n N [--mtl | --btl] [--no-coll] [--print] [MPIRUN OPTION ...] PROGRAM "
        "[ARGUMENT ...]",
        description="Run an unmodified MPI program with Open MPI's mpirun over velo: finds mpirun, "
        "selects velo's components, binds each rank to a core, or to none where ranks outnumber "
        "cores, and takes away what killed ranks leave in shared memory. Ends with mpirun's exit "
        "code; with 125 if all went well but no rank used velo, since the program is no MPI "
        "program, or one of another MPI (not looked for where ranks may be on other nodes, nor "
        "where options choose other components); with 1 if ranks are dead and mpirun hangs for ten "
        "seconds, as Open MPI 4.1's may when a rank dies while others start: then the job is "
        "ended. Options that velo does not know go to mpirun.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "-n", "-np", dest="ranks", metavar="N", type=checked(units.parse_count), required=True,
        help="number of ranks",
    )  # fmt: skip
    layer = parser.add_mutually_exclusive_group()
    layer.add_argument(
        "--mtl",
        dest="layer",
        action="store_const",
        const="mtl",
        help="through the matching layer: the fastest, all ranks on one node (the default)",
    )
    layer.add_argument(
        "--btl",
        dest="layer",
        action="store_const",
        const="btl",
        help="through the byte transfer layer: velo inside a node, TCP between nodes",
    )
    parser.add_argument(
        "--no-coll",
        dest="collectives",
        action="store_false",
        help="leave collectives to Open MPI's own components; velo's carry barrier, broadcast, "
        "reduce, allreduce, allgather and alltoall of up to 4 KiB inside a node",
    )
    parser.add_argument(
        "--print",
        "--dry-run",
        dest="print",
        action="store_true",
        help="show the mpirun command and run nothing",
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run, layer="mtl")


def run(args: argparse.Namespace) -> None:
    """`velo run`; ends with the exit code of mpirun."""
    # Cost: subprocess and dataclasses are slow to import.
    from velo.runtime.launch import complete
    from velo.runtime.mpirun import plan

    launch = plan(args.ranks, args.layer, args.arguments, args.collectives)
    if args.print:
        print(launch)
        return
    sys.stdout.flush()
    sys.exit(complete(launch))


def protect(argv: Sequence[str]) -> list[str]:
    """The command line with `--` before the first word that is not ours.

    argparse would otherwise try mpirun's and the program's options as ours.
    """
    if not argv or argv[0] != "run":
        return list(argv)
    at = 1
    while at < len(argv):
        word = argv[at]
        if word in ("-n", "-np"):
            at += 2
        elif word in OWN_WORDS:
            at += 1
        else:
            break
    rest = list(argv[at:])
    return [*argv[:at], *(["--", *rest] if rest and rest[0] != "--" else rest)]
