# SPDX-License-Identifier: Apache-2.0
"""`velo replay`: what the ranks of a trace did, as a program that does it again."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from velo import tree
from velo.errors import UsageError, making, writing


def register(commands: Any) -> None:
    """The command line of `velo replay`."""
    parser = commands.add_parser(
        "replay",
        help="replay a trace of an MPI program on the simulated hardware",
        description="Turn an archive of OTF2, as Score-P writes it, into scripts, one a rank. "
        "velo-replay carries them out as an MPI program: the same messages and collective "
        "operations, and between them the time that the ranks computed. Start it with velo "
        "sim, on any network and with any host; the command is printed. Collective operations "
        "whose blocks differ get their mean; of what cannot be replayed the first event is named.",
        allow_abbrev=False,
    )
    parser.add_argument("archive", metavar="ARCHIVE.otf2", help="the anchor file, traces.otf2")
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help="a new folder for the scripts"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo replay`."""
    # Cost: only this command needs it.
    from velo.cluster.replay_script import read, script

    folder = Path(args.output)
    if folder.exists():
        raise UsageError(f"{folder} is there; the scripts go into a new folder")
    trace = read(Path(args.archive))
    with making(folder), writing(folder):
        for rank in trace.ranks:
            (folder / f"rank.{rank.number}").write_text(script(trace, rank), encoding="utf-8")
    print(f"{len(trace.ranks)} ranks, {trace.told()}; the trace took {trace.took_ns / 1000:.3f} us")
    if trace.irregular:
        names = ", ".join(f"{count} {name.lower()}" for name, count in trace.irregular.items())
        print(f"with the mean of their blocks: {names}")
    program = shlex.join([str(tree.find("velo-replay")), str(folder)])
    ranks = len(trace.ranks)
    network = f"--topology ring:{ranks}" if ranks > 2 else f"-n {ranks}"
    print(f"replay it with: velo sim {network} -- {program}")
