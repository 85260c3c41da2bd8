# SPDX-License-Identifier: Apache-2.0
"""What the ports of a domain did between two looks of velo-info."""

from collections.abc import Iterator
from typing import Any

COUNTERS = ("rx_msgs", "rx_bytes", "tx_msgs", "tx_bytes")
Rates = dict[str, float]


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
