# SPDX-License-Identifier: Apache-2.0
"""`velo predict`: a program's speed on faster hardware, predicted from runs on slower one.

The method is that of the high-message-rates paper, section VI. The network is slowed down in two
ways, by a delay after each send and by its clock. What that does to micro-benchmarks and to the
program gives a curve, which is followed to faster hardware. We have that hardware, too: the program
is run there, which shows what the prediction is worth.

predict_runs.py makes the runs, extrapolation.py has the arithmetic, predict_tables.py the tables,
predict_page.py the page.
"""

import argparse
from pathlib import Path
from typing import Any

from velo import units
from velo.arguments import checked, share
from velo.cluster.options import add_options
from velo.errors import UsageError, writing


def register(commands: Any) -> None:
    """The command line of `velo predict`."""
    parser = commands.add_parser(
        "predict",
        help="predict a program's speed on faster hardware, and check the prediction",
        usage="velo predict [OPTION ...] -- PROGRAM [ARGUMENT ...]",
        description="Run a program on simulated hardware that is slowed down, by a delay after "
        "each line that is sent and by its clock; fit its run time, and extrapolate to 300 MHz "
        "with 64 bits and 800 MHz with 128 bits. That is the method of section VI of “On Achieving "
        "High Message Rates”. Then run it on that hardware, too, and set the prediction beside the "
        "truth. The options up to --seed describe the hardware to begin with, as for velo sim.",
        allow_abbrev=False,
    )
    add_options(parser)
    parser.add_argument(
        "--metric",
        metavar="REGEX",
        help="performance is the number that the first group of this expression matches in what "
        "the program prints; more is better (default: runs in virtual time)",
    )
    parser.add_argument(
        "--mpi-share",
        metavar="SHARE",
        type=share,
        help="share of the program's time on the hardware to begin with that it spends in "
        "communication, such as 0.89; the rest stays as it is on any hardware (default: all but "
        "what --compute costs)",
    )
    for name, what, default in (
        ("rates", "message rates", "95,90,85,80,75,70"),
        ("clocks", "clocks", "90,80,75"),
    ):
        parser.add_argument(
            f"--{name}",
            metavar="LIST",
            type=checked(units.parse_counts),
            default=units.parse_counts(default),
            help=f"{what} to slow the hardware down to, in per cent of what it has (default: "
            f"{default})",
        )
    parser.add_argument(
        "--wide-topology",
        metavar="KIND:SIZE",
        help="topology of the hardware with 64 and 128 bits, whose nodes have three links "
        "(default: the same; hypercube:3 for torus:2x2x2)",
    )
    parser.add_argument(
        "--no-direct",
        action="store_true",
        help="predict only: do not run the program on the faster hardware",
    )
    parser.add_argument("--json", metavar="FILE", help="write all values as JSON")
    parser.add_argument(
        "-o", "--output", metavar="FILE.html", help="write a page with tables and figures"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo predict`."""
    # Cost: dataclasses and subprocess are slow to import.
    from papers import predict_tables
    from papers.predict_runs import Bench, plan
    from papers.prediction import TECHNOLOGIES, conclude
    from velo import display

    for name in (args.json, args.output):
        if name and not Path(name).resolve().parent.is_dir():
            raise UsageError(f"{name}: there is no such folder")
    if args.output:
        # Cost: matplotlib is slow to import, and only a page needs it. If it is not there this says
        # so before the runs and not after them.
        from papers import predict_page
    console = display.Console()
    steps = 1 + len(args.rates) + len(args.clocks) + (0 if args.no_direct else len(TECHNOLOGIES))
    job = plan(args)
    with display.Bar(console, total=steps) as bar:
        results = Bench(args, job, bar).measure()
    conclude(results)
    predict_tables.show(results, console)
    if args.json:
        _write(Path(args.json), results.to_json())
    if args.output:
        _write(Path(args.output), predict_page.render(results))
        print(f"page written to {args.output}")


def _write(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(text, encoding="utf-8")
