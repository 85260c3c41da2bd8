# SPDX-License-Identifier: Apache-2.0
"""`velo info`: what velo-info says about library, machine, ports and rings, for people."""

import argparse
import json
import os
from typing import Any

from velo.runtime.domain import add_domain, add_peers


def register(commands: Any) -> None:
    """The command line of `velo info`."""
    parser = commands.add_parser(
        "info",
        help="show engine, machine, MPIs, segments and versions",
        description="Show the library's version, its engine, the machine, each MPI in PATH and "
        "which part of velo serves it, and the ports and rings that are open in a domain.",
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
    add_peers(parser)
    which.add_argument(
        "--config",
        action="store_true",
        help="list every environment variable that velo reads: its value, or what holds without "
        "one, and what it means; name those that look like velo's and that nothing reads",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo info`."""
    # Cost: subprocess is slow to import.
    from velo import display
    from velo.runtime import environment, leftovers, ports, served, tables

    if args.config:
        if args.json:
            print(json.dumps(environment.to_json(), indent=1))
        else:
            display.Console().print(*tables.config(os.environ))
        return
    found = ports.look(args.domain)
    if args.all:
        found["domains"] = leftovers.look()
    mpis = list(served.look())
    if args.json:
        found["mpis"] = [mpi.to_json() for mpi in mpis]
        print(json.dumps(found, indent=1))
        return
    console = display.Console()
    console.print(tables.facts_table(found))
    console.print()
    for line in tables.mpi_lines(mpis):
        console.print(line)
    if args.all:
        console.print()
        console.print(tables.domains_table(found["domains"]) if found["domains"] else "no domain")
        return
    if found["ports"]:
        console.print()
        console.print(tables.ports_table(found))
        if args.peers:
            console.print()
            console.print(tables.peers_table(found))
    if found["rings"]:
        console.print()
        console.print(tables.rings_table(found))
