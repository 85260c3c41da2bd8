# SPDX-License-Identifier: Apache-2.0
"""The rounds of `velo bench`, and what is shown at their end."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bench import aims
from bench.bracket import Peers
from bench.tasks import Task
from velo import display
from velo.display import Console
from velo.errors import VeloError
from velo.measure.velo_perf import Collected
from velo.report import mpi_report, python_report, tables
from velo.results import machine, records
from velo.results.figures import WHOLE_RUNS, main_class
from velo.results.records import FAR, NEAR

# A task that failed so often is left out of the rounds that remain.
FAILURES_MAX = 2
# The most time that the rounds of each part may take.
TIME_S = {"native": 600.0, "mpi": 840.0, "python": 120.0, "many-cores": 480.0}


def run(tasks: Sequence[Task], rounds: int, peers: Peers, console: Console) -> None:
    """All rounds; the order of each is random, so that no stack always follows the same other.

    A round that would not end in the time that the parts may take is not begun.
    """
    time_s = sum(t for part, t in TIME_S.items() if any(part in task.words for task in tasks))
    begin_s = time.monotonic()
    total = rounds * sum(task.weight_s for task in tasks)
    failed: Counter[str] = Counter()
    done = 0.0
    with display.Bar(console, total=total) as bar:
        for number in range(1, rounds + 1):
            spent_s = time.monotonic() - begin_s
            if number > 1 and spent_s * number / (number - 1) > time_s:
                console.print(f"{number - 1} rounds took {spent_s / 60:.0f} min; no more fits")
                return
            bar.step(f"round {number} of {rounds}")
            for task in random.sample(tasks, len(tasks)):
                bar.advance_to(done, task.title)
                done += task.weight_s
                if failed[task.title] >= FAILURES_MAX:
                    continue
                try:
                    task.run()
                except VeloError as error:
                    failed[task.title] += 1
                    peers.failures[task.title] = str(error)


def results(
    velo: Collected, peers: Peers, configs: dict[str, str], absent: dict[str, str]
) -> list[records.Record]:
    """The records of all rounds; they say what is absent or failed, and how each stack was run."""
    facts = machine.new_run(velo.version)
    missing = absent | {f"{what} (failed)": why for what, why in peers.failures.items()}
    lines = [f"{what}: {' '.join(why.split())}" for what, why in missing.items()]
    facts = replace(facts, absent="\n".join(lines))
    found = records.summarize([*velo.samples, *peers.samples], facts)
    return [replace(r, config=configs.get(r.stack, "")) for r in found]


def show(found: Sequence[records.Record], velo: Collected, peers: Peers, console: Console) -> None:
    """Everything that the user should see at the end."""
    native = [
        r
        for r in found
        if not r.mode.startswith(("mpi ", records.PYTHON, *records.BESIDE))
        and r.mode not in WHOLE_RUNS
    ]
    if native:
        console.print(tables.result_table(native))
    hop = main_class(found)
    for grid in (*mpi_report.grids(found, hop), *python_report.grids(found, hop)):
        console.print(mpi_report.table(grid))
    hops = {hop: sum(r.samples for r in found if r.hop == hop) for hop in (NEAR, FAR)}
    console.print(
        f"{hops[NEAR]:,} batches near, {hops[FAR]:,} far; left out because the cores moved:"
        f" {velo.dropped} batches of velo, {peers.dropped} of MPIs, {peers.moved} runs of others."
    )
    show_failures(peers, console)
    aims.show(found, console)


def show_failures(peers: Peers, console: Console) -> None:
    """What ran and went wrong; the others went on."""
    for what, why in peers.failures.items():
        console.print(f"failed: {what}: {why}", style="red")
