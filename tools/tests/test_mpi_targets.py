# SPDX-License-Identifier: Apache-2.0
"""Every row of the MPI table: met by figures that reach it, missed by such that do not."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from made_up_mpi import changed, record, result

from bench import aims, mpi_targets, targets
from velo.results.records import Record

Fits = Callable[[Record], bool]


def outcome(records: list[Record], what: str) -> targets.Outcome:
    (found,) = [o for o in mpi_targets.judge(records) if o.target.what.startswith(what)]
    return found


def of(stack: str, mode: str, *sizes: int, **more: object) -> Fits:
    def fits(r: Record) -> bool:
        return (
            (r.stack, r.mode) == (stack, mode)
            and (not sizes or r.size_bytes in sizes)
            and all(getattr(r, name) == value for name, value in more.items())
        )

    return fits


ROWS = {
    "MPI half round trip, 8 B, MTL / one-line ping-pong": "≤ 1.5",
    "MPI half round trip, 8 B, MTL / best MPI peer": "≤ 0.8",
    "MPI half round trip, 64 B, MTL / best MPI peer": "≤ 0.85",
    "MPI half round trip, 1 KiB, MTL / best MPI peer": "≤ 0.75",
    "MPI half round trip, 4 KiB, MTL / best MPI peer": "≤ 0.8",
    "MPI message rate, 8 B, one pair / best MPI peer": "≥ 1.8",
    "No cliff to 16 KiB: (time - 30 ns) / time of half": "≤ 1.35",
    "16 KiB half round trip / Intel MPI": "≤ 0.9",
    "64 KiB half round trip / Intel MPI": "≤ 1.05",
    "1 MiB half round trip / Intel MPI": "≤ 1.1",
    "4 MiB half round trip / Intel MPI": "≤ 1",
    "64 KiB half round trip: times as fast as vader": "≥ 4",
    "1 MiB half round trip: times as fast as vader": "≥ 3.2",
    "4 MiB half round trip: times as fast as vader": "≥ 4",
    "Worst of 16 KiB to 4 MiB / the bare pipelined copy": "≤ 1.2",
    "Far cores: worst of 8 B to 4 MiB, MTL / best MPI peer": "≤ 1",
    "Far cores: worst of 8 B to 1 MiB, BTL / vader": "≤ 1",
    "Far cores: MPI message rate, 8 B, one pair / best MPI peer": "≥ 1",
    "Far cores: allreduce of 8 B, 2 ranks / best MPI peer": "≤ 1",
    "Far cores: barrier, 2 ranks / best MPI peer": "≤ 1",
    "Half round trip, worst of 8 B to 4 KiB, BTL / vader": "≤ 0.95",
    "Half round trip, 64 KiB, BTL / vader": "≤ 0.35",
    "Half round trip, 1 MiB, BTL / vader": "≤ 0.35",
    "HPCC RandomAccess, 2 ranks / vader": "≥ 1.5",
    "HPCC RandomAccess, 4 ranks / vader": "≥ 1.2",
    "RandomAccess over velo.h, 2 ranks / HPCC over vader": "≥ 2.8",
    "Half round trip, 10,000 receives posted / one": "≤ 2",
    "8 ranks on 2 cores: HPCC run time / best peer": "≤ 1",
    "Allreduce of 8 B, 2 ranks / best MPI peer": "≤ 0.6",
    "Barrier, 2 ranks / best MPI peer": "≤ 0.6",
    "8 ranks on 2 cores: allreduce of 8 B / best peer": "≤ 0.9",
    "8 ranks on 2 cores: barrier / best peer": "≤ 0.9",
}


def test_the_made_up_figures_meet_every_row() -> None:
    found = mpi_targets.judge(result())
    assert {o.target.what: o.target.wanted for o in found} == ROWS
    assert {o.target.what: o.verdict for o in found if o.verdict != "met"} == {}


MTL, VADER, INTEL = "velo mtl", "ompi-4.1 vader", "impi-2021.19"
FAR = "Far cores: worst of 8 B to 4 MiB"


@pytest.mark.parametrize(
    ("what", "fits", "factor"),
    [
        ("MPI half round trip, 8 B, MTL / one-line", of(MTL, "mpi latency", 8), 1.12),
        ("MPI half round trip, 8 B, MTL / best", of("ompi-5.0 ucx", "mpi latency", 8), 0.8),
        ("MPI half round trip, 8 B, MTL / best", of("mpich-5.0", "mpi latency", 8), 0.05),
        ("MPI message rate", of(MTL, "mpi rate"), 0.5),
        ("MPI message rate", of("mpich-5.0", "mpi rate"), 30.0),
        ("No cliff", of(MTL, "mpi latency", 4096), 1.6),
        ("No cliff", of(MTL, "mpi latency", 16384), 1.6),
        ("MPI half round trip, 64 B, MTL / best", of("ompi-5.0 sm", "mpi latency", 64), 0.6),
        ("MPI half round trip, 1 KiB, MTL / best", of(INTEL, "mpi latency", 1024), 0.5),
        ("MPI half round trip, 4 KiB, MTL / best", of(MTL, "mpi latency", 4096), 2.1),
        ("16 KiB half round trip / Intel", of(MTL, "mpi latency", 1 << 14), 2.5),
        ("64 KiB half round trip / Intel", of(MTL, "mpi latency", 1 << 16), 2.8),
        ("64 KiB half round trip: times", of(VADER, "mpi latency", 1 << 16), 0.4),
        ("1 MiB half round trip / Intel", of(INTEL, "mpi latency", 1 << 20), 0.3),
        ("1 MiB half round trip: times", of(MTL, "mpi latency", 1 << 20), 3.5),
        ("4 MiB half round trip / Intel", of(MTL, "mpi latency", 1 << 22), 2.8),
        ("4 MiB half round trip: times", of(VADER, "mpi latency", 1 << 22), 0.35),
        ("Worst of 16 KiB", of("velo", "limit", 16384, limit_name="pipelined_copy"), 0.8),
        ("Worst of 16 KiB", of(MTL, "mpi latency", 1 << 16), 1.35),
        ("Worst of 16 KiB", of(MTL, "mpi latency", 1 << 20), 1.35),
        ("Worst of 16 KiB", of("velo", "limit", 1 << 22, limit_name="pipelined_copy"), 0.7),
        (FAR, of(MTL, "mpi latency", 8, hop="far"), 1.6),
        (FAR, of("ompi-5.0 ucx", "mpi latency", 2048, hop="far"), 0.3),
        (FAR, of(MTL, "mpi latency", 1 << 22, hop="far"), 2.8),
        ("Far cores: worst of 8 B to 1 MiB", of("velo btl", "mpi latency", 64, hop="far"), 1.2),
        ("Far cores: MPI", of(MTL, "mpi rate", hop="far"), 0.3),
        ("Far cores: all", of(MTL, "mpi allreduce", hop="far"), 3.0),
        ("Far cores: bar", of("ompi-5.0 ucx", "mpi barrier", hop="far"), 0.3),
        ("Half round trip, worst", of("velo btl", "mpi latency", 8), 1.1),
        ("Half round trip, worst", of(VADER, "mpi latency", 1024), 0.6),
        ("Half round trip, worst", of("velo btl", "mpi latency", 4096), 2.5),
        ("Half round trip, 64 KiB, BTL", of("velo btl", "mpi latency", 1 << 16), 1.2),
        ("Half round trip, 1 MiB, BTL", of(VADER, "mpi latency", 1 << 20), 0.8),
        ("HPCC RandomAccess, 2", of(MTL, "hpcc", processes=2), 0.7),
        ("HPCC RandomAccess, 4", of(VADER, "hpcc", processes=4), 1.8),
        ("RandomAccess over velo.h", of("velo", "gups"), 0.9),
        ("Half round trip, 10,000", of(MTL, "mpi matching", posted=10_000), 2.1),
        ("8 ranks on 2 cores: HPCC", of(VADER, "hpcc", processes=8), 0.8),
        ("8 ranks on 2 cores: HPCC", of("ompi-4.1 ucx", "hpcc", processes=8), 0.8),
        ("Allreduce of 8 B, 2", of(MTL, "mpi allreduce", processes=2), 2.0),
        ("Barrier, 2", of(MTL, "mpi barrier", processes=2), 2.0),
        ("8 ranks on 2 cores: all", of(MTL, "mpi allreduce", processes=8), 3.0),
        ("8 ranks on 2 cores: bar", of(MTL, "mpi barrier", processes=8), 3.0),
    ],
)
def test_a_row_is_missed_by_figures_that_do_not_reach_it(
    what: str, fits: Fits, factor: float
) -> None:
    assert outcome(changed(result(), fits, factor), what).verdict == "missed"


@pytest.mark.parametrize(
    ("what", "fits"),
    [
        ("MPI half round trip, 8 B, MTL / one-line", of(MTL, "mpi latency", 8)),
        ("MPI half round trip, 8 B, MTL / best", of(MTL, "mpi latency")),
        ("64 KiB half round trip / Intel", of(INTEL, "mpi latency")),
        ("4 MiB half round trip / Intel", of(MTL, "mpi latency", 1 << 22)),
        ("Worst of 16 KiB", of("velo", "limit", 1 << 22)),
        ("Worst of 16 KiB", of("velo", "limit", limit_name="pipelined_copy")),
        ("Worst of 16 KiB", of(MTL, "mpi latency", 1 << 14)),
        (FAR, of(MTL, "mpi latency", 1 << 22, hop="far")),
        (FAR, lambda r: r.hop == "far" and r.stack != MTL and r.size_bytes == 64),
        ("Half round trip, worst", of("velo btl", "mpi latency", 512)),
        ("Half round trip, worst", of(VADER, "mpi latency", 4096)),
        ("Half round trip, 1 MiB, BTL", of("velo btl", "mpi latency", 1 << 20)),
        ("64 KiB half round trip: times", of(VADER, "mpi latency")),
        ("HPCC RandomAccess, 2", of(VADER, "hpcc")),
        ("RandomAccess over velo.h", of("velo", "gups")),
        ("RandomAccess over velo.h", of(VADER, "hpcc", processes=2)),
        ("Half round trip, 10,000", of(MTL, "mpi matching", posted=1)),
        ("No cliff", of(MTL, "mpi latency", 2048)),
        ("No cliff", of(MTL, "mpi latency", 16384)),
    ],
)
def test_a_row_with_a_figure_missing_is_not_called_met(what: str, fits: Fits) -> None:
    assert outcome([r for r in result() if not fits(r)], what).verdict == "not measured"


def test_far_cores_are_judged_by_far_figures_alone_and_near_ones_by_near_ones() -> None:
    near = changed(result(), of(MTL, "mpi latency", hop="near"), 10.0)
    assert outcome(near, FAR).verdict == "met"
    assert outcome(near, "MPI half round trip, 64 B").verdict == "missed"
    far = changed(result(), of(MTL, "mpi latency", 64, hop="far"), 10.0)
    found = outcome(far, FAR)
    assert found.verdict == "missed"
    assert found.detail.startswith("64 B: ")
    assert outcome(far, "MPI half round trip, 64 B").verdict == "met"


def test_the_worst_of_several_sizes_is_named() -> None:
    slow = changed(result(), of(MTL, "mpi latency", 1 << 20), 2.0)
    found = outcome(slow, "Worst of 16 KiB")
    assert found.measured
    assert found.detail == "1 MiB: 17.6 µs to 9.17 µs"
    assert found.measured.ratio == pytest.approx(
        2 * (62 + (1 << 20) / 120) / (50 + (1 << 20) / 115)
    )
    slow = changed(result(), of("velo btl", "mpi latency", 512), 2.0)
    assert outcome(slow, "Half round trip, worst").detail.startswith("512 B: ")


def test_a_cliff_is_named_with_its_sizes_and_times() -> None:
    steep = changed(result(), of(MTL, "mpi latency", 4096), 3.0)
    found = outcome(steep, "No cliff")
    assert found.measured
    assert "at 4 KiB" in found.detail
    assert "at 2 KiB" in found.detail


def test_a_step_of_30_ns_alone_is_no_cliff() -> None:
    small = record("velo mtl", "mpi latency", "half_rtt_ns", 50.0, 64)
    large = record("velo mtl", "mpi latency", "half_rtt_ns", 50.0 * 1.35 + 30, 128)
    (step,) = mpi_targets.steps([small, large])
    assert step.ratio == pytest.approx(1.35)
    assert mpi_targets.steps([replace(small, size_bytes=0), large]) == []


def test_latencies_are_compared_by_their_ratios_to_their_own_limits() -> None:
    """A peer that ran while a cache line took twice as long must not look slower for it."""
    slow = [
        replace(r, value=r.value * 2, limit=r.limit * 2) if r.stack == "ompi-5.0 ucx" else r
        for r in result()
    ]
    what = "MPI half round trip, 8 B, MTL / best"
    before, after = outcome(result(), what).measured, outcome(slow, what).measured
    assert before
    assert after
    assert after.ratio == pytest.approx(before.ratio)


def test_a_figure_of_two_batches_counts_only_if_it_is_of_whole_runs() -> None:
    few = [replace(r, samples=2) for r in result()]
    assert outcome(few, "MPI message rate").verdict == "not measured"
    assert outcome(few, "HPCC RandomAccess, 2").verdict == "met"


def test_the_other_class_serves_where_this_one_has_nothing_and_the_row_says_so() -> None:
    far = [replace(r, hop="far") if r.mode == "hpcc" else r for r in result()]
    found = outcome(far, "HPCC RandomAccess, 2")
    assert found.verdict == "met"
    assert found.detail.endswith(", far")
    peers = of(VADER, "hpcc"), of("ompi-4.1 ucx", "hpcc")
    one_side = [replace(r, hop="far") if any(p(r) for p in peers) else r for r in result()]
    assert outcome(one_side, "HPCC RandomAccess, 2").verdict == "not measured"
    mixed = outcome(one_side, "8 ranks on 2 cores: HPCC")
    assert mixed.verdict == "met"
    assert mixed.detail.endswith(", near and far")


def test_the_table_is_shown_only_for_what_was_measured() -> None:
    native = [record("velo", "latency", "half_rtt_ns", 50.0)]
    assert [title for title, _ in aims.tables(native, "near")] == ["Messages"]
    assert [title for title, _ in aims.tables(result(), "near")] == ["MPI"]
    assert len(aims.tables([*native, *result()], "near")) == 2
