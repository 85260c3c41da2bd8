# SPDX-License-Identifier: Apache-2.0
"""Words that lie apart in `velo bench`: from the programs' lines to the table."""

import json
import os
from pathlib import Path

import pytest

from bench import tasks
from bench.bracket import Peers
from bench.scattered import MPI_STACKS, Scattered
from velo.cli import main

needs_two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="a pair needs two CPUs"
)


def line(way: str, word_ns: float) -> str:
    return json.dumps(
        {"mode": "sparse", "owned_words": 65536, "wanted_words": 4096, "way": way,
         "word_ns": word_ns}
    )  # fmt: skip


@pytest.fixture
def program(fake_perf: Path) -> Path:
    """A program in place of velo-dimmnet-perf, which says less."""
    path = fake_perf.parent / "libexec" / "velo-dimmnet-perf"
    said = "\n".join((line("dimmnet", 2), line("rma-packed", 30)))
    path.write_text(f'#!/bin/sh\necho "$*" >>"$FAKE_LOG"\ncat <<END\n{said}\nEND\n')
    path.chmod(0o755)
    return path


@needs_two_cpus
@pytest.mark.usefixtures("program")
def test_the_bench_shows_each_way(
    fake_perf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bench.json"
    assert main(["bench", "--only", "dimmnet,native", "--rounds", "2", "--json", str(out)]) == 0
    rows = [" ".join(row.split()) for row in capsys.readouterr().out.splitlines()]
    title = "what a sparse matrix needs of a vector 65536"
    assert f"{title} dimmnet 2.00 ns 2.00 ns 2.00 ns" in rows
    assert f"{title} rma-packed 30.0 ns 30.0 ns 30.0 ns" in rows
    found = {(r["mode"], r["stack"]): r for r in json.loads(out.read_text())}
    assert found["dimmnet sparse", "rma-packed"]["value"] == 30
    assert found["dimmnet sparse", "dimmnet"]["size_bytes"] == 8 * 65536
    assert len(found) == 2
    calls = [line for line in fake_perf.read_text().splitlines() if "--rounds" in line]
    assert len(calls) == 2


def test_it_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "has_mpi", lambda: True)
    scattered = Scattered()
    counts = {"native": 1, "dimmnet": 1 + len(MPI_STACKS), "dimmnet,vader": 1, "latency": 0}
    for chosen, count in counts.items():
        choice = tasks.Choice.parse(chosen, None)
        assert len(tasks.dimmnet_tasks(choice, [0, 1], False, scattered, Peers())) == count
    choice = tasks.Choice.parse(None, "dimmnet")
    assert not tasks.dimmnet_tasks(choice, [0, 1], False, scattered, Peers())
