# SPDX-License-Identifier: Apache-2.0
"""The page: whole, self-contained, and true to the records."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made_up import result

from bench.aims import aims
from velo import tree
from velo.cli import main
from velo.report import summary
from velo.results import records

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Checks nesting and collects ids, references and the cells of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href"):
                self.references.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data.strip()


@pytest.fixture(scope="module")
def text() -> str:
    return summary.render(result(), aims)


def test_the_page_is_well_formed_and_needs_nothing_else(text: str) -> None:
    page = Page(text)
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert all(reference.startswith("#") for reference in page.references)
    assert "url(http" not in text
    assert "@import" not in text


def test_ids_inside_the_pictures_do_not_clash_and_all_references_resolve(text: str) -> None:
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    wanted = {reference[1:] for reference in page.references}
    wanted |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert wanted
    assert wanted <= set(page.ids)


def test_every_figure_is_there(text: str) -> None:
    titles = re.findall(r"<h3>(.*?)</h3>", text)
    assert titles == [
        "Latency",
        "Latency against the limit",
        "Message rate",
        "Bandwidth",
        "Connected senders",
        "More processes than cores",
    ]
    assert text.count("<svg") == 1 + len(titles)  # The first one is the opening's.
    assert "N½ = " in text


def test_pictures_take_their_colours_from_the_page(text: str) -> None:
    pictures = "".join(re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL))
    assert "var(--series-0)" in pictures
    assert not re.findall(r"#[0-9a-f]{6}\b", pictures)


def test_the_headline_is_the_near_median_of_velo(text: str) -> None:
    (velo,) = [
        r
        for r in result()
        if (r.stack, r.mode, r.size_bytes, r.hop, r.senders) == ("velo", "latency", 8, "near", 1)
    ]
    assert re.search(rf'class="value">{re.escape(velo.show(velo.value))}</div>', text)
    assert f"{velo.ratio:.2f} × the limit of {velo.show_limit()}" in text


def test_every_record_is_in_the_table(text: str) -> None:
    rows = [row for row in Page(text).rows if len(row) == 9]
    assert len(rows) == 1 + len(result())
    many = next(r for r in result() if (r.senders, r.hop) == (512, "near"))
    (row,) = [row for row in rows if row[:2] == ["half round trip, 1 of 512 senders", "near"]]
    assert row[2:6] == ["8 B", many.show(many.value), many.show_limit(), many.show_ratio()]


def test_each_target_has_its_verdict(text: str) -> None:
    verdicts = [row[3] for row in Page(text).rows if len(row) == 5 and row[0] != "what (near)"]
    assert len(verdicts) == 14
    assert set(verdicts) == {"met", "missed"}


def test_what_velo_aims_at_is_for_those_who_work_on_it() -> None:
    text = summary.render(result()).partition("</style>")[2]
    for word in ("target", "met<", "missed", "What the machine can do"):
        assert word not in text
    assert "What velo aims at" in summary.render(result(), aims)


def test_the_command_shows_targets_when_asked(tmp_path: Path) -> None:
    a = tmp_path / "a.json"
    records.save(a, result())
    assert main(["report", str(a)]) == 0
    assert "What velo aims at" not in (tmp_path / "a.html").read_text()
    assert main(["report", "--targets", str(a)]) == 0
    assert "What velo aims at" in (tmp_path / "a.html").read_text()


def test_text_from_a_file_cannot_become_markup() -> None:
    evil = "<script>alert(1)</script>"
    found = [replace(r, stack=evil if r.stack != "velo" else "velo", config=evil,
                     run=replace(r.run, machine=evil)) for r in result()]  # fmt: skip
    text = summary.render(found)
    assert "<script" not in text
    assert "script" not in Page(text).tags


def test_far_figures_are_shown_when_there_are_no_near_ones() -> None:
    text = summary.render([r for r in result() if r.hop == "far"])
    assert "<strong>far</strong> cores unless said otherwise" in text
    assert text.count("<svg") == 1 + 6


def test_one_bare_record_makes_a_page() -> None:
    only = records.Record("half_rtt_ns", 8, 1, 50, 45, 1.1, 48, 60)
    assert Page(summary.render([only])).rows


@pytest.mark.parametrize("keep", ["latency", "rate", "bandwidth", "limit", "ring"])
def test_a_page_of_a_single_mode_shows_what_there_is(keep: str) -> None:
    found = [r for r in result() if r.mode == keep] or [
        replace(result()[0], mode="limit", limit_name="pingpong")
    ]
    text = summary.render(found, aims)
    assert ("What the machine can do" in text) == (keep == "limit")
    Page(text)


def test_the_command_joins_files_and_names_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    records.save(a, [r for r in result() if r.stack == "velo"])
    records.save(b, [r for r in result() if r.stack != "velo"])
    assert main(["report", str(a), str(b)]) == 0
    assert "ucx-1.13 am" in (tmp_path / "a.html").read_text()
    assert str(tmp_path / "a.html") in capsys.readouterr().out


def test_the_command_never_overwrites_its_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = tmp_path / "a.json"
    records.save(a, result())
    assert main(["report", str(a), "-o", str(a)]) == 2
    assert "is an input" in capsys.readouterr().err
    assert records.load(a)


def test_an_empty_result_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = tmp_path / "a.json"
    a.write_text("[]")
    assert main(["report", str(a)]) == 1
    assert "nothing to report" in capsys.readouterr().err


def test_an_installation_without_bench_has_no_targets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tree, "has", lambda package: package != "bench")
    with pytest.raises(SystemExit):
        main(["report", "--targets", "a.json"])
    assert "--targets" in capsys.readouterr().err
