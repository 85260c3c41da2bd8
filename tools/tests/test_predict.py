# SPDX-License-Identifier: Apache-2.0
"""`velo predict`: its arithmetic, with the paper's figures as oracle; what it runs, and says."""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from papers import extrapolation, predict_runs, predict_tables, prediction
from papers.extrapolation import Exponential, Inverse, Sample
from velo import cli, tree
from velo.cluster import apart
from velo.errors import UsageError, VeloError

XS = (1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)


def samples(curve: extrapolation.Curve) -> list[Sample]:
    return [Sample(x, curve.time(x)) for x in XS]


# --- the arithmetic -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mpi_share", "base", "known", "predicted"),
    [  # Table IV. Its text gives the share; one value gives the decay, the others have to follow.
        (0.89, 0.20853, (4.0, 1.452), (10.0, 1.895)),
        (0.89, 0.20853, (600 / 156, 1.538), (2400 / 156, 1.896)),
        (0.45, 48.50262, (600 / 156, 79.319), (2400 / 156, 88.180)),
    ],
)
def test_the_papers_extrapolation_is_this_one(
    mpi_share: float, base: float, known: tuple[float, float], predicted: tuple[float, float]
) -> None:
    computing = 1 - mpi_share
    decay = -math.log((base / known[1] - computing) / mpi_share) / (known[0] - 1)
    curve = extrapolation.fit_exponential(samples(Exponential(computing, decay)), computing)
    assert curve.decay == pytest.approx(decay)
    for x, value in (known, predicted):
        relative = extrapolation.performance(curve, x)
        assert relative and relative * base == pytest.approx(value, rel=3e-4)
    # In the end only computing is left: "saturating at more than 1.8 GUPS".
    assert extrapolation.performance(curve, 1e3) == pytest.approx(1 / computing)


def test_table_ii_is_what_technologies_are_taken_for() -> None:
    relative = [
        100 * t.equivalent_mhz / prediction.PAPER.clock_mhz for t in prediction.TECHNOLOGIES
    ]
    assert [int(value) for value in relative] == [384, 1538]
    assert [t.rate for t in prediction.TECHNOLOGIES] == [4, 10]


def test_time_that_does_not_follow_the_hardware_is_found() -> None:
    curve = extrapolation.fit_inverse(samples(Inverse(0.3)))
    assert curve.constant == pytest.approx(0.3)
    assert extrapolation.performance(curve, 2) == pytest.approx(1 / 0.65)
    # A time that grows faster than the hardware slows down would be none, and less, further on.
    steep = extrapolation.fit_inverse([Sample(1, 1), Sample(0.5, 3)])
    assert steep.constant == pytest.approx(-1)
    assert extrapolation.performance(steep, 4) is None


def test_a_fit_is_the_one_with_the_least_squares() -> None:
    found = [Sample(1, 1), Sample(0.8, 1.3), Sample(0.5, 1.7)]
    inverse = extrapolation.fit_inverse(found)
    # Slope over u = 1/x - 1 through (0, 0): (0.25 * 0.3 + 1 * 0.7) / (0.25**2 + 1).
    assert inverse.constant == pytest.approx(1 - 0.775 / 1.0625)
    exponential = extrapolation.fit_exponential(found, 0)
    products = 0.2 * math.log(1.3) + 0.5 * math.log(1.7)
    assert exponential.decay == pytest.approx(products / (0.2**2 + 0.5**2))
    quality = extrapolation.quality(inverse, found)
    left = [inverse.time(s.x) - s.time for s in found]
    total = sum((s.time - 4 / 3) ** 2 for s in found)
    assert quality.r_squared == pytest.approx(1 - sum(v**2 for v in left) / total)
    assert quality.worst == pytest.approx(max(abs(left[1] / 1.3), abs(left[2] / 1.7)))
    flat = [Sample(1, 1), Sample(0.5, 1)]
    assert extrapolation.quality(extrapolation.fit_inverse(flat), flat).r_squared is None


def test_a_curve_is_followed_only_where_it_says_something() -> None:
    good = extrapolation.Quality(0.95, 0.02)
    exponential = Exponential(0, 0.5)
    assert extrapolation.follow(exponential, good, 2) == pytest.approx(math.exp(0.5))
    # e to the power of 4.5 at ten times the speed, and 0.00 ns further on: no program does that.
    assert extrapolation.follow(exponential, good, 10) is None
    assert extrapolation.follow(exponential, extrapolation.Quality(0.05, 0.02), 2) is None
    assert extrapolation.follow(Inverse(0.3), extrapolation.Quality(None, 0.01), 2) is None
    assert extrapolation.follow(Inverse(1.0), extrapolation.Quality(None, 0.0), 2) == 1.0


def test_formulas_have_one_sign_each() -> None:
    # A program may be faster on slower hardware: what it sends depends on when things arrive.
    faster = [Sample(1, 1), Sample(0.5, 0.9)]
    assert extrapolation.fit_inverse(faster).formula == "1.1 - 0.1 / x"
    assert extrapolation.fit_inverse([Sample(0.5, 1.5)]).formula == "0.5 + 0.5 / x"
    assert extrapolation.fit_exponential(faster, 0.1).formula == "0.1 + 0.9 exp(0.236 (x - 1))"
    assert Exponential(0, 0.5).formula == "0 + 1 exp(-0.5 (x - 1))"


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(VeloError, match="nothing but compute"):
        extrapolation.fit_exponential([Sample(0.5, 1)], 1)
    with pytest.raises(VeloError, match=r"at 50.0% .* took 60.0% .* less than the 70.0%"):
        extrapolation.fit_exponential([Sample(0.5, 0.6)], 0.7)
    with pytest.raises(VeloError, match="nothing was slower"):
        extrapolation.fit_inverse([Sample(1, 1)])


def test_a_delay_is_sought_between_those_that_are_known() -> None:
    # 100 ns a message; a delay shows from 70 ns on.
    known = [(200, 230.0), (0, 100.0), (50, 100.0)]
    assert extrapolation.next_delay_ns(known, 125) == 95
    # Where that leads to what is known already, it is half-way.
    assert extrapolation.next_delay_ns([(0, 100.0), (200, 500.0)], 200) == 100
    assert extrapolation.next_delay_ns([(90, 100.0), (91, 500.0)], 200) == 90
    with pytest.raises(ValueError, match="no two delays around 300 ns"):
        extrapolation.next_delay_ns(known, 300)


def test_performance_is_the_metric_or_the_time() -> None:
    assert predict_runs.performance(None, "", 2e6) == 5e5
    said = 'x\n{"type":"meta"}\n{"value":8.4e+07}\n{"value":1}\n'
    assert predict_runs.performance('"value":([0-9.e+]+)', said, 1) == 8.4e7
    for metric, why in (("GUPS (.)", "matches nothing"), ("(x)", "not a number"), ("y(0)?", "y")):
        with pytest.raises(VeloError, match=why):
            predict_runs.performance(metric, said + "y\n", 1)


# --- what is refused before anything runs -------------------------------------------------------


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["predict", *words, "--", "true"]) == 2
    return capsys.readouterr().err


def test_what_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "starts from 32 bits, not 64" in refused(capsys, "--width-bits", "64")
    assert "one rank" in refused(capsys, "-n", "1")
    assert "below 100" in refused(capsys, "--rates", "90,100")
    assert "below 100" in refused(capsys, "--clocks", "120")
    assert "has no group" in refused(capsys, "--metric", "GUPS")
    assert "--metric '('" in refused(capsys, "--metric", "(")
    assert "this topology takes 4; give" in refused(capsys, "--topology", "torus:3x3")
    words = ("--topology", "torus:3x3", "--wide-topology", "ring:4")
    assert "no room for 9 ranks" in refused(capsys, *words)
    assert "there is no such folder" in refused(capsys, "--json", "/nowhere/x.json")
    assert cli.main(["predict", "--", "no-such-program"]) == 2
    for share in ("0", "1.1", "x"):
        with pytest.raises(SystemExit) as end:
            cli.main(["predict", "--mpi-share", share, "--", "true"])
        assert end.value.code == 2


# --- runs, on hardware that is a formula --------------------------------------------------------

PERIOD_NS, HIDDEN_NS, CONSTANT, FOLLOWS = 1000, 400, 20, 80


class Hardware:
    """In `velo sim`'s place: messages of a pair every 1,000 ns, or later with a delay that shows.

    The program takes 20 µs, and 80 µs times the base's message rate over this one.
    """

    def __init__(self) -> None:
        self.runs: list[tuple[argparse.Namespace, list[str]]] = []
        self.models = [32, 64, 128]

    def run_apart(
        self, words: Sequence[str], program: Sequence[str], timeout_s: float | None = None
    ) -> tuple[str, dict[str, Any]]:
        args = cli.build_parser().parse_args(["sim", *words, "--", *program])
        self.runs.append((args, list(program)))
        if args.width_bits not in self.models:
            no_model = "velo-sim: there is no model of a node with 3 links"
            raise VeloError(f"failed:\n{no_model}\nvelo: the job failed")
        speed = args.clock_mhz / 100 * args.width_bits / 32
        gap_ns = (args.host_ns or {}).get("gap", 0)
        # Somewhat more than the delay alone, and beyond that every nanosecond twice.
        period_ns = max(PERIOD_NS / speed, 2 * gap_ns - HIDDEN_NS)
        pairs = args.ranks // 2
        time_us = CONSTANT + FOLLOWS * period_ns / PERIOD_NS
        value = {"rate": pairs * 1e9 / period_ns, "latency": 300 + 300 / speed}
        said = json.dumps({"size_bytes": 8, "value": value.get(program[1], 1e3 / time_us)})
        result = {"virtual_time_ps": round(time_us * 1e6), "computed_ps": 4 * 10**6, "hash": "a"}
        return said, result


@pytest.fixture
def hardware(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hardware:
    found = Hardware()
    monkeypatch.setattr(apart, "run_apart", found.run_apart)
    monkeypatch.setattr(tree, "find", lambda name: Path("/") / name)
    monkeypatch.chdir(tmp_path)
    return found


def predicted(*words: str) -> dict[str, Any]:
    argv = ["predict", "--topology", "full:4", "--json", "out.json", *words, "--", "true", "x"]
    assert cli.main(argv) == 0
    found: dict[str, Any] = json.loads(Path("out.json").read_text(encoding="utf-8"))
    return found


def test_each_run_has_the_hardware_that_it_is_for(hardware: Hardware) -> None:
    found = predicted(
        "--cable-cycles", "30", "--host", "pcie-gen3", "--host-ns", "store=90,gap=3", "--btl",
        "--seed", "7",
    )  # fmt: skip
    programs = [args for args, program in hardware.runs if program == ["true", "x"]]
    assert len(programs) == 1 + 6 + 3 + 2
    assert {(args.layer, args.topology, args.seed, args.ranks) for args in programs} == {
        ("btl", "full:4", 7, 4)
    }
    slower = [run["delay_ns"] for run in found["variations"][0]["runs"]]
    assert slower == [723, 752, 785, 822, 865, 912]
    hosts = [args.host_ns for args in programs]
    assert [h["gap"] for h in hosts] == [3, *(3 + delay_ns for delay_ns in slower)] + 5 * [3]
    assert {h["store"] for h in hosts} == {90}
    assert {args.host for args in programs} == {"pcie-gen3"}
    clocks = [(args.clock_mhz, args.width_bits, args.cable_cycles) for args in programs]
    # 300 ns of cable at each clock.
    assert clocks[6:] == [
        (100, 32, 30), (90, 32, 27), (80, 32, 24), (75, 32, 22), (300, 64, 90), (800, 128, 240),
    ]  # fmt: skip
    assert found["base"]["command"] == (
        "velo sim --btl --topology full:4 --ranks-a-node 1 -n 4 --host pcie-gen3 "
        "--host-ns store=90,gap=3 --seed 7 --clock-mhz 100 --width-bits 32 "
        "--cable-cycles 30 -- true x"
    )
    # Micro-benchmarks: as many ranks as the program, but latency and bandwidth between two nodes.
    assert {(program[1], args.ranks) for args, program in hardware.runs} == {
        ("rate", 4), ("rate", 2), ("latency", 2), ("x", 4),
    }  # fmt: skip


def test_rates_are_reached_and_the_prediction_is_set_beside_the_truth(
    hardware: Hardware, capsys: pytest.CaptureFixture[str]
) -> None:
    found = predicted("-o", "out.html")
    rate, clock = found["variations"]
    assert rate["xs"] == pytest.approx([0.95, 0.9, 0.85, 0.8, 0.75, 0.7], rel=5e-3)
    assert clock["xs"] == pytest.approx([0.9, 0.8, 0.75])
    assert found["computing"] == pytest.approx(4 / 4 / 100)  # 4 µs of 4 ranks' 100.
    assert clock["fits"][1]["curve"]["constant"] == pytest.approx(0.2)
    by = {(p["technology"], p["by"]): p for p in found["predictions"]}
    wide = by["300 MHz, 64 bit", "frequency, Table II"]
    # There 600 MHz: 20 + 80 / 6 µs, which a + b / x has to the dot.
    assert wide["x"] == 6 and wide["direct"] == pytest.approx(1e6 / (20 + 80 / 6), rel=1e-6)
    assert wide["performances"][1] == pytest.approx(wide["direct"], rel=1e-6)
    assert by["300 MHz, 64 bit", "message rate, Table II"]["x"] == pytest.approx(4 * 1.56)
    assert by["800 MHz, 128 bit", "message rate, measured"]["x"] == pytest.approx(32)
    page = Path("out.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3 and found["base"]["command"] in page
    said = capsys.readouterr().out
    assert "0.2 + 0.8 / x" in said and "33.3 µs" in said and "page written" in said


def test_a_metric_and_a_share_are_taken_as_they_are_given(hardware: Hardware) -> None:
    found = predicted("--metric", '"value": ([0-9.e+]+)', "--mpi-share", "0.9", "--rates", "80")
    assert found["computing"] == pytest.approx(0.1)
    assert found["base"]["performance"] == pytest.approx(10)
    assert len(found["variations"][0]["runs"]) == 1
    assert found["variations"][0]["fits"][0]["curve"]["computing"] == pytest.approx(0.1)


def test_what_is_not_built_or_not_wanted_is_left_out_and_named(
    hardware: Hardware, capsys: pytest.CaptureFixture[str]
) -> None:
    hardware.models = [32, 128]
    found = predicted("-o", "out.html")
    assert [run["name"] for run in found["direct"]] == ["800 MHz, 128 bit"]
    assert [p["direct"] is None for p in found["predictions"]] == 2 * [True] + 3 * [False]
    assert "not run: 300 MHz, 64 bit: there is no model of a node" in capsys.readouterr().out
    found = predicted("--no-direct", "-o", "out.html")
    assert found["direct"] == [] and len(found["predictions"]) == 4
    assert "not run: --no-direct" in capsys.readouterr().out
    assert Path("out.html").read_text(encoding="utf-8").count("<svg") == 3


def test_a_run_that_fails_ends_it_with_the_reason(
    hardware: Hardware, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise VeloError("it failed:\nno room")

    monkeypatch.setattr(apart, "run_apart", fail)
    assert cli.main(["predict", "--", "true"]) == 1
    assert "velo: base: it failed:\nno room" in capsys.readouterr().err


def test_eight_nodes_keep_their_cables_where_nodes_have_three_links(hardware: Hardware) -> None:
    predicted("--topology", "torus:2x2x2", "--rates", "80", "--clocks", "80")
    assert [args.topology for args, _ in hardware.runs][-1] == "hypercube:3"
    predicted("--topology", "torus:3x3", "--wide-topology", "ring:9", "--rates", "80")
    assert [args.topology for args, _ in hardware.runs][-1] == "ring:9"


def test_errors_that_are_many_times_the_truth_are_shown_as_such() -> None:
    assert predict_tables._error(1.2, 1.0) == "+20%"
    assert predict_tables._error(190, 1.0) == "190 times"
    assert predict_tables._error(None, 1.0) == predict_tables._error(1.0, None) == "–"


def test_a_cable_without_a_cluster_is_a_usage_error() -> None:
    args = cli.build_parser().parse_args(["predict", "--topology", "cube:3", "--", "true"])
    with pytest.raises(UsageError, match="topology 'cube:3'"):
        predict_runs.plan(args)
