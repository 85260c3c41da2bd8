# SPDX-License-Identifier: Apache-2.0
"""`velo clean` and `velo info --all` over a stand-in for velo-clean."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from test_top import look as info_look

from velo.cli import main
from velo.runtime import leftovers


def domain(name: str, **values: Any) -> leftovers.Domain:
    zeros = dict.fromkeys(
        ("alive", "dead", "unknown", "removable", "removed", "memory_bytes", "removable_bytes"), 0
    )
    return {"domain": name, **zeros, "error": None, **values}


def stand_in(folder: Path, name: str, says: Any) -> Path:
    """A program that says this, and keeps what it was asked."""
    asked = folder / f"{name}.asked"
    program = folder / name
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"open({str(asked)!r}, 'w').write(' '.join(sys.argv[1:]))\n"
        f"print({json.dumps(says)!r})\n"
    )
    program.chmod(0o755)
    return asked


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VELO_LIBEXEC", str(tmp_path))
    return tmp_path


def test_it_says_what_was_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = domain("run-1", dead=8, removable=8, removed=8, removable_bytes=1_500_000)
    asked = stand_in(folder, "velo-clean", {"domains": [domain("quiet", alive=2), gone]})
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "domain run-1: removed 8 segments, 1.5MB\n"
    assert asked.read_text() == ""


def test_a_dry_run_removes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dead = domain("run-1", dead=1, removable=1)
    asked = stand_in(folder, "velo-clean", {"domains": [dead]})
    assert main(["clean", "--dry-run", "--domain", "run-1"]) == 0
    assert "run-1: would remove 1 segment, 0B\n" in capsys.readouterr().out
    assert asked.read_text() == "--domain run-1 --dry-run"


def test_nothing_to_clean_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(folder, "velo-clean", {"domains": [domain("quiet", alive=2)]})
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "nothing to clean\n"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"alive": 2}, "2 live there, and learn by the names who is dead; --domain d removes them"),
        ({"unknown": 3}, "3 of other users there may be alive"),
        ({}, "they belong to other users"),
        ({"alive": 1, "removable": 1, "removed": 1}, "they belong to other users"),
    ],
)
def test_what_is_left_is_left_for_a_reason(values: dict[str, int], why: str) -> None:
    said = leftovers.describe(domain("d", dead=4, **values), dry_run=False)
    assert said.endswith(f"of the dead: {why}")


def test_what_cannot_be_removed_is_a_failure(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stuck = domain("d", dead=2, removable=2, removed=1, error="cannot remove the stale x: y")
    stand_in(folder, "velo-clean", {"domains": [stuck]})
    assert main(["clean"]) == 1
    said = capsys.readouterr()
    assert (
        said.out == "domain d: removed 1 segment, 0B; left 1 segment of the dead: they cannot "
        "be removed\n"
    )
    assert said.err == "velo: cannot remove the stale x: y\n"


def test_json_is_for_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(folder, "velo-clean", {"domains": [domain("d", dead=2)]})
    assert main(["clean", "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"dry_run": True, "domains": [domain("d", dead=2)]}


def test_info_lists_all_domains(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(folder, "velo-info", info_look(0))
    dead = domain("run-1", dead=8, removable=8, memory_bytes=3000, removable_bytes=2000)
    asked = stand_in(folder, "velo-clean", {"domains": [domain("quiet", alive=2), dead]})
    assert main(["info", "--all"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["quiet", "2", "0", "0", "0", "0"] in rows
    assert ["run-1", "0", "8", "0", "3.0k", "2.0k"] in rows
    assert asked.read_text() == "--dry-run"
    assert main(["info", "--all", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["domains"][1] == dead
