# SPDX-License-Identifier: Apache-2.0
"""`velo bench`: velo and its peers in turns, each run between two looks at the physical limit.

There are three parts. *native*: messages through velo.h, against UCX's own ucx_perftest. *mpi*: the
same MPI programs over velo and over what people use today. *python*: velo.Queue and other queues.
"""

import argparse
from pathlib import Path
from typing import Any

from velo import units
from velo.arguments import checked
from velo.errors import UsageError, VeloError
from velo.measure.cpus import add_cpus, two_cpus

ROUNDS, ROUNDS_QUICK = 5, 1


def register(commands: Any) -> None:
    """The command line of `velo bench`."""
    parser = commands.add_parser(
        "bench",
        help="measure velo and its peers, interleaved",
        description="Run velo and its peers, in random order and several rounds, on the same two "
        "cores, every batch or run bracketed by the physical limit: messages against UCX, and MPI "
        "programs over velo against Open MPI 4 and 5, MPICH and Intel MPI. MPIs that are not there "
        "are installed into build/peers; what cannot run is named with the reason. Ends with the "
        "table of targets. MPIs need a checkout of velo: their programs are compiled there.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=checked(units.parse_count),
        help="how often everything is run (default: 5, with --quick 1)",
    )
    parser.add_argument(
        "--only",
        metavar="LIST",
        help="run only this: parts (native, mpi, python), what is measured (limit, latency, rate, "
        "hpcc, ...), peers (mtl, btl, vader, ompi4-ucx, ompi5, ompi5-ucx, mpich, mpich-ucx, impi, "
        "ucx, velo); comma-separated; of each of these three kinds that is named, one must fit",
    )
    parser.add_argument("--skip", metavar="LIST", help="leave this out; the same words as --only")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round of a third of the time: to see that everything works, not to compare",
    )
    add_cpus(parser)
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the result as a JSON list of records, for velo report",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo bench`."""
    # Cost: dataclasses and subprocess are slow to import, and only commands that measure need them.
    from bench import rounds, tasks
    from bench.bracket import Peers
    from bench.extoll import Costs
    from bench.one_to_many import OneToMany
    from bench.scattered import Scattered
    from velo import display
    from velo.measure.velo_perf import Collected
    from velo.results import records

    console = display.Console()
    cpus = two_cpus(args.cpus)
    choice = tasks.Choice.parse(args.only, args.skip)
    velo, peers, costs, ways = Collected(), Peers(), Costs(), OneToMany()
    scattered = Scattered()
    configs: dict[str, str] = {}
    absent: dict[str, str] = {}
    chosen = tasks.native_tasks(choice, cpus, args.quick, velo, peers, configs, absent)
    chosen += tasks.extoll_tasks(choice, cpus, args.quick, costs, peers)
    chosen += tasks.bcast_tasks(choice, cpus, args.quick, ways, peers)
    chosen += tasks.dimmnet_tasks(choice, cpus, args.quick, scattered, peers)
    chosen += tasks.python_tasks(choice, cpus, args.quick, peers, absent)
    chosen += tasks.mpi_tasks(choice, cpus, args.quick, peers, configs, absent, console)
    for stack, config in configs.items():
        console.print(f"measured: {stack}: {config}")
    for stack, reason in absent.items():
        console.print(f"absent: {stack}: {reason}", style="yellow")
    if not chosen:
        raise UsageError("nothing is left to measure; see --only, --skip and what is absent")
    count = args.rounds or (ROUNDS_QUICK if args.quick else ROUNDS)
    rounds.run(chosen, count, peers, console)
    costs.show(console)
    ways.show(console)
    scattered.show(console)
    found = rounds.results(velo, peers, configs, absent)
    if not found:
        rounds.show_failures(peers, console)
        if not args.json and (costs.lines or ways.lines or scattered.lines):
            return
        raise VeloError("nothing could be measured; the lines above say why")
    rounds.show(found, velo, peers, console)
    if args.json:
        records.save(Path(args.json), found)
        console.print(f"{len(found)} records written to {args.json}")
