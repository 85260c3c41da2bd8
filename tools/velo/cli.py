# SPDX-License-Identifier: Apache-2.0
"""The command line of `velo`.

The man page velo.1 is generated from build_parser(), by an interpreter that may lack numpy, jinja2
and matplotlib: the modules of the commands import nothing that needs these before they run.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from velo import tree
from velo.cluster import predict, sim, trace
from velo.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, VeloError
from velo.measure import bench, netpipe, perf
from velo.paper import paper
from velo.report import report
from velo.runtime import clean, info, run, top

# In the order of --help and the man page. Each has register(), its arguments, and run().
COMMANDS = (
    run, sim, predict, trace, perf, info, top, clean, report, bench, netpipe, paper,
)  # fmt: skip
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
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for command in COMMANDS:
        command.register(commands)
    return parser


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
    except ModuleNotFoundError as error:
        module = str(error.name).partition(".")[0]
        if module not in tree.PAGE_MODULES:
            raise
        print(f"velo: {tree.missing_package(args.command, module)}", file=sys.stderr)
        return EXIT_FAILED
    except BrokenPipeError:
        # The reader, such as head, has enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    return EXIT_OK
