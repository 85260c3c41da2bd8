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

from velo import units
from velo.arguments import checked
from velo.cluster import predict, sim, trace
from velo.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, VeloError
from velo.runtime import clean, info, run, top

PERF_MODES = {
    "limit": "what the machine can do: cache-line ping-pong, bare slot rings, bare stream, copy",
    "latency": "half round trip of a message between two processes",
    "rate": "messages per second while streaming small messages",
    "bandwidth": "bytes per second while streaming; N½ is the size that reaches half of the best",
    "ring": "a ring of more processes than cores, against the same ring on bare futexes",
    "suite": "all of the above, in under two minutes",
    "gups": "RandomAccess: updates per second to a table that processes share out",
}

PERF_SIZES = {
    "latency": "NetPIPE's schedule: powers of two, sizes half-way, and just beside each of them",
    "rate": "8,32",
    "bandwidth": "powers of two from 8 to the longest message",
}

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
    _add_perf(commands)
    info.register(commands)
    top.register(commands)
    clean.register(commands)
    _add_report(commands)
    _add_bench(commands)
    _add_netpipe(commands)
    _add_paper(commands)
    return parser


def _add_perf(commands: Any) -> None:
    perf = commands.add_parser(
        "perf",
        help="measure velo on this machine",
        description="Fork real processes, pin them, exchange verified messages and measure. Every "
        "batch is bracketed by the physical limit, measured in the same processes, and every "
        "figure is given with its ratio to it.",
        allow_abbrev=False,
    )
    modes = perf.add_subparsers(metavar="MODE", dest="mode", required=True)
    for name, text in PERF_MODES.items():
        mode = modes.add_parser(name, help=text, description=f"Measure {text}.", allow_abbrev=False)
        mode.set_defaults(run=_perf)
        if name in ("latency", "rate", "bandwidth"):
            mode.add_argument(
                "--sizes",
                metavar="LIST",
                type=checked(units.parse_sizes),
                help="message sizes in bytes, comma-separated, k and M allowed: 8,64,1k,4096 "
                f"(default: {PERF_SIZES[name]})",
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


def _add_bench(commands: Any) -> None:
    bench = commands.add_parser(
        "bench",
        help="measure velo and its peers, interleaved",
        description="Run velo and its peers, in random order and several rounds, on the same two "
        "cores, every batch or run bracketed by the physical limit: messages against UCX, and MPI "
        "programs over velo against Open MPI 4 and 5, MPICH and Intel MPI. MPIs that are not there "
        "are installed into build/peers; what cannot run is named with the reason. Ends with the "
        "table of targets.",
        allow_abbrev=False,
    )
    bench.add_argument(
        "--rounds",
        metavar="N",
        type=checked(units.parse_count),
        help="how often everything is run (default: 5, with --quick 1)",
    )
    bench.add_argument(
        "--only",
        metavar="LIST",
        help="run only this: parts (native, mpi), what is measured (latency, rate, hpcc, ...), "
        "peers (mtl, btl, vader, ompi4-ucx, ompi5, ompi5-ucx, mpich, impi, ucx, velo); comma-"
        "separated; of each of these three kinds that is named, one must fit",
    )
    bench.add_argument("--skip", metavar="LIST", help="leave this out; the same words as --only")
    bench.add_argument(
        "--quick",
        action="store_true",
        help="one round of a third of the time: to see that everything works, not to compare",
    )
    bench.add_argument(
        "--cpus",
        metavar="LIST",
        type=checked(units.parse_cpus),
        help="the two CPUs to pin to: 0,1 (default: the first two allowed)",
    )
    bench.add_argument(
        "--json",
        metavar="FILE",
        help="write the result as a JSON list of records, for velo report",
    )
    bench.set_defaults(run=_bench)


def _add_netpipe(commands: Any) -> None:
    netpipe = commands.add_parser(
        "netpipe",
        help="run NetPIPE over velo and over Open MPI's own transport",
        description="Run Debian's NPopenmpi, unchanged, over velo and over Open MPI's own "
        "transport (vader) in turns, pinned to two cores, and print both side by side.",
        allow_abbrev=False,
    )
    netpipe.add_argument(
        "--btl", action="store_true", help="use velo's BTL (default: its MTL, which is faster)"
    )
    netpipe.add_argument(
        "--rounds",
        metavar="N",
        type=checked(units.parse_count),
        default=5,
        help="how often each is run (default: 5)",
    )
    netpipe.add_argument(
        "--cpus",
        metavar="LIST",
        type=checked(units.parse_cpus),
        help="the two CPUs to pin to: 0,1 (default: the first two allowed)",
    )
    netpipe.set_defaults(run=_netpipe)


def _add_paper(commands: Any) -> None:
    paper = commands.add_parser(
        "paper",
        help="reproduce the papers' figures on the simulated hardware",
        description="Run the experiments of the VELO and EXTOLL papers on simulated nodes of the "
        "hardware, at the papers' clock and at newer ones, and make a page with every figure, ours "
        "beside theirs. Some ten minutes; the same results, to the message, every time.",
        allow_abbrev=False,
    )
    paper.add_argument(
        "--only",
        metavar="LIST",
        help="run only these experiments, comma-separated: api latency, api stream, mpi latency, "
        "netpipe latency, netpipe stream, rate by size, rate by pairs, gups",
    )
    paper.add_argument(
        "--quick",
        action="store_true",
        help="at the papers' clock only, few sizes and messages: to see that everything works",
    )
    paper.add_argument(
        "-o", "--output", metavar="FILE.html", default="paper.html",
        help="the page to write (default: paper.html)",
    )  # fmt: skip
    paper.add_argument("--json", metavar="FILE", help="write all values and hashes as JSON")
    paper.set_defaults(run=_paper)


def _perf(args: argparse.Namespace) -> None:
    from velo import perf

    perf.command(args)


def _report(args: argparse.Namespace) -> None:
    from velo.report import summary as report

    report.command(args)


def _bench(args: argparse.Namespace) -> None:
    from velo import bench

    bench.command(args)


def _netpipe(args: argparse.Namespace) -> None:
    from velo import netpipe

    netpipe.command(args)


def _paper(args: argparse.Namespace) -> None:
    from velo import paper

    paper.command(args)


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
