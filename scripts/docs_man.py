#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make a page of the site of each man page, and a list of them.

  docs_man.py MAN_FOLDER OUTPUT_FOLDER

mandoc writes each page as HTML, which the site takes as it is.
"""

import re
import subprocess
import sys
from pathlib import Path


def summary(page: Path) -> str:
    """What stands behind the dash of NAME."""
    found = re.search(r"\.SH NAME\n(.*)", page.read_text(encoding="utf-8"))
    text = found[1].partition(r" \- ")[2] if found else ""
    return text.replace("\\-", "-").replace("\\fB", "").replace("\\fP", "")


CALL = re.compile(r"<b>([\w-]+)</b>\((\d)\)")


def link(match: re.Match[str], pages: set[str]) -> str:
    """Another page that is named becomes a link to it."""
    name = f"{match[1]}.{match[2]}"
    return f'<a href="{name}.html">{match[0]}</a>' if name in pages else match[0]


def main() -> int:
    source, output = map(Path, sys.argv[1:])
    pages = sorted(source.glob("man*/*"), key=lambda page: (page.suffix != ".7", page.name))
    texts: dict[str, str] = {}
    for page in pages:
        name, section = page.stem, page.suffix[1:]
        html = subprocess.run(
            ["mandoc", "-T", "html", "-O", "fragment,man=%N.%S.html", page],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        body = re.sub(r'<table class="(head|foot)">.*?</table>', "", html, flags=re.DOTALL)
        body = CALL.sub(lambda m: link(m, {other.name for other in pages}), body)
        texts[f"{page.name}.md"] = (
            f"---\norphan: true\n---\n\n# {name}({section})\n\n```{{raw}} html\n{body}\n```\n"
        )
    calls = [page for page in pages if page.suffix in (".3", ".7")]
    rows = [f"| [{page.stem}]({page.name}.md) | {summary(page)} |" for page in calls]
    texts["index.md"] = (
        "# C\n\nThe headers are the reference; each call has a man page (`man velo_send`), and "
        "each header one that begins with what it is for (`man 7 velo`).\n\n"
        "| page | what |\n|---|---|\n" + "\n".join(rows) + "\n"
    )
    for old in output.glob("*.md"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        path = output / name
        # Sphinx reads a page again if it is newer.
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
