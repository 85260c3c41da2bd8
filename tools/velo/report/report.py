# SPDX-License-Identifier: Apache-2.0
"""`velo report`: make an HTML page of results."""

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from velo import tree
from velo.errors import UsageError


def register(commands: Any) -> None:
    """The command line of `velo report`."""
    parser = commands.add_parser(
        "report",
        help="make an HTML page of results",
        description="Make one self-contained HTML page, with plots, of the records in one or more "
        "result files.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "files",
        metavar="FILE.json",
        nargs="+",
        help="written by velo perf, velo netpipe or velo bench with --json; several make one page",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.html",
        help="the page to write (default: the first input with .html for .json)",
    )
    if tree.has("bench"):
        parser.add_argument(
            "--targets",
            action="store_true",
            help="for those who work on velo: also what it aims at, met or missed, and the bare "
            "programs that it is judged by",
        )
    parser.set_defaults(run=run, targets=False)


def run(args: argparse.Namespace) -> None:
    """`velo report`."""
    # Cost: jinja2 and matplotlib are slow to import, and only commands that make pages need them.
    from velo.report import summary

    inputs = [Path(name) for name in args.files]
    output = Path(args.output) if args.output else inputs[0].with_suffix(".html")
    if output in inputs:
        raise UsageError(f"{output} is an input; name another file with -o")
    judge = import_module("bench.aims").aims if args.targets else None
    summary.write(inputs, output, judge)
    print(f"report written to {output}")
