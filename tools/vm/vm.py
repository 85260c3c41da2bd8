# SPDX-License-Identifier: Apache-2.0
"""`velo vm`: run a program on virtual machines whose cards are nodes of the simulated cluster."""

import argparse
from typing import Any

from velo import units
from velo.arguments import checked, seconds


def register(commands: Any) -> None:
    """The command line of `velo vm`."""
    parser = commands.add_parser(
        "vm",
        help="run a program on virtual machines with simulated cards",
        usage="velo vm [OPTION ...] -- PROGRAM [ARGUMENT ...]\n       velo vm [OPTION ...] --shell",
        description="Start virtual machines, each with a Linux of its own and a card that is a "
        "node of the simulated cluster, and run an unmodified MPI program on them, one rank a "
        "guest: its messages go through the driver, PCI Express and the hardware's model. All that "
        "is needed (QEMU, a kernel, a small Debian) is fetched once, from this machine's Debian "
        "mirror, into $VELO_VM_CACHE (default: ~/.cache/velo/vm), and nothing is installed. Guests "
        "see the current folder, and velo's own, at the same paths; all else that they write is "
        "gone with them. The program reads nothing from the terminal. Ends with the program's exit "
        "code; with 1 if a guest or the simulator ends early, or a guest's kernel complains.",
        allow_abbrev=False,
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--shell",
        action="store_true",
        help="a shell on the first guest in place of a program; 'ssh velo1' leads to the next, "
        "'mpirun PROGRAM' runs on all; 'exit N' ends the guests, and the command with N",
    )
    start.add_argument("--prepare", action="store_true", help="fill the cache, start nothing")
    start.add_argument(
        "--headers",
        action="store_true",
        help="print the folder that builds modules for the guests' kernel, start nothing: make -C "
        "driver KDIR=$(velo vm --headers)",
    )
    parser.add_argument(
        "--nodes",
        metavar="N",
        type=checked(units.parse_count),
        default=2,
        help="number of guests, on the nodes 0 to N-1 of the topology (default: 2)",
    )
    parser.add_argument(
        "--topology",
        metavar="KIND:SIZE",
        help="cables between the nodes, as for velo sim, up to three a node (default: pair for two "
        "nodes, ring:N for more)",
    )
    parser.add_argument(
        "--ranks-a-node",
        metavar="N",
        type=checked(units.parse_count),
        default=1,
        help="ranks of the program on each guest (default: 1)",
    )
    parser.add_argument(
        "--beside",
        metavar="COMMAND",
        action="append",
        default=[],
        help="a command line for this machine's shell, beside the guests: its plain programs have "
        "the next node behind the guests', a simulated one without a card; may be repeated. Needs "
        "the models that 'make paper' builds. The run also waits for its end, and then ends with "
        "its exit code unless the guests' program failed",
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="the program is no MPI program: start it once, on the first guest",
    )
    parser.add_argument(
        "--memory",
        metavar="MIB",
        type=checked(units.parse_count),
        help="memory of each guest, in MiB (default: 512; 1024 with --debug or --races)",
    )
    parser.add_argument(
        "--processors",
        metavar="N",
        type=checked(units.parse_count),
        default=1,
        help="processors of each guest (default: 1)",
    )
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=seconds,
        default=600.0,
        help="end the program after so many seconds, with exit code 1 (default: 600; a shell has "
        "no limit)",
    )
    parser.add_argument(
        "--iommu",
        action="store_true",
        help="guests have an IOMMU: a card reaches the pages that its driver pinned, no others",
    )
    parser.add_argument(
        "--debug",
        action="store_true",
        help="guests run a kernel that looks for faults of its drivers: accesses of memory, locks, "
        "DMA, leaks; the driver's own tests run when it is loaded. Slower by several times. The "
        "first use builds it from Debian's source; with --headers, for modules of that kernel",
    )
    parser.add_argument(
        "--races",
        action="store_true",
        help="guests run a kernel that looks for races of its drivers: it stops them between two "
        "accesses of memory. The first use builds it from Debian's source; with --headers, for "
        "modules of that kernel",
    )
    parser.add_argument(
        "--kernel",
        metavar="SUITE",
        default="",
        help="guests run the cloud kernel of this suite of Debian's mirror, such as trixie, with a "
        "driver that was built for it: see --driver; with --headers, for modules of that kernel "
        "(default: the kernel of the release that runs here)",
    )
    parser.add_argument(
        "--arm64",
        action="store_true",
        help="guests are AArch64 machines with Debian's kernel for them. They run programs and a "
        "driver that were built for them: give --plain or --shell, and --driver; with --headers, "
        "for modules of that kernel, which make's CROSS_COMPILE builds here",
    )
    parser.add_argument(
        "--large-pages",
        action="store_true",
        help="with --arm64: a kernel whose pages have 64 KiB. The first use builds it from "
        "Debian's source; with --headers, for modules of that kernel",
    )
    parser.add_argument(
        "--no-card",
        dest="card",
        action="store_false",
        help="guests without cards: MPI goes over their Ethernet, for a comparison",
    )
    parser.add_argument(
        "--driver",
        metavar="FILE.ko",
        help="the driver (default: that of this tree)",
    )
    parser.add_argument(
        "--keep",
        metavar="DIR",
        help="keep what the guests' kernels, QEMU and the simulator said, in this folder",
    )
    parser.add_argument("--json", metavar="FILE", help="write what happened as JSON")
    parser.add_argument(
        "--print", "--dry-run", dest="print", action="store_true",
        help="show the commands that would be started, and start none",
    )  # fmt: skip
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo vm`; ends with the exit code of the program."""
    # Cost: subprocess and dataclasses are slow to import.
    from vm import session

    session.run(args)
