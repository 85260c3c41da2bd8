# SPDX-License-Identifier: Apache-2.0
"""What dead processes left in shared memory, as velo-clean finds it."""

import json
from typing import Any

from velo import helpers, tree, units
from velo.runtime.domain import domain_words

PROGRAM = "velo-clean"
Domain = dict[str, Any]


def look(domain: str | None = None, removes: bool = False) -> list[Domain]:
    """What there is in each domain, or in one, after its dead are taken away if that is wanted."""
    argv = [str(tree.find(PROGRAM)), *domain_words(domain)]
    said = helpers.output([*argv, *([] if removes else ["--dry-run"])], None)
    domains: list[Domain] = json.loads(said)["domains"]
    return domains


def describe(domain: Domain, dry_run: bool) -> str:
    """A sentence on one domain; nothing if no process in it is dead."""
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
