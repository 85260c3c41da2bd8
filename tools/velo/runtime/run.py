# SPDX-License-Identifier: Apache-2.0
"""`velo run`: start an MPI program over velo."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from velo import units
from velo.arguments import checked
from velo.errors import UsageError

if TYPE_CHECKING:
    from velo.runtime.launch import Launch

# Those of our options that take no value.
OWN_WORDS = ("--mtl", "--btl", "--no-coll", "--print", "--dry-run", "-h", "--help")
OWN_VALUES = ("-n", "-np", "--mpi", "--mpi-root")
MPIS = ("ompi4", "ompi5", "mpich", "impi")


def register(commands: Any) -> None:
    """The command line of `velo run`."""
    parser = commands.add_parser(
        "run",
        help="run an MPI program over velo",
        usage="velo run -n N [--mpi MPI] [--mpi-root DIR] [--mtl | --btl] [--no-coll] [--print] "
        "[MPIRUN OPTION ...] PROGRAM [ARGUMENT ...]",
        description="Run an unmodified MPI program over velo: finds the MPI's mpirun, selects "
        "velo's components for Open MPI 4.1 and 5, or velo's libfabric provider for MPICH, Intel "
        "MPI and an Open MPI 5 that the components were not built for, binds each rank to a core, "
        "or to none where ranks outnumber cores, and takes away what killed ranks leave in shared "
        "memory. Ends with mpirun's exit code; with 125 if all went well but no rank used velo, "
        "since the program is no MPI program, or one of another MPI (not looked for where ranks "
        "may be on other nodes, nor where options choose other components); with 1 if ranks are "
        "dead and mpirun hangs for ten seconds, as Open MPI 4.1's may when a rank dies while "
        "others start: then the job is ended. Options that velo does not know go to mpirun, --host"
        " and --hostfile among them: then each host is first asked whether it has this velo, "
        "through ssh or what the parameter plm_rsh_agent names (of Open MPI 5: plm_ssh_agent), and "
        "the ranks get a network and a secret of the job's own.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "-n", "-np", dest="ranks", metavar="N", type=checked(units.parse_count), required=True,
        help="number of ranks",
    )  # fmt: skip
    add_mpi_options(parser)
    layer = parser.add_mutually_exclusive_group()
    layer.add_argument(
        "--mtl",
        dest="layer",
        action="store_const",
        const="mtl",
        help="Open MPI through the matching layer: the fastest; shared memory inside a host, "
        "cards (/dev/velo0) or else libfabric between hosts (the default)",
    )
    layer.add_argument(
        "--btl",
        dest="layer",
        action="store_const",
        const="btl",
        help="Open MPI through the byte transfer layer: velo inside a node, TCP between nodes",
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
        help="show the mpirun command with its environment, and run nothing",
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run, layer=None)


def add_mpi_options(parser: argparse.ArgumentParser) -> None:
    """Which MPI, and where it is."""
    parser.add_argument(
        "--mpi",
        choices=MPIS,
        help="the program's MPI, Open MPI 4.1, Open MPI 5, MPICH or Intel MPI (default: by its "
        "libraries and the first launcher that fits)",
    )
    parser.add_argument(
        "--mpi-root",
        metavar="DIR",
        help="where that MPI is installed: DIR/bin has its mpirun (default: the first in PATH)",
    )


def mpi_root(args: argparse.Namespace) -> Path | None:
    """Where the command line says that the MPI is."""
    root = Path(args.mpi_root) if args.mpi_root else None
    if root and not (root / "bin").is_dir():
        raise UsageError(f"there is no folder {root / 'bin'}; --mpi-root wants the one above it")
    return root


def run(args: argparse.Namespace) -> None:
    """`velo run`; ends with the exit code of mpirun."""
    launch = _plan(args)
    if args.print:
        print(launch)
        return
    sys.stdout.flush()
    # Cost: ctypes is slow to import; where programs are asked this is loaded meanwhile.
    from velo.runtime.supervise import complete

    sys.exit(complete(launch))


def _plan(args: argparse.Namespace) -> "Launch":
    root = mpi_root(args)
    if args.mpi:
        return _plan_for(args.mpi, root, args)
    # Cost: subprocess is slow to import.
    from velo.runtime import mpirun, which_mpi

    of_components = args.layer or not args.collectives
    some = which_mpi.OPEN_MPI if of_components else which_mpi.OPEN_MPI | which_mpi.MPICH_ABI
    which_mpi.ask_ahead(args.arguments, root)
    # Cost: the programs that were asked answer while this is loaded; complete() needs it.
    from velo.runtime import supervise  # noqa: F401

    choice = which_mpi.choose(args.arguments, root, some)
    native = choice.kind == "ompi4" or (choice.kind == "ompi5" and mpirun.has_components(root))
    launch = _plan_for(choice.kind, root, args)
    if not of_components:
        print(f"velo: {choice._replace(native=native)}", file=sys.stderr)
    return launch


def _plan_for(kind: str, root: Path | None, args: argparse.Namespace) -> "Launch":
    # Cost: subprocess is slow to import.
    from velo.runtime import mpirun

    of_components = args.layer or not args.collectives
    if kind == "ompi4" or (kind == "ompi5" and (of_components or mpirun.has_components(root))):
        return mpirun.plan(
            args.ranks, args.layer or "mtl", args.arguments, args.collectives, root, kind
        )
    if of_components:
        option = f"--{args.layer}" if args.layer else "--no-coll"
        raise UsageError(
            f"{option} is of velo's components, which are for --mpi ompi4 and --mpi ompi5"
        )
    # Cost: as above.
    from velo.runtime import over_libfabric

    return over_libfabric.plan(kind, root, args.ranks, args.arguments)


def only_for_ompi4(option: str) -> UsageError:
    """Simulated nodes have components for no other MPI."""
    return UsageError(f"{option} is of velo's components, which are for --mpi ompi4 alone")


def protect(argv: Sequence[str]) -> list[str]:
    """The command line with `--` before the first word that is not ours.

    argparse would otherwise try mpirun's and the program's options as ours.
    """
    if not argv or argv[0] != "run":
        return list(argv)
    at = 1
    while at < len(argv):
        word = argv[at]
        if word in OWN_VALUES:
            at += 2
        elif word in OWN_WORDS or word.startswith(("--mpi=", "--mpi-root=")):
            at += 1
        else:
            break
    rest = list(argv[at:])
    return [*argv[:at], *(["--", *rest] if rest and rest[0] != "--" else rest)]
