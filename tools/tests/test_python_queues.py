# SPDX-License-Identifier: Apache-2.0
"""Queues of Python in `velo bench`: from the program's lines to records, tables and the page."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import bracket
from bench.python import compare
from velo import helpers, tree
from velo.cli import main
from velo.errors import VeloError
from velo.measure import limits
from velo.report import python_report, summary
from velo.report.opening import opening
from velo.results import records

# Queue -> half a round trip in s, messages a second, share of a processor; of 1 MiB ten times it.
SPEEDS = {
    "velo.Queue": (1e-6, 1.5e6, 2e-4),
    "multiprocessing.Queue": (25e-6, 250e3, 3e-4),
    "multiprocessing.Pipe": (0.5e-6, 600e3, 0.0),
}


def said(argv: Sequence[object], *_: object, **__: object) -> str:
    """What the program prints for the queue that it is called with."""
    if compare.PROGRAM not in argv:
        return ""
    latency, rate, idle = SPEEDS[str(argv[3])]
    lines = [
        {"mode": mode, "size_bytes": size, "value": value * factor}
        for size, factor in ((1024, 1), (65536, 10))
        for mode, value in (("latency", latency), ("rate", rate))
    ]
    lines.append({"mode": "idle", "size_bytes": 0, "value": idle})
    return "\n".join(map(json.dumps, lines))


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What looks at the raw line find before and after the runs, then 60 ns."""
    out: list[float] = []
    monkeypatch.setattr(helpers, "output", said)
    monkeypatch.setattr(
        limits, "look", lambda _: limits.Limits(out.pop(0) if out else 60.0, 1e7, {4096: 1e10})
    )
    return out


def measured(rounds: int) -> list[records.Record]:
    peers = bracket.Peers()
    for _ in range(rounds):
        for stack in SPEEDS:
            bracket.measure_python(stack, [0, 1], True, peers)
    return records.summarize(peers.samples, records.Run(id="one"))


@pytest.mark.usefixtures("hops")
def test_tables_have_velo_first_and_how_many_times_as_good_it_is() -> None:
    latency, rate, idle = python_report.grids(measured(1), "near")
    assert latency.title == "Python (near): half a round trip of a bytes object"
    assert latency.headings == ("queue", "1 KiB", "64 KiB")
    assert latency.rows == (
        ("velo.Queue", "1.00 µs", "10.0 µs"),
        ("multiprocessing.Pipe", "500 ns (0.5)", "5.00 µs (0.5)"),
        ("multiprocessing.Queue", "25.0 µs (25)", "250 µs (25)"),
    )
    assert rate.rows[2][1] == "250 k/s (6)"
    assert idle.rows == (
        ("velo.Queue", "0.02 %"),
        ("multiprocessing.Pipe", "0.00 %"),
        ("multiprocessing.Queue", "0.03 %"),
    )


def test_what_is_missing_is_named_by_the_last_line_of_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise VeloError("python failed:\nTraceback (most recent call last):\nNo module named 'zmq'")

    monkeypatch.setattr(tree, "CHECKOUT", None)
    monkeypatch.setattr(helpers, "output", fail)
    assert compare.missing("pyzmq ipc") == "No module named 'zmq'"
    assert compare.missing("multiprocessing.Pipe") is None


def test_a_run_during_which_the_cores_moved_does_not_count(hops: list[float]) -> None:
    hops += [60, 60, 60, 200]
    assert {r.stack for r in measured(1)} == set(SPEEDS) - {"multiprocessing.Queue"}


@pytest.mark.usefixtures("hops")
def test_the_page_concludes_from_them_where_there_is_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "python.json"
    records.save(file, measured(3))
    found = records.load(file)
    begin = opening(found, "near")
    assert (
        "a bytes object of Python over velo.Queue is 0.5 times as fast as over the best of 2 "
        "others with 1 KiB and 0.5 times with 64 KiB."
    ) in begin.conclusion
    text = summary.render(found)
    assert "<h2>Queues of Python</h2>" in text
    assert "compares ratios to the limit" not in text
    assert "Nothing else was measured" not in text


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a pair needs two CPUs")
@pytest.mark.usefixtures("hops")
def test_the_bench_prints_and_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        compare, "missing", lambda stack: None if stack in SPEEDS else "no such package"
    )
    file = tmp_path / "python.json"
    assert main(["bench", "--only", "python", "--quick", "--json", str(file)]) == 0
    text = capsys.readouterr().out
    assert "25.0 µs (25)" in text
    assert "0.02 %" in text
    modes = {(r.stack, r.mode) for r in records.load(file)}
    assert modes == {(s, f"python {m}") for s in SPEEDS for m in ("latency", "rate", "idle")}
