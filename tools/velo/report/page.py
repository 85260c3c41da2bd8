# SPDX-License-Identifier: Apache-2.0
"""What every HTML page is made of. A page needs nothing else: no network, no script, no font."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

# Of what all pages share, such as their style.
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Tile:
    """A headline figure."""

    title: str
    value: str
    detail: str


@dataclass(frozen=True)
class Figure:
    """A picture with the sentence that says what it shows."""

    title: str
    svg: Markup
    caption: str


NONE = "–"
"""What a cell has where nothing was measured."""


@dataclass(frozen=True)
class Grid:
    """A table as text."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    """So many columns from the left hold words, the others figures."""


@dataclass(frozen=True)
class Aims:
    """What those who work on velo see beside the results: bench/aims.py makes it."""

    tables: Sequence[tuple[str, Sequence[Any]]] = ()
    """Titles, and targets with what was measured."""
    limits: Grid | None = None
    pictures: Sequence[Any] = ()
    latency: Sequence[tuple[int, float]] = ()
    """Message size, and what its ratio to the limit is to be at most."""
    senders: Sequence[tuple[int, float]] = ()
    """Connected senders, and the same beside one sender."""


NO_AIMS = Aims()


def without_empty_columns(grid: Grid) -> Grid:
    """A grid without the columns of figures in which nothing was measured."""
    kept = [
        at
        for at in range(len(grid.headings))
        if at < grid.texts or any(row[at] != NONE for row in grid.rows)
    ]
    headings, *rows = (tuple(row[at] for at in kept) for row in (grid.headings, *grid.rows))
    return replace(grid, headings=headings, rows=tuple(rows))


def template(path: Path) -> Template:
    """The template in a file, which may include those of its folder and of this one."""
    environment = Environment(
        loader=FileSystemLoader([path.parent, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(path.name)
