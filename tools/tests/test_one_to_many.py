# SPDX-License-Identifier: Apache-2.0
"""One to many in `velo bench`: from the program's lines to the table."""

import json
import os
from pathlib import Path

import pytest

from bench import tasks
from bench.bracket import Peers
from bench.one_to_many import OneToMany
from velo.cli import main
from velo.errors import UsageError

needs_two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="a pair needs two CPUs"
)


def line(mode: str, ring_ns: float) -> str:
    return json.dumps(
        {"mode": mode, "size_bytes": 64, "readers": 4, "ring_ns": ring_ns,
         "conns_ns": 3 * ring_ns, "ratio": 3.0}
    )  # fmt: skip


@pytest.fixture
def program(fake_perf: Path) -> Path:
    """A program in place of velo-bcast-perf, which says less; one may append to it."""
    path = fake_perf.parent / "libexec" / "velo-bcast-perf"
    said = "\n".join((line("stream", 100), line("idle", 2e5)))
    path.write_text(f'#!/bin/sh\necho "$*" >>"$FAKE_LOG"\ncat <<END\n{said}\nEND\n')
    path.chmod(0o755)
    return path


@needs_two_cpus
@pytest.mark.usefixtures("program")
def test_the_bench_shows_medians_and_ratios(
    fake_perf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bench.json"
    assert main(["bench", "--only", "bcast", "--rounds", "2", "--json", str(out)]) == 0
    rows = [" ".join(row.split()) for row in capsys.readouterr().out.splitlines()]
    assert "a message of a stream, taken by all 64 4 100 ns 300 ns 3.00" in rows
    assert "processor time of a second of sleep, of a reader 64 4 200 µs 600 µs 3.00" in rows
    found = {(r["mode"], r["stack"]): r for r in json.loads(out.read_text())}
    assert found["bcast stream", "ring"]["value"] == 100
    record = found["bcast idle", "connections"]
    assert (record["value"], record["processes"], record["samples"]) == (6e5, 5, 2)
    assert len(found) == 4
    calls = [line for line in fake_perf.read_text().splitlines() if line.startswith("--json")]
    assert len(calls) == 2
    assert all(call.startswith("--json --cpus ") and call.endswith("--rounds 3") for call in calls)


@needs_two_cpus
def test_a_message_that_was_wrong_is_told(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text('#!/bin/sh\necho "message 7 is not what was sent" >&2\nexit 3\n')
    assert main(["bench", "--only", "bcast", "--quick"]) != 0
    out = capsys.readouterr()
    assert "message 7 is not what was sent" in out.out + out.err


def test_it_can_be_left_out() -> None:
    ways = OneToMany()
    for chosen, count in (("native", 1), ("bcast", 1), ("latency", 0), ("mpi", 0)):
        choice = tasks.Choice.parse(chosen, None)
        assert len(tasks.bcast_tasks(choice, [0, 1], False, ways, Peers())) == count
    choice = tasks.Choice.parse(None, "bcast")
    assert not tasks.bcast_tasks(choice, [0, 1], False, ways, Peers())
    with pytest.raises(UsageError, match="bcast"):
        tasks.Choice.parse("broadcast", None)
