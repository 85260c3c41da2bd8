# SPDX-License-Identifier: Apache-2.0
"""What velo-info says of the ports of a domain, and what they did between two looks."""

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from velo import helpers, tree
from velo.errors import VeloError
from velo.runtime.domain import domain_words

PROGRAM = "velo-info"
COUNTERS = ("rx_msgs", "rx_bytes", "tx_msgs", "tx_bytes")
Rates = dict[str, float]


def look(domain: str | None) -> dict[str, Any]:
    """One look at the domain."""
    argv: list[str | Path] = [tree.find(PROGRAM), "--json", *domain_words(domain)]
    with contextlib.closing(helpers.stream(argv, has_end=False)) as lines:
        found = next(lines, None)
        if found is None:
            raise VeloError(f"{PROGRAM} said nothing")
        for _ in lines:  # To the end, so that its exit code is checked.
            pass
    return found


def watch(domain: str | None, interval_s: float) -> Generator[dict[str, Any], None, None]:
    """Looks at a domain, without end; close it to end velo-info."""
    every = f"{interval_s * 1000:.0f}"
    argv: list[str | Path] = [tree.find(PROGRAM), "--watch-ms", every, *domain_words(domain)]
    return helpers.stream(argv, has_end=False)


def with_rates(
    looks: Iterator[dict[str, Any]],
) -> Iterator[tuple[dict[str, Any], dict[int, Rates]]]:
    """Each look with the rates since the one before."""
    before: dict[str, Any] | None = None
    for found in looks:
        yield found, rates(before, found) if before else {}
        before = found


def rates(before: dict[str, Any], after: dict[str, Any]) -> dict[int, Rates]:
    """Per port id, what its counters grew by in a second between two looks.

    A port that was opened anew in between, by another process or with counters that fell, has none.
    """
    seconds = (after["time_ns"] - before["time_ns"]) / 1e9
    old = {(port["id"], port["pid"]): port["counters"] for port in before["ports"]}
    out = {}
    for port in after["ports"]:
        past, now = old.get((port["id"], port["pid"])), port["counters"]
        if past and seconds > 0 and all(now[name] >= past[name] for name in COUNTERS):
            out[port["id"]] = {name: (now[name] - past[name]) / seconds for name in COUNTERS}
    return out
