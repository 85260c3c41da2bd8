# SPDX-License-Identifier: Apache-2.0
"""`velo sim`: run a program on the simulated cluster, in virtual time."""

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from velo import helpers, units
from velo.arguments import checked
from velo.cluster import ranks, routing
from velo.cluster.job import add_options, plan
from velo.errors import UsageError, VeloError
from velo.runtime import openmpi
from velo.runtime.launch import Launch, complete


def register(commands: Any) -> None:
    """The command line of `velo sim`."""
    parser = commands.add_parser(
        "sim",
        help="run an MPI program on the simulated hardware, in virtual time",
        usage="velo sim [OPTION ...] -- PROGRAM [ARGUMENT ...]",
        description="Run an unmodified, dynamically linked MPI program, one process a rank, over "
        "simulated nodes of the hardware: its clocks show virtual time, so it prints what the "
        "hardware would have given. The same command gives the same times, and the same hash of "
        "every message's arrival. Ends with the program's exit code, or as velo run with 125 or 1.",
        allow_abbrev=False,
    )
    add_options(parser).add_argument(
        "--plain",
        action="store_true",
        help="the program is no MPI program: start it once, as it is, over the simulated engine",
    )
    parser.add_argument(
        "--progress",
        action="store_true",
        help="show virtual time, messages, speed and how much is skipped: every second on a "
        "terminal, else every 30 seconds",
    )
    parser.add_argument("--json", metavar="FILE", help="write what the simulation came to as JSON")
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="record the times of each message and each operation on remote memory, and what each "
        "link carries, for velo trace; changes nothing of what happens",
    )
    parser.add_argument(
        "--wave",
        metavar="FILE.vcd",
        help="write the signals of the nodes, in the virtual time that the next two options give, "
        "as a VCD; needs velo-sim-wave, which 'cmake --build build --target velo-sim-wave' makes",
    )
    for end, text in (("from", "begins"), ("to", "ends")):
        parser.add_argument(
            f"--wave-{end}-us",
            metavar="US",
            type=checked(units.parse_us),
            help=f"virtual time at which the waveform {text}, in microseconds",
        )
    parser.add_argument(
        "--wave-nodes", metavar="LIST", help="nodes in the waveform: 0,1 (default: all)"
    )
    parser.add_argument(
        "--print", "--dry-run", dest="print", action="store_true",
        help="show the simulator's command and run nothing",
    )  # fmt: skip
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo sim`; ends with the exit code of the program."""
    job = plan(args)
    simulator = find_simulator(args)
    library = helpers.find_loaded("sim/libvelo.so.0", "run 'make sim'")
    # What the simulator shares with the ranks.
    area = Path(f"/dev/shm/velo-sim.{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="velo-sim-") as folder:
        # A recording tells it by this name.
        topology = Path(folder) / Path(args.topology or args.cluster or "pair").name
        topology.write_text(routing.to_text(job.cluster.network), encoding="utf-8")
        argv = [
            str(simulator),
            "--topology-file",
            str(topology),
            "--area",
            str(area),
            *job.cluster.options(),
            *options(args),
            *seeing(args),
            "--",
            *ranks.program(job, library),
        ]
        if args.print:
            print(shlex.join(argv))
            return
        sys.stdout.flush()
        # Of its own, so that jobs side by side do not meet.
        domain = f"sim-{os.getpid()}"
        env = openmpi.environment(domain)
        if job.ranks:
            env["VELO_SIM_REPEATABLE"] = "1"
            env["MALLOC_CONF"] = ranks.ALLOCATOR_SETTINGS
        # The ranks are mpirun's children, and mpirun the simulator's.
        launch = Launch(argv, env, domain, job.must_use, rank_depth=2)
        try:
            code = complete(launch)
        finally:
            # Of a simulator that was killed.
            area.unlink(missing_ok=True)
    sys.exit(code)


def find_simulator(args: argparse.Namespace) -> Path:
    """The program whose models do what is wanted."""
    if not args.wave:
        return helpers.find("velo-sim")
    try:
        return helpers.find("velo-sim-wave")
    except VeloError as error:
        raise VeloError(
            "velo-sim-wave, whose models show their signals, is not there; 'cmake --build build "
            "--target velo-sim-wave' makes it in some minutes"
        ) from error


def options(args: argparse.Namespace) -> list[str]:
    """What is passed on to the simulator as it is."""
    words = ["--seed", str(args.seed)]
    words += ["--progress"] if args.progress else []
    words += ["--result", args.json] if args.json else []
    return words


def seeing(args: argparse.Namespace) -> list[str]:
    """What is to be recorded and shown, as the simulator's options."""
    words = ["--record", args.record] if args.record else []
    window = (args.wave_from_us, args.wave_to_us)
    if not args.wave:
        if (*window, args.wave_nodes) != (None, None, None):
            raise UsageError(
                "--wave-from-us, --wave-to-us and --wave-nodes go with --wave FILE.vcd"
            )
        return words
    if None in window:
        raise UsageError("--wave needs --wave-from-us and --wave-to-us: all of a run is too much")
    words += ["--wave", args.wave]
    words += ["--wave-from-us", f"{window[0]:.12g}", "--wave-to-us", f"{window[1]:.12g}"]
    return words + (["--wave-nodes", args.wave_nodes] if args.wave_nodes else [])
