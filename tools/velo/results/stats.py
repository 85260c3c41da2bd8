# SPDX-License-Identifier: Apache-2.0
"""The arithmetic behind every figure: pure functions over lists of numbers.

A figure is never the mean of what was measured: on a machine whose cores move, the mean says more
about the hypervisor than about the code. It is the median of the batches of one class.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# Half a round trip of one cache line takes 40 to 65 ns between cores that share a cache and 190 to
# 280 ns between those that do not; anything between the two is a core that moved meanwhile.
NEAR_MAX_NS = 110.0


@dataclass(frozen=True)
class Spread:
    """Five numbers that describe a sample."""

    min: float
    q1: float
    median: float
    q3: float
    max: float


def spread(values: Sequence[float]) -> Spread:
    """Minimum, quartiles and maximum; the quartiles interpolate between neighbours."""
    if not values:
        raise ValueError("spread() of no values")
    ordered = sorted(values)
    if len(ordered) == 1:
        return Spread(*(ordered * 5))
    q1, median, q3 = statistics.quantiles(ordered, n=4, method="inclusive")
    return Spread(ordered[0], q1, median, q3, ordered[-1])


def hop_class(before_ns: float, after_ns: float) -> str | None:
    """`near` or `far` by the limits on both sides of a batch; None if the cores moved meanwhile."""
    near = before_ns < NEAR_MAX_NS
    if near != (after_ns < NEAR_MAX_NS):
        return None
    return "near" if near else "far"


def bracket(before: float, after: float) -> float:
    """The limit that belongs to a batch: the mean of those measured just before and after it."""
    return (before + after) / 2.0


def half_size(sizes: Sequence[int], bandwidths: Sequence[float]) -> float | None:
    """N½: the message size at which half of the best bandwidth is reached.

    Interpolated between the two measured sizes on a logarithmic size axis; None when the smallest
    size measured is above the half already.
    """
    points = sorted(zip(sizes, bandwidths, strict=True))
    half = max(bandwidths) / 2.0
    for (size_a, bw_a), (size_b, bw_b) in itertools.pairwise(points):
        if bw_a < half <= bw_b and size_a > 0:
            part = (half - bw_a) / (bw_b - bw_a)
            return math.exp(math.log(size_a) + part * (math.log(size_b) - math.log(size_a)))
    return None
