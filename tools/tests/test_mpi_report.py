# SPDX-License-Identifier: Apache-2.0
"""The MPI part of the page and of the terminal."""

import re
from dataclasses import replace

import pytest
from made_up_mpi import STACKS, changed, record, result
from test_report import Page

from bench import mpi_targets
from bench.aims import aims
from velo.report import mpi_report, summary


@pytest.fixture(scope="module")
def text() -> str:
    return summary.render(result(), aims)


def test_every_figure_is_there(text: str) -> None:
    shown = [*mpi_report.pictures(result(), "near"), *aims(result(), "near").pictures]
    titles = [picture.title for picture in shown]
    assert titles == [
        "MPI latency",
        "MPI bandwidth",
        "NetPIPE",
        "MPI message rate",
        "RandomAccess",
        "Matching",
        "Eight ranks on two cores",
        "Cliffs",
    ]
    for title in titles:
        assert f"<h3>{title}</h3>" in text
    assert text.count("<svg") == 1 + len(titles)  # The first one is the opening's.


def test_the_page_is_well_formed_and_its_references_resolve(text: str) -> None:
    page = Page(text)
    assert "script" not in page.tags
    assert len(page.ids) == len(set(page.ids))
    wanted = {reference[1:] for reference in page.references}
    assert wanted | set(re.findall(r"url\(#([^)]+)\)", text)) <= set(page.ids)
    pictures = "".join(re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL))
    assert not re.findall(r"#[0-9a-f]{6}\b", pictures)


def test_each_row_of_the_table_has_its_verdict_and_figures(text: str) -> None:
    rows = [row for row in Page(text).rows if len(row) == 5 and row[3] in ("met", "missed")]
    assert len(rows) == len(mpi_targets.TARGETS)
    found = {row[0]: row for row in rows}
    row = found["Half round trip, worst of 8 B to 4 KiB, BTL / vader"]
    assert row[4] == "8 B: 110 ns to 122 ns (ompi-4.1 vader)"


def test_a_missed_row_is_shown_as_missed() -> None:
    slow = changed(result(), lambda r: (r.stack, r.mode) == ("velo mtl", "mpi rate"), 0.1)
    rows = {row[0]: row for row in Page(summary.render(slow, aims)).rows if len(row) == 5}
    assert rows["MPI message rate, 8 B, one pair / best MPI peer"][3] == "missed"


def test_absent_peers_are_named_on_the_page(text: str) -> None:
    assert "mpich-9: it is not there" in text


def test_the_grid_has_a_column_for_each_stack_and_velo_first() -> None:
    mpi, hpcc = mpi_report.grids(result(), "near")
    assert mpi.headings[1:3] == ("velo mtl", "velo btl")
    assert set(mpi.headings[1:]) == set(STACKS)
    assert len(hpcc.headings) == 1 + 4
    assert all(len(row) == len(mpi.headings) for row in mpi.rows)
    assert mpi.rows[0][:2] == ("half round trip, 8 B", "62.1 ns")


def test_what_was_not_measured_is_a_dash_and_no_zero() -> None:
    only = [r for r in result() if (r.stack, r.mode) == ("velo btl", "mpi rate")]
    only += [r for r in result() if (r.stack, r.mode) == ("ompi-4.1 vader", "mpi barrier")]
    (grid,) = mpi_report.grids(only, "near")
    assert grid.headings == ("", "velo btl", "ompi-4.1 vader")
    assert grid.rows[0] == ("message rate, 8 B", "30.0 M/s", "–")
    assert [row[1] for row in grid.rows[1:]] == ["–", "–"]


def test_colours_do_not_move_when_velo_is_absent() -> None:
    peers = [r for r in result() if not r.stack.startswith("velo")]
    assert mpi_report.ordered(peers)[:2] == ["velo mtl", "velo btl"]


def test_bandwidth_is_the_size_over_the_half_round_trip() -> None:
    found = mpi_report.as_bandwidth(
        replace(record("x", "mpi latency", "half_rtt_ns", 2000.0, 65536), q1=1000.0, q3=4000.0)
    )
    assert found.value == pytest.approx(32.768e9)
    assert found.q1 < found.value < found.q3


@pytest.mark.parametrize("mode", ["mpi latency", "mpi rate", "mpi matching", "hpcc", "netpipe"])
def test_a_page_of_a_single_measurement_shows_what_there_is(mode: str) -> None:
    Page(summary.render([r for r in result() if r.mode == mode]))


def test_figures_without_a_limit_show_no_ratio() -> None:
    gups = record("velo", "gups", "updates_per_s", 0.17e9)
    assert (gups.show_limit(), gups.show_ratio()) == ("–", "–")
    assert gups.show(gups.value) == "0.17 GUP/s"
