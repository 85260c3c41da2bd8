# SPDX-License-Identifier: Apache-2.0
"""What all commands share of the display: the console, tables, and how far a measurement is.

Of Python's own library alone, so that the command works wherever Python does.
"""

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TextIO

LINE_INTERVAL_S = 10.0
# Where nobody's window sets a width, tables must not be cut.
FILE_WIDTH = 120
GAP = "  "
# A column that wraps stays readable.
WRAP_WIDTH_MIN = 24
BAR_WIDTH = 24

STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_ESCAPE_OR_CHARACTER = re.compile(r"(\x1b\[[0-9;]*m)|.", re.DOTALL)
END = "\x1b[0m"


def paint(text: str, style: str) -> str:
    """A text in one of STYLES; the console takes it away again where it cannot be shown."""
    return f"\x1b[{STYLES[style]}m{text}{END}" if style and text else text


def plain(text: str) -> str:
    """A text without styles."""
    return _ESCAPE.sub("", text)


def crop(text: str, width: int) -> str:
    """The part of a line that fits; its styles end with it."""
    kept: list[str] = []
    for match in _ESCAPE_OR_CHARACTER.finditer(text):
        if match[1] is None:
            width -= 1
        if match[1] is not None or width >= 0:
            kept.append(match[0])
    return "".join(kept)


class Table:
    """Rows below a bold heading, in columns as wide as their widest cell.

    Headings say how their column is aligned: "<name" to the left, ">name" to the right. The last
    column, if it is aligned to the left, wraps where the console is too narrow. A row of one cell
    is a line across the columns.
    """

    def __init__(self, *headings: str, title: str = "") -> None:
        self.title = title
        self.rows: list[tuple[str, ...]] = []
        """The cells of each row, without its style."""
        self._align = [heading[0] for heading in headings]
        self._headings = [heading[1:] for heading in headings]
        self._styles: list[str] = []

    def add_row(self, *cells: str, style: str = "") -> None:
        """A row; cells may be painted each by itself."""
        self.rows.append(cells)
        self._styles.append(style)

    def lines(self, width: int) -> Iterator[str]:
        """The table as it stands on a console of so many columns."""
        if self.title:
            yield paint(self.title, "bold")
        widths = self._widths()
        if widths and self._align[-1] == "<":
            rest = width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
            widths[-1] = min(widths[-1], max(rest, WRAP_WIDTH_MIN))
        if any(self._headings):
            yield paint(self._row(self._headings, widths), "bold")
        for cells, style in zip(self.rows, self._styles, strict=True):
            for part in _wrapped(cells, widths):
                yield paint(self._row(part, widths), style)

    def _widths(self) -> list[int]:
        rows = [self._headings, *(cells for cells in self.rows if len(cells) > 1)]
        return [
            max(len(plain(cells[at])) if at < len(cells) else 0 for cells in rows)
            for at in range(len(self._headings))
        ]

    def _row(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        out = []
        for cell, align, width in zip(cells, self._align, widths, strict=False):
            space = " " * (width - len(plain(cell)))
            out.append(cell + space if align == "<" else space + cell)
        return GAP.join(out).rstrip()


def _wrapped(cells: Sequence[str], widths: Sequence[int]) -> Iterator[Sequence[str]]:
    """A row as one or more, of which the later ones go on with its last cell."""
    if len(cells) != len(widths) or len(plain(cells[-1])) <= widths[-1]:
        yield cells
        return
    first, *more = textwrap.wrap(plain(cells[-1]), widths[-1])
    yield (*cells[:-1], first)
    for text in more:
        yield (*("" for _ in cells[:-1]), text)


Shown = str | Table


class Console:
    """Where a command says what it found: as wide as the window, or wide enough for our tables."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file

    @property
    def file(self) -> TextIO:
        return self._file or sys.stdout

    @property
    def is_terminal(self) -> bool:
        return self.file.isatty()

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns if self.is_terminal else FILE_WIDTH

    def print(self, *shown: Shown, style: str = "") -> None:
        """Texts and tables, one below the other; without any, an empty line."""
        for line in self.lines(*shown or ("",)):
            print(paint(line, style) if style and self._has_styles else line, file=self.file)
        self.file.flush()  # A reader at the other end of a pipe sees each look as it is taken.

    def lines(self, *shown: Shown) -> Iterator[str]:
        """What print() would print."""
        for item in shown:
            lines = item.lines(self.width) if isinstance(item, Table) else item.split("\n")
            yield from lines if self._has_styles else map(plain, lines)

    @property
    def _has_styles(self) -> bool:
        return self.is_terminal and not os.environ.get("NO_COLOR")


class Screen:
    """A terminal's whole window, shown anew at will; use it in a with block."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> "Screen":
        self._write("\x1b[?1049h\x1b[?25l")  # The other buffer, no cursor.
        return self

    def __exit__(self, *_: object) -> None:
        self._write("\x1b[?25h\x1b[?1049l")

    def show(self, *shown: Shown) -> None:
        """As much as fits of texts and tables, from the top."""
        width, height = shutil.get_terminal_size()
        lines = [crop(line, width) for line in self._console.lines(*shown)][:height]
        # Each line and then what is below is wiped after it is written, so that nothing flickers.
        self._write("\x1b[H" + "\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


class Bar:
    """The progress of a run of known or unknown length; use it in a with block.

    `total` may grow while it runs. Where the console is no terminal, a line is printed for each new
    step and then at most every ten seconds, so that a log stays readable.
    """

    def __init__(self, console: Console, total: float | None = None) -> None:
        self._console = console
        self._total = total
        self._done = 0.0
        self._step = "starting"
        self._start_s = self._last_line_s = time.monotonic()

    def __enter__(self) -> "Bar":
        if self._console.is_terminal:
            self._draw("")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            print("\r\x1b[K", end="", file=self._console.file, flush=True)

    def step(self, name: str) -> None:
        """A new part begins."""
        self._step = name
        if self._console.is_terminal:
            self._draw("")
        else:
            self._line("")

    def advance_to(self, done: float, last: str = "") -> None:
        """`done` of the total is finished; `last` is the newest result in a few words."""
        self._done = done
        if self._console.is_terminal:
            self._draw(last)
        elif time.monotonic() - self._last_line_s > LINE_INTERVAL_S:
            self._line(last)

    def _draw(self, last: str) -> None:
        elapsed_s = int(time.monotonic() - self._start_s)
        part = min(1.0, self._done / self._total) if self._total else 0.0
        full = round(part * BAR_WIDTH)
        percent = f"{100 * part:3.0f} %" if self._total else "     "
        bar = "█" * full + "░" * (BAR_WIDTH - full)
        text = f"{self._step} {bar} {percent} {elapsed_s // 60}:{elapsed_s % 60:02} {last}"
        text = text[: self._console.width - 1]
        print(f"\r{text}\x1b[K", end="", file=self._console.file, flush=True)

    def _line(self, last: str) -> None:
        self._last_line_s = time.monotonic()
        part = f"{100 * self._done / self._total:3.0f} % " if self._total else ""
        elapsed_s = self._last_line_s - self._start_s
        text = f"{part}[{elapsed_s:4.0f} s] {self._step}"
        self._console.print(f"{text}: {last}" if last else text)
