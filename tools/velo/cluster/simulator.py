# SPDX-License-Identifier: Apache-2.0
"""The simulator: what it is told, and a run of it."""

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path

from velo import tree
from velo.cluster import ranks, routing
from velo.cluster.job import Job, plan
from velo.errors import UsageError, VeloError
from velo.runtime import openmpi, over_libfabric
from velo.runtime.launch import NO_USE, Launch
from velo.runtime.supervise import complete


def run(args: argparse.Namespace) -> None:
    """Run the job that the command line of `velo sim` asks for; ends with its exit code."""
    job = plan(args)
    simulator = find_simulator(args)
    library = tree.find_loaded("libvelo-virtual.so")
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
            *(["--boards", str(job.boards)] if job.boards else []),
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
        launch = Launch(argv, env, domain, job.must_use, *below(job))
        try:
            code = complete(launch)
        finally:
            # Of a simulator that was killed.
            area.unlink(missing_ok=True)
    sys.exit(code)


def below(job: Job) -> tuple[int, str]:
    """How far the ranks are below the simulator, and what is wrong if none opens a port."""
    # The launcher is the simulator's child.
    if job.mpi == "ompi4":
        return 1 + 1, NO_USE
    mpi = over_libfabric.MPIS[job.mpi]
    return 1 + mpi.rank_depth, over_libfabric.why_unused(mpi)


def find_simulator(args: argparse.Namespace) -> Path:
    """The program whose models do what is wanted."""
    if not args.wave:
        return tree.find("velo-sim")
    try:
        return tree.find("velo-sim-wave")
    except VeloError as error:
        raise VeloError(
            "velo-sim-wave, whose models show their signals, is not there; 'cmake --build build "
            "--target velo-sim-wave' makes it in some minutes"
        ) from error


def options(args: argparse.Namespace) -> list[str]:
    """The options that are passed on to the simulator as they are."""
    words = ["--seed", str(args.seed)]
    words += ["--model", args.model] if args.model != "rtl" else []
    words += ["--threads-max", str(args.threads_max)] if args.threads_max else []
    words += ["--progress"] if args.progress else []
    words += ["--result", args.json] if args.json else []
    return words


def seeing(args: argparse.Namespace) -> list[str]:
    """The simulator's options for recording, capturing, and showing signals."""
    words = ["--record", args.record] if args.record else []
    words += ["--capture", args.capture] if args.capture else []
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
