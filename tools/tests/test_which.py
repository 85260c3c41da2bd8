# SPDX-License-Identifier: Apache-2.0
import shutil
from pathlib import Path

import pytest

from velo.which import which


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders in PATH: the first has what cannot be run, the second what can."""
    for name in ("first/program", "first/other", "second/program", "third/hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / "first" / "folder").mkdir()
    (tmp_path / "second" / "folder").write_text("#!/bin/sh\n")
    for name in ("second/program", "second/folder", "third/hidden"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/first:{tmp_path}/second")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    ["program", "folder", "other", "hidden", "third/hidden", "./third/hidden", "first/other", "no"],
)
def test_a_program_is_where_the_standard_library_finds_it(folders: Path, name: str) -> None:
    assert which(name) == shutil.which(name)
    path = f"{folders}/third:{folders}/second"
    assert which(name, path) == shutil.which(name, path=path)


def test_only_what_can_be_run_is_found(folders: Path) -> None:
    assert which("program") == f"{folders}/second/program"
    assert which("folder") == f"{folders}/second/folder"
    assert which("other") is None
