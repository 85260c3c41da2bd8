# SPDX-License-Identifier: Apache-2.0
"""`velo paper`: what it runs, and what it makes of the results."""

import json
from pathlib import Path

import pytest

from papers import dimmnet, experiments, figure4, points
from papers import page as paper_page
from velo.errors import UsageError

HERE, NEW = points.VELO_POINTS[0], points.VELO_POINTS[1]
EXTOLL, HTX = points.EXTOLL_POINTS[0], points.HTX_POINT


def results() -> experiments.Results:
    return experiments.Results(
        [
            experiments.Series("api latency", HERE, [(8, 600.0), (48, 800.0)], ["a"], ["velo sim"]),
            experiments.Series("api latency", NEW, [(8, 300.0)], ["b"], ["velo sim"]),
            experiments.Series("api stream", HERE, [(8, 10e6), (32, 5e6)], ["c"], ["velo sim"]),
            experiments.Series("rate by pairs", EXTOLL, [(1, 6e6), (2, 13e6)], ["d"], ["velo sim"]),
            experiments.Series("netpipe latency", HTX, [(128, 1e3)], ["e"], ["velo sim"]),
        ],
        {
            "host_to_host_cycles": 31,
            "node_64_bit": {"host_to_host_cycles": 27},
            "node_128_bit": {"host_to_host_cycles": 26},
        },
        ["gups: not built"],
    )


def row(what: str) -> paper_page.Row:
    return next(r for r in paper_page.rows(results()) if what in r.what)


def test_a_file_with_some_of_the_cycles_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rtl-bench.json"
    monkeypatch.setattr(experiments, "RTL_BENCH", file)
    whole = {name: {} for name in experiments.CYCLES_NEEDED}
    file.write_text(json.dumps(whole))
    assert experiments.read_cycles() == whole
    # What `make test` leaves, by the test of the PCS.
    file.write_text(json.dumps({"pcs_cycles": 3}))
    assert experiments.read_cycles() == {}


def test_cables_are_as_long_at_every_clock() -> None:
    assert "--cable-cycles" not in HERE.options
    assert EXTOLL.options[-2:] == ["--cable-cycles", "33"]
    assert points.EXTOLL_POINTS[2].options[-2:] == ["--cable-cycles", "169"]


def test_networks_run_over_the_layer_that_the_papers_ran_them_over() -> None:
    layers = {
        e.name: "--btl" in e.options for e in experiments.EXPERIMENTS if "NPopenmpi" in e.program
    }
    assert layers == {"mpi latency": True, "netpipe latency": False, "netpipe stream": False}


def test_a_host_with_other_constants_is_a_point_of_its_own() -> None:
    assert HTX.options == [*EXTOLL.options, "--host-ns", "store=90,dma=90,read=180"]


def test_every_experiment_is_drawn_and_every_drawing_has_one() -> None:
    names = {e.name for e in experiments.EXPERIMENTS}
    assert {d.experiment for d in paper_page.DRAWINGS} == names


def test_quick_stays_at_the_papers_clock() -> None:
    where = {point for _, point, _ in experiments.plan(experiments.EXPERIMENTS, quick=True)}
    assert where == {HERE, EXTOLL}
    whole = list(experiments.plan(experiments.EXPERIMENTS, quick=False))
    assert len(whole) == 3 * 6 + 1 + 3 * 2 + 3 * 6


def test_an_experiment_that_is_not_there_is_refused() -> None:
    assert [e.name for e in experiments.choose("gups,api latency")] == ["api latency", "gups"]
    with pytest.raises(UsageError, match="no experiment 'gup'"):
        experiments.choose("gup")


def test_values_are_set_beside_the_papers() -> None:
    assert row("velo.h, 8 B").paper == "970 ns"
    assert row("velo.h, 8 B").ours == ("600 ns", "300 ns", "–")
    assert row("hardware alone").ours == ("31 cycles", "27 cycles", "26 cycles")
    assert row("ping-pong bandwidth").ours[0] == "13.3 MB/s"
    assert row("streaming bandwidth, 32 B").ours[0] == "160 MB/s"
    assert row("best of all pairs").ours[0] == "13.0 M/s"
    assert row("for each 8-byte message").ours[0] == "48.0 B"
    assert row("180 ns").ours == ("1.00 µs", "–", "–")
    assert not [r for r in paper_page.rows(results()) if "RandomAccess" in r.what]


def test_cycles_are_also_compared_without_what_only_one_side_has() -> None:
    stages = {name: 1 for _, _, names in figure4.MODULES for name in names}
    rows = paper_page.cycle_rows({"stages": stages})
    assert [(name, theirs, ours[0]) for name, theirs, ours in rows[-2:]] == [
        ("all", "64", "11"),
        ("units and network alone", "36", "8"),
    ]


def test_samples_are_found_among_what_a_program_says() -> None:
    said = 'mpirun: hello\n{"type":"meta"}\n{"type":"sample","pairs":2,"value":5}\n'
    assert points.parse(said, "pairs") == [(2, 5)]


def test_the_page_has_the_figures_and_the_hashes(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    paper_page.write(results(), page)
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 5
    assert "gups: not built" in text
    assert "<code>d</code>" in text


def test_the_page_begins_with_its_conclusion_and_its_terms(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    paper_page.write(results(), page)
    first, _, _ = page.read_text(encoding="utf-8").partition("<h2>")
    assert (
        "with a modelled host, reaches 6 of the 6 values of the papers that it can be compared with"
    ) in first
    assert "<strong>Terms.</strong>" in first


BOARDS = {
    "dimmnet_send_cycles": 16,
    "dimmnet_receive_cycles": 17,
    "dimmnet_figure5": {
        "back to back": {"a": [[16, 1100], [496, 3000]], "b": [[16, 1110]], "c": [[16, 1300]]},
        "through a switch": {"a": [[16, 1490]], "b": [], "c": [[16, 1690]]},
    },
}


def test_figure_5_of_dimmnet_stands_beside_the_papers(tmp_path: Path) -> None:
    found = results()
    found.cycles |= BOARDS
    page = tmp_path / "page.html"
    paper_page.write(found, page)
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 6
    assert "<strong>1.10 µs</strong>" in text and "1.89 µs" in text
    section = dimmnet.section(found.cycles)
    assert section is not None
    assert section.rows[1] == (
        "(b) status seen, data in SO-DIMM, 16 B",
        "1.95 µs",
        ("1.11 µs", "–"),
    )
    assert section.rows[3] == ("command to last word sent, 16 B", "33", ("16 cycles", "–"))
    # 79 clocks less 33 are 460 of 790 ns.
    assert "Of the 790 ns" in section.differs[0] and "460 are the board's" in section.differs[0]
    assert "The other 330 ns" in section.differs[1]


def test_without_boards_the_page_has_no_dimmnet() -> None:
    assert dimmnet.section(results().cycles) is None


def test_what_is_not_reached_is_named() -> None:
    slow = results()
    slow.series[0].values = [(8, 971.0)]
    slow.cycles["host_to_host_cycles"] = 65
    assert (
        "reaches 4 of the 6 values of the papers that it can be compared with, all but host port "
        "to host port, hardware alone (VELO, ICPP 2008); half round trip, velo.h, 8 B (VELO, ICPP "
        "2008): that is"
    ) in paper_page.conclusion(slow)
    assert paper_page.conclusion(experiments.Results()) == ""


def test_points_at_which_nothing_ran_have_no_column(tmp_path: Path) -> None:
    here = experiments.Results([s for s in results().series if s.point in (HERE, EXTOLL)])
    page = tmp_path / "page.html"
    paper_page.write(here, page)
    text = page.read_text(encoding="utf-8")
    assert "ours, same clock</th>" in text
    assert "300 MHz" not in text
    assert paper_page.table(here).rows[1] == ("  half round trip, velo.h, 8 B", "970 ns", "600 ns")
