# SPDX-License-Identifier: Apache-2.0
"""How fast a program would be on faster hardware, from runs on slower one: the arithmetic.

The method is that of the high-message-rates paper, section VI. A run's time, relative to that on
the base, is computing, which stays, and communication, which follows x: message rate or core speed,
relative to the base's. All curves here go through the base itself, (1, 1), with one parameter.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from velo.errors import VeloError


@dataclass(frozen=True)
class Sample:
    """A run, relative to that on the base hardware."""

    x: float
    time: float


class Curve(Protocol):
    """A run's relative time over x."""

    @property
    def formula(self) -> str: ...

    def time(self, x: float) -> float: ...


@dataclass(frozen=True)
class Exponential:
    """The paper's: what is not computing falls exponentially."""

    computing: float
    decay: float

    @property
    def formula(self) -> str:
        c = self.computing
        return f"{c:.3g} + {1 - c:.3g} exp({-self.decay:.3g} (x - 1))"

    def time(self, x: float) -> float:
        return self.computing + (1 - self.computing) * math.exp(-self.decay * (x - 1))


@dataclass(frozen=True)
class Inverse:
    """A part that follows the hardware's speed, and one that does not, whatever either is."""

    constant: float

    @property
    def formula(self) -> str:
        follows = 1 - self.constant
        return f"{self.constant:.3g} {'-' if follows < 0 else '+'} {abs(follows):.3g} / x"

    def time(self, x: float) -> float:
        return self.constant + (1 - self.constant) / x


def fit_exponential(samples: Sequence[Sample], computing: float) -> Exponential:
    """Least squares of the logarithm of the time spent in communication."""
    if not computing < 1:
        raise VeloError("the program does nothing but compute: there is nothing to extrapolate")
    squares = products = 0.0
    for sample in _besides_base(samples):
        share = (sample.time - computing) / (1 - computing)
        if share <= 0:
            raise VeloError(
                f"at {sample.x:.1%} of the base the program took {sample.time:.1%} of its time, "
                f"less than the {computing:.1%} that it is said to compute"
            )
        squares += (sample.x - 1) ** 2
        products += (sample.x - 1) * math.log(share)
    return Exponential(computing, -products / squares)


def fit_inverse(samples: Sequence[Sample]) -> Inverse:
    """Least squares of the time."""
    squares = products = 0.0
    for sample in _besides_base(samples):
        u = 1 / sample.x - 1
        squares += u**2
        products += u * (sample.time - 1)
    return Inverse(1 - products / squares)


def _besides_base(samples: Sequence[Sample]) -> list[Sample]:
    found = [sample for sample in samples if sample.x != 1]
    if not found:
        raise VeloError("nothing was slower than the base hardware: there is nothing to fit")
    return found


# A curve that explains less than this share of what was seen says nothing about faster hardware.
R_SQUARED_MIN = 0.9
# Nor does one that makes the program so many times as fast as the hardware: it is followed too far.
# The paper's own exponential comes to 1.9 (Table IV, 600 MHz).
BEYOND_MAX = 2.0


@dataclass(frozen=True)
class Quality:
    """How well a curve meets the samples that it was made of."""

    r_squared: float | None
    """The share of the times' variance that it explains; None: they do not vary."""
    worst: float
    """Its largest deviation, as a share of the time."""

    @property
    def is_fit(self) -> bool:
        """May the curve be followed? Where times do not vary, one that stays with them may."""
        return self.worst < 1e-9 if self.r_squared is None else self.r_squared >= R_SQUARED_MIN


def quality(curve: Curve, samples: Sequence[Sample]) -> Quality:
    """Of all samples, the base's with them."""
    mean = sum(sample.time for sample in samples) / len(samples)
    total = sum((sample.time - mean) ** 2 for sample in samples)
    left = sum((sample.time - curve.time(sample.x)) ** 2 for sample in samples)
    worst = max(abs(curve.time(sample.x) / sample.time - 1) for sample in samples)
    return Quality(1 - left / total if total else None, worst)


def performance(curve: Curve, x: float) -> float | None:
    """Relative to the base; None where the curve leaves no time at all."""
    time = curve.time(x)
    return 1 / time if time > 0 else None


def follow(curve: Curve, quality: Quality, x: float) -> float | None:
    """The same, where the curve has anything to say."""
    found = performance(curve, x) if quality.is_fit else None
    return None if found is None or found > BEYOND_MAX * x else found


def next_delay_ns(known: Sequence[tuple[int, float]], message_ns: float) -> int:
    """The delay that should make a sender's messages take so long, by those known: (delay, time).

    Once it shows, a delay adds to a message's time as it is. Where that leads to nothing new, it is
    the middle of what is left.
    """
    for (shorter_ns, less), (longer_ns, more) in itertools.pairwise(sorted(known)):
        if less <= message_ns < more:
            delay_ns = round(longer_ns - (more - message_ns))
            is_new = shorter_ns < delay_ns < longer_ns
            return delay_ns if is_new else (shorter_ns + longer_ns) // 2
    raise ValueError(f"no two delays around {message_ns} ns a message")
