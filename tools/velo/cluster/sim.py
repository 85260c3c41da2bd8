# SPDX-License-Identifier: Apache-2.0
"""`velo sim`: run a program on the simulated cluster, in virtual time."""

import argparse
from typing import Any

from velo import units
from velo.arguments import checked
from velo.cluster.options import add_options
from velo.runtime.run import add_mpi_options


def register(commands: Any) -> None:
    """The command line of `velo sim`."""
    parser = commands.add_parser(
        "sim",
        help="run a program on the simulated hardware, in virtual time",
        usage="velo sim [OPTION ...] -- PROGRAM [ARGUMENT ...]",
        description="Run an unmodified, dynamically linked MPI program, one process a rank, over "
        "simulated nodes of the hardware: its clocks show virtual time, so it prints what the "
        "hardware would have given. The same command gives the same times, and the same hash of "
        "every message's arrival. Velo's components carry the messages of Open MPI 4.1, velo's "
        "libfabric provider those of the MPIs that --mpi names. Ends with the program's exit code, "
        "with 124 if the job cannot go on, or as velo run with 125 or 1.",
        allow_abbrev=False,
    )
    start = add_options(parser)
    add_mpi_options(parser)
    start.add_argument(
        "--dimmnet",
        metavar="N",
        type=checked(units.parse_count),
        default=0,
        help="the program uses libdimmnet: start it once, as it is, over N simulated boards of "
        "DIMMnet-2, 1 to 16, each in the memory slot of a PC; two are joined by a cable, more by "
        "a switch",
    )
    start.add_argument(
        "--plain",
        action="store_true",
        help="the program is no MPI program: start it once, as it is, over the simulated engine",
    )
    parser.add_argument(
        "--model",
        choices=("rtl", "fast"),
        default="rtl",
        help="of the hardware: rtl evaluates it to the cycle; fast follows each message as a "
        "transaction, many times as fast, and refuses what it does not have "
        "(see docs/reference/simulator.md; default: rtl)",
    )
    parser.add_argument(
        "--threads-max",
        metavar="N",
        type=checked(units.parse_count),
        help="threads and processes of all ranks together, at most (default: 16384)",
    )
    parser.add_argument(
        "--progress",
        action="store_true",
        help="show virtual time, messages, speed and how much is skipped: every second on a "
        "terminal, else every 30 seconds",
    )
    parser.add_argument("--json", metavar="FILE", help="write what the simulation came to as JSON")
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="record the times of each message and each operation on remote memory, and what each "
        "link carries, for velo trace; changes nothing of what happens",
    )
    parser.add_argument(
        "--capture",
        metavar="FILE.pcapng",
        help="write each frame that a link sends, with its packet, for Wireshark; "
        "share/velo/wireshark/velo.lua takes frames apart; changes nothing of what happens",
    )
    parser.add_argument(
        "--wave",
        metavar="FILE.vcd",
        help="write the signals of the nodes, in the virtual time that the next two options give, "
        "as a VCD; needs velo-sim-wave, which 'cmake --build build --target velo-sim-wave' makes",
    )
    for end, text in (("from", "begins"), ("to", "ends")):
        parser.add_argument(
            f"--wave-{end}-us",
            metavar="US",
            type=checked(units.parse_us),
            help=f"virtual time at which the waveform {text}, in microseconds",
        )
    parser.add_argument(
        "--wave-nodes", metavar="LIST", help="nodes in the waveform: 0,1 (default: all)"
    )
    parser.add_argument(
        "--hosts",
        action="store_true",
        help="list the hosts for --host, with their sources, and end",
    )
    parser.add_argument(
        "--print", "--dry-run", dest="print", action="store_true",
        help="show the simulator's command and run nothing",
    )  # fmt: skip
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run, layer=None, mpi=None)


def run(args: argparse.Namespace) -> None:
    """`velo sim`; ends with the exit code of the program."""
    if args.hosts:
        # Cost: tomllib and dataclasses are slow to import.
        from velo.cluster import profiles

        print(profiles.listing(), end="")
        return
    # Cost: subprocess and dataclasses are slow to import.
    from velo.cluster import simulator

    simulator.run(args)
