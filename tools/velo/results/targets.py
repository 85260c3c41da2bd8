# SPDX-License-Identifier: Apache-2.0
"""What the native engine is to reach, and whether a set of records reaches it.

Every target is a ratio, to the physical limit measured around the same batches or to another figure
of the same run, because absolute times belong to a machine and not to the code.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from velo.results.records import FAR, NEAR, VELO, Record


@dataclass(frozen=True)
class Measured:
    """A ratio, and the two figures that it comes from in words."""

    ratio: float
    detail: str


# Fewer batches than this say nothing.
BATCHES_MIN = 3

# Of the figures that the target is about: Figures here, MpiFigures in mpi_targets.
Measure = Callable[[Any], Measured | None]


@dataclass(frozen=True)
class Target:
    """One row of the table."""

    what: str
    bound: float
    at_most: bool
    measure: Measure

    @property
    def wanted(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.bound:g}"


@dataclass(frozen=True)
class Outcome:
    """A target and what was measured; `measured` is None when the records do not tell."""

    target: Target
    measured: Measured | None

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
    def detail(self) -> str:
        return self.measured.detail if self.measured else ""


class Figures:
    """Finds velo's records of one class that rest on enough batches."""

    def __init__(self, records: Iterable[Record], hop: str) -> None:
        self._records = [
            r for r in records if r.stack == VELO and r.hop == hop and r.samples >= BATCHES_MIN
        ]

    def find(self, mode: str, size_bytes: int | None = None, senders: int = 1) -> Record | None:
        """The newest record that fits, of one pair and one thread; None stands for any size."""
        fitting = (
            r
            for r in reversed(self._records)
            if (r.mode, r.senders, r.pairs, r.threads) == (mode, senders, 1, 1)
            and size_bytes in (None, r.size_bytes)
        )
        return next(fitting, None)


def _ratio(mode: str, size_bytes: int | None = None) -> Measure:
    """A record's ratio to its own limit."""

    def measure(figures: Figures) -> Measured | None:
        r = figures.find(mode, size_bytes)
        return Measured(r.ratio, f"{r.show(r.value)} to {r.show(r.limit)}") if r else None

    return measure


def _to_best_ring(figures: Figures) -> Measured | None:
    """The 8-byte half round trip over the fastest bare slot ring of the same batches."""
    r = figures.find("latency", 8)
    rings = [value for name, value in r.extra.items() if name.startswith("ring")] if r else []
    if not r or not rings:
        return None
    return Measured(r.value / min(rings), f"{r.show(r.value)} to {r.show(min(rings))}")


def _senders(count: int) -> Measure:
    """The half round trip among `count` connected senders over that with one, each taken as a
    ratio to its own limit so that a core that moved between the two does not matter."""

    def measure(figures: Figures) -> Measured | None:
        one, many = figures.find("senders", 8), figures.find("senders", 8, senders=count)
        if not one or not many:
            return None
        return Measured(many.ratio / one.ratio, f"{many.show(many.value)} to {one.show(one.value)}")

    return measure


TARGETS = (
    Target("Half round trip, 8 B / one-line ping-pong", 1.2, True, _ratio("latency", 8)),
    Target("Half round trip, 8 B / best bare slot ring", 1.15, True, _to_best_ring),
    Target("Half round trip, 64 B / one-line ping-pong", 1.5, True, _ratio("latency", 64)),
    Target("Half round trip, 1 KiB / one-line ping-pong", 2.2, True, _ratio("latency", 1024)),
    Target("Message rate, 8 B / bare one-line stream", 0.5, False, _ratio("rate", 8)),
    Target("Message rate, 32 B / bare one-line stream", 0.5, False, _ratio("rate", 32)),
    Target("Bandwidth, 4 KiB / copy from the peer's cache", 0.6, False, _ratio("bandwidth", 4096)),
    Target("Half round trip, 64 senders / one sender", 1.3, True, _senders(64)),
    Target("Half round trip, 512 senders / one sender", 1.6, True, _senders(512)),
    Target("Ring of 8 processes / the same on bare futexes", 0.5, False, _ratio("ring")),
)


def main_class(records: Sequence[Record]) -> str:
    """The class to show: near, unless the cores hardly ever were. The targets are set for near."""
    ours = [r for r in records if r.stack == VELO] or records
    batches = {hop: sum(r.samples for r in ours if r.hop == hop) for hop in (NEAR, FAR)}
    return NEAR if batches[NEAR] * 20 >= batches[FAR] else FAR


def judge(records: Sequence[Record], hop: str = NEAR) -> list[Outcome]:
    """Every target with what the records say about it."""
    figures = Figures(records, hop)
    return [Outcome(target, target.measure(figures)) for target in TARGETS]
