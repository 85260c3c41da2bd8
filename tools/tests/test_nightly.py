# SPDX-License-Identifier: Apache-2.0
"""The night (scripts/nightly.py), with steps that take a moment."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import kept
import nightly
import pytest

SUITE = (
    '<testsuite><testcase name="slow" time="7200"/>'
    '<testcase name="left_out" time="0"><skipped message="why"/></testcase></testsuite>'
)


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "nightly"
    monkeypatch.setattr(nightly, "OUT", folder)
    monkeypatch.setattr(nightly, "STATE", folder / "state.json")
    monkeypatch.setattr(nightly, "SUMMARY", folder / "summary.md")
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    monkeypatch.setattr(kept, "folder", lambda: tmp_path / "cache" / "kept")
    monkeypatch.setattr(kept, "RECORDS", tmp_path / "records.jsonl")
    steps = {name: f"echo {name} >>ran; echo FRESH is $FRESH" for name in ("one", "two", "three")}
    monkeypatch.setattr(nightly, "STEPS", steps)
    return folder


def ran(out: Path) -> list[str]:
    """Which steps have run since the last call."""
    path = out.parent / "ran"
    names = path.read_text(encoding="utf-8").split() if path.exists() else []
    path.unlink(missing_ok=True)
    return names


def test_all_steps_run_fresh_and_the_page_tells_of_them(out: Path) -> None:
    nightly.STEPS["two"] = f"echo '{SUITE}' >{out}/two.xml; echo two >>ran"
    assert nightly.main([]) == 0
    assert ran(out) == ["one", "two", "three"]
    said = (out / "one.log").read_text(encoding="utf-8")
    assert said.startswith("FRESH is ")
    assert abs(int(said.split()[-1]) - time.time()) < 60
    page = (out / "summary.md").read_text(encoding="utf-8")
    assert "| one | passed | 0:00:0" in page
    assert "Skipped tests: 1\n* two: left_out" in page
    assert "| 2:00:00 | two: slow |" in page


def test_the_oldest_pass_comes_first(out: Path) -> None:
    known = {"one": {"date": 30, "seconds": 0}, "three": {"date": 20, "seconds": 0}}
    nightly.passes().parent.mkdir(parents=True)
    nightly.passes().write_text(json.dumps(known), encoding="utf-8")
    assert nightly.main([]) == 0
    assert ran(out) == ["two", "three", "one"]


def test_a_step_that_fails_is_told_of_and_run_again_by_resume(out: Path) -> None:
    good = nightly.STEPS["two"]
    nightly.STEPS["two"] = "echo two >>ran; echo it broke; exit 3"
    assert nightly.main([]) == 1
    assert ran(out) == ["one", "two", "three"]
    page = (out / "summary.md").read_text(encoding="utf-8")
    assert "| two | failed, status 3 |" in page
    assert "it broke" in page
    nightly.STEPS["two"] = good
    assert nightly.main(["--resume"]) == 0
    assert ran(out) == ["two"]


def test_from_goes_on_at_a_step_of_the_last_nights_order(out: Path) -> None:
    assert nightly.main([]) == 0
    ran(out)
    assert nightly.main(["--from", "two"]) == 0
    assert ran(out) == ["two", "three"]


def test_what_does_not_fit_into_the_hours_is_put_off(out: Path) -> None:
    nightly.passes().parent.mkdir(parents=True)
    nightly.passes().write_text(json.dumps({"two": {"date": 5, "seconds": 7200}}), encoding="utf-8")
    assert nightly.main(["--hours", "1"]) == 1
    assert ran(out) == ["one", "three"]
    assert "| two | put off |" in (out / "summary.md").read_text(encoding="utf-8")


def test_named_steps_are_the_only_ones(out: Path) -> None:
    assert nightly.main(["three"]) == 0
    assert ran(out) == ["three"]


@pytest.mark.parametrize("words", [["nonsense"], ["--from", "nonsense"], ["one", "--resume"]])
def test_wrong_arguments_run_nothing(out: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        nightly.main(words)
    assert end.value.code == 2
    assert not ran(out)


def test_an_interrupt_ends_the_step_and_leaves_a_page(out: Path, tmp_path: Path) -> None:
    program = tmp_path / "night.py"
    program.write_text(
        "import sys, pathlib; sys.path[:0] = sys.argv[1:3]; import kept, nightly\n"
        "out = pathlib.Path(sys.argv[3]); nightly.OUT = out; nightly.ROOT = out.parent\n"
        "nightly.STATE, nightly.SUMMARY = out / 'state.json', out / 'summary.md'\n"
        "kept.folder = lambda: out.parent / 'cache' / 'kept'\n"
        "nightly.STEPS = {'one': 'echo $$ >ran; sleep 60'}\n"
        "sys.exit(nightly.main([]))\n",
        encoding="utf-8",
    )
    folder = Path(nightly.__file__).parent
    with subprocess.Popen([sys.executable, program, folder, folder, out]) as night:
        while not ran_file(out):
            time.sleep(0.05)
        step = int(ran_file(out))
        night.send_signal(signal.SIGTERM)
        assert night.wait(timeout=30) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(step, 0)
    assert "| one | interrupted |" in (out / "summary.md").read_text(encoding="utf-8")


def ran_file(out: Path) -> str:
    path = out.parent / "ran"
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def test_a_night_that_goes_on_keeps_what_passed_since_it_began(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nightly.STEPS["two"] = "false"
    assert nightly.main([]) == 1
    first = (out / "one.log").read_text(encoding="utf-8")
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + 7200)
    nightly.STEPS["two"] = "echo FRESH is $FRESH"
    assert nightly.main(["--resume"]) == 0
    assert (out / "two.log").read_text(encoding="utf-8") == first
    assert nightly.main(["--from", "two"]) == 0
    assert (out / "two.log").read_text(encoding="utf-8") > first
