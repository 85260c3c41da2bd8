# SPDX-License-Identifier: Apache-2.0
"""The runs that a prediction is made of, each one of `velo sim`."""

import argparse
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from papers import extrapolation, points
from papers.points import Point
from papers.prediction import (
    LARGE_BYTES,
    PAPER,
    SMALL_BYTES,
    TECHNOLOGIES,
    Results,
    Run,
    Variation,
)
from velo import display, helpers, tree
from velo.cluster import apart, description
from velo.cluster.job import Job
from velo.cluster.job import plan as make_job
from velo.errors import UsageError, VeloError

PS_PER_S, PS_PER_US, NS_PER_S = 1e12, 1e6, 1e9
RATE = (*points.RATE, "--windows", "4", "--sizes", str(SMALL_BYTES))
STREAM = (*points.RATE, "--windows", "1", "--sizes", str(LARGE_BYTES))
LATENCY = ("velo-mpi-perf", "latency", "--no-limit", "--batches", "1", "--sizes", str(SMALL_BYTES))
# A rate is aimed at until it is that close, or so many times.
AIM, AIMS = 0.005, 8
DELAY_MAX_NS = 10_000_000
WIDE_LINKS = 3


def plan(args: argparse.Namespace) -> Job:
    """The job on the hardware to begin with, if the method can be applied to it."""
    job = make_job(args)
    if job.cluster.width_bits != PAPER.width_bits:
        raise UsageError(
            f"the prediction starts from {PAPER.width_bits} bits, not {job.cluster.width_bits}"
        )
    if job.ranks < 2:
        raise UsageError("one rank sends no messages; give -n or --topology")
    if max(*args.rates, *args.clocks) >= 100:
        raise UsageError("--rates and --clocks are per cent of the base, below 100")
    if not args.no_direct:
        wide_topology(args, job)
    if args.metric:
        _expression(args.metric)
    return job


def _expression(metric: str) -> re.Pattern[str]:
    try:
        expression = re.compile(metric)
    except re.error as error:
        raise UsageError(f"--metric '{metric}': {error}") from error
    if not expression.groups:
        raise UsageError(f"--metric '{metric}' has no group (...) that is the number")
    return expression


def performance(metric: str | None, said: str, virtual_ps: float) -> float:
    """Of a run that printed this and took so long."""
    if metric is None:
        return PS_PER_S / virtual_ps
    match = _expression(metric).search(said)
    if match is None:
        lines = "\n".join(said.strip().splitlines()[-helpers.STDERR_LINES :])
        raise VeloError(f"--metric '{metric}' matches nothing that the program printed:\n{lines}")
    try:
        value = float(match[1])
    except (TypeError, ValueError):
        value = 0
    if not 0 < value < float("inf"):
        raise VeloError(f"--metric '{metric}' found {match[1]!r}, which is not a number above 0")
    return value


class Bench:
    """Runs things on hardware; every run is one of `velo sim`."""

    def __init__(self, args: argparse.Namespace, job: Job, bar: display.Bar) -> None:
        self._args = args
        self._job = job
        self._bar = bar
        self._done = 0
        mhz = job.cluster.clock_mhz
        cable_ns = (job.cluster.cable_cycles or 0) * 1000 / mhz
        self._base = Run("base", Point(f"{mhz:g} MHz", mhz, PAPER.width_bits, cable_ns))

    def measure(self) -> Results:
        """Every run there is."""
        args, base = self._args, self._base
        self._take(base)
        rates = [self._take(run) for run in self._delayed()]
        clocks = [self._take(run) for run in self._clocked()]
        variations = [
            Variation("message rate", rates, [run.rate / base.rate for run in rates]),
            Variation(
                "frequency", clocks, [run.point.clock_mhz / base.point.clock_mhz for run in clocks]
            ),
        ]
        direct, absent = ([], ["--no-direct"]) if args.no_direct else self._direct()
        computing = base.computing if args.mpi_share is None else 1 - args.mpi_share
        program = list(self._job.program)
        return Results(program, args.metric, computing, base, variations, direct, absent)

    def _take(self, run: Run) -> Run:
        """Micro-benchmarks and program."""
        self._bar.step(run.name)
        run.rate = run.rate or self._rate(run)
        run.bandwidth = LARGE_BYTES * self._perf(run, STREAM, 2, 1)
        run.latency_ns = self._perf(run, LATENCY, 2, 1)
        job = self._job
        words = self._words(run, job.ranks, job.ranks_a_node)
        said, result = self._sim(run, words, job.program)
        virtual_ps = result["virtual_time_ps"]
        run.performance = performance(self._args.metric, said, virtual_ps)
        run.virtual_us = virtual_ps / PS_PER_US
        run.computing = result["computed_ps"] / (job.ranks * virtual_ps)
        run.hash = result["hash"]
        run.command = shlex.join(["velo", "sim", *words, "--", *job.program])
        self._done += 1
        speed = run.performance / self._base.performance
        self._bar.advance_to(self._done, f"{speed:.1%} of the base")
        return run

    def _delayed(self) -> Iterator[Run]:
        """The base with each of the message rates wanted, from fast to slow."""
        base = self._base
        known: dict[int, float] = {}

        def attempt(delay_ns: int) -> float:
            """What a message then takes a sender."""
            if delay_ns not in known:
                rate = self._rate(replace(base, delay_ns=delay_ns)) if delay_ns else base.rate
                known[delay_ns] = self._pairs * NS_PER_S / rate
            return known[delay_ns]

        for percent in sorted(self._args.rates, reverse=True):
            name, wanted_ns = f"{percent} % message rate", attempt(0) * 100 / percent
            self._bar.step(f"delay for {name}")
            while max(known.values()) <= wanted_ns:
                if max(known) > DELAY_MAX_NS:
                    raise VeloError(f"no delay after the send makes the message rate {percent} %")
                attempt(2 * max(known) or round(attempt(0)))
            for _ in range(AIMS):
                delay_ns = extrapolation.next_delay_ns(list(known.items()), wanted_ns)
                if abs(attempt(delay_ns) / wanted_ns - 1) < AIM:
                    break
            delays = known.keys() - {0}
            delay_ns = min(delays, key=lambda delay_ns: abs(known[delay_ns] - wanted_ns))
            yield Run(name, base.point, delay_ns, rate=self._pairs * NS_PER_S / known[delay_ns])

    def _clocked(self) -> Iterator[Run]:
        """The base with each of the clocks wanted; its cables stay as long as they are."""
        for percent in sorted(self._args.clocks, reverse=True):
            point = self._base.point
            mhz = float(f"{point.clock_mhz * percent / 100:.3g}")  # As Table III: 140, 125, 117.
            yield Run(f"{percent} % clock", replace(point, name=f"{mhz:g} MHz", clock_mhz=mhz))

    def _direct(self) -> tuple[list[Run], list[str]]:
        """The program on the faster hardware, and what could not be run."""
        found, absent = [], []
        for technology in TECHNOLOGIES:
            point = replace(technology.point, cable_ns=self._base.point.cable_ns)
            run = Run(point.name, point, topology=wide_topology(self._args, self._job))
            try:
                found.append(self._take(run))
            except VeloError as error:
                absent.append(f"{point.name}: {apart.no_model(error)}")
        return found, absent

    @property
    def _pairs(self) -> int:
        return self._job.ranks // 2

    def _rate(self, run: Run) -> float:
        """Messages per second of all pairs; each rank has its partner half of the ranks away."""
        return self._perf(run, RATE, 2 * self._pairs, self._job.ranks_a_node)

    def _perf(self, run: Run, program: Sequence[str], ranks: int, ranks_a_node: int) -> float:
        path = str(tree.find(program[0]))
        said, _ = self._sim(run, self._words(run, ranks, ranks_a_node), [path, *program[1:]])
        return points.parse(said, "size_bytes")[0][1]

    def _sim(
        self, run: Run, words: Sequence[str], program: Sequence[str]
    ) -> tuple[str, dict[str, Any]]:
        try:
            return apart.run_apart(words, program)
        except VeloError as error:
            raise VeloError(f"{run.name}: {error}") from error

    def _words(self, run: Run, ranks: int, ranks_a_node: int) -> list[str]:
        """The options of velo sim."""
        args, described = self._args, self._job.cluster
        host_ns = dict(described.host_ns)
        if run.delay_ns:
            host_ns["gap"] = host_ns.get("gap", 0) + run.delay_ns
        given = {
            "--topology": run.topology or args.topology,
            "--cluster": args.cluster,
            "--ranks-a-node": ranks_a_node,
            "-n": ranks,
            "--error-rate": described.error_rate,
            "--compute": described.compute,
            "--host": args.host,
            "--host-ns": ",".join(f"{name}={ns}" for name, ns in host_ns.items()) or None,
            "--seed": args.seed,
        }
        words = [word for name, v in given.items() if v is not None for word in (name, str(v))]
        return [f"--{self._job.layer}", *words, *run.point.options]


def wide_topology(args: argparse.Namespace, job: Job) -> str | None:
    """Of the faster hardware, if it is another one than the base's."""
    topology: str | None = args.wide_topology
    if topology:
        network = description.line(topology)
        if network.nodes * job.ranks_a_node < job.ranks:
            raise UsageError(f"--wide-topology {topology} has no room for {job.ranks} ranks")
    elif args.topology == points.EIGHT_NODES[32]:
        return points.EIGHT_NODES[64]
    else:
        network = job.cluster.network
    links = 1 + max(link for _, link in network.cables)
    if links > WIDE_LINKS:
        raise UsageError(
            f"nodes of 64 and 128 bits have {WIDE_LINKS} links, and this topology takes {links}; "
            "give another --wide-topology, or --no-direct"
        )
    return topology
