# SPDX-License-Identifier: Apache-2.0
"""What the native engine is to reach, and whether a set of records reaches it.

Every target is a ratio, to the physical limit measured around the same batches or to another figure
of the same run, because absolute times belong to a machine and not to the code.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from velo import units
from velo.results.figures import Figures
from velo.results.records import IN_PLACE, NEAR, Record


@dataclass(frozen=True)
class Measured:
    """A ratio, and the two figures that it comes from in words."""

    ratio: float
    detail: str


# Of the figures that the target is about: Figures here, MpiFigures in mpi_targets.
Measure = Callable[[Any], Measured | None]


@dataclass(frozen=True)
class Target:
    """One row of the table."""

    what: str
    bound: float
    at_most: bool
    measure: Measure
    hop: str | None = None
    """The class that the row is about; None: the one that the table shows."""
    bare: Measure | None = None
    """The same ratio of the best bare program for this work: where the floor is."""

    @property
    def wanted(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.bound:g}"


@dataclass(frozen=True)
class Outcome:
    """A target and what was measured; `measured` is None when the records do not tell."""

    target: Target
    measured: Measured | None
    bare: Measured | None = None

    @property
    def met(self) -> bool | None:
        if self.measured is None:
            return None
        if self.target.at_most:
            return self.measured.ratio <= self.target.bound
        return self.measured.ratio >= self.target.bound

    @property
    def verdict(self) -> str:
        return {True: "met", False: "missed", None: "not measured"}[self.met]

    @property
    def ratio(self) -> str:
        return f"{self.measured.ratio:.2f}" if self.measured else "–"

    @property
    def bare_ratio(self) -> str:
        return f"{self.bare.ratio:.2f}" if self.bare else ""

    @property
    def detail(self) -> str:
        return self.measured.detail if self.measured else ""


def _ratio(mode: str, size_bytes: int | None = None) -> Measure:
    """A record's ratio to its own limit."""

    def measure(figures: Figures) -> Measured | None:
        r = figures.find(mode, size_bytes)
        return Measured(r.ratio, f"{r.show(r.value)} to {r.show(r.limit)}") if r else None

    return measure


def _bare(metric: str, size_bytes: int) -> Measure:
    """The same of the best bare message."""

    def measure(figures: Figures) -> Measured | None:
        r = figures.best_bare(metric, size_bytes)
        return Measured(r.ratio, f"{r.show(r.value)} to {r.show(r.limit)}") if r else None

    return measure


def _to_best_ring(figures: Figures) -> Measured | None:
    """The 8-byte half round trip over the fastest bare slot ring of the same batches."""
    r = figures.find("latency", 8)
    rings = [value for name, value in r.extra.items() if name.startswith("ring")] if r else []
    if not r or not rings:
        return None
    return Measured(r.value / min(rings), f"{r.show(r.value)} to {r.show(min(rings))}")


def _to_copy(figures: Figures) -> Measured | None:
    """The 8-byte half round trip in place over that by copy. These are two runs, so each is taken
    as a ratio to its own limit."""
    in_place, by_copy = figures.find(IN_PLACE, 8), figures.find("latency", 8)
    if not in_place or not by_copy:
        return None
    return Measured(
        in_place.ratio / by_copy.ratio,
        f"{in_place.show(in_place.value)} to {by_copy.show(by_copy.value)}",
    )


def _senders(count: int) -> Measure:
    """The half round trip among `count` connected senders over that with one, each taken as a
    ratio to its own limit so that a core that moved between the two does not matter."""

    def measure(figures: Figures) -> Measured | None:
        one, many = figures.find("senders", 8), figures.find("senders", 8, senders=count)
        if not one or not many:
            return None
        return Measured(many.ratio / one.ratio, f"{many.show(many.value)} to {one.show(one.value)}")

    return measure


# Message size -> at most so many one-line ping-pongs.
LATENCY_BOUNDS = {8: 1.05, 64: 1.35, 1 << 10: 1.9, 4 << 10: 4.0}
# Message size -> at least so much of the bare one-line stream's rate.
RATE_BOUNDS = {8: 1.0, 24: 0.75, 56: 0.6, 256: 0.35}
# Connected senders -> at most so many half round trips with one.
SENDERS_BOUNDS = {64: 1.3, 512: 1.6}

_LATENCIES = tuple(
    Target(f"Half round trip, {units.size(size)} / one-line ping-pong", bound, True,
           _ratio("latency", size), bare=_bare("half_rtt_ns", size))
    for size, bound in LATENCY_BOUNDS.items()
)  # fmt: skip
TARGETS = (
    _LATENCIES[0],
    Target("Half round trip, 8 B / best bare slot ring", 1.05, True, _to_best_ring),
    Target("Half round trip, 8 B, in place / by copy", 1.0, True, _to_copy),
    *_LATENCIES[1:],
    *(
        Target(f"Message rate, {units.size(size)} / bare one-line stream", bound, False,
               _ratio("rate", size), bare=_bare("rate_msgs_per_s", size))
        for size, bound in RATE_BOUNDS.items()
    ),
    Target("Bandwidth, 4 KiB / copy from the peer's cache", 0.6, False, _ratio("bandwidth", 4096)),
    *(
        Target(f"Half round trip, {count} senders / one sender", bound, True, _senders(count))
        for count, bound in SENDERS_BOUNDS.items()
    ),
    Target("Ring of 8 processes / the same on bare futexes", 0.5, False, _ratio("ring")),
)  # fmt: skip


def judge(records: Sequence[Record], hop: str = NEAR) -> list[Outcome]:
    """Every target with what the records say about it."""
    figures = Figures(records, hop)
    return [
        Outcome(target, target.measure(figures), target.bare(figures) if target.bare else None)
        for target in TARGETS
    ]
