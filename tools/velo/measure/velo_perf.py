# SPDX-License-Identifier: Apache-2.0
"""Runs of velo-perf: what to call it with, its progress, and the samples it prints."""

import argparse
import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from velo import helpers, tree, units
from velo.display import Bar, Console
from velo.errors import UsageError, VeloError
from velo.results import records
from velo.results.records import Record, Run, Sample
from velo.runtime.domain import domain_words

PROGRAM = "velo-perf"
# What the suite measures.
SENDERS = "1,64,512"
RATE_SIZES = "8,24,32,56,64,128,256,512,1024,2048,4096"


@dataclass(frozen=True)
class Job:
    """One call of velo-perf."""

    title: str
    arguments: tuple[str, ...]
    weight: float = 1.0
    """Its part of the whole, for the progress bar: seconds it takes on a usual machine."""

    @property
    def mode(self) -> str | None:
        """What its records are called, if not what velo-perf calls them.

        Numbers of senders are compared with each other, and single runs differ by more than the
        senders do: so what was interleaved in one run stays apart from other runs. Messages in
        place are compared with those by copy, and so must not be mixed with them.
        """
        if "--in-place" in self.arguments:
            return records.IN_PLACE
        return "senders" if "--senders" in self.arguments else None


@dataclass
class Collected:
    """What one or more calls of velo-perf said."""

    samples: list[Sample] = field(default_factory=list)
    dropped: int = 0
    """Batches left out because the cores moved meanwhile."""
    version: str = ""

    def records(self, run: Run) -> list[Record]:
        return records.summarize(self.samples, replace(run, version=self.version))


def run_job(job: Job, into: Collected, on_progress: Callable[[float, str], None]) -> None:
    """Run velo-perf once; `on_progress` gets the finished part, 0 to 1, and the newest result."""
    planned = 0
    seen = 0
    processes = 2
    # closing(): an exception here must stop the processes now, not when the garbage is collected.
    with contextlib.closing(helpers.stream([tree.find(PROGRAM), *job.arguments])) as lines:
        for line in lines:
            match line.get("type"):
                case "meta":
                    into.version = str(line.get("version", ""))
                    processes = int(line.get("processes", processes))
                case "plan":
                    planned = int(line.get("samples", 0))
                case "sample":
                    sample = Sample.from_json(line, processes)
                    sample = replace(sample, mode=job.mode or sample.mode)
                    into.samples.append(sample)
                    seen += 1
                    on_progress(min(1.0, seen / planned) if planned else 0.0, describe(sample))
                case "end":
                    into.dropped += int(line.get("dropped", 0))


def run_jobs(jobs: Sequence[Job], console: Console) -> Collected:
    """Run velo-perf once for each job, with one progress bar over all."""
    collected = Collected()
    done = 0.0
    with Bar(console, total=sum(job.weight for job in jobs)) as bar:
        for job in jobs:
            bar.step(job.title)

            begin = done

            def on_progress(part: float, last: str, begin: float = begin, job: Job = job) -> None:
                bar.advance_to(begin + part * job.weight, last)

            run_job(job, collected, on_progress)
            done += job.weight
            bar.advance_to(done)
    if not collected.samples:
        raise VeloError(
            "the cores moved during every batch, so nothing could be measured;"
            " try again when the machine is less busy"
        )
    return collected


def listen(domain: str | None) -> None:
    """Wait for a velo-perf that connects, and measure with it, once."""
    name = domain or os.environ.get("VELO_DOMAIN") or "perf"
    print(f"listening in domain {name}; Ctrl-C ends it", flush=True)
    argv: list[str | Path] = [tree.find(PROGRAM), "--listen", *domain_words(domain)]
    for _ in helpers.stream(argv, has_end=False):
        pass
    print("measured; the other side has the figures")


def describe(sample: Sample) -> str:
    """A sample in a few words."""
    value = records.metric(sample.metric).show(sample.value)
    return f"{units.size(sample.size_bytes)}: {value}"


def jobs(args: argparse.Namespace) -> list[Job]:
    """The calls of velo-perf that a command line asks for."""
    cpus = ["--cpus", _joined(args.cpus)] if args.cpus else []
    if args.mode == "suite":
        return suite(cpus, args.quick)
    arguments = [args.mode, *cpus]
    if args.mode in ("latency", "rate", "bandwidth"):
        arguments += ["--pairs", str(args.pairs)]
        if args.sizes:
            arguments += ["--sizes", _joined(args.sizes)]
    if args.mode in ("rate", "bandwidth"):
        arguments += ["--threads", str(args.threads)]
    if args.mode == "latency" and args.senders:
        arguments += ["--senders", _joined(args.senders)]
    if getattr(args, "connect", False):
        arguments += ["--connect", *domain_words(getattr(args, "domain", None))]
    elif getattr(args, "domain", None):
        raise UsageError("--domain is where to meet: it goes with --connect or --listen")
    if args.mode in ("ring", "gups"):
        arguments += ["--procs", str(args.procs)]
    seconds = 5.0 if args.mode in ("limit", "ring", "gups") else 1.0
    return [Job(args.mode, (*arguments, *_effort(1000, seconds, args.quick)))]


def suite(cpus: Sequence[str], quick: bool = False) -> list[Job]:
    """Everything that the targets need, in about 90 seconds at most."""
    plan: list[tuple[str, list[str], int, float, int]] = [
        # title, what, batches, most seconds for a point, points
        ("limit", ["limit"], 500, 6.0, 1),
        ("latency by size", ["latency", "--sizes", "auto"], 1000, 0.45, 74),
        ("latency in place", ["latency", "--sizes", "8", "--in-place"], 1000, 1.0, 1),
        ("connected senders", ["latency", "--sizes", "8", "--senders", SENDERS], 2000, 2.0, 3),
        ("message rate", ["rate", "--sizes", RATE_SIZES], 1000, 1.5, 11),
        ("bandwidth", ["bandwidth"], 1000, 1.0, 13),
        ("ring of 8 processes", ["ring", "--procs", "8"], 500, 10.0, 1),
    ]
    return [
        Job(title, (*what, *cpus, *_effort(batches, seconds, quick)), seconds * points)
        for title, what, batches, seconds, points in plan
    ]


def _effort(batches: int, seconds: float, quick: bool) -> list[str]:
    """Options for how much to measure: so many batches, or as many as fit into the time."""
    time_ms = 1000 * seconds / (10 if quick else 1)
    return ["--batches", str(batches), "--time-ms", f"{time_ms:.0f}"]


def _joined(values: Iterable[int]) -> str:
    return ",".join(map(str, values))
