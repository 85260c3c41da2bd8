# SPDX-License-Identifier: Apache-2.0
"""`velo paper`: the figures of the VELO, EXTOLL and DIMMnet-2 papers, from the hardware.

experiments.py runs them; page.py says which figure shows what, and sets it beside what the paper
has.
"""

import argparse
from pathlib import Path
from typing import Any

from velo import tree
from velo.errors import VeloError, writing


def register(commands: Any) -> None:
    """The command line of `velo paper`."""
    parser = commands.add_parser(
        "paper",
        help="reproduce the papers' figures on the simulated hardware",
        description="Run the experiments of the VELO and EXTOLL papers on simulated nodes of the "
        "hardware, at the papers' clock and at newer ones, and make a page with every figure, ours "
        "beside theirs. Some ten minutes; the same results, to the message, every time. The page "
        "also has figure 5 of the DIMMnet-2 paper, of which make rtl-bench measures the boards.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--only",
        metavar="LIST",
        help="run only these experiments, comma-separated: api latency, api stream, mpi latency, "
        "netpipe latency, netpipe stream, rate by size, rate by pairs, gups",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="at the papers' clock only, few sizes and messages: to see that everything works",
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
    from papers import apart, experiments, page
    from velo import display

    output = Path(args.output) if args.output else tree.output("paper.html")
    chosen = experiments.choose(args.only)
    console = display.Console()
    results = experiments.Results(cycles=experiments.read_cycles())
    if not results.cycles and not args.quick:
        results.absent.append(
            "figure 4 of the VELO paper, figure 5 of DIMMnet-2's: run 'make rtl-bench' first"
        )
    jobs = list(experiments.plan(chosen, args.quick))
    with display.Bar(console, total=len(jobs)) as bar:
        for done, (experiment, point, ranks) in enumerate(jobs):
            bar.step(f"{experiment.name}, {point.name}, {ranks} ranks")
            try:
                note = experiments.run(results, experiment, point, ranks, args.quick)
            except VeloError as error:
                results.absent.append(f"{experiment.name}, {point.name}: {apart.no_model(error)}")
                note = "not built"
            bar.advance_to(done + 1, note)
    if not results.series:
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
