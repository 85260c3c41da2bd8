# SPDX-License-Identifier: Apache-2.0
"""`velo what-if`: a program's run time on a grid of networks, and what of them it follows."""

import argparse
import os
from pathlib import Path
from typing import Any

from velo import units
from velo.arguments import checked, numbers
from velo.cluster.options import add_options
from velo.errors import UsageError, writing


def register(commands: Any) -> None:
    """The command line of `velo what-if`."""
    parser = commands.add_parser(
        "what-if",
        help="a program's run time on faster and slower networks",
        usage="velo what-if [OPTION ...] -- PROGRAM [ARGUMENT ...]",
        description="Run a program on every network of a grid, in virtual time, and say what its "
        "run time follows: how many cables it passes one after the other, how many lines it sends "
        "one after the other, and how many bytes. The options up to --seed describe the network to "
        "begin with, as for velo sim. Runs that are in the table already are not made again.",
        allow_abbrev=False,
    )
    add_options(parser)
    parser.add_argument(
        "--model",
        choices=("rtl", "fast"),
        default="rtl",
        help="of the hardware, as for velo sim (default: rtl)",
    )
    for name, metavar, what in (
        ("latency", "NS,...", "ns that each cable takes more than in the network to begin with"),
        ("rate", "N,...", "lines of up to 56 bytes that a rank may send in a second, such as 2e6"),
        ("bandwidth", "B,...", "bytes a second of a link, such as 1.2e9, by the clock of the "
         "hardware; each cable keeps its ns"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", metavar=metavar, type=checked(numbers), default=[],
                            help=what)  # fmt: skip
    parser.add_argument(
        "-j", "--jobs",
        metavar="N",
        type=checked(units.parse_count),
        default=len(os.sched_getaffinity(0)),
        help="how many run side by side (default: as many as there are CPUs); it changes no result",
    )  # fmt: skip
    parser.add_argument(
        "--table",
        metavar="FILE.csv",
        help="write each run as it ends; if the file is there, go on with it",
    )
    parser.add_argument("-o", "--output", metavar="FILE.html", help="write a page with pictures")
    parser.add_argument("--json", metavar="FILE", help="write runs and findings as JSON")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo what-if`."""
    # Cost: dataclasses and tempfile are slow to import.
    from velo import display
    from velo.cluster import grid
    from velo.cluster.job import plan

    for name in (args.json, args.output, args.table):
        if name and not Path(name).resolve().parent.is_dir():
            raise UsageError(f"{name}: there is no such folder")
    if args.output:
        # Cost: matplotlib is slow to import, and only a page needs it. If it is not there this says
        # so before the runs and not after them.
        from velo.cluster import grid_page
    if not (args.latency or args.rate or args.bandwidth):
        raise UsageError("what if what? give --latency, --rate or --bandwidth")
    network = grid.Base.of(args, plan(args))
    points = grid.points(network, args.latency, args.rate, args.bandwidth)
    table = grid.Table(Path(args.table) if args.table else None, network)
    missing = [point for point in points if point not in table]
    console = display.Console()
    with display.Bar(console, total=len(missing)) as bar:
        bar.step(f"{len(missing)} runs, {args.jobs} side by side")
        for done, run in enumerate(grid.measure(network, missing, args.jobs), start=1):
            table.add(run)
            bar.advance_to(done, units.time_ns(run.time_ns))
            bar.step(run.point.text)
    found = grid.Findings.of([table[point] for point in points])
    console.print(grid.shown(found))
    for sentence in found.sentences():
        console.print(sentence)
    for path, text in ((args.json, found.to_json), (args.output, lambda: grid_page.render(found))):
        if path:
            with writing(path):
                Path(path).write_text(text(), encoding="utf-8")
            print(f"written to {path}")
