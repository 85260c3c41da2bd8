#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What many cores of one machine bring: velo beside the MPIs that are there, in turns.

Pairs on 1, 2, 4, 8, ... pairs of cores, all others to one, and what all ranks do together:
all-to-all, allreduce, barrier, a halo exchange, RandomAccess. One rank a physical core, pinned;
nothing is installed or fetched, so it runs on a machine that was only given this folder, built.
An MPI that is not there is named, and left out.

Run it on a machine that does nothing else:

  python3 tools/bench/many_cores.py [--cores N] [--rounds N] [--json FILE]
"""

import argparse
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import rounds
from bench.bracket import Peers, measure_mpi
from bench.mpi_perf import Program
from bench.tasks import Task
from velo import units
from velo.arguments import checked
from velo.display import Console, Table
from velo.errors import UsageError, VeloError
from velo.measure import velo_perf
from velo.measure.mpi.stacks import STACKS, Stack
from velo.measure.velo_perf import Collected, Job
from velo.results import records
from velo.results.records import Record

ROUNDS = 5
TOPOLOGY = Path("/sys/devices/system/cpu")
# A program that measures longer would keep others from a second round within the time of the part.
TIME_MS = 400
SHORT_AND_LONG = ("--sizes", "8,4096,65536")


def physical_cores(allowed: Iterable[int], topology: Path = TOPOLOGY) -> list[int]:
    """One CPU of each physical core, package by package; all that are allowed if nobody says."""
    found: dict[tuple[int, str], int] = {}
    for cpu in sorted(allowed):
        folder = topology / f"cpu{cpu}" / "topology"
        try:
            package = int((folder / "physical_package_id").read_text(encoding="ascii"))
            siblings = (folder / "thread_siblings_list").read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            package, siblings = 0, str(cpu)
        found.setdefault((package, siblings), cpu)
    return [cpu for (package, _), cpu in sorted(found.items(), key=lambda it: (it[0][0], it[1]))]


def pair_counts(cores: int) -> list[int]:
    """1, 2, 4, ... pairs, as many as there are cores for."""
    return [1 << k for k in range(cores.bit_length()) if 2 << k <= cores]


def mpi_programs(cores: int) -> list[Program]:
    """What is measured of each MPI."""
    options = ("--batches", "20")
    power_of_two = 1 << (cores.bit_length() - 1)
    out = [
        Program("rate", 2 * pairs, TIME_MS, (*SHORT_AND_LONG, "--windows", "20", *options))
        for pairs in pair_counts(cores)
    ]
    out += [
        Program("incast", cores, TIME_MS, ("--sizes", "8,4096", "--windows", "20", *options)),
        Program("alltoall", cores, TIME_MS, (*SHORT_AND_LONG, *options)),
        Program("allreduce", cores, TIME_MS, options),
        Program("barrier", cores, TIME_MS, options),
        Program("halo", cores, TIME_MS, (*SHORT_AND_LONG, *options)),
        Program("gups", power_of_two, 2 * TIME_MS, ("--batches", "3")),
    ]
    return out


def native_jobs(cpus: Sequence[int]) -> list[Job]:
    """Pairs and RandomAccess without an MPI."""
    common = ("--cpus", ",".join(map(str, cpus)), "--time-ms", str(TIME_MS))
    out = [
        Job(f"velo rate, {pairs} pairs", ("rate", "--sizes", "8,4096", "--pairs", str(pairs),
                                          *common, "--batches", "40"))
        for pairs in pair_counts(len(cpus))
    ]  # fmt: skip
    out.append(Job(f"velo RandomAccess, {len(cpus)} processes",
                   ("gups", "--procs", str(len(cpus)), *common)))  # fmt: skip
    return out


def why_absent(stack: Stack, cpus: Sequence[int]) -> str | None:
    """Why an MPI cannot be measured; nothing is installed to mend that."""
    if not stack.build.is_installed:
        return f"its pinned release is not in {stack.build.folder}; `make bench` installs it"
    return stack.missing(cpus)


def tasks(cpus: Sequence[int], velo: Collected, peers: Peers, configs: dict[str, str],
          absent: dict[str, str]) -> list[Task]:  # fmt: skip
    """Everything that runs once a round."""
    words = frozenset({"many-cores"})
    out = [
        Task(job.title, words, 1.0, partial(velo_perf.run_job, job, velo, lambda *_: None))
        for job in native_jobs(cpus)
    ]
    for stack in STACKS:
        reason = why_absent(stack, cpus[:2])
        if reason:
            absent[stack.name] = reason
            continue
        configs[stack.name] = stack.config
        out += [
            Task(f"{stack.name}, {program.title}", words, 1.0 + program.time_ms / 1e3,
                 partial(measure_mpi, stack, program, cpus[:program.ranks], False, peers))
            for program in mpi_programs(len(cpus))
        ]  # fmt: skip
    return out


def table(found: Sequence[Record]) -> Table:
    """A line for each figure of MPI: every stack, and velo's best beside the best of the others."""
    mpi = [r for r in found if r.mode.startswith("mpi ")]
    stacks = [s.name for s in STACKS if any(r.stack == s.name for r in mpi)]
    out = Table(
        "<figure", ">ranks", ">bytes", *(f">{name}" for name in stacks), ">velo / best other"
    )
    figures = sorted({(r.mode, r.processes, r.size_bytes, r.metric) for r in mpi})
    for mode, ranks, size, name in figures:
        values: dict[str, float] = {}
        for stack in stacks:
            same = [r for r in mpi if (r.stack, r.mode, r.processes, r.size_bytes, r.metric)
                    == (stack, mode, ranks, size, name)]  # fmt: skip
            if same:
                values[stack] = max(same, key=lambda r: r.samples).value
        metric = records.metric(name)
        best = min if metric.lower_is_better else max
        ours = [value for stack, value in values.items() if stack.startswith("velo ")]
        others = [value for stack, value in values.items() if not stack.startswith("velo ")]
        ratio = f"{best(ours) / best(others):.2f}" if ours and others else "–"
        shown = (metric.show(values[stack]) if stack in values else "–" for stack in stacks)
        out.add_row(mode.removeprefix("mpi "), str(ranks), str(size), *shown, ratio)
    return out


def growth(found: Sequence[Record]) -> Table:
    """Rates of pairs of velo's own library: all together, and beside so many times one pair."""
    rates: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in found:
        if r.mode == "rate" and r.metric == "rate_msgs_per_s":
            rates[r.size_bytes][r.pairs].append(r.value)
    out = Table("<velo, pairs", ">bytes", ">messages/s", ">of pairs x one pair")
    for size, values in sorted(rates.items()):
        by_pairs = {pairs: statistics.median(same) for pairs, same in sorted(values.items())}
        for pairs, value in by_pairs.items():
            part = f"{value / (pairs * by_pairs[1]):.2f}" if 1 in by_pairs else "–"
            out.add_row(str(pairs), str(size), units.rate(value), part)
    return out


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    count = checked(units.parse_count)
    parser.add_argument("--cores", type=count, help="physical cores to use (default: all)")
    minutes = rounds.TIME_S["many-cores"] / 60
    parser.add_argument(
        "--rounds",
        type=count,
        default=ROUNDS,
        help=f"at most so many; none begins that would end after {minutes:.0f} minutes ({ROUNDS})",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write records there, too")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the tables."""
    args = parse(argv)
    console = Console()
    cpus = physical_cores(os.sched_getaffinity(0))
    if (args.cores or 2) > len(cpus) or len(cpus) < 2:
        raise UsageError(f"this machine lends {len(cpus)} physical cores, not {args.cores or 2}")
    cpus = cpus[: args.cores]
    if len(cpus) < 2:
        raise UsageError("--cores 1 leaves nobody to talk to; take 2 or more")
    velo, peers = Collected(), Peers()
    configs: dict[str, str] = {}
    absent: dict[str, str] = {}
    chosen = tasks(cpus, velo, peers, configs, absent)
    for stack, reason in absent.items():
        console.print(f"absent: {stack}: {' '.join(reason.split())}", style="yellow")
    rounds.run(chosen, args.rounds, peers, console)
    found = rounds.results(velo, peers, configs, absent)
    if args.json:
        records.save(args.json, found)
    console.print(table(found))
    console.print(growth(found))
    rounds.show_failures(peers, console)
    if not found:
        raise VeloError("nothing could be measured; the lines above say why")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except VeloError as error:
        print(f"many_cores: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
