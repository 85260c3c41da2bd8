# SPDX-License-Identifier: Apache-2.0
"""`velo perf` from the command line to the file, over a stand-in for velo-perf."""

import json
from pathlib import Path

import pytest
from made_up import result

from velo.cli import build_parser, main
from velo.measure import velo_perf
from velo.report import tables


def calls(log: Path) -> list[list[str]]:
    return [line.split() for line in log.read_text().splitlines()]


def test_latency_is_measured_shown_and_written(
    fake_perf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    argv = ["perf", "latency", "--sizes", "8", "--cpus", "0,1", "--json", str(out)]
    assert main(argv) == 0
    near, far = json.loads(out.read_text())
    assert (near["class"], near["samples"], near["value"], near["limit"]) == ("near", 3, 51, 45)
    assert near["ratio"] == pytest.approx(51 / 45, rel=1e-4)
    assert (far["class"], far["samples"]) == ("far", 1)
    assert near["version"] == "1.0.0 abi 1"
    assert near["extra"] == {"ring_pause_ns": 46}
    (call,) = calls(fake_perf)
    assert call[:7] == ["latency", "--cpus", "0,1", "--pairs", "1", "--sizes", "8"]
    text = capsys.readouterr().out
    assert "51.0 ns" in text
    assert "3/1" in text
    assert "2 batches left out: the cores moved" in text


def test_the_suite_measures_every_mode(
    fake_perf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "suite.json"
    assert main(["perf", "suite", "--quick", "--json", str(out)]) == 0
    modes = {call[0] for call in calls(fake_perf)}
    assert modes == {"limit", "latency", "rate", "bandwidth", "ring"}
    assert any("1,64,512" in call for call in calls(fake_perf))
    assert sum("--in-place" in call for call in calls(fake_perf)) == 1
    modes = {r["mode"] for r in json.loads(out.read_text())}
    assert modes == {"limit", "latency", "in place", "senders", "rate", "bandwidth", "ring"}
    ring = next(r for r in json.loads(out.read_text()) if r["mode"] == "ring")
    assert ring["processes"] == 8
    said = capsys.readouterr().out
    assert "half round trip" in said
    assert "missed" not in said  # What velo aims at is for those who work on it.


def test_the_suite_takes_less_than_two_minutes() -> None:
    assert sum(job.weight for job in velo_perf.suite([])) < 100
    quick, usual = velo_perf.suite([], quick=True), velo_perf.suite([])
    for short, long in zip(quick, usual, strict=True):
        assert int(short.arguments[-1]) * 10 <= int(long.arguments[-1])


@pytest.mark.parametrize(
    ("scenario", "code", "message"),
    [
        ("error", 1, "no space in /dev/shm; free some"),
        ("crash", 1, "ended by SIGSEGV"),
        ("truncated", 1, "not a JSON object"),
        ("verify", 3, "byte 3 is 0x00, not 0x2a"),
        ("bad sample", 1, "sample: limit_before is missing"),
    ],
)
def test_a_failed_run_has_its_exit_code_and_leaves_no_file(
    fake_perf: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    scenario: str,
    code: int,
    message: str,
) -> None:
    monkeypatch.setenv("FAKE_SCENARIO", scenario)
    out = tmp_path / "run.json"
    assert main(["perf", "latency", "--json", str(out)]) == code
    assert message in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["perf", "speed"], "invalid choice"),
        (["perf", "latency", "--sizes", "8,x"], "'x' is not a size"),
        (["perf", "latency", "--pairs", "0"], "whole number from 1"),
        (["perf", "latency", "--threads", "2"], "unrecognized arguments"),
        (["perf", "rate", "--cpus", "1-"], "not a CPU"),
        (["top", "--interval", "soon"], "not a time in seconds"),
        (["walk"], "invalid choice"),
        (["report"], "FILE.json"),
    ],
)
def test_a_wrong_command_line_is_refused_with_code_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["perf"], "measure what? There are limit, latency,"),
        (["perf", "--listen", "latency"], "leave latency out"),
        (["perf", "latency", "--domain", "x"], "it goes with --connect or --listen"),
    ],
)
def test_what_does_not_go_together_is_refused_with_code_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert message in capsys.readouterr().err


def test_the_two_that_meet_are_told_where(
    fake_perf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["perf", "latency", "--connect", "--domain", "here", "--sizes", "8"]) == 0
    assert main(["perf", "--listen", "--domain", "here"]) == 0
    connects, listens = calls(fake_perf)
    assert "--connect" in connects
    assert connects[connects.index("--domain") + 1] == "here"
    assert listens == ["--listen", "--domain", "here"]
    assert "listening in domain here" in capsys.readouterr().out


def test_every_option_and_command_has_help() -> None:
    parsers = [build_parser()]
    seen = 0
    while parsers:
        parser = parsers.pop()
        assert parser.description
        for action in parser._actions:
            seen += 1
            if action.option_strings or not action.choices:
                assert action.help, action
            if isinstance(action.choices, dict):
                assert len(action._get_subactions()) == len(action.choices)  # type: ignore[attr-defined]
                parsers += action.choices.values()
    assert seen > 40


def test_the_table_shows_far_figures_when_the_cores_were_hardly_ever_near() -> None:
    found = [r for r in result() if (r.mode, r.size_bytes) == ("ring", 8)]
    assert {r.hop: r.samples for r in found} == {"near": 6, "far": 3}
    table = tables.result_table(found)
    assert table.rows[0][6:] == ("near", "6/3")
    table = tables.result_table([r for r in found if r.hop == "far"])
    assert table.rows[0][6:] == ("far", "0/3")
