# SPDX-License-Identifier: Apache-2.0
"""The list of environment variables is whole, and the command shows it with its values."""

import json
import re
from pathlib import Path

import pytest

from velo.cli import main
from velo.runtime import environment

ROOT = Path(__file__).resolve().parents[2]
# How sources read a variable, in C, C++, Python and the launcher's shell.
READ = re.compile(
    r"\b(?:getenv|read_bytes|place_number|sim_environment_number)\(\s*\"(VELO\w*)\""
    r"|\bpatience_read\([^\"]*\"(VELO\w*)\""
    r"|environ(?:\.get\(|\[)\"(VELO\w*|NO_COLOR)\""
    r"|\$\{(VELO\w*):-"
)
FOLDERS = ("lib", "adapters", "transports", "tools", "sim", "scripts/cmake")
TESTS = {ROOT / "sim" / "test", ROOT / "adapters" / "libfabric" / "test", ROOT / "tools" / "tests"}


def read_by_sources() -> set[str]:
    """The variables that something in the tree reads."""
    found: set[str] = set()
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".c", ".h", ".cc", ".py", ".in"} and TESTS.isdisjoint(path.parents):
                for match in READ.finditer(path.read_text(encoding="utf-8")):
                    found.update(filter(None, match.groups()))
    return found


def test_the_list_has_each_variable_that_is_read_and_no_other() -> None:
    assert read_by_sources() == set(environment.VARIABLES)


def test_values_and_what_nothing_reads_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VELO_SPIN_NS", "123")
    monkeypatch.setenv("VELO_SPINNS", "7")
    monkeypatch.delenv("VELO_COPY", raising=False)
    assert main(["info", "--config"]) == 0
    text = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.startswith("  V")}
    assert rows["VELO_SPIN_NS"][1:3] == ["123", "50000"]
    assert rows["VELO_COPY"][1:3] == ["–", "auto"]
    assert rows.keys() == {name for name in environment.VARIABLES if name.startswith("VELO")}
    assert "nothing reads VELO_SPINNS=7" in text


def test_the_same_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VELO_DOMAIN", "mine")
    assert main(["info", "--config", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    values = {variable["name"]: variable["value"] for variable in found["variables"]}
    assert values.keys() == environment.VARIABLES.keys()
    assert values["VELO_DOMAIN"] == "mine"
