# SPDX-License-Identifier: Apache-2.0
"""`velo clean`: take away what dead processes left in shared memory, and say what was found."""

import argparse
import json
from typing import Any

from velo import helpers, units
from velo.errors import VeloError
from velo.runtime.domain import domain_words

PROGRAM = "velo-clean"
Domain = dict[str, Any]


def look(domain: str | None = None, removes: bool = False) -> list[Domain]:
    """What there is in each domain, or in one, after its dead are taken away if that is wanted."""
    argv = [str(helpers.find(PROGRAM)), *domain_words(domain)]
    said = helpers.output([*argv, *([] if removes else ["--dry-run"])], None)
    return json.loads(said)["domains"]


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
    found = look(args.domain, removes=not args.dry_run)
    if args.json:
        print(json.dumps({"dry_run": args.dry_run, "domains": found}, indent=1))
    else:
        lines = [line for domain in found if (line := describe(domain, args.dry_run))]
        print("\n".join(lines or ["nothing to clean"]))
    if errors := [domain["error"] for domain in found if domain["error"]]:
        raise VeloError(errors[0])


def describe(domain: Domain, dry_run: bool) -> str:
    """What is to be said of one domain; nothing where nobody in it is dead."""
    if domain["dead"] == 0:
        return ""
    parts = []
    gone = domain["removable"] if dry_run else domain["removed"]
    if gone:
        size = units.short(domain["removable_bytes"])
        parts.append(f"{'would remove' if dry_run else 'removed'} {segments(gone)}, {size}B")
    left = domain["dead"] - gone
    if left:
        parts.append(f"left {segments(left)} of the dead: {why_left(domain)}")
    return f"domain {domain['domain']}: {'; '.join(parts)}"


def why_left(domain: Domain) -> str:
    """Why dead segments of a domain are still there."""
    if domain["error"]:
        return "they cannot be removed"
    if domain["alive"] and not domain["removable"]:
        return (
            f"{domain['alive']} live there, and learn by the names who is dead; "
            f"--domain {domain['domain']} removes them"
        )
    if domain["unknown"] and not domain["removable"]:
        return f"{domain['unknown']} of other users there may be alive"
    return "they belong to other users"


def segments(count: int) -> str:
    """So many segments, in words."""
    return f"{count} segment{'' if count == 1 else 's'}"
