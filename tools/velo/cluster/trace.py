# SPDX-License-Identifier: Apache-2.0
"""`velo trace`: what a recorded run of the simulated hardware did, as a page or for other tools."""

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from velo import units
from velo.arguments import checked
from velo.errors import UsageError, VeloError, writing


def register(commands: Any) -> None:
    """The command line of `velo trace`."""
    parser = commands.add_parser(
        "trace",
        help="show what a recorded run of the simulated hardware did",
        description="Make one self-contained HTML page of what velo sim --record FILE wrote: "
        "latency, messages per second, use of each link and where it was hot. Or give it to other "
        "tools: to Perfetto as a timeline, to velo-tlm as a trace that it replays, to those "
        "that read OTF2.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="written by velo sim --record")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.html",
        help="the page to write (default: the recording's name with .html, if no other output "
        "is asked for)",
    )
    parser.add_argument(
        "--perfetto",
        metavar="FILE.json",
        help="write a timeline for ui.perfetto.dev: two tracks a context, a slice a message at "
        "either end and an arrow between them, operations on remote memory, what links carry; some "
        "800 bytes a message",
    )
    parser.add_argument(
        "--tlm",
        metavar="FILE.trace",
        help="write messages and operations as velo-tlm --trace takes them, and say how to replay "
        "them",
    )
    parser.add_argument(
        "--otf2",
        metavar="FOLDER",
        help="write messages and operations as an archive of OTF2 into a new folder, for Vampir, "
        "otf2-print and others; needs the Python package otf2",
    )
    for end, text in (("from", "from this virtual time on"), ("to", "before this virtual time")):
        parser.add_argument(
            f"--{end}-us",
            metavar="US",
            type=checked(units.parse_us),
            help=f"only messages stored {text}, in microseconds",
        )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo trace`."""
    # Cost: numpy and matplotlib are slow to import, and only this command needs them.
    from velo.cluster import archive, recording, timeline, trace_page

    source = Path(args.file)
    asked = (args.output, args.perfetto, args.tlm, args.otf2)
    page = args.output or (None if any(asked) else source.with_suffix(".html"))
    for name in (page, *asked):
        if name and Path(name) == source:
            raise UsageError(f"{name} is the recording; name another file")
    recorded = recording.load(source)
    begin, end = (args.from_us or 0) * recording.PS_PER_US, float(recording.NEVER)
    if args.to_us is not None:
        end = args.to_us * recording.PS_PER_US
    if (args.from_us, args.to_us) != (None, None):
        recorded = recorded.between(begin, end)
    if not len(recorded.messages):
        raise VeloError(f"{source} has no message that was stored in that time and arrived")
    print(trace_page.summary(recorded))
    if page:
        text = trace_page.render(recorded, source.name)
        _write(Path(page), lambda file: file.write(text))
    if args.perfetto:
        _write(Path(args.perfetto), lambda file: timeline.write_perfetto(recorded, file))
        print("open it in https://ui.perfetto.dev")
    if args.tlm:
        _write(Path(args.tlm), lambda file: timeline.write_tlm(recorded, file, args.tlm))
        print(f"replay it with: {timeline.tlm_command(recorded, shlex.quote(args.tlm))}")
    if args.otf2:
        archive.write(recorded, Path(args.otf2))
        print(f"{args.otf2}/traces.otf2 written")


def _write(path: Path, write: Callable[[TextIO], object]) -> None:
    with writing(path), path.open("w", encoding="utf-8") as file:
        write(file)
    print(f"{path} written")
