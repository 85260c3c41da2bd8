# SPDX-License-Identifier: Apache-2.0
"""The command line of `velo`.

The man page velo.1 is generated from build_parser(), by an interpreter that may lack numpy, jinja2
and matplotlib: the modules of the commands import nothing that needs these before they run.
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from velo import tree
from velo.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, VeloError
from velo.runtime import run


class Group(NamedTuple):
    """Commands for one purpose."""

    title: str
    modules: tuple[str, ...]
    """A command has the last word as its name. Each has register(), its arguments, and run()."""
    example: str


# Of these the first two are ever installed, with the simulator.
CLUSTER = (
    ("velo.cluster.sim", "velo.cluster.trace", "velo.cluster.replay", "velo.cluster.what_if")
    if tree.has("velo/cluster")
    else ()
)
PAPERS = ("papers.predict", "papers.paper") if tree.has("papers") else ()
BENCH = ("bench.bench",) if tree.has("bench") else ()
VM = ("vm.vm",) if tree.has("vm") else ()
# In the order of --help and the man page.
GROUPS = (
    Group("Run", ("velo.runtime.run", "velo.runtime.env"), "velo run -n 2 ./my-mpi-program"),
    Group("Look", ("velo.runtime.info", "velo.runtime.top", "velo.runtime.clean"),
          "velo top --domain my-service"),
    Group("Measure",
          ("velo.measure.perf", "velo.measure.netpipe", *BENCH, "velo.report.report"),
          "velo perf suite --json run.json && velo report run.json"),
    Group("Simulate", (*CLUSTER, *VM, *PAPERS),
          "velo sim --topology torus:2x2x2 -- ./my-mpi-program"),
)  # fmt: skip


def name_of(module: str) -> str:
    """The command that a module has."""
    return module.rpartition(".")[2].replace("_", "-")


COMMANDS = {name_of(module): module for group in GROUPS for module in group.modules}
# Command lines and what they are for; of velo(1).
EXAMPLES = (
    ("velo info --config", "Which settings hold here, and what each means."),
    ("velo perf suite --json run.json", "Measure this machine, in a minute and a half."),
    ("velo report run.json -o run.html", "See that as one page with plots."),
    ("velo perf --listen", "In one container; and in another one, or another shell:"),
    ("velo perf latency --connect --sizes 8,1k", "Measure between the two."),
    ("velo run -n 2 NPopenmpi -u 65536 -o /dev/null", "Run NetPIPE, unchanged, over velo."),
    ("velo env",
     'See what eval "$(velo env)" sets, so that plain mpirun, srun and mpiexec use velo.'),
    ("velo run -n 4 --hostfile hosts ./my-mpi-program",
     "Run a program on several hosts: shared memory inside each, libfabric between them."),
    ("velo top --domain my-service", "Watch what the ports of a domain do; Ctrl-C ends it."),
    ("velo clean --dry-run", "See what dead processes left in shared memory."),
    ("velo sim --topology torus:2x2x2 -- ./my-mpi-program",
     "Run a program on eight simulated nodes, in virtual time."),
    ("velo vm --nodes 2 -- NPopenmpi -u 1024 -o /dev/null",
     "Run NetPIPE between two virtual machines with simulated cards."),
    ("velo what-if --latency 100,200 -o page.html -- ./my-mpi-program",
     "See what its run time would be with longer cables, and how many it passes in a row."),
    ("velo replay scorep-run/traces.otf2 -o scripts",
     "Make scripts of a trace by Score-P, and see how to replay them on simulated nodes."),
    ("velo predict -o page.html -- NPopenmpi -u 4096 -n 3 -o /dev/null",
     "Predict its speed on faster hardware, and compare with a run there."),
)  # fmt: skip
EPILOG = """\
exit codes: 0 success; 1 failure; 2 the command line is wrong; 3 a payload arrived damaged;
77 this machine cannot do that measurement now; 124 a job on the simulated hardware cannot go on;
125 a job went well, but no rank of it used velo; 130 interrupted.
"""


def build_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The whole command line, every option with its help; of words that begin with a command or
    ask for the version only what they need."""
    parser = _Parser(
        prog="velo",
        description="Measure, inspect and report on velo, messages between processes at the speed "
        "of one cache line.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="print the version and end")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", parser_class=_CommandParser)
    first = words[0] if words else ""
    chosen = [first] if first in COMMANDS else [] if first == "--version" else COMMANDS
    for name in chosen:  # Cost: all modules take longer to import than a job takes to start.
        import_module(COMMANDS[name]).register(commands)
    return parser


def overview(parser: argparse.ArgumentParser) -> str:
    """What `velo --help` shows: the commands by purpose, with an example of each, as argparse has
    no groups of subcommands."""
    # Cost: slow to import, and only this needs it.
    import textwrap

    helps = {
        choice.dest: choice.help
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for choice in action._choices_actions
    }
    lines = [f"usage: {parser.prog} COMMAND ...", "", *textwrap.wrap(parser.description or "", 78)]
    for group in filter(lambda group: group.modules, GROUPS):
        lines += ["", f"{group.title}, as in: {group.example}"]
        for name in map(name_of, group.modules):
            lines.append(f"    {name:8} {helps[name]}")
    lines += [
        "",
        "velo COMMAND --help has the options of a command, velo --version the version.",
        "",
        EPILOG,
    ]
    return "\n".join(lines)


def _columns() -> int:
    """As shutil.get_terminal_size() has it."""
    with contextlib.suppress(ValueError):
        if columns := int(os.environ.get("COLUMNS", "0")):
            return columns
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


class _Help(argparse.HelpFormatter):
    """As wide as by default. Cost: each command would load shutil and all its compressors."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


class _CommandParser(argparse.ArgumentParser):
    """The parser of one command."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"formatter_class": _Help, **more})


class _Parser(_CommandParser):
    """The parser of the command itself."""

    def format_help(self) -> str:
        return overview(self)


class _Version(argparse.Action):
    """Prints the version of the library that the command's programs have in them."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{**more, "nargs": 0})

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        # Cost: slow to import, though less than helpers.
        import subprocess

        program = tree.find("velo-info")
        try:
            said = subprocess.run([program, "--version"], capture_output=True, text=True,
                                  timeout=10, check=True).stdout  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            raise VeloError(f"{program} does not tell its version: {error}") from error
        print("velo", said.strip())
        parser.exit()


def _terminated(signum: int, _frame: object) -> NoReturn:
    sys.exit(128 + signum)  # Unwinds like Ctrl-C, so that the children are stopped.


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGHUP, _terminated)
    words = run.protect(sys.argv[1:] if argv is None else argv)
    parser = build_parser(words)
    try:
        if words and words[0] in ("sim", "trace", "what-if") and words[0] not in COMMANDS:
            tree.find("velo-sim")  # It says how to get what has these commands.
        args = parser.parse_args(words)
        if args.command is None:
            parser.print_help()
        else:
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
