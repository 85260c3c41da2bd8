# SPDX-License-Identifier: Apache-2.0
"""Every row of the MPI table: met by figures that reach it, missed by such that do not."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from made_up_mpi import changed, record, result

from velo.report import tables
from velo.results import mpi_targets, targets
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


def test_the_made_up_figures_meet_every_row() -> None:
    found = mpi_targets.judge(result())
    assert len(found) == 15
    assert {o.target.what: o.verdict for o in found if o.verdict != "met"} == {}


MTL, VADER, INTEL = "velo mtl", "ompi-4.1 vader", "impi-2021.19"


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
        ("64 KiB half round trip / Intel", of(MTL, "mpi latency", 1 << 16), 2.8),
        ("64 KiB half round trip: times", of(VADER, "mpi latency", 1 << 16), 0.3),
        ("1 MiB half round trip / Intel", of(INTEL, "mpi latency", 1 << 20), 0.35),
        ("1 MiB half round trip: times", of(MTL, "mpi latency", 1 << 20), 3.5),
        ("Half round trip, 8 B, BTL", of("velo btl", "mpi latency", 8), 1.2),
        ("HPCC RandomAccess, 2", of(MTL, "hpcc", processes=2), 0.7),
        ("HPCC RandomAccess, 4", of(VADER, "hpcc", processes=4), 1.5),
        ("RandomAccess over velo.h", of("velo", "gups"), 0.9),
        ("Half round trip, 10,000", of(MTL, "mpi matching", posted=10_000), 2.1),
        ("8 ranks on 2 cores: HPCC", of(VADER, "hpcc", processes=8), 0.8),
        ("8 ranks on 2 cores: HPCC", of("ompi-4.1 ucx", "hpcc", processes=8), 0.8),
        ("8 ranks on 2 cores: all", of(MTL, "mpi allreduce", processes=8), 2.0),
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
    assert [title for title, _ in tables.target_tables(native, "near")] == ["Messages"]
    assert [title for title, _ in tables.target_tables(result(), "near")] == ["MPI"]
    assert len(tables.target_tables([*native, *result()], "near")) == 2
