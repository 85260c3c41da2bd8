#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follow all local links of the built site.

  check_site.py FOLDER

Fails where one leads to no file or no anchor, and where a page is more than two clicks from the
home page: lists on the left of each page count, as a reader sees them. A source file may be one
click further.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

HOME = "docs/index.html"
CLICKS = 2
# Made by Sphinx, and linked by its search alone.
LEFT_OUT = ("search.html", "genindex.html")
SOURCES = "source"


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if name in ("href", "src") and value and not value.startswith("data:"):
                self.links.append(value)


def targets(page: Path, links: list[str]) -> list[tuple[str, Path, str]]:
    """The local ones: as written, file, anchor."""
    found = []
    for link in links:
        path, anchor = urldefrag(link)
        if "://" in link or path.startswith(("mailto:", "//")):
            continue
        file = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
        found.append((link, file, unquote(anchor)))
    return found


def check(folder: Path) -> list[str]:
    """A line for each fault."""
    files = sorted(folder.rglob("*.html"))
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in files}
    bad, leads = [], {}
    for file, page in pages.items():
        leads[file] = set()
        for link, target, anchor in targets(file, page.links):
            if not target.exists():
                bad.append(f"{file.relative_to(folder)}: {link} leads nowhere")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                bad.append(f"{file.relative_to(folder)}: {link} has no such anchor")
            elif target in pages:
                leads[file].add(target)
    seen = reached = {folder / HOME}
    for _ in range(CLICKS):
        reached = set().union(*(leads.get(file, set()) for file in reached)) - seen
        seen = seen | reached
    far = [f for f in files if f not in seen and f.name not in LEFT_OUT and f.parent != folder]
    shown = set().union(*(leads.get(file, set()) for file in seen))
    far = [f for f in far if not (f.is_relative_to(folder / SOURCES) and f in shown)]
    bad += [f"{file.relative_to(folder)}: more than {CLICKS} clicks from home" for file in far]
    print(f"site: {len(files)} pages, {sum(len(p.links) for p in pages.values())} links")
    return bad


def main() -> int:
    bad = check(Path(sys.argv[1]).resolve())
    print(
        "\n".join(f"check_site: {line}" for line in bad), file=sys.stderr, end="\n" if bad else ""
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
