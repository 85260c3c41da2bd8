# SPDX-License-Identifier: Apache-2.0
"""The documentation as one site: `make docs` builds it into build/docs.

Pages are taken from where they lie, so the source folder of Sphinx is the checkout. scripts/docs
first makes pages of other sources (man pages, layouts) in build/site.
"""

import difflib
import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pygments
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

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
    "driver/Documentation/**.rst",
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


class Stage(SphinxDirective):
    """A stage of the tutorial, `examples/tutorial/NAME.*`: a tab a language, with what is new since
    the stage `after`, and the whole program. An option named as a language is what its tab says
    where that language has no program."""

    LANGUAGES = (
        ("c", "C", "c"),
        ("cpp", "C++", "cc"),
        ("rust", "Rust", "rs"),
        ("python", "Python", "py"),
    )
    required_arguments = 1
    option_spec = dict.fromkeys(("after", "cpp", "rust", "python"), directives.unchanged)

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        lines = ["`````{tab-set}", ":sync-group: language"]
        for language, title, suffix in self.LANGUAGES:
            lines += [f"````{{tab-item}} {title}", f":sync: {language}", ""]
            lines += [*self.tab(language, suffix), "````"]
        node = nodes.container()
        self.state.nested_parse(StringList([*lines, "`````"], self.get_source_info()[0]), 0, node)
        return node.children

    def tab(self, language: str, suffix: str) -> list[str]:
        """What the tab of a language holds."""
        folder = "/examples/tutorial"
        program = f"{folder}/{self.arguments[0]}.{suffix}"
        if not (ROOT / program[1:]).exists():
            return [self.options[language]]
        whole = [f"```{{literalinclude}} {program}", f":language: {language}", ":lines: 2-", "```"]
        if "after" not in self.options:
            return whole
        before = f"{folder}/{self.options['after']}.{suffix}"
        self.env.note_dependency(ROOT / before[1:])
        # Without the licence and what the program says of itself.
        old, new = ((ROOT / path[1:]).read_text().splitlines()[2:] for path in (before, program))
        changes = list(difflib.unified_diff(old, new, lineterm=""))[3:]
        changes = [" ⋮" if line.startswith("@@") else line for line in changes]
        return [
            "```{code-block} diff",
            *changes,
            "```",
            ":::{dropdown} The whole program",
            *whole,
            ":::",
        ]


def link_sources(app: Sphinx, doctree: nodes.document) -> None:
    """A link to a source file leads to a page that shows it, and not to a download."""
    docname = app.env.current_document.docname
    sources = []
    for link in list(doctree.findall(addnodes.download_reference)):
        path = (ROOT / docname).parent.joinpath(link["reftarget"]).resolve()
        if not path.is_file():
            continue  # Sphinx says so.
        sources.append(f"source/{path.relative_to(ROOT)}")
        uri = os.path.relpath(f"{sources[-1]}.html", Path(docname).parent)
        link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))
    # Sphinx keeps it as long as the page, and collects what processes beside this one have read.
    app.env.metadata[docname]["sources"] = sources


def linked_sources(app: Sphinx) -> set[str]:
    """What link_sources() kept of all pages."""
    return {page for data in app.env.metadata.values() for page in data.get("sources", ())}


def show_sources(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page of each source file that another page links to."""
    form = HtmlFormatter(linenos="inline")
    for page in sorted(linked_sources(app)):
        path = page.removeprefix("source/")
        try:
            lexer = get_lexer_for_filename(path)
        except ClassNotFound:
            lexer = TextLexer()
        code = pygments.highlight((ROOT / path).read_text(encoding="utf-8"), lexer, form)
        body = f'<section class="source"><h1>{html.escape(path)}</h1>\n{code}</section>'
        yield page, {"title": path, "body": body}, "page.html"


def drop_stale(app: Sphinx, exception: Exception | None) -> None:
    """A page that no longer exists must not stay behind: links to it would seem to lead on."""
    made = {"index", "search", "genindex", *linked_sources(app), *app.env.found_docs}
    for page in Path(app.outdir).rglob("*.html"):
        if page.relative_to(app.outdir).with_suffix("").as_posix() not in made:
            page.unlink()


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_directive("stage", Stage)
    app.connect("source-read", link_folders)
    app.connect("doctree-read", link_sources, priority=100)  # Before Sphinx collects downloads.
    app.connect("html-collect-pages", show_sources)
    app.connect("build-finished", drop_stale)
