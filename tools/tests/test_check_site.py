# SPDX-License-Identifier: Apache-2.0
"""What leads nowhere in the documentation's site is found."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import check_site

PAGES = {
    "docs/index.html": '<a href="near.html">x</a><a href="https://elsewhere/x">y</a>',
    "docs/near.html": '<h1 id="top">N</h1><a href="deep/far.html#here">x</a><img src="a.svg">',
    "docs/deep/far.html": '<p id="here"></p><a href="../near.html#top">x</a><a href="#here">y</a>',
    "docs/a.svg": "<svg/>",
}


def faults(folder: Path, **changed: str) -> list[str]:
    """What is found when some pages are others."""
    for name, text in PAGES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changed.get(path.stem, text))
    return check_site.check(folder.resolve())


def test_a_site_without_faults_has_none(tmp_path: Path) -> None:
    assert faults(tmp_path) == []


def test_a_source_file_may_be_one_click_further(tmp_path: Path) -> None:
    source = tmp_path / "source/lib/a.c.html"
    source.parent.mkdir(parents=True)
    source.write_text("<p>int a;</p>")
    assert faults(tmp_path) == ["source/lib/a.c.html: more than 2 clicks from home"]
    text = PAGES["docs/deep/far.html"] + '<a href="../../source/lib/a.c.html">x</a>'
    assert faults(tmp_path, far=text) == []


@pytest.mark.parametrize(
    ("page", "text", "fault"),
    [
        ("near", '<a href="deep/far.html">x</a><a href="gone.html">y</a>',
         "docs/near.html: gone.html leads nowhere"),
        ("near", '<a href="deep/far.html#there">x</a>',
         "docs/near.html: deep/far.html#there has no such anchor"),
        ("near", '<a href="deep/far.html">x</a><img src="b.svg">',
         "docs/near.html: b.svg leads nowhere"),
        ("near", "<p>no link on</p>", "docs/deep/far.html: more than 2 clicks from home"),
    ],
)  # fmt: skip
def test_each_fault_is_named(tmp_path: Path, page: str, text: str, fault: str) -> None:
    found = faults(tmp_path, **{page: text})
    assert fault in found
