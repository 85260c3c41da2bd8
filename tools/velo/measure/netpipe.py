# SPDX-License-Identifier: Apache-2.0
"""`velo netpipe`: NetPIPE over velo and over Open MPI's own transport, side by side."""

import argparse
from pathlib import Path
from typing import Any

from velo import units
from velo.arguments import checked
from velo.measure.cpus import add_cpus, two_cpus


def register(commands: Any) -> None:
    """The command line of `velo netpipe`."""
    parser = commands.add_parser(
        "netpipe",
        help="run NetPIPE over velo and over Open MPI's own transport",
        description="Run Debian's NPopenmpi, unchanged, over velo and over Open MPI's own "
        "transport in turns, pinned to two cores, and print both side by side: with Open MPI 4.1 "
        "over velo's MTL and vader, with Open MPI 5 over velo's MTL, or its libfabric provider "
        "where the MTL was not built for it, and sm. "
        "Runs during which the cores moved, or others used them, do not count. Ends with exit code "
        "77 if NetPIPE, Open MPI or velo's part for it is not there, or no run counts.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--btl",
        action="store_true",
        help="use velo's BTL (default: its MTL, which is faster)",
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=checked(units.parse_count),
        default=5,
        help="how often each is run (default: 5)",
    )
    add_cpus(parser)
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the runs that count as a JSON list of records, for velo report",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo netpipe`."""
    # Cost: dataclasses and subprocess are slow to import, and only commands that measure need them.
    from dataclasses import replace

    from velo import display
    from velo.measure import side_by_side
    from velo.measure.mpi import netpipe, stacks
    from velo.results import machine, records

    console = display.Console()
    cpus = two_cpus(args.cpus)
    netpipe.find()
    ours, other = stacks.side_by_side(args.btl)
    for stack in (ours, other):
        netpipe.try_out(stack, cpus)
    rows, kept = side_by_side.measure(ours, other, cpus, args.rounds, console)
    shown = [row for row in rows if row.size_bytes in side_by_side.SIZES_SHOWN]
    counts = " and ".join(
        f"{len(kept.found[stack.word])} of {stack.name}" for stack in (ours, other)
    )
    console.print(f"NetPIPE: half round trip and bandwidth, median of the runs in turns, {counts}")
    console.print(side_by_side.table(shown, ours.name, other.name))
    if kept.dropped:
        console.print(f"{kept.dropped} of {2 * args.rounds} runs left out: {kept.why()}.")
    if args.json:
        configs = {stack.name: stack.config for stack in (ours, other)}
        found = [
            replace(r, config=configs[r.stack])
            for r in records.summarize(kept.samples, machine.new_run())
        ]
        records.save(Path(args.json), found)
        console.print(f"{len(found)} records written to {args.json}")
