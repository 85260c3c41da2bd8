# SPDX-License-Identifier: Apache-2.0
"""The physical limit, measured before and after a run of a program that measures by itself."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from velo import helpers, tree
from velo.measure import velo_perf
from velo.results.records import Sample

# Modes of velo-perf.
LATENCY, RATE, BANDWIDTH = "latency", "rate", "bandwidth"
# Which raw limits a mode's figure is divided by; of several the best counts, as in velo-perf.
LIMIT_NAMES = {
    LATENCY: ("pingpong",),
    RATE: ("stream8", "stream8_pause"),
    BANDWIDTH: ("peer_copy",),
}


@dataclass(frozen=True)
class Limits:
    """The raw limits at one moment."""

    hop_ns: float
    rate_msgs_per_s: float
    copy_bytes_per_s: dict[int, float]

    def of(self, mode: str, size_bytes: int) -> float:
        """The limit that belongs to a mode and a size."""
        if mode == LATENCY:
            return self.hop_ns
        if mode == RATE:
            return self.rate_msgs_per_s
        # As in velo-perf: below the smallest copy one would measure how a copy starts.
        sizes = [size for size in self.copy_bytes_per_s if size <= size_bytes]
        return self.copy_bytes_per_s[max(sizes, default=min(self.copy_bytes_per_s))]


def look(cpus: Sequence[int]) -> Limits | None:
    """The raw limits now; None if the cores moved while they were measured."""
    arguments = ["limit", "--batches", "1", "--cpus", ",".join(map(str, cpus))]
    found: list[Sample] = []
    with contextlib.closing(helpers.stream([tree.find(velo_perf.PROGRAM), *arguments])) as lines:
        found = [Sample.from_json(line) for line in lines if line.get("type") == "sample"]

    def values(mode: str) -> dict[int, float]:
        best: dict[int, float] = {}
        for s in found:
            if s.limit_name in LIMIT_NAMES[mode]:
                best[s.size_bytes] = max(s.value, best.get(s.size_bytes, 0.0))
        return best

    hops, rates, copies = (list(values(mode).values()) for mode in (LATENCY, RATE, BANDWIDTH))
    if not hops or not rates or not copies:
        return None
    return Limits(hops[0], max(rates), values(BANDWIDTH))


def bracketed(samples: Sequence[Sample], before: Limits, after: Limits, hop: str) -> list[Sample]:
    """Samples of a program that measures by itself, with the raw line around its run."""
    return [
        replace(
            s, hop=hop, limit_name="pingpong", limit_before=before.hop_ns, limit_after=after.hop_ns
        )
        for s in samples
    ]
