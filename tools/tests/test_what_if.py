# SPDX-License-Identifier: Apache-2.0
"""`velo what-if`: its grid, what it runs, the table that keeps it, and what it concludes."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from velo import cli
from velo.cluster import apart, grid, grid_page
from velo.cluster.grid import Base, Findings, Point, Run, Slope, Table
from velo.errors import UsageError, VeloError

BASE = Base(("--mtl", "-n", "2"), ("prog", "a b"), 2, 32, 400e6, 200.0, {"store": 90})


def made_up(point: Point) -> float:
    """A program that passes 10 cables, sends 20 lines and moves 3,000 bytes in a row."""
    gap_ns = 1e9 / point.rate if point.rate else 0.0
    return 5000 + 10 * point.latency_ns + 20 * gap_ns + 3000e9 / point.bandwidth


def runs(points: Sequence[Point]) -> list[Run]:
    return [Run(p, made_up(p), 0.25, "f00", BASE.command(p)) for p in points]


def grid_points() -> list[Point]:
    return grid.points(BASE, [100, 200], [1e6, 2e6], [800e6])


def test_the_grid_has_every_network_and_begins_with_the_one_to_begin_with() -> None:
    points = grid_points()
    assert points[0] == Point(0, None, 400e6)
    assert len(points) == len(set(points)) == 3 * 3 * 2
    assert len(grid.points(BASE, [100, 100], [], [400e6])) == 2


def test_a_network_is_made_by_cable_gap_and_clock() -> None:
    words = BASE.arguments(Point(100, 2e6, 800e6))
    # 800 MB/s of 4 bytes are 200 MHz; 300 ns are 60 of its cycles, 2 M/s are 500 ns a line.
    assert words == ["sim", "--mtl", "-n", "2", "--clock-mhz", "200", "--cable-cycles", "60",
                     "--host-ns", "store=90,gap=500"]  # fmt: skip
    assert BASE.command(Point(0, None, 400e6)).endswith("--host-ns store=90 -- prog 'a b'")


def test_slopes_count_what_the_program_does_in_a_row() -> None:
    found = Findings.of(runs(grid_points()))
    assert [s.axis for s in found.slopes] == ["latency", "rate", "bandwidth"]
    assert [s.count for s in found.slopes] == pytest.approx([10, 20, 3000])
    first, second, third = found.sentences()
    assert "passes 10 cables one after the other" in first
    assert "has 20 lines sent one after the other" in second
    assert "has 3,000 bytes moved one after the other" in third


def test_an_axis_that_did_not_vary_says_nothing() -> None:
    found = Findings.of(runs(grid.points(BASE, [100], [], [])))
    assert [s.axis for s in found.slopes] == ["latency"]


def test_a_time_that_stays_follows_nothing() -> None:
    slope = Slope.of("latency", [0, 100, 200], [7000, 7000, 7000])
    assert slope.sentence(7000) == "latency: the run time does not follow it."


def test_a_time_that_is_no_line_is_not_taken_for_one() -> None:
    slope = Slope.of("rate", [0, 100, 200, 300], [1000, 1000, 1000, 9000])
    assert "is no line over it" in slope.sentence(1000) and "9.00 times" in slope.sentence(1000)


def test_a_table_keeps_runs_for_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    first, *others = runs(grid_points())
    table = Table(path, BASE)
    assert first.point not in table
    table.add(first)
    table.add(others[-1])
    again = Table(path, BASE)
    assert again[first.point] == first and again[others[-1].point] == others[-1]
    assert others[0].point not in again
    # Another program's runs are others, even on the same network.
    other = Base(BASE.words, ("prog2",), 2, 32, 400e6, 200.0, {})
    assert first.point not in Table(path, other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no table of velo what-if"),
        ("x,y\n", "is no table of velo what-if"),
        (",".join(Table.HEAD) + "\n1,2,3\n", "line 2: it is torn"),
        (",".join(Table.HEAD) + "\n1,2,three,4,5,f,c\n", "line 2: it is torn"),
        ("\0", "is no table"),
    ],
)
def test_a_file_that_is_no_table_is_refused_and_stays(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        Table(path, BASE)
    assert path.read_text() == text


def test_runs_are_read_from_the_simulator_as_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    points = grid.points(BASE, [100], [], [])

    def ends(calls: list[list[str]], at_once: int, timeout_s: float) -> object:
        del timeout_s
        assert at_once == 2
        for number in (1, 0):
            file = Path(calls[number][calls[number].index("--json") + 1])
            file.write_text(
                json.dumps({"virtual_time_ps": 7e6, "computed_ps": 7e6, "hash": f"h{number}"})
            )
            yield number, ""

    monkeypatch.setattr(apart, "side_by_side", ends)
    found = list(grid.measure(BASE, points, 2))
    assert [run.point for run in found] == [points[1], points[0]]
    assert [run.hash for run in found] == ["h1", "h0"]
    assert found[0].time_ns == 7000 and found[0].computing == 0.5


def test_a_run_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "side_by_side", lambda *_: iter([(0, VeloError("gone"))]))
    with pytest.raises(VeloError, match=r"velo sim .* prog 'a b': gone"):
        list(grid.measure(BASE, grid_points(), 2))


def test_the_page_has_a_picture_of_each_axis() -> None:
    found = Findings.of(runs(grid_points()))
    text = grid_page.render(found)
    assert text.count("<svg") == 3 and text.count("<code>f00</code>") == 18
    assert "passes 10 cables" in text
    said = json.loads(found.to_json())
    assert len(said["runs"]) == 18 and len(said["findings"]) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "true"], "what if what?"),
        (["--latency", "x", "--", "true"], "'x' is not a number above 0"),
        (["--latency", "5"], "which program?"),
        (["--latency", "5", "--table", "/no/such/x.csv", "--", "true"], "there is no such folder"),
    ],
)
def test_mistakes_are_named_before_anything_runs(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(cli.main(["what-if", *words]))
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
