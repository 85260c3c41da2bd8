# SPDX-License-Identifier: Apache-2.0
"""HPCC and NetPIPE: their output as recorded, and output that is wrong."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bench import hpcc
from velo.cli import main
from velo.errors import (
    EXIT_ABSENT,
    EXIT_FAILED,
    LateError,
    UsageError,
    VeloError,
    VerifyError,
)
from velo.measure import limits, side_by_side
from velo.measure.cpus import Watch
from velo.measure.mpi import builds, netpipe, stacks
from velo.measure.mpi.builds import Build
from velo.measure.mpi.stacks import Stack
from velo.results import records
from velo.runtime import openmpi

# Lines of a real hpccoutf.txt.
HPCC = """\
Finished             80 tests with the following results:
             80 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0051340 ...... PASSED
Begin of Summary section.
Success=1
MPIRandomAccess_LCG_GUPs=0.0351831
MPIRandomAccess_N=524288
MPIRandomAccess_time=0.063379
MPIRandomAccess_Errors=0
MPIRandomAccess_ErrorsFraction=0
MPIRandomAccess_GUPs=0.0330891
StarRandomAccess_GUPs=0.642499
End of Summary section.
"""

# Lines of a real output file of NPopenmpi.
NETPIPE = """\
       1 40.078709   0.00000019
       8 374.259198   0.00000016
    1024 20945.603752   0.00000037
  131072 29827.143741   0.00003353
"""


def test_the_random_access_of_hpcc_is_read() -> None:
    assert hpcc.parse(HPCC) == pytest.approx(0.0330891e9)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", VeloError),
        (HPCC.replace("MPIRandomAccess_GUPs", "MPIRandomAccess_GUP"), VeloError),
        (HPCC.replace("GUPs=0.0330891", "GUPs=nonsense"), VeloError),
        (HPCC.replace("GUPs=0.0330891", "GUPs=0"), VeloError),
        (HPCC.replace("Success=1", "Success=0"), VerifyError),
        (HPCC.replace("ErrorsFraction=0", "ErrorsFraction=0.02"), VerifyError),
        (HPCC.replace("ErrorsFraction=0", "ErrorsFraction=nan"), VerifyError),
        (HPCC.replace("PASSED", "FAILED"), VerifyError),
    ],
)
def test_what_hpcc_finds_wrong_is_an_error(text: str, error: type[VeloError]) -> None:
    with pytest.raises(error):
        hpcc.parse(text)


def test_errors_within_hpccs_own_rule_are_allowed() -> None:
    assert hpcc.parse(HPCC.replace("ErrorsFraction=0", "ErrorsFraction=4.00543e-05")) > 0


def test_netpipes_times_come_from_its_rates_which_have_more_digits() -> None:
    found = netpipe.parse(NETPIPE)
    assert list(found) == [1, 8, 1024, 131072]
    assert found[8] == pytest.approx(163.1, rel=1e-3)
    assert found[131072] == pytest.approx(33526, rel=1e-3)


@pytest.mark.parametrize("text", ["", "1 2\n", "8 fast 0.1\n", "8 0 0.1\n", "-8 5 0.1\n"])
def test_other_output_of_netpipe_is_an_error(text: str) -> None:
    with pytest.raises(VeloError, match="NetPIPE wrote"):
        netpipe.parse(text)


def test_rows_compare_the_medians_of_the_sizes_that_both_have() -> None:
    ours = [{8: 60.0, 64: 70.0}, {8: 62.0}, {8: 900.0}]
    rows = side_by_side.compare(ours, [{8: 124.0, 16: 5.0}])
    assert rows == [side_by_side.Row(8, 62.0, 124.0)]
    assert rows[0].ratio == 2.0


@dataclass(frozen=True)
class FakeStack(Stack):
    """Runs a program by itself, with no launcher."""

    output_text: str = ""
    file: str = ""
    why: str = ""

    def argv(self, ranks: int, cpus: Sequence[int], program: Sequence[str | Path]) -> list[str]:
        target = str(program[program.index("-o") + 1]) if "-o" in program else self.file
        if self.why:
            raise VeloError(self.why)
        script = f"cat > {shlex.quote(target)} <<'E'\n{self.output_text}E\n"
        return ["sh", "-c", script if target else "true"]


def fake(word: str, **more: str) -> FakeStack:
    return FakeStack(word, f"{word} stack", Build(word), **more)


def test_hpcc_runs_in_a_folder_of_its_own_with_its_input() -> None:
    result = hpcc.run(fake("f", output_text=HPCC, file="hpccoutf.txt"), 4, [0, 1])
    assert result.updates_per_s == pytest.approx(0.0330891e9)
    assert 0 < result.run_time_ns < 60e9
    assert not Path("hpccoutf.txt").exists()


def test_hpcc_that_writes_nothing_is_an_error() -> None:
    with pytest.raises(VeloError, match="without writing"):
        hpcc.run(fake("f"), 2, [0, 1])


def test_the_grid_of_hpcc_fits_its_ranks() -> None:
    assert all(p * q == ranks for ranks, (p, q) in hpcc.GRIDS.items())


needs_two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="a pair needs two CPUs"
)


def on_a_machine(
    monkeypatch: pytest.MonkeyPatch, hops: Sequence[float] = (), others: Sequence[float] = ()
) -> None:
    """What looks at the raw line find, then 60 ns; the shares that others take, then 0."""
    looks, shares = iter(hops), iter(others)
    monkeypatch.setattr(
        limits, "look", lambda _: limits.Limits(next(looks, 60.0), 1e7, {4096: 1e10})
    )
    monkeypatch.setattr(side_by_side.Watch, "others", lambda _: next(shares, 0.0))


def on_stacks(monkeypatch: pytest.MonkeyPatch, both: tuple[Stack, Stack]) -> None:
    """NetPIPE is there, and so are these."""
    monkeypatch.setattr(netpipe, "find", lambda: None)
    monkeypatch.setattr(stacks, "side_by_side", lambda _: both)


@needs_two_cpus
def test_netpipe_prints_both_side_by_side_and_keeps_them_for_a_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    slow = NETPIPE.replace("374.259198", "187.129599")
    both = (fake("mtl", output_text=NETPIPE), fake("vader", output_text=slow))
    on_stacks(monkeypatch, both)
    on_a_machine(monkeypatch)
    file = tmp_path / "netpipe.json"
    assert main(["netpipe", "--rounds", "2", "--json", str(file)]) == 0
    text = capsys.readouterr().out
    assert "2 of mtl stack and 2 of vader stack" in text
    assert "left out" not in text
    (row,) = [line for line in text.splitlines() if line.strip().startswith("8 B")]
    assert "163 ns" in row
    assert "326 ns" in row
    assert "2.00 × as fast" in row
    assert "mtl stack" in text
    found = {(r.stack, r.size_bytes): r for r in records.load(file)}
    assert len(found) == 2 * 4
    of_8 = found["vader stack", 8]
    assert (of_8.mode, of_8.samples, of_8.limit, of_8.hop) == ("netpipe", 2, 60.0, "near")
    assert of_8.value == pytest.approx(326, abs=1)
    assert of_8.config == both[1].config


@needs_two_cpus
def test_runs_on_a_busy_machine_do_not_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = (fake("mtl", output_text=NETPIPE), fake("vader", output_text=NETPIPE))
    on_stacks(monkeypatch, both)
    # Of six runs the cores move in the second, others take the CPUs in the third.
    on_a_machine(monkeypatch, hops=[60, 60, 60, 200], others=[0, 0, 0.5])
    assert main(["netpipe", "--rounds", "3"]) == 0
    text = capsys.readouterr().out
    assert "3 of mtl stack and 1 of vader stack" in text
    said = "the cores moved during 1 and others took up to 50% of the CPUs during 1."
    assert f"2 of 6 runs left out: {said}" in text
    on_a_machine(monkeypatch, others=[0.5] * 6)
    assert main(["netpipe", "--rounds", "3"]) == EXIT_ABSENT
    assert "try again when the machine is less busy" in capsys.readouterr().err


@needs_two_cpus
def test_a_run_that_does_not_end_counts_as_one_on_a_busy_machine_only_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object) -> dict[int, float]:
        raise LateError("NetPIPE did not end within 30 s")

    on_stacks(monkeypatch, (fake("mtl", output_text=NETPIPE), fake("vader", output_text=NETPIPE)))
    monkeypatch.setattr(netpipe, "run", run)
    on_a_machine(monkeypatch, others=[0.9] * 2)
    assert main(["netpipe", "--rounds", "1"]) == EXIT_ABSENT
    assert "others took up to 90% of the CPUs during 2" in capsys.readouterr().err
    on_a_machine(monkeypatch)
    assert main(["netpipe", "--rounds", "1"]) == EXIT_FAILED
    assert "did not end within 30 s" in capsys.readouterr().err


def test_others_are_whoever_is_not_a_child_of_ours(tmp_path: Path) -> None:
    stat = tmp_path / "stat"

    def write(busy: int, idle: int) -> None:
        fields = f"{busy} 0 0 {idle} 5 0 0 0 {busy} 0"
        stat.write_text(f"cpu  9 9 9 9 9\ncpu0 {fields}\ncpu1 {fields}\ncpu10 1 1 0 1 0\n")

    write(100, 100)
    watch = Watch([0, 1], stat)
    assert watch.others() == 0.0
    write(100_000, 100)
    assert watch.others() == 1.0
    watch = Watch([10], stat)
    write(200_000, 100)
    assert watch.others() == 0.0


@needs_two_cpus
def test_netpipe_without_velo_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find() -> Path:
        raise VeloError("no component")

    on_stacks(monkeypatch, (fake("mtl", why="it ended badly"), fake("vader")))
    assert main(["netpipe"]) == EXIT_FAILED
    assert "NetPIPE cannot run over mtl stack: it ended badly" in capsys.readouterr().err
    on_stacks(monkeypatch, (replace(fake("mtl"), find=find), fake("vader")))
    assert main(["netpipe"]) == EXIT_ABSENT
    assert "NetPIPE cannot run over mtl stack: no component" in capsys.readouterr().err


def test_netpipe_that_is_not_there_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["netpipe"]) == EXIT_ABSENT
    assert "install netpipe-openmpi" in capsys.readouterr().err
    (tmp_path / netpipe.PROGRAM).touch(0o755)
    assert main(["netpipe"]) == EXIT_ABSENT
    assert "install openmpi-bin" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "built_for", "ours", "theirs"),
    [
        ("4.1", "4.1.4", "velo mtl", "ompi-4.1 vader"),
        ("5.0", "4.1.4", "velo provider", "ompi-5.0 sm"),
        ("5.0", "5.0.7", "velo mtl", "ompi-5.0 sm"),
    ],
)
def test_netpipe_is_compared_over_what_serves_this_open_mpi(
    monkeypatch: pytest.MonkeyPatch, version: str, built_for: str, ours: str, theirs: str
) -> None:
    monkeypatch.setitem(vars(builds.SYSTEM_OPEN_MPI), "version", version)
    monkeypatch.setattr(openmpi, "folders", lambda _layer="mtl": {built_for: Path()})
    assert [stack.name for stack in stacks.side_by_side()] == [ours, theirs]
    if ours == "velo mtl":
        assert stacks.side_by_side(with_btl=True)[0].name == "velo btl"
    else:
        with pytest.raises(UsageError, match=r"were not built for this system's Open MPI 5\.0"):
            stacks.side_by_side(with_btl=True)
