# SPDX-License-Identifier: Apache-2.0
"""Tables, screen and progress, on a terminal and in a file."""

import io
import os

import pytest

from velo.display import BAR_WIDTH, Bar, Console, Screen, Table, crop, paint, plain


class Terminal(io.StringIO):
    """A window of 40 x 4 characters."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 4)))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def table() -> Table:
    found = Table("<name", ">value", "<why")
    found.add_row("a", paint("1", "red"), "short")
    found.add_row("across all of the columns there are")
    found.add_row("long name", "1,000", "many words that take more room than this window has")
    return found


def test_columns_are_as_wide_as_their_cells() -> None:
    out = io.StringIO()
    Console(out).print(table())
    assert out.getvalue().splitlines() == [
        "name       value  why",
        "a              1  short",
        "across all of the columns there are",
        "long name  1,000  many words that take more room than this window has",
    ]


def test_a_last_column_wraps_where_the_window_is_narrow(terminal: Terminal) -> None:
    Console(terminal).print(table())
    lines = [plain(line) for line in terminal.getvalue().splitlines()]
    assert lines[-3:] == [
        "long name  1,000  many words that take",
        "                  more room than this",
        "                  window has",
    ]


def test_styles_are_shown_on_terminals_that_want_them(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    Console(file).print(paint("x", "red"), style="dim")
    assert file.getvalue() == "x\n"
    Console(terminal).print(paint("x", "red"))
    assert terminal.getvalue() == "\x1b[31mx\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    other = Terminal()
    Console(other).print(paint("x", "red"), style="dim")
    assert other.getvalue() == "x\n"


def test_a_line_is_cropped_by_what_is_seen_of_it() -> None:
    assert crop(f"ab{paint('cd', 'red')}ef", 3) == "ab\x1b[31mc\x1b[0m"
    assert crop("abc", 3) == "abc"


def test_a_screen_shows_what_fits_and_gives_the_window_back(terminal: Terminal) -> None:
    with Screen(Console(terminal)) as screen:
        screen.show("x" * 50, *map(str, range(9)))
    enter, shown = terminal.getvalue().split("\x1b[H")
    body, leave = shown.split("\x1b[J")
    assert [line.removesuffix("\x1b[K") for line in body.split("\n")] == ["x" * 40, "0", "1", "2"]
    assert ("\x1b[?1049h" in enter, "\x1b[?1049l" in leave) == (True, True)


def test_a_bar_stays_on_its_line_and_is_wiped(terminal: Terminal) -> None:
    with Bar(Console(terminal), total=4) as bar:
        bar.step("half-way")
        bar.advance_to(2, "a result that is too long for what is left")
    *_, last, end = terminal.getvalue().split("\r")
    assert "█" * (BAR_WIDTH // 2) + "░" in last
    assert len(last.removesuffix("\x1b[K")) == 39
    assert end == "\x1b[K"
    assert "\n" not in terminal.getvalue()


def test_a_log_gets_a_line_a_step() -> None:
    out = io.StringIO()
    with Bar(Console(out), total=4) as bar:
        bar.step("first")
        bar.advance_to(2)
        bar.step("second")
    assert out.getvalue() == "  0 % [   0 s] first\n 50 % [   0 s] second\n"
