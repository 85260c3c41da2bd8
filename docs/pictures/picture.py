# SPDX-License-Identifier: Apache-2.0
"""What a picture of the documentation is made of, and where facts in it are read."""

import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STYLE = """\
text{font:14px system-ui,"Segoe UI","DejaVu Sans",sans-serif;fill:#1b2228}
.small{font-size:12px}.muted{fill:#5d6872}.head{font-weight:650}.value{font-size:16px;font-weight:650}
.middle{text-anchor:middle}.end{text-anchor:end}
rect{stroke:#5d6872;fill:#f5f7f9;rx:5}
.page{stroke:none;fill:#fff;rx:0}.velo{fill:#d7e9f5;stroke:#0072b2}.hard{fill:#dff1ea;stroke:#009e73}
.user{fill:#fdf0dc;stroke:#b97f00}.old{fill:#e9ebee}.dark{fill:#3c464e;stroke:#3c464e}
.group{fill:none;stroke-dasharray:5 4}
path{stroke:#3c464e;fill:none;stroke-width:1.6;marker-end:url(#tip)}.plain{marker-end:none}
.dashed{stroke-dasharray:5 4}"""


class Picture:
    """Boxes, words and arrows. Coordinates are pixels from the top left corner."""

    def __init__(self, title: str, width: int, height: int) -> None:
        self.title, self.width, self.height = title, width, height
        self.parts: list[str] = []

    def box(self, x: float, y: float, w: float, h: float, *lines: str, kind: str = "") -> None:
        """A box with lines of text in its middle; the first one is its name."""
        self.parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{w}" height="{h}"/>')
        top = y + h / 2 + 5 - 8.5 * (len(lines) - 1)
        for at, line in enumerate(lines):
            style = "head" if at == 0 and len(lines) > 1 else "small muted" if at else ""
            self.text(x + w / 2, top + 17 * at, line, f"middle {style}")

    def group(self, x: float, y: float, w: float, h: float, name: str) -> None:
        """A frame around others."""
        self.parts.append(f'<rect class="group" x="{x}" y="{y}" width="{w}" height="{h}"/>')
        self.text(x + 10, y + 19, name, "head")

    def text(self, x: float, y: float, line: str, kind: str = "") -> None:
        self.parts.append(f'<text class="{kind}" x="{x}" y="{y}">{escape(line)}</text>')

    def lines(self, x: float, y: float, *lines: str, kind: str = "small muted") -> None:
        """Several lines of small text."""
        for at, line in enumerate(lines):
            self.text(x, y + 17 * at, line, kind)

    def arrow(self, *points: tuple[float, float], kind: str = "") -> None:
        path = " ".join(f"{'L' if at else 'M'}{x} {y}" for at, (x, y) in enumerate(points))
        self.parts.append(f'<path class="{kind}" d="{path}"/>')

    def svg(self) -> str:
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{STYLE}</style>",
                '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
                'markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" '
                'style="fill:#3c464e;stroke:none"/></marker></defs>',
                f'<rect class="page" width="{self.width}" height="{self.height}"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


def row_of_boxes(
    p: Picture,
    y: float,
    names: list[tuple[str, str]],
    widths: list[float],
    kind: str,
    x: float = 20,
) -> float:
    """Boxes from left to right with arrows between them; where the last one ends."""
    for at, (name, width) in enumerate(zip(names, widths, strict=True)):
        p.box(x, y, width, 56, *(part for part in name if part), kind=kind)
        x += width
        if at < len(names) - 1:
            p.arrow((x, y + 28), (x + 24, y + 28))
            x += 26
    return x


def find(page: str, pattern: str) -> tuple[str, ...]:
    """What the groups of a pattern match in a file; it is an error if nothing does."""
    match = re.search(pattern, (ROOT / page).read_text(encoding="utf-8"))
    if not match:
        raise SystemExit(f"draw.py: {page} has nothing like {pattern}")
    return match.groups()
