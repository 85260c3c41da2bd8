# SPDX-License-Identifier: Apache-2.0
"""The report's first screen is true to the records, and the page fits a window of 1,200 px."""

import functools
import re
from dataclasses import replace

import made_up
import made_up_mpi
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from test_report import Page

from bench.aims import aims
from velo import tree
from velo.report import summary
from velo.report.names import plain
from velo.report.opening import opening
from velo.results.records import Record, Run

# The widest of the fonts that the page names, and a CSS pixel as the unit.
FONT = FontProperties(family="DejaVu Sans")
REM = 16
CONTENT_REM = 70 - 2 * 1.5
CELL_GAP_REM = 0.9
TABLE = re.compile(r"<table.*?</table>", re.DOTALL)


def netpipe(hop: str = "near", run: Run = made_up_mpi.RUN) -> list[Record]:
    """What `velo netpipe --json` leaves: two stacks."""
    return [
        replace(r, hop=hop, run=run)
        for r in made_up_mpi.result()
        if r.mode == "netpipe" and r.stack in ("velo mtl", "ompi-4.1 vader")
    ]


def native(*stacks: str) -> list[Record]:
    return [r for r in made_up.result() if r.stack in stacks]


def test_a_run_of_perf_and_netpipe_begins_with_both() -> None:
    found = opening([*native("velo"), *netpipe()], "near")
    assert found.conclusion == (
        "Between two processes on this machine velo carries 8 bytes in 48.5 ns, 1.13 times what "
        "one cache line alone takes, and NetPIPE over velo is 1.96 times as fast as over Open MPI "
        "4.1's own (vader) with 8 B, 2.93 times with 1 KiB and 9.18 times with 64 KiB."
    )
    assert found.grid
    assert found.grid.headings == (
        "program", "over", "8 B", "64 B", "1 KiB", "4 KiB", "64 KiB", "1 MiB",
    )  # fmt: skip
    assert [row[:3] for row in found.grid.rows] == [
        ("C, without MPI", "velo", "48.5 ns"),
        ("MPI, NetPIPE", "velo (mtl)", "62.1 ns"),
        ("MPI, NetPIPE", "Open MPI 4.1's own (vader)", "122 ns"),
    ]
    assert found.picture
    for label in ("C over velo", "MPI over velo (mtl)", "MPI over Open MPI 4.1's own (vader)"):
        assert f">{label}<" in found.picture
    assert not found.moved
    assert found.limit == "43.0 ns"


def test_a_page_of_perf_alone_says_how_others_come_to_it() -> None:
    text = summary.render(native("velo"))
    assert "Half round trip, velo beside others" not in text
    assert "Nothing else was measured beside velo" in text
    assert "times as fast" not in text


def test_where_others_are_faster_it_says_so() -> None:
    slow = made_up_mpi.changed(
        netpipe(), lambda r: r.stack == "velo mtl" and r.size_bytes == 8, 5.0
    )
    assert (
        "is 0.392 times as fast as over Open MPI 4.1's own (vader) with 8 B,"
        in opening(slow, "near").conclusion
    )


def test_many_others_are_the_best_of_them_at_each_size_and_are_shown_once() -> None:
    found = opening(made_up_mpi.result(), "near")
    assert "an MPI ping-pong over velo is 1.46 times as fast" in found.conclusion
    assert "as over the best of 6 others with 8 B, 2.48 times with 1 KiB and" in found.conclusion
    assert found.grid
    assert {row[0] for row in found.grid.rows} == {"MPI, velo-mpi-perf"}
    assert len(found.grid.rows) == len(made_up_mpi.STACKS)


def test_a_size_that_one_of_the_others_lacks_is_not_compared() -> None:
    some = [
        r
        for r in made_up_mpi.result()
        if not (r.stack == "impi-2021.19" and r.size_bytes > 4096) and r.mode == "mpi latency"
    ]
    assert "with 8 B and 2.48 times with 1 KiB." in opening(some, "near").conclusion


def test_figures_of_two_commands_are_not_compared() -> None:
    ours = [r for r in netpipe() if r.stack == "velo mtl"]
    theirs = [r for r in netpipe(run=Run(id="another")) if r.stack != "velo mtl"]
    found = opening([*ours, *theirs], "near")
    assert not found.has_peers
    assert "times as fast" not in found.conclusion
    # A later command with both counts, though one with velo alone came after it.
    newest = [replace(r, value=r.value * 2, ratio=r.ratio * 2) for r in ours]
    newest = [replace(r, run=Run(id="newest")) for r in newest]
    found = opening([*netpipe(run=Run(id="both")), *newest], "near")
    assert "is 1.96 times as fast" in found.conclusion


def test_a_comparison_of_the_other_class_is_named_as_such() -> None:
    found = opening([*native("velo"), *netpipe("far")], "near")
    assert "as over Open MPI 4.1's own (vader) on far cores with 8 B," in found.conclusion
    assert found.grid
    assert found.grid.rows[1][0] == "MPI, NetPIPE (far cores)"


def test_there_is_one_limit_before_the_targets() -> None:
    text = summary.render([*made_up.result(), *netpipe()], aims)
    first, _, rest = text.partition("<h2>What velo aims at")
    for limit in ("one-line stream", "peer&#39;s cache", "bare futexes"):
        assert limit not in first
        assert limit in rest
    assert "One cache line alone takes 43.0 ns" in first


def test_limits_that_differ_are_both_named_beside_the_picture() -> None:
    """Where the cores moved between velo perf and NetPIPE, their times do not compare."""
    moved = [
        replace(r, value=2 * r.value, limit=2 * r.limit) if r.mode == "netpipe" else r
        for r in [*native("velo"), *netpipe()]
    ]
    found = opening(moved, "near")
    assert "one line took 43.0 ns around one of them and 86.0 ns around another" in found.moved
    assert found.moved in summary.render(moved)


def test_words_that_only_velo_uses_are_explained_where_they_occur() -> None:
    words = summary.render([*native("velo"), *netpipe()]).partition("<h2>Words")[2]
    for word in ("mtl", "vader", "near, far", "half round trip"):
        assert f"<dt>{word}</dt>" in words
    assert "<dt>btl</dt>" not in words


def test_the_page_says_what_to_do_next(monkeypatch: pytest.MonkeyPatch) -> None:
    text = summary.render(native("velo"))
    assert "<code>build/bin/velo run -n 2 ./my-mpi-program</code>" in text
    monkeypatch.setattr(tree, "CHECKOUT", None)
    assert "<code>velo run -n 2 ./my-mpi-program</code>" in summary.render(native("velo"))


@pytest.mark.parametrize("stack", [*made_up_mpi.STACKS, "velo", "ucx-1.13 am"])
def test_no_stack_is_called_by_its_label_alone(stack: str) -> None:
    assert stack == "velo" or plain(stack) != stack


def tables(text: str) -> list[list[list[str]]]:
    return [Page(table).rows for table in TABLE.findall(text)]


RESULTS = {
    "perf": native("velo"),
    "perf, far": [r for r in native("velo") if r.hop == "far"],
    "perf and netpipe": [*native("velo"), *netpipe()],
    "bench": [*made_up.result(), *made_up_mpi.result()],
    "one rate": [r for r in made_up_mpi.result() if r.mode == "mpi rate"],
    "limits": [r for r in made_up_mpi.result() if r.mode == "limit"],
}


@pytest.mark.parametrize("name", RESULTS)
def test_no_table_has_an_empty_column(name: str) -> None:
    found = tables(page(name))
    assert found
    for rows in found:
        for column in zip(*rows, strict=True):
            assert set(column[1:]) - {"–", ""}, column[0]


def width_px(text: str, size_px: float) -> float:
    return size_px * sum(map(character_em, text))


@functools.cache
def character_em(character: str) -> float:
    """How far the font goes on: between two others, so that a blank has a width, too."""
    around, alone = (
        TextPath((0, 0), text, 100, prop=FONT).get_extents().width
        for text in (f"l{character}l", "ll")
    )
    return (around - alone) / 100


@functools.cache
def page(name: str) -> str:
    return summary.render(RESULTS[name], aims)


@pytest.mark.parametrize("name", RESULTS)
def test_every_table_fits_into_1200_px(name: str) -> None:
    text = page(name)
    for table in TABLE.findall(text):
        kind = re.match(r'<table class="(\w+)"', table)
        size = kind and re.search(rf"\.{kind[1]} {{ font-size: (\.\d+)rem", text)
        size_px = float(size[1] if size else 1) * REM
        columns: list[float] = []
        for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL):
            cells = re.findall(r"<t[dh]([^>]*)>(.*?)</t[dh]>", row, re.DOTALL)
            columns = columns or [0.0] * len(cells)
            for at, (attributes, cell) in enumerate(cells):
                # Figures stay on their line; words do not.
                parts = [cell.strip()] if 'class="n"' in attributes else cell.split()
                widest = max((width_px(part, size_px) for part in parts), default=0)
                columns[at] = max(columns[at], widest)
        whole_px = sum(columns) + CELL_GAP_REM * REM * len(columns)
        assert whole_px <= CONTENT_REM * REM, kind
