# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest
from made_up import result

from bench import targets
from velo.results.figures import main_class
from velo.results.records import Record

IN_PLACE = "Half round trip, 8 B, in place"


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
        ("Half round trip, 8 B / one-line", "latency", 8, 1.05, 1.06),
        ("Half round trip, 64 B", "latency", 64, 1.35, 1.36),
        ("Half round trip, 1 KiB", "latency", 1024, 1.9, 1.91),
        ("Half round trip, 4 KiB", "latency", 4096, 4.0, 4.01),
        ("Message rate, 8 B", "rate", 8, 1.0, 0.99),
        ("Message rate, 24 B", "rate", 24, 0.75, 0.74),
        ("Message rate, 56 B", "rate", 56, 0.6, 0.59),
        ("Message rate, 256 B", "rate", 256, 0.35, 0.34),
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
    ("in_place", "by_copy", "verdict"), [(1.2, 1.2, "met"), (1.21, 1.2, "missed")]
)
def test_in_place_is_compared_with_by_copy_by_their_ratios_to_their_own_limits(
    in_place: float, by_copy: float, verdict: str
) -> None:
    found = with_ratio(result(), "latency", 8, by_copy)
    found = [replace(r, value=r.value * 3) if r.mode == "in place" else r for r in found]
    assert outcome(with_ratio(found, "in place", 8, in_place), IN_PLACE).verdict == verdict


@pytest.mark.parametrize("mode", ["latency", "in place"])
def test_in_place_without_its_counterpart_is_not_measured(mode: str) -> None:
    found = [r for r in result() if r.mode != mode]
    assert outcome(found, IN_PLACE).verdict == "not measured"


@pytest.mark.parametrize(
    ("near", "far", "hop"), [(5, 100, "near"), (4, 100, "far"), (0, 0, "near")]
)
def test_figures_are_near_ones_unless_the_cores_hardly_ever_were(
    near: int, far: int, hop: str
) -> None:
    one = result()[0]
    records = [replace(one, hop="near", samples=near), replace(one, hop="far", samples=far)]
    records.append(replace(one, stack="peer", hop="far", samples=10_000))
    assert main_class(records) == hop


def test_senders_are_compared_by_their_ratios_to_their_own_limits() -> None:
    records = [
        replace(r, ratio=1.5 if r.senders == 64 else 1.2) if r.mode == "senders" else r
        for r in result()
    ]
    found = outcome(records, "Half round trip, 64 senders")
    assert found.measured
    assert found.measured.ratio == pytest.approx(1.25)
    assert found.verdict == "met"
    slower = [replace(r, ratio=1.6) if r.senders == 64 else r for r in records]
    assert outcome(slower, "Half round trip, 64 senders").verdict == "missed"


@pytest.mark.parametrize(("value", "verdict"), [(42.0, "met"), (42.4, "missed")])
def test_the_best_bare_ring_is_the_fastest_of_those_measured(value: float, verdict: str) -> None:
    records = [
        replace(r, value=value, extra={"ring_ns": 60.0, "ring_pause_ns": 40.0, "hop_ns": 20.0})
        if r.mode == "latency"
        else r
        for r in result()
    ]
    found = outcome(records, "Half round trip, 8 B / best bare")
    assert found.measured
    assert found.measured.ratio == pytest.approx(value / 40)
    assert found.verdict == verdict


def bare(limit_name: str, metric: str, size: int, ratio: float, hop: str = "near") -> Record:
    a_record = next(r for r in result() if r.mode == "latency")
    return replace(a_record, mode="limit", metric=metric, limit_name=limit_name, size_bytes=size,
                   ratio=ratio, hop=hop)  # fmt: skip


def test_the_best_bare_message_of_the_same_size_class_and_metric_stands_beside_a_row() -> None:
    beside = [
        bare("message_pause", "half_rtt_ns", 64, 1.3),
        bare("message_rx", "half_rtt_ns", 64, 1.2),
        bare("message", "half_rtt_ns", 64, 1.1, hop="far"),
        bare("message", "half_rtt_ns", 8, 1.0),
        bare("ring64", "half_rtt_ns", 64, 0.9),
        bare("message", "rate_msgs_per_s", 56, 0.3),
        bare("message_tx", "rate_msgs_per_s", 56, 0.4),
    ]
    found = [*result(), *beside]
    assert outcome(found, "Half round trip, 64 B").bare_ratio == "1.20"
    assert outcome(found, "Message rate, 56 B").bare_ratio == "0.40"
    assert outcome(found, "Half round trip, 1 KiB").bare_ratio == ""
    assert outcome(found, "Ring of 8").bare_ratio == ""
