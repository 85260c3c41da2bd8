# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from velo.results import stats


def test_spread_of_known_values() -> None:
    assert stats.spread([4, 1, 3, 2, 5]) == stats.Spread(1, 2, 3, 4, 5)


def test_spread_of_one_value_is_that_value() -> None:
    assert stats.spread([7.0]) == stats.Spread(7, 7, 7, 7, 7)


def test_spread_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        stats.spread([])


def test_spread_is_ordered_within_range_and_does_not_depend_on_order() -> None:
    noise = random.Random(7)
    for _ in range(300):
        values = [noise.lognormvariate(4, 1) for _ in range(noise.randint(1, 40))]
        found = stats.spread(values)
        assert found.min <= found.q1 <= found.median <= found.q3 <= found.max
        assert (found.min, found.max) == (min(values), max(values))
        noise.shuffle(values)
        assert stats.spread(values) == found
        # At least half of the values lie on each side of the median.
        assert sum(v <= found.median for v in values) * 2 >= len(values)
        assert sum(v >= found.median for v in values) * 2 >= len(values)


@pytest.mark.parametrize(
    ("before", "after", "hop"),
    [
        (45, 50, "near"),
        (210, 190, "far"),
        (45, 210, None),
        (210, 45, None),
        (109.9, 109.9, "near"),
        (110, 110, "far"),
    ],
)
def test_a_batch_is_classed_by_the_limits_on_both_sides(
    before: float, after: float, hop: str | None
) -> None:
    assert stats.hop_class(before, after) == hop


def test_half_size_is_interpolated_on_a_logarithmic_axis() -> None:
    # Half of 100 lies half-way between 25 at 16 bytes and 75 at 64: at their geometric mean.
    assert stats.half_size([16, 64, 256], [25, 75, 100]) == pytest.approx(32)


def test_half_size_is_unknown_when_the_smallest_size_is_above_it() -> None:
    assert stats.half_size([64, 256], [75, 100]) is None
