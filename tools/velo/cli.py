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

from velo import cluster, units
from velo.arguments import checked, positive, share
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
    _add_sim(commands)
    _add_predict(commands)
    _add_trace(commands)
    _add_perf(commands)
    info.register(commands)
    top.register(commands)
    clean.register(commands)
    _add_report(commands)
    _add_bench(commands)
    _add_netpipe(commands)
    _add_paper(commands)
    return parser


def _add_sim(commands: Any) -> None:
    sim = commands.add_parser(
        "sim",
        help="run an MPI program on the simulated hardware, in virtual time",
        usage="velo sim [OPTION ...] -- PROGRAM [ARGUMENT ...]",
        description="Run an unmodified, dynamically linked MPI program, one process a rank, over "
        "simulated nodes of the hardware: its clocks show virtual time, so it prints what the "
        "hardware would have given. The same command gives the same times, and the same hash of "
        "every message's arrival. Ends with the program's exit code, or as velo run with 125 or 1.",
        allow_abbrev=False,
    )
    _add_hardware(sim).add_argument(
        "--plain",
        action="store_true",
        help="the program is no MPI program: start it once, as it is, over the simulated engine",
    )
    sim.add_argument(
        "--progress",
        action="store_true",
        help="show virtual time, messages, speed and how much is skipped: every second on a "
        "terminal, else every 30 seconds",
    )
    sim.add_argument("--json", metavar="FILE", help="write what the simulation came to as JSON")
    sim.add_argument(
        "--record",
        metavar="FILE",
        help="record the times of each message and each operation on remote memory, and what each "
        "link carries, for velo trace; changes nothing of what happens",
    )
    sim.add_argument(
        "--wave",
        metavar="FILE.vcd",
        help="write the signals of the nodes, in the virtual time that the next two options give, "
        "as a VCD; needs velo-sim-wave, which 'cmake --build build --target velo-sim-wave' makes",
    )
    for end, text in (("from", "begins"), ("to", "ends")):
        sim.add_argument(
            f"--wave-{end}-us",
            metavar="US",
            type=checked(units.parse_us),
            help=f"virtual time at which the waveform {text}, in microseconds",
        )
    sim.add_argument(
        "--wave-nodes", metavar="LIST", help="nodes in the waveform: 0,1 (default: all)"
    )
    sim.add_argument(
        "--print", "--dry-run", dest="print", action="store_true",
        help="show the simulator's command and run nothing",
    )  # fmt: skip
    sim.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    sim.set_defaults(run=_sim)


def _add_hardware(parser: argparse.ArgumentParser) -> Any:
    """The cluster, and which ranks are where; returns the group of ways to start a program."""
    parser.add_argument(
        "--topology",
        metavar="KIND:SIZE",
        help="pair (two nodes, one cable), or ring:4, torus:2x2x2, mesh:4x4, hypercube:3, full:5 "
        "(default: pair)",
    )
    parser.add_argument(
        "-n", "-np", dest="ranks", metavar="N", type=checked(units.parse_count),
        help="number of ranks (default: one for each place on the nodes)",
    )  # fmt: skip
    parser.add_argument(
        "--ranks-a-node",
        metavar="N",
        type=checked(units.parse_count),
        default=1,
        help="ranks with neighbouring numbers that share a node (default: 1)",
    )
    layer = parser.add_mutually_exclusive_group()
    for name, text in (
        ("mtl", "the matching layer (the default)"),
        ("btl", "the byte transfer layer"),
    ):
        layer.add_argument(
            f"--{name}", dest="layer", action="store_const", const=name, help=f"through {text}"
        )
    parser.add_argument(
        "--cluster",
        metavar="FILE.toml",
        help="a file that describes cables, routes, clock and hosts; options given besides it come "
        "first. Its keys: the options from here to --host-ns, without dashes, then topology, "
        "cables, routes (see sim/README.md)",
    )
    parser.add_argument(
        "--clock-mhz",
        metavar="MHZ",
        type=positive,
        help="clock of the hardware (default: 100)",
    )
    parser.add_argument(
        "--width-bits",
        metavar="BITS",
        type=int,
        choices=(32, 64, 128),
        help="data path of the hardware: 32, or 64 or 128 with up to three links (default: 32)",
    )
    parser.add_argument(
        "--cable-cycles",
        metavar="N",
        type=checked(units.parse_count),
        help="delay of each cable with its PHYs, in cycles of the hardware (default: 0)",
    )
    parser.add_argument(
        "--error-rate", metavar="P", type=positive, help="of each bit on a cable (default: 0)"
    )
    parser.add_argument(
        "--compute",
        metavar="HOW",
        help="what a program computes between two calls of velo costs: free (the default), call:NS "
        "a constant, measured:FACTOR its processor time (these runs do not repeat themselves)",
    )
    parser.add_argument(
        "--host-ns",
        metavar="NAME=NS,...",
        type=checked(cluster.host_constants),
        help="constants of the host model: store, dma, read, poll, clock, copy, call, gap",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=checked(units.parse_count),
        default=1,
        help="seed of what is random in the hardware's surroundings (default: 1)",
    )
    parser.set_defaults(layer="mtl", plain=False)
    return layer


def _add_predict(commands: Any) -> None:
    predict = commands.add_parser(
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
    _add_hardware(predict)
    predict.add_argument(
        "--metric",
        metavar="REGEX",
        help="performance is the number that the first group of this expression matches in what "
        "the program prints; more is better (default: runs in virtual time)",
    )
    predict.add_argument(
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
        predict.add_argument(
            f"--{name}",
            metavar="LIST",
            type=checked(units.parse_counts),
            default=units.parse_counts(default),
            help=f"{what} to slow the hardware down to, in per cent of what it has (default: "
            f"{default})",
        )
    predict.add_argument(
        "--wide-topology",
        metavar="KIND:SIZE",
        help="topology of the hardware with 64 and 128 bits, whose nodes have three links "
        "(default: the same; hypercube:3 for torus:2x2x2)",
    )
    predict.add_argument(
        "--no-direct",
        action="store_true",
        help="predict only: do not run the program on the faster hardware",
    )
    predict.add_argument("--json", metavar="FILE", help="write all values as JSON")
    predict.add_argument(
        "-o", "--output", metavar="FILE.html", help="write a page with tables and figures"
    )
    predict.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    predict.set_defaults(run=_predict)


def _add_trace(commands: Any) -> None:
    trace = commands.add_parser(
        "trace",
        help="show what a recorded run of the simulated hardware did",
        description="Make one self-contained HTML page of what velo sim --record FILE wrote: "
        "latency, messages per second, use of each link and where it was hot. Or give it to other "
        "tools: to Perfetto as a timeline, to velo-tlm as a trace that it replays.",
        allow_abbrev=False,
    )
    trace.add_argument("file", metavar="FILE", help="written by velo sim --record")
    trace.add_argument(
        "-o",
        "--output",
        metavar="FILE.html",
        help="the page to write (default: the recording's name with .html, if no other output "
        "is asked for)",
    )
    trace.add_argument(
        "--perfetto",
        metavar="FILE.json",
        help="write a timeline for ui.perfetto.dev: two tracks a context, a slice a message at "
        "either end and an arrow between them, operations on remote memory, what links carry; some "
        "800 bytes a message",
    )
    trace.add_argument(
        "--tlm",
        metavar="FILE.trace",
        help="write messages and operations as velo-tlm --trace takes them, and say how to replay "
        "them",
    )
    for end, text in (("from", "from this virtual time on"), ("to", "before this virtual time")):
        trace.add_argument(
            f"--{end}-us",
            metavar="US",
            type=checked(units.parse_us),
            help=f"only messages stored {text}, in microseconds",
        )
    trace.set_defaults(run=_trace)


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


def _sim(args: argparse.Namespace) -> None:
    from velo import sim

    sim.command(args)


def _predict(args: argparse.Namespace) -> None:
    from velo import predict

    predict.command(args)


def _trace(args: argparse.Namespace) -> None:
    from velo import trace

    trace.command(args)


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
