# SPDX-License-Identifier: Apache-2.0
"""`velo info`: what velo-info says about library, machine and ports, for people."""

import argparse
import contextlib
import json
from pathlib import Path
from typing import Any

from velo import helpers
from velo.errors import VeloError
from velo.runtime import clean
from velo.runtime.domain import add_domain, domain_words

PROGRAM = "velo-info"


def register(commands: Any) -> None:
    """The command line of `velo info`."""
    parser = commands.add_parser(
        "info",
        help="show engine, machine, segments and versions",
        description="Show the library's version, its engine, the machine and the shared-memory "
        "segments of a domain.",
        allow_abbrev=False,
    )
    which = parser.add_mutually_exclusive_group()
    add_domain(which)
    which.add_argument(
        "--all",
        action="store_true",
        help="list all domains: segments of which the owner lives, those of the dead, those of "
        "other users that may not be looked at, and what velo clean would remove",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo info`."""
    found = look(args.domain)
    if args.all:
        found["domains"] = clean.look()
    if args.json:
        print(json.dumps(found, indent=1))
        return
    # Cost: rich is slow to import, and only what is shown needs it.
    from velo import display
    from velo.runtime import tables

    console = display.console()
    console.print(tables.facts_table(found))
    if args.all:
        console.print()
        console.print(tables.domains_table(found["domains"]) if found["domains"] else "no domain")
    elif found["ports"]:
        console.print()
        console.print(tables.ports_table(found))


def look(domain: str | None) -> dict[str, Any]:
    """One look at the domain."""
    argv: list[str | Path] = [helpers.find(PROGRAM), "--json", *domain_words(domain)]
    with contextlib.closing(helpers.stream(argv, has_end=False)) as lines:
        found = next(lines, None)
        if found is None:
            raise VeloError(f"{PROGRAM} said nothing")
        for _ in lines:  # To the end, so that its exit code is checked.
            pass
    return found
