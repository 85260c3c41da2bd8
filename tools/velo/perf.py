# SPDX-License-Identifier: Apache-2.0
"""`velo perf`: run velo-perf, follow its progress, summarize its batches, show the result."""

import argparse
import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from velo import display, helpers, units
from velo.display import Bar
from velo.errors import VeloError
from velo.results import machine, mpi_targets, records, targets
from velo.results.records import FAR, NEAR, Record, Run, Sample

PROGRAM = "velo-perf"
MODES = ("limit", "latency", "senders", "rate", "bandwidth", "ring", "gups", "mpi latency",
         "mpi rate", "mpi matching", "mpi allreduce", "mpi gups", "hpcc", "netpipe")  # fmt: skip
# Whose figures depend on how many ranks there are.
RANKS_VARY = ("gups", "mpi gups", "mpi allreduce", "hpcc")
METRIC_ORDER = {name: i for i, name in enumerate(records.METRICS)}
# What the suite measures.
SENDERS = "1,64,512"
SIZES_SHOWN = (0, 8, 32, 64, 256, 1024, 4096, 16384)
RATE_SIZES = "8,32,56,64,128,256,512,1024,2048,4096"


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
        senders do: so what was interleaved in one run stays apart from other runs.
        """
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
    with contextlib.closing(helpers.stream([helpers.find(PROGRAM), *job.arguments])) as lines:
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
        ("connected senders", ["latency", "--sizes", "8", "--senders", SENDERS], 2000, 2.0, 3),
        ("message rate", ["rate", "--sizes", RATE_SIZES], 1000, 1.5, 10),
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


def command(args: argparse.Namespace) -> None:
    """`velo perf`."""
    console = display.console()
    collected = run_jobs(jobs(args), console)
    found = collected.records(machine.new_run())
    console.print(result_table(main_points(found) if args.mode == "suite" else found))
    if collected.dropped:
        console.print(f"{collected.dropped} batches left out: the cores moved during them.")
    if args.mode == "suite":
        show_targets(found, console)
    if args.json:
        records.save(Path(args.json), found)
        console.print(f"{len(found)} records written to {args.json}", soft_wrap=True)


def result_table(found: Sequence[Record]) -> Table:
    """One row for each thing measured; near figures where there are any."""
    table = Table(header_style="bold", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("what", "size", "value", "limit", "ratio", "by batch", "class", "near/far"):
        left = name in ("what", "class")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    groups: dict[tuple[object, ...], dict[str, Record]] = {}
    for r in found:
        groups.setdefault(row_key(r), {})[r.hop] = r
    for _, both in sorted(groups.items(), key=lambda item: row_order(item[0])):
        near, far = both.get(NEAR), both.get(FAR)
        shown = (
            near
            if near and (not far or near.samples >= min(targets.BATCHES_MIN, far.samples))
            else far
        )
        assert shown
        table.add_row(
            what(shown),
            units.size(shown.size_bytes),
            shown.show(shown.value),
            shown.show_limit(),
            shown.show_ratio(),
            quartiles(shown),
            shown.hop,
            f"{near.samples if near else 0}/{far.samples if far else 0}",
        )
    return table


def quartiles(record: Record) -> str:
    """Quartiles of the ratios of the single batches: `1.10 1.13 1.19`."""
    three = (record.ratio_q1, record.ratio_median, record.ratio_q3)
    unknown = math.isnan(record.ratio_q1) or record.metric in records.WITHOUT_LIMIT
    return "–" if unknown else " ".join(f"{q:.2f}" for q in three)


def main_points(found: Iterable[Record]) -> list[Record]:
    """What fits on a screen: of the latencies by size, those of a few sizes."""
    return [r for r in found if r.mode != "latency" or r.size_bytes in SIZES_SHOWN]


def what(record: Record) -> str:
    """What a record measures, in a few words."""
    name = records.metric(record.metric).label
    parts = [name if record.stack == records.VELO else f"{record.stack} {name}"]
    if record.mode == "limit":
        return f"limit: {records.LIMITS.get(record.limit_name, record.limit_name)}"
    if record.mode == "ring":
        parts.append(f"ring of {record.processes}")
    if record.pairs > 1:
        parts.append(f"{record.pairs} pairs")
    if record.threads > 1:
        parts.append(f"{record.threads} threads")
    if record.mode == "senders":
        parts.append(f"1 of {record.senders} senders")
    if record.posted:
        parts.append(f"{record.posted:,} posted")
    if record.mode in ("hpcc", "netpipe"):
        parts.append("HPCC" if record.mode == "hpcc" else "NetPIPE")
    if record.mode in RANKS_VARY:
        parts.append(f"{record.processes} ranks")
    return ", ".join(parts)


def row_key(r: Record) -> tuple[object, ...]:
    """What is the same in the near and the far record of one thing."""
    return (r.stack, r.mode, r.metric, r.limit_name, r.pairs, r.threads, r.senders, r.processes,
            r.posted, r.size_bytes)  # fmt: skip


def row_order(key: tuple[object, ...]) -> tuple[object, ...]:
    """By mode and metric; velo before its peers."""
    stack, mode, metric, *rest = key
    return (
        MODES.index(str(mode)) if mode in MODES else len(MODES),
        METRIC_ORDER.get(str(metric), len(METRIC_ORDER)),
        stack != records.VELO,
        stack,
        *rest,
    )


def show_targets(found: Sequence[Record], console: Console) -> None:
    """The tables of targets: target, measured, met or missed."""
    hop = targets.main_class(found)
    for _, outcomes in target_tables(found, hop):
        _show_outcomes(outcomes, hop, console)


def target_tables(found: Sequence[Record], hop: str) -> list[tuple[str, list[targets.Outcome]]]:
    """The tables of targets of what was measured, each with its title."""
    has_mpi = mpi_targets.has_records(found)
    out = []
    if any(r.stack == records.VELO and r.mode != "gups" for r in found) or not has_mpi:
        out.append(("Messages", targets.judge(found, hop)))
    if has_mpi:
        out.append(("MPI", mpi_targets.judge(found, hop)))
    return out


def _show_outcomes(outcomes: Sequence[targets.Outcome], hop: str, console: Console) -> None:
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column(f"target ({hop})", no_wrap=True)
    table.add_column("wanted", justify="right", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("from")
    styles = {True: "green", False: "red", None: "dim"}
    for outcome in outcomes:
        verdict = f"[{styles[outcome.met]}]{outcome.verdict}[/]"
        table.add_row(
            outcome.target.what, outcome.target.wanted, outcome.ratio, verdict, outcome.detail
        )
    console.print(table)
