# SPDX-License-Identifier: Apache-2.0
"""`velo run`: start an MPI program with Open MPI over velo."""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velo import units
from velo.arguments import checked
from velo.errors import UsageError
from velo.runtime.launch import Launch, complete
from velo.runtime.openmpi import component_folder, environment, find_mpirun, find_program, selection

# mpirun's options that take values; all others take none.
TWO_VALUES = {"mca", "gmca", "omca", "pmca"}
HOSTS = {"H", "app", "default-hostfile", "host", "hostfile", "machinefile"}
# Where these are given, so is the placing of ranks.
PLACING = HOSTS | {
    "N", "bind-to", "cpu-list", "cpu-set", "map-by", "nooversubscribe", "npernode", "npersocket",
    "oversubscribe", "ppr", "rank-by", "rankfile", "rf", "slot-list", "use-hwthread-cpus",
}  # fmt: skip
ONE_VALUE = HOSTS | {
    "N", "add-host", "add-hostfile", "am", "bind-to", "c", "cpu-list", "cpu-set", "dvm", "hnp",
    "map-by", "max-restarts", "max-vm-size", "n", "np", "npernode", "npersocket", "ompi-server",
    "output-filename", "output-proctable", "path", "personality", "ppr", "prefix",
    "preload-files", "rank-by", "rankfile", "report-events", "report-pid", "report-uri", "rf",
    "slot-list", "stdin", "timeout", "tune", "wd", "wdir", "x",
}  # fmt: skip
# Where one of these is set, ranks may be on nodes that we do not see.
SCHEDULERS = ("LSB_JOBID", "OMPI_MCA_orte_default_hostfile", "PBS_NODEFILE", "PE_HOSTFILE",
              "SLURM_JOB_ID")  # fmt: skip


@dataclass(frozen=True)
class Split:
    """What follows our own options."""

    options: Sequence[str]
    """For mpirun, untouched."""
    names: frozenset[str]
    """Their names, without dashes."""
    program: Sequence[str]

    @property
    def parameters(self) -> set[str]:
        """The MCA parameters that the options set."""
        pairs = zip(self.options, self.options[1:], strict=False)
        return {name for option, name in pairs if option.lstrip("-") == "mca"}


def register(commands: Any) -> None:
    """The command line of `velo run`."""
    parser = commands.add_parser(
        "run",
        help="run an MPI program over velo",
        usage="velo run -n N [--mtl | --btl] [--print] [MPIRUN OPTION ...] PROGRAM [ARGUMENT ...]",
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
    launch = plan(args.ranks, args.layer, args.arguments)
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
        elif word in ("--mtl", "--btl", "--print", "--dry-run", "-h", "--help"):
            at += 1
        else:
            break
    rest = list(argv[at:])
    return [*argv[:at], *(["--", *rest] if rest and rest[0] != "--" else rest)]


def split(arguments: Sequence[str]) -> Split:
    """mpirun's options, and the program with its own."""
    words = list(arguments[1:] if arguments[:1] == ["--"] else arguments)
    names: set[str] = set()
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name = words[at].lstrip("-")
        names.add(name)
        at += 1 + (2 if name in TWO_VALUES else 1 if name in ONE_VALUE else 0)
    return Split(words[:at], frozenset(names), words[at:])


def plan(ranks: int, layer: str, arguments: Sequence[str]) -> Launch:
    """The mpirun command for a job."""
    job = split(arguments)
    _check_program(job)
    folder = component_folder(layer)
    domain = f"run-{os.getpid():x}-{time.time_ns() & 0xFFFFFFFF:x}"
    argv = [find_mpirun(folder), "-n", str(ranks), *selection(layer, folder, job.parameters)]
    argv += placement(ranks, job.names)
    argv += [*job.options, *job.program]
    return Launch(argv, environment(domain), domain, must_use(ranks, layer, job))


def must_use(ranks: int, layer: str, job: Split) -> bool:
    """Can we tell that a job which goes well has used velo?"""
    elsewhere = job.names & HOSTS or any(name in os.environ for name in SCHEDULERS)
    chosen = job.parameters & {"pml", "mtl", "btl"}
    renamed = any("velo_domain" in word.lower() or "VELO_SHM" in word for word in job.options)
    alone = layer == "btl" and ranks == 1  # Such a rank has nobody to reach.
    return not (elsewhere or chosen or renamed or alone)


def _check_program(job: Split) -> None:
    if "app" in job.names:
        return
    if not job.program:
        raise UsageError("which program? usage: velo run -n N PROGRAM ...")
    program = job.program[0]
    elsewhere = job.names & (HOSTS | {"wd", "wdir", "path", "prefix"})
    if not elsewhere:
        find_program(program)


def placement(ranks: int, names: Iterable[str]) -> list[str]:
    """Where the ranks go: each on a core of its own if there are enough."""
    if not PLACING.isdisjoint(names):
        return []
    if ranks <= cores():
        return ["--map-by", "core", "--bind-to", "core"]
    return ["--oversubscribe", "--bind-to", "none"]


def cores(topology: Path = Path("/sys/devices/system/cpu")) -> int:
    """Physical cores that we may run on; all allowed CPUs where the kernel does not say."""
    found = set()
    allowed = os.sched_getaffinity(0)
    for cpu in allowed:
        folder = topology / f"cpu{cpu}" / "topology"
        try:
            ids = [(folder / name).read_text() for name in ("physical_package_id", "core_id")]
        except OSError:
            return len(allowed)
        found.add(tuple(ids))
    return len(found)
