# SPDX-License-Identifier: Apache-2.0
"""What all commands share of the display: the console, and how far a measurement is."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

LINE_INTERVAL_S = 10.0
# Where nobody's window sets a width, tables must not be cut.
FILE_WIDTH = 120


def console() -> Console:
    """Standard output: as wide as the window, or wide enough for our tables."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH)


class Bar:
    """The progress of a run of known or unknown length; use it in a with block.

    `total` may grow while it runs. Where the console is no terminal, a line is printed for each new
    step and then at most every ten seconds, so that a log stays readable.
    """

    def __init__(self, console: Console, total: float | None = None) -> None:
        self._console = console
        self._total = total
        self._done = 0.0
        self._step = ""
        self._start_s = self._last_line_s = time.monotonic()
        self._live = None
        if console.is_terminal:
            self._live = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(bar_width=None),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeElapsedColumn(),
                TextColumn("[dim]{task.fields[last]}"),
                console=console,
                transient=True,
            )
            self._task = self._live.add_task("starting", total=total, last="")

    def __enter__(self) -> "Bar":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def step(self, name: str) -> None:
        """A new part begins."""
        self._step = name
        if self._live:
            self._live.update(self._task, description=name, last="")
        else:
            self._line("")

    def advance_to(self, done: float, last: str = "") -> None:
        """`done` of the total is finished; `last` is the newest result in a few words."""
        self._done = done
        if self._live:
            self._live.update(self._task, completed=done, last=last)
        elif time.monotonic() - self._last_line_s > LINE_INTERVAL_S:
            self._line(last)

    def _line(self, last: str) -> None:
        self._last_line_s = time.monotonic()
        part = f"{100 * self._done / self._total:3.0f} % " if self._total else ""
        elapsed_s = self._last_line_s - self._start_s
        text = f"{part}[{elapsed_s:4.0f} s] {self._step}"
        self._console.print(f"{text}: {last}" if last else text, markup=False, highlight=False)
