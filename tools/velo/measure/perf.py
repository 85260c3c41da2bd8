# SPDX-License-Identifier: Apache-2.0
"""`velo perf`: measure velo on this machine, and show the result."""

import argparse
from pathlib import Path
from typing import Any

from velo import units
from velo.arguments import checked
from velo.errors import UsageError

MODES = {
    "limit": "what the machine can do: cache-line ping-pong, bare slot rings, bare stream, copies",
    "latency": "half round trip of a message between two processes",
    "rate": "messages per second while streaming small messages",
    "bandwidth": "bytes per second while streaming; N½ is the size that reaches half of the best",
    "ring": "a ring of more processes than cores, against the same ring on bare futexes",
    "suite": "all of the above, in under two minutes",
    "gups": "RandomAccess: updates per second to a table that processes share out",
}
# What two that were started apart can measure together.
APART = ("limit", "latency", "rate", "bandwidth")
# What --sizes is if it is not given.
SIZES = {
    "latency": "NetPIPE's schedule: powers of two, sizes half-way, and just beside each of them",
    "rate": "8,32",
    "bandwidth": "powers of two from 8 to the longest message",
}


def register(commands: Any) -> None:
    """The command line of `velo perf`."""
    parser = commands.add_parser(
        "perf",
        help="measure velo on this machine",
        description="Fork real processes, pin them, exchange verified messages and measure. Every "
        "batch is bracketed by the physical limit, measured in the same processes, and every "
        "figure is given with its ratio to it.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--listen",
        action="store_true",
        help="no MODE: wait for a velo perf MODE --connect that was started apart, perhaps in "
        "another container with the same folder of segments, and measure with it, once",
    )
    _add_domain(parser)
    parser.set_defaults(run=run)
    modes = parser.add_subparsers(metavar="MODE", dest="mode")
    for name, text in MODES.items():
        mode = modes.add_parser(name, help=text, description=f"Measure {text}.", allow_abbrev=False)
        if name in ("latency", "rate", "bandwidth"):
            mode.add_argument(
                "--sizes",
                metavar="LIST",
                type=checked(units.parse_sizes),
                help="message sizes in bytes, comma-separated, k and M allowed: 8,64,1k,4096 "
                f"(default: {SIZES[name]})",
            )
            mode.add_argument(
                "--pairs",
                metavar="N",
                type=checked(units.parse_count),
                default=1,
                help="pairs of processes that run at the same time (default: 1)",
            )
        if name in ("rate", "bandwidth"):
            mode.add_argument(
                "--threads",
                metavar="N",
                type=checked(units.parse_count),
                default=1,
                help="sending threads of each pair, each with its own connection (default: 1)",
            )
        if name == "latency":
            mode.add_argument(
                "--senders",
                metavar="LIST",
                type=checked(units.parse_counts),
                help="how many senders are connected to the receiver while one of them is active; "
                "a list measures each: 1,64,512 (default: 1)",
            )
        if name in APART:
            mode.add_argument(
                "--connect",
                action="store_true",
                help="measure with a velo perf --listen that was started apart",
            )
            _add_domain(mode)
        if name in ("ring", "gups"):
            procs = 8 if name == "ring" else 2
            mode.add_argument(
                "--procs",
                metavar="N",
                type=checked(units.parse_count),
                default=procs,
                help=f"processes (default: {procs})",
            )
        _add_run_options(mode)


def _add_domain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--domain",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="domain to meet in (default: $VELO_DOMAIN, or perf)",
    )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cpus",
        metavar="LIST",
        type=checked(units.parse_cpus),
        help="CPUs to pin the processes to, in this order: 0,1 or 0-3 (default: all allowed)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="spend a tenth of the time: to see that everything works, not to compare",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the result as a JSON list of records, for velo report",
    )


def run(args: argparse.Namespace) -> None:
    """`velo perf`."""
    if args.listen:
        _listen(args)
        return
    if args.mode is None:
        raise UsageError(f"measure what? There are {', '.join(MODES)}; or --listen")
    # Cost: dataclasses and subprocess are slow to import, and only commands that measure need them.
    from velo import display
    from velo.measure import velo_perf
    from velo.report import tables
    from velo.results import machine, records

    console = display.Console()
    collected = velo_perf.run_jobs(velo_perf.jobs(args), console)
    found = collected.records(machine.new_run())
    console.print(tables.result_table(tables.main_points(found) if args.mode == "suite" else found))
    if collected.dropped:
        console.print(f"{collected.dropped} batches left out: the cores moved during them.")
    if args.json:
        records.save(Path(args.json), found)
        console.print(f"{len(found)} records written to {args.json}")


def _listen(args: argparse.Namespace) -> None:
    """Measure once with another velo perf."""
    # Cost: dataclasses and subprocess are slow to import, and only commands that measure need them.
    from velo.measure import velo_perf

    if args.mode:
        raise UsageError(f"--listen measures what the other side says; leave {args.mode} out")
    velo_perf.listen(getattr(args, "domain", None))
