# SPDX-License-Identifier: Apache-2.0
"""`velo paper`: what it runs, and what it makes of the results."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from papers import dimmnet, experiments, figure4, points, prediction, sensitivity
from papers import page as paper_page
from velo.cluster import apart
from velo.errors import UsageError, VeloError

HERE, NEW = points.VELO_POINTS[0], points.VELO_POINTS[1]
EXTOLL, HTX = points.EXTOLL_POINTS[0], points.HTX_POINT


def results() -> experiments.Results:
    return experiments.Results(
        [
            experiments.Series("api latency", HERE, [(8, 600.0), (48, 800.0)], ["a"], ["velo sim"]),
            experiments.Series(
                "api latency", points.HT200_POINT, [(8, 700.0)], ["f"], ["velo sim"]
            ),
            experiments.Series("api latency", NEW, [(8, 300.0)], ["b"], ["velo sim"]),
            experiments.Series(
                "api stream", HERE, [(8, 10e6), (32, 6.5e6), (48, 4.5e6)], ["c"], ["velo sim"]
            ),
            experiments.Series("rate by pairs", EXTOLL, [(1, 6e6), (2, 13e6)], ["d"], ["velo sim"]),
            experiments.Series("netpipe latency", HTX, [(128, 1e3)], ["e"], ["velo sim"]),
        ],
        {
            "host_to_host_cycles": 31,
            "node_64_bit": {"host_to_host_cycles": 27},
            "node_128_bit": {"host_to_host_cycles": 26},
        },
        absent=["gups: not built"],
    )


def row(what: str) -> paper_page.Row:
    return next(r for r in paper_page.rows(results()) if what in r.what)


def test_a_file_with_some_of_the_cycles_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rtl-bench.json"
    monkeypatch.setattr(experiments, "RTL_BENCH", file)
    whole: dict[str, object] = {name: {} for name in experiments.CYCLES_NEEDED}
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
    assert HTX.options == [*EXTOLL.options, "--host", "opteron-ht400"]
    assert points.HT200_POINT.options == [*HERE.options, "--host", "opteron-ht200"]


def test_every_experiment_is_drawn_and_every_drawing_has_one() -> None:
    names = {e.name for e in experiments.EXPERIMENTS}
    assert {d.experiment for d in paper_page.DRAWINGS} == names


def test_quick_stays_at_the_papers_clock() -> None:
    names = experiments.choose(None)
    quick = experiments.plan(names, is_quick=True)
    assert {trial.point for trial in quick} == {HERE, EXTOLL}
    assert all(trial.ranks <= 16 for trial in quick)
    # Seven of one run a point, three with another host, six numbers of pairs, two numbers of ranks,
    # two tables.
    assert len(experiments.plan(names, is_quick=False)) == 3 * 7 + 3 + 3 * 6 + 3 * 2 + 3 * 2


def test_an_experiment_that_is_not_there_is_refused() -> None:
    assert experiments.choose("gups,api latency") == ["api latency", "gups"]
    assert experiments.choose("predict") == [experiments.PREDICT]
    with pytest.raises(UsageError, match="no experiment 'gup'"):
        experiments.choose("gup")


def test_values_are_set_beside_the_papers() -> None:
    assert row("velo.h, 8 B").paper == "970 ns"
    assert row("velo.h, 8 B").ours == ("600 ns", "300 ns", "–")
    assert row("hardware alone").ours == ("31 cycles", "27 cycles", "26 cycles")
    assert row("ping-pong bandwidth").ours[0] == "13.3 MB/s"
    assert row("streaming bandwidth, 32 B").ours[0] == "208 MB/s"
    assert row("best of all pairs").ours[0] == "13.0 M/s"
    assert row("for each 8-byte message").ours[0] == "48.0 B"
    assert row("payload alone").ours[0] == "16.7%"
    assert row("network protocol").ours == ("16.0 B", "–", "–")
    assert row("half of the link").ours[0] == "32 B" and row("half of the link").paper == "32 B"
    assert row("Gigabit Ethernet").ours[:2] == ("103", "207")
    assert row("from sources alone").ours == ("700 ns", "–", "–")
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
    # The hosts of the rows, by the profiles.
    for host in ("ht200-fitted", "opteron-ht200", "opteron-ht400"):
        assert f"<td>{host}: " in text


def test_the_page_begins_with_its_conclusion_and_its_terms(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    paper_page.write(results(), page)
    first, _, _ = page.read_text(encoding="utf-8").partition("<h2>")
    assert (
        "with a modelled host, reaches 7 of the 7 values of the papers that it can be compared with"
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
        "reaches 5 of the 7 values of the papers that it can be compared with, all but host port "
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


def test_table_i_is_split_where_the_gap_was_measured() -> None:
    found = results()
    found.cycles["cycles_per_8B_message"] = 10.5
    split = [r.ours[0] for r in paper_page.rows(found) if r.what.startswith("–")]
    # 42 bytes of the link less 40 are the gap; 48 are taken in all, 8 of them payload.
    assert split == ["16.0 B", "2.0 B", "22.0 B"]


def test_table_1_is_shown_if_all_of_it_was_synthesized(tmp_path: Path) -> None:
    areas = {name: {"ff": 90 + n, "lut4": 100 + n} for n, name in enumerate(paper_page.AREAS)}
    assert paper_page.area_rows(areas)[1] == (
        "velo completer",
        "274 flip-flops, 365 LUTs",
        "91 flip-flops, 101 LUTs",
    )
    del areas["velo_regfile"]
    assert paper_page.area_rows(areas) == []


def test_a_table_of_random_access_is_a_point_of_its_own(tmp_path: Path) -> None:
    trials = experiments.plan(["gups by table"], is_quick=False)
    assert [t.program[-1] for t in trials[:2]] == ["12", "16"]
    assert trials[0].options[-4:] == ["--ranks-a-node", "16", "-n", "32"]
    (tmp_path / "result.json").write_text('{"hash": "f", "virtual_time_ps": 5e6}')
    found = experiments.Results()
    for trial in trials[:2]:
        said = '{"type":"sample","processes":32,"value":7e6}'
        _, add = trial.read(tmp_path, said)
        add(found)
    (series,) = found.series
    assert series.values == [(4096, 7e6), (65536, 7e6)] and series.hashes == ["f", "f"]


def test_a_run_that_measures_nothing_is_an_error(tmp_path: Path) -> None:
    (trial, *_) = experiments.plan(["gups"], is_quick=True)
    with pytest.raises(VeloError, match=r"velo sim .* measured nothing"):
        trial.read(tmp_path, "")


class Fake:
    """A call of which only the end matters."""

    def __init__(self, number: int) -> None:
        self.title = f"call {number}"
        self.number = number

    def words(self, folder: Path) -> list[str]:
        assert folder.is_dir()
        return [str(self.number)]

    def read(self, folder: Path, said: str) -> tuple[str, Callable[[experiments.Results], None]]:
        del folder
        return said, lambda results: results.absent.append(self.title)


def test_results_come_in_their_order_whichever_run_ends_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = [(2, "c"), (0, "a"), (1, VeloError("there is no model of a node with 128 bits"))]
    monkeypatch.setattr(apart, "side_by_side", lambda *_: iter(ends))
    found = experiments.Results()
    notes = [note for _, note in experiments.measure(found, [Fake(n) for n in range(3)], 2)]
    assert notes == ["c", "a", "not built"]
    assert found.absent == ["call 1: there is no model of a node with 128 bits", "call 0", "call 2"]


def test_an_error_that_is_not_a_missing_model_ends_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart, "side_by_side", lambda *_: iter([(0, VeloError("torn"))]))
    with pytest.raises(VeloError, match="call 0: torn"):
        list(experiments.measure(experiments.Results(), [Fake(0)], 2))


def predicted() -> prediction.Results:
    """Time follows the clock, and a tenth of what the rate does."""

    def run(name: str, clock: float, rate: float, performance: float) -> prediction.Run:
        point = points.Point(name, clock, 32, 211)
        return prediction.Run(name, point, rate=rate, latency_ns=1000 * 156 / clock,
                              bandwidth=400 * clock, performance=performance)  # fmt: skip

    base = run("156 MHz", 156, 10e6, 100)
    clocks = [run("140 MHz", 140, 9e6, 90), run("117 MHz", 117, 7.5e6, 75)]
    rates = [run("90 % message rate", 156, 9e6, 99)]
    variations = [
        prediction.Variation("message rate", rates, [0.9]),
        prediction.Variation("frequency", clocks, [140 / 156, 0.75]),
    ]
    direct = [replace(run("", 300, 25e6, 330), name=t.point.name) for t in prediction.TECHNOLOGIES]
    found = prediction.Results(["gups"], None, 0, base, variations, direct, [])
    prediction.conclude(found)
    return found


def test_a_prediction_is_read_back_as_it_was_written() -> None:
    found = predicted()
    again = prediction.from_dict(json.loads(found.to_json()))
    assert again == found


def test_section_vi_has_the_papers_values_beside_ours() -> None:
    section = sensitivity.section(predicted())
    assert section is not None
    table_iii, table_iv, *_, wrf = section.sheets
    assert table_iii.rows[0] == ["140 MHz", "88.6", "90.0", "92.6", "89.7", "93.2", "89.7", "90.0"]
    by_clock = next(row for row in table_iv.rows if row[:2] == ["300 MHz, 64 bit", "frequency"])
    assert by_clock[2] == "7.38" and by_clock[-1] == "3.30"
    assert [row[0] for row in wrf.rows] == ["300 MHz, 64 bit", "800 MHz, 128 bit"]
    assert len(section.figures) == 3


def test_the_papers_curve_for_wrf_goes_through_its_own_values() -> None:
    assert sensitivity.wrf_gflops(1) == pytest.approx(sensitivity.WRF_BASE)
    assert sensitivity.wrf_gflops(4) == pytest.approx(sensitivity.WRF_BY_RATE[0])
    assert sensitivity.wrf_gflops(10) == pytest.approx(sensitivity.WRF_BY_RATE[1], rel=1e-3)


def test_the_page_has_section_vi(tmp_path: Path) -> None:
    found = results()
    found.prediction = predicted()
    page = tmp_path / "page.html"
    paper_page.write(found, page)
    text = page.read_text(encoding="utf-8")
    assert "Figure 8 and table IV: WRF" in text and text.count("<svg") == 8
