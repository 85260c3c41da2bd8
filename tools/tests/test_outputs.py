# SPDX-License-Identifier: Apache-2.0
"""Nothing is written into the root of a clone: not by default, and not by the commands we show."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from papers import experiments
from velo import tree
from velo.cli import EXAMPLES, main

ROOT = Path(__file__).resolve().parents[2]
# A command of ours as pages show it, with the lines that go on after a backslash.
COMMAND = re.compile(r"^ *((?:build/bin/velo|build/libexec/\S+|python3) (?:.*\\\n)*.*)$", re.M)
WRITES = re.compile(
    r"(?:(?:-o|--output|--json|--record|--capture|--wave|--perfetto|--otf2|--result) +|>)([^\s>]+)"
)


def test_a_page_goes_into_the_build_folder_of_the_checkout_one_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    (clone / "docs").mkdir(parents=True)
    monkeypatch.setattr(tree, "CHECKOUT", clone)
    for folder in (clone, clone / "docs"):
        monkeypatch.chdir(folder)
        assert tree.output("paper.html") == clone / "build" / "paper.html"
    monkeypatch.chdir(tmp_path)
    assert tree.output("paper.html") == tmp_path / "paper.html"
    monkeypatch.setattr(tree, "CHECKOUT", None)
    monkeypatch.chdir(clone)
    assert tree.output("paper.html") == clone / "paper.html"


def test_paper_leaves_the_root_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_run(
        results: experiments.Results, calls: Sequence[experiments.Call], at_once: int
    ) -> Iterator[tuple[str, str]]:
        del at_once
        (call,) = calls
        point = experiments.VELO_POINTS[0]
        series = experiments.Series("api latency", point, [(8.0, 600.0)], ["a"], ["velo sim"])
        results.series.append(series)
        yield call.title, ""

    (tmp_path / "build").mkdir()
    monkeypatch.setattr(tree, "CHECKOUT", tmp_path)
    monkeypatch.setattr(tree, "hosts", lambda: ROOT / "sim" / "hosts")
    monkeypatch.setattr(experiments, "measure", one_run)
    monkeypatch.chdir(tmp_path)
    assert main(["paper", "--quick", "--only", "api latency"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["build"]
    assert (tmp_path / "build" / "paper.html").is_file()
    assert "page written to" in capsys.readouterr().out


def shown_commands() -> list[str]:
    pages = [ROOT / "README.md", *ROOT.glob("*/README.md"), *ROOT.glob("docs/**/*.md")]
    return [found for page in pages for found in COMMAND.findall(page.read_text(encoding="utf-8"))]


def test_netpipe_gets_a_file_to_write_to() -> None:
    """It writes np.out into the current folder if nobody names another."""
    found = [text for text in (*shown_commands(), *(text for text, _ in EXAMPLES))
             if "NPopenmpi" in text]  # fmt: skip
    assert len(found) >= 6
    assert [text for text in found if not re.search(r"NPopenmpi .*-o \S", text)] == []


def test_commands_of_a_clone_write_into_its_build_folder() -> None:
    found = [name for text in shown_commands() for name in WRITES.findall(text)]
    assert len(found) >= 6
    assert [name for name in found if not name.startswith(("build/", "/"))] == []
