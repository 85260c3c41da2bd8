# SPDX-License-Identifier: Apache-2.0
"""The command line of `velo`.

The man page velo.1 is generated from build_parser(), by an interpreter that may lack the display
libraries: this module imports them only inside the commands.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from velo.cluster import predict, sim, trace
from velo.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, VeloError
from velo.measure import bench, netpipe, perf
from velo.paper import paper
from velo.runtime import clean, info, run, top

EPILOG = """\
exit codes: 0 success; 1 failure; 2 the command line is wrong; 3 a payload arrived damaged;
125 a job went well, but no rank of it used velo; 130 interrupted.
"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line; every option with its help."""
    parser = argparse.ArgumentParser(
        prog="velo",
        description="Measure, inspect and report on velo, messages between processes at the speed "
        "of one cache line.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    run.register(commands)
    sim.register(commands)
    predict.register(commands)
    trace.register(commands)
    perf.register(commands)
    info.register(commands)
    top.register(commands)
    clean.register(commands)
    _add_report(commands)
    bench.register(commands)
    netpipe.register(commands)
    paper.register(commands)
    return parser


def _add_report(commands: Any) -> None:
    report = commands.add_parser(
        "report",
        help="make an HTML page of results",
        description="Make one self-contained HTML page, with plots, of the records in one or more "
        "result files.",
        allow_abbrev=False,
    )
    report.add_argument(
        "files", metavar="FILE.json", nargs="+", help="written by velo perf or velo bench --json"
    )
    report.add_argument(
        "-o",
        "--output",
        metavar="FILE.html",
        help="the page to write (default: the first input with .html for .json)",
    )
    report.set_defaults(run=_report)


def _report(args: argparse.Namespace) -> None:
    from velo.report import summary as report

    report.command(args)


def _terminated(signum: int, _frame: object) -> NoReturn:
    sys.exit(128 + signum)  # Unwinds like Ctrl-C, so that the children are stopped.


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGHUP, _terminated)
    args = build_parser().parse_args(run.protect(sys.argv[1:] if argv is None else argv))
    try:
        args.run(args)
        sys.stdout.flush()
    except VeloError as error:
        print(f"velo: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("velo: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader, such as head, has enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    return EXIT_OK
