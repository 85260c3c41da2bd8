# SPDX-License-Identifier: Apache-2.0
"""The documentation as one site: `make docs` builds it into build/docs.

Pages are taken from where they lie, so the source folder of Sphinx is the checkout. scripts/docs
first makes pages of other sources (man pages, layouts) in build/site.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]

project = "velo"
author = "The velo authors"
release = re.search(r'VELO_VERSION_TEXT "(.*)"', (ROOT / "include/velo/velo.h").read_text())[1]

extensions = ["myst_parser", "sphinx_design"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "*.md",
    "adapters/**.md",
    "bindings/**.md",
    "driver/README.md",
    "driver/velo.rst",
    "rtl/*.md",
    "rtl/*/README.md",
    "sim/**.md",
    "tests/**.md",
    "transports/*/README.md",
    "build/site/**.md",
]
# Sphinx follows links in folders that it is not told to leave out: build/rtl has circles of them.
exclude_patterns = ["README.md", ".git", ".venv", "**/target", "**/node_modules"]
exclude_patterns += [
    f"build/{path.name}" for path in (ROOT / "build").iterdir() if path.name != "site"
]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# Sources and pictures that a page links to go along as they are.
html_theme = "furo"
html_title = f"velo {release}"
html_show_copyright = False
html_copy_source = False
html_extra_path = ["site"]
html_static_path = ["static"]
html_css_files = ["site.css"]
pygments_style = "friendly"
suppress_warnings = ["myst.header"]  # A page that is read in an editor may skip a level.

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```|^ {4}.*?$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)


def link_folders(app: Sphinx, docname: str, source: list[str]) -> None:
    """On a server of sources a link may lead to a folder. Here it leads to the page of that
    folder; where there is none, what is left is its name."""
    here = (ROOT / docname).parent

    def lead(match: re.Match[str]) -> str:
        text, path, anchor = match.groups()
        target = here / path
        if ":" in path or not target.is_dir():
            return match[0]
        page = target / "README.md"
        if page.is_file():
            return f"[{text}]({os.path.relpath(page, here)}{anchor or ''})"
        return text

    parts = CODE.split(source[0])
    # Every second part is code.
    parts[::2] = [LINK.sub(lead, part) for part in parts[::2]]
    source[0] = "".join(parts)


def drop_stale(app: Sphinx, exception: Exception | None) -> None:
    """A page that no longer exists must not stay behind: links to it would seem to lead on."""
    for page in Path(app.outdir).rglob("*.html"):
        name = page.relative_to(app.outdir).with_suffix("").as_posix()
        if name not in app.env.found_docs and name not in ("index", "search", "genindex"):
            page.unlink()


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", link_folders)
    app.connect("build-finished", drop_stale)
