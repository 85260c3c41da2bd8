# SPDX-License-Identifier: Apache-2.0
"""`velo paper`: the figures of the VELO, EXTOLL and DIMMnet-2 papers, from the hardware.

experiments.py runs them; page.py says which figure shows what, and sets it beside what the paper
has.
"""

import argparse
import os
from pathlib import Path
from typing import Any

from velo import tree, units
from velo.arguments import checked
from velo.errors import VeloError, writing


def register(commands: Any) -> None:
    """The command line of `velo paper`."""
    parser = commands.add_parser(
        "paper",
        help="reproduce the papers' figures on the simulated hardware",
        description="Run the experiments of the VELO and EXTOLL papers on simulated nodes of the "
        "hardware, at the papers' clock and at newer ones, and make a page with every figure, ours "
        "beside theirs. Takes minutes; the same results, to the message, every time. The page "
        "also has what other commands measured, if they did: figure 5 of the DIMMnet-2 paper (make "
        "rtl-bench) and table 1 of the VELO paper (make rtl-synth).",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--only",
        metavar="LIST",
        help="run only these experiments, comma-separated: api latency, api stream, mpi latency, "
        "netpipe latency, netpipe stream, rate by size, rate by pairs, pingpong, gups by table, "
        "gups, predict",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="at the papers' clock only, few sizes and messages: to see that everything works",
    )
    parser.add_argument(
        "-j",
        "--jobs",
        metavar="N",
        type=checked(units.parse_count),
        default=len(os.sched_getaffinity(0)),
        help="how many run side by side (default: as many as there are CPUs); it changes no result",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE.html",
        help="the page to write (default: paper.html, in a checkout build/paper.html)",
    )  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write all values and hashes as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo paper`."""
    # Cost: matplotlib is slow to import, and only this command needs it.
    from papers import experiments, page, sensitivity
    from velo import display

    output = Path(args.output) if args.output else tree.output("paper.html")
    chosen = experiments.choose(args.only)
    console = display.Console()
    results = experiments.Results(cycles=experiments.read_cycles(), areas=experiments.read_areas())
    if not results.cycles and not args.quick:
        results.absent.append(
            "figure 4 of the VELO paper, figure 5 of DIMMnet-2's: run 'make rtl-bench' first"
        )
    if not page.area_rows(results.areas) and not args.quick:
        results.absent.append(
            f"table 1 of the VELO paper: run 'scripts/rtl synth {' '.join(page.AREAS)}' first"
        )
    calls: list[experiments.Call] = [*experiments.plan(chosen, args.quick)]
    if experiments.PREDICT in chosen:  # It takes longest, so it begins first.
        calls.insert(0, sensitivity.Prediction(args.quick))
    with display.Bar(console, total=len(calls)) as bar:
        bar.step(f"{len(calls)} runs, {args.jobs} side by side")
        measured = experiments.measure(results, calls, args.jobs)
        for done, (title, note) in enumerate(measured, start=1):
            bar.advance_to(done, note)
            bar.step(title)
    if not results.series and not results.prediction:
        raise VeloError("nothing could be run:\n" + "\n".join(results.absent))
    page.write(results, output)
    console.print(page.table(results))
    console.print(page.conclusion(results))
    for line in results.absent:
        console.print(f"absent: {line}", style="yellow")
    if args.json:
        with writing(args.json):
            Path(args.json).write_text(results.to_json(), encoding="utf-8")
    print(f"page written to {output}")
