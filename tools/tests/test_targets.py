# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest
from made_up import result

from velo.results import targets
from velo.results.records import Record


def outcome(records: list[Record], what: str, hop: str = "near") -> targets.Outcome:
    (found,) = [o for o in targets.judge(records, hop) if o.target.what.startswith(what)]
    return found


def with_ratio(records: list[Record], mode: str, size: int, ratio: float) -> list[Record]:
    return [
        replace(r, ratio=ratio) if (r.mode, r.size_bytes, r.senders) == (mode, size, 1) else r
        for r in records
    ]


@pytest.mark.parametrize(
    ("what", "mode", "size", "met", "missed"),
    [
        ("Half round trip, 8 B / one-line", "latency", 8, 1.2, 1.21),
        ("Half round trip, 64 B", "latency", 64, 1.5, 1.51),
        ("Half round trip, 1 KiB", "latency", 1024, 2.2, 2.21),
        ("Message rate, 8 B", "rate", 8, 0.5, 0.49),
        ("Message rate, 32 B", "rate", 32, 0.5, 0.49),
        ("Bandwidth, 4 KiB", "bandwidth", 4096, 0.6, 0.59),
        ("Ring of 8", "ring", 8, 0.5, 0.49),
    ],
)
def test_a_target_is_met_up_to_its_bound(
    what: str, mode: str, size: int, met: float, missed: float
) -> None:
    assert outcome(with_ratio(result(), mode, size, met), what).verdict == "met"
    assert outcome(with_ratio(result(), mode, size, missed), what).verdict == "missed"


def test_a_target_without_a_record_is_not_called_met() -> None:
    assert {o.verdict for o in targets.judge([])} == {"not measured"}


def test_records_of_peers_and_of_the_other_class_do_not_count() -> None:
    others = [r for r in result() if r.stack != "velo" or r.hop == "far"]
    assert {o.verdict for o in targets.judge(others)} == {"not measured"}


def test_a_figure_of_two_batches_is_no_measurement() -> None:
    records = [replace(r, samples=2) for r in result()]
    assert {o.verdict for o in targets.judge(records)} == {"not measured"}


@pytest.mark.parametrize(
    ("near", "far", "hop"), [(5, 100, "near"), (4, 100, "far"), (0, 0, "near")]
)
def test_figures_are_near_ones_unless_the_cores_hardly_ever_were(
    near: int, far: int, hop: str
) -> None:
    one = result()[0]
    records = [replace(one, hop="near", samples=near), replace(one, hop="far", samples=far)]
    records.append(replace(one, stack="peer", hop="far", samples=10_000))
    assert targets.main_class(records) == hop


def test_senders_are_compared_by_their_ratios_to_their_own_limits() -> None:
    records = [
        replace(r, ratio=1.5 if r.senders == 64 else 1.2) if r.mode == "senders" else r
        for r in result()
    ]
    found = outcome(records, "Half round trip, 64 senders")
    assert found.measured
    assert found.measured.ratio == pytest.approx(1.25)
    assert found.verdict == "met"


def test_the_best_bare_ring_is_the_fastest_of_those_measured() -> None:
    records = [
        replace(r, value=46.0, extra={"ring_ns": 60.0, "ring_pause_ns": 40.0, "hop_ns": 20.0})
        if r.mode == "latency"
        else r
        for r in result()
    ]
    found = outcome(records, "Half round trip, 8 B / best bare")
    assert found.measured
    assert found.measured.ratio == pytest.approx(1.15)
    assert found.verdict == "met"
