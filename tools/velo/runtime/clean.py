# SPDX-License-Identifier: Apache-2.0
"""`velo clean`: take away what dead processes left in shared memory, and say what was found."""

import argparse
import json
from typing import Any

from velo.errors import VeloError


def register(commands: Any) -> None:
    """The command line of `velo clean`."""
    parser = commands.add_parser(
        "clean",
        help="take away what dead processes left in shared memory",
        description="Take away the segments that dead processes of this user left in domains in "
        "which nobody lives, and say what was found. Every program that opens a port does the same "
        "when it starts. Where a port of a domain lives the dead stay: by their names it learns "
        "that they are dead. Ends with exit code 0 whether or not there was anything to remove, "
        "with 1 if something could not be removed.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--domain",
        metavar="NAME",
        help="only this domain, and its dead also where others of it live; to connect to one of "
        "these is then to wait for it to be opened again (default: all domains)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be removed, and remove nothing"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo clean`."""
    # Cost: subprocess is slow to import.
    from velo.runtime.leftovers import describe, look

    found = look(args.domain, removes=not args.dry_run)
    if args.json:
        print(json.dumps({"dry_run": args.dry_run, "domains": found}, indent=1))
    else:
        lines = [line for domain in found if (line := describe(domain, args.dry_run))]
        print("\n".join(lines or ["nothing to clean"]))
    if errors := [domain["error"] for domain in found if domain["error"]]:
        raise VeloError(errors[0])
