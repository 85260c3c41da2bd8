# SPDX-License-Identifier: Apache-2.0
"""Waits are cut into slices.

A wait in the library ends when a signal arrives in its own thread while it sleeps. A handler that
Python is to run may have come a moment before, or to another thread. Between two slices Python runs
it, so Ctrl-C works in any wait, and close() need not be told of waits that nobody can interrupt.
"""

from time import monotonic_ns

from velo._velo import lib

# Receiving is woken by close(); a second is how late a signal to another thread is noticed.
SLICE_NS = 1_000_000_000
# A sender that waits for room is not woken by close().
SEND_SLICE_NS = 100_000_000
# How often a wait looks that nothing wakes: for the end of another call, for a place in a queue.
LOOK_S = 0.001
# The last time that a 64-bit clock has.
LAST_NS = 2**63 - 1


def nanoseconds(seconds: float) -> int:
    """A limit as the library counts it, at most LAST_NS; negative ones are over already: 0."""
    if seconds > 0:
        return int(seconds * 1e9) if seconds < LAST_NS / 1e9 else LAST_NS
    if seconds <= 0:
        return 0
    raise ValueError("a time limit is not a number (NaN); give seconds, or None for no limit")


def deadline(timeout: float | None) -> int | None:
    """When a wait of so many seconds, begun now, is over; None: never."""
    return None if timeout is None else min(monotonic_ns() + nanoseconds(timeout), LAST_NS)


def left_ns(end: int | None, slice_ns: int = SLICE_NS) -> int:
    """How long the library may wait next."""
    if end is None:
        return slice_ns
    left = end - monotonic_ns()
    # Cost: min() and max() would take as long as the rest.
    return slice_ns if left > slice_ns else left if left > 0 else 0


def is_over(end: int | None) -> bool:
    """Has the time run out?"""
    return end is not None and monotonic_ns() >= end


def may_still_come(status: int, end: int | None) -> bool:
    """After connecting to a peer in vain: is it to be tried again, as the peer may still come?"""
    if status == lib.VELO_ERR_INTERRUPTED:
        return True
    return status in (lib.VELO_ERR_NO_PEER, lib.VELO_TIMEOUT) and not is_over(end)
