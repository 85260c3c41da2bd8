# SPDX-License-Identifier: Apache-2.0
"""tools/perf/ofi/mpis.py: which figures stand beside each other in its table."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "perf" / "ofi"))

import mpis  # type: ignore[import-not-found]

from velo.results.records import Sample


def sample(
    mode: str, size_bytes: int, value: float, hop: str | None = "near", **more: int
) -> Sample:
    return Sample(mode, "ns", size_bytes, value, 50, 50, hop, **more)


def latency(*values: float, hop: str | None = "near", posted: int = 0) -> list[Sample]:
    mode = "mpi matching" if posted else "mpi latency"
    return [sample(mode, 8, value, hop, posted=posted) for value in values]


def nothing() -> dict[str, list[Sample]]:
    words = [word for mpi in mpis.MPIS for word in (f"{mpi}-velo", *mpis.OWN_WAYS[mpi])]
    return {word: [] for word in [*words, mpis.MTL.word]}


def test_of_two_ways_of_its_own_the_better_one_counts() -> None:
    found = nothing()
    rates = {
        "mpich-velo": (10.0, 10.0), "mpich": (2.0, 2.0), "mpich-ucx": (5.0, 5.0),
    }  # fmt: skip
    times = {
        "mpich-velo": (100.0, 100.0), "mpich": (400.0, 400.0), "mpich-ucx": (800.0, 800.0),
    }  # fmt: skip
    for word in rates:
        found[word] = latency(*times[word])
        found[word] += [sample("mpi rate", 8, value) for value in rates[word]]
    time, rate = mpis.lines(found)
    assert (time.ratio, time.other.median, time.is_met) == (0.25, 400, True)
    assert (rate.ratio, rate.other.median, rate.is_met) == (2.0, 5, True)


@pytest.mark.parametrize(("ours", "is_met"), [(74.0, True), (76.0, False)])
def test_a_time_must_stay_below_its_target(ours: float, is_met: bool) -> None:
    row = mpis.LATENCY
    assert row.is_met("ompi5", ours / 100) is is_met


@pytest.mark.parametrize(("ours", "is_met"), [(1.4, False), (1.6, True)])
def test_a_rate_must_reach_its_target(ours: float, is_met: bool) -> None:
    (row,) = (row for row in mpis.ROWS if row.mode == "rate")
    assert row.is_met("ompi5", ours) is is_met


def test_near_and_far_stay_apart_and_moved_batches_do_not_count() -> None:
    found = nothing()
    found["ompi5-velo"] = latency(50, 50) + latency(300, 300, hop="far") + latency(1, hop=None)
    found["ompi5"] = latency(100, 100) + latency(900, hop="far")
    (line,) = mpis.lines(found)
    assert (line.hop, line.ratio, line.ours.batches) == ("near", 0.5, 2)


def test_the_crowd_is_compared_with_one_posted_receive() -> None:
    found = nothing()
    found["impi-velo"] = latency(90, 90, posted=mpis.POSTED) + latency(60, 60, posted=1)
    (line,) = mpis.lines(found)
    assert (line.ratio, line.is_met) == (1.5, True)
