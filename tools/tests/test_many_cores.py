# SPDX-License-Identifier: Apache-2.0
"""The measurement on many cores: which cores, how many ranks, and what its tables say."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench import many_cores
from bench.bracket import Peers
from velo.display import Console
from velo.errors import UsageError
from velo.measure.mpi import builds
from velo.measure.mpi.stacks import MTL, STACKS, VADER
from velo.measure.velo_perf import Collected
from velo.results.records import Record


def cpu(topology: Path, number: int, package: int, siblings: str) -> None:
    folder = topology / f"cpu{number}" / "topology"
    folder.mkdir(parents=True)
    (folder / "physical_package_id").write_text(f"{package}\n")
    (folder / "thread_siblings_list").write_text(f"{siblings}\n")


def record(stack: str, value: float, **more: object) -> Record:
    base = Record("alltoall_ns", 8, 1, value, 50, 1, value, value, mode="mpi alltoall",
                  stack=stack, processes=16)  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


def shown(capsys: pytest.CaptureFixture[str], table: object) -> str:
    Console().print(table)  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_one_cpu_of_each_core_package_by_package(tmp_path: Path) -> None:
    """Linux often counts the packages in turns."""
    for number, package in ((0, 0), (1, 1), (2, 0), (3, 1)):
        for thread in (number, number + 4):
            cpu(tmp_path, thread, package, f"{number},{number + 4}")
    assert many_cores.physical_cores(range(8), tmp_path) == [0, 2, 1, 3]
    assert many_cores.physical_cores({4, 1, 5}, tmp_path) == [4, 1]


def test_without_a_topology_every_cpu_is_a_core(tmp_path: Path) -> None:
    assert many_cores.physical_cores({3, 1}, tmp_path) == [1, 3]


@pytest.mark.parametrize(
    ("cores", "pairs"), [(2, [1]), (3, [1]), (4, [1, 2]), (16, [1, 2, 4, 8]), (20, [1, 2, 4, 8])]
)
def test_pairs_double_while_there_are_cores_for_them(cores: int, pairs: list[int]) -> None:
    assert many_cores.pair_counts(cores) == pairs


def test_every_program_has_a_core_for_each_rank() -> None:
    for cores in (2, 3, 16):
        programs = many_cores.mpi_programs(cores)
        assert max(p.ranks for p in programs) == cores
        assert {p.mode for p in programs} == {
            "rate", "incast", "alltoall", "allreduce", "barrier", "halo", "gups"
        }  # fmt: skip
        gups = next(p for p in programs if p.mode == "gups")
        assert gups.ranks & (gups.ranks - 1) == 0


def test_an_mpi_that_is_not_installed_is_named_and_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "PEERS_DIR", tmp_path)
    elsewhere = [stack for stack in STACKS if stack.build.wheels]
    monkeypatch.setattr(many_cores, "STACKS", elsewhere)
    absent: dict[str, str] = {}
    chosen = many_cores.tasks([0, 1], Collected(), Peers(), {}, absent)
    assert len(absent) == len(elsewhere) > 0
    assert all("make bench" in why for why in absent.values())
    assert {task.title.split(",")[0] for task in chosen} == {"velo rate", "velo RandomAccess"}


def test_an_mpi_of_an_older_pin_is_named_and_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "PEERS_DIR", tmp_path)
    stack = next(stack for stack in STACKS if stack.build.wheels)
    monkeypatch.setattr(many_cores, "STACKS", [stack])
    stamp = stack.build.folder / "installed"
    stamp.parent.mkdir(parents=True)
    stamp.write_text(f"{stack.build.wheels[0]}==0.1")
    absent: dict[str, str] = {}
    many_cores.tasks([0, 1], Collected(), Peers(), {}, absent)
    assert "make bench" in absent[stack.name]
    assert stamp.read_text().endswith("==0.1")


def test_the_table_has_our_best_beside_the_best_of_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = [record(MTL.name, 500.0), record(VADER.name, 1000.0)]
    found.append(record(MTL.name, 9e9, samples=0, hop="far"))
    rate = {"mode": "mpi rate", "metric": "rate_msgs_per_s"}
    found += [record(MTL.name, 6e6, **rate), record(VADER.name, 2e6, **rate)]
    text = shown(capsys, many_cores.table(found))
    alltoall, pairs = (line for line in text.splitlines() if "16" in line)
    assert alltoall.split()[-1] == "0.50"
    assert pairs.split()[-1] == "3.00"


def test_pairs_are_shown_beside_so_many_times_one_pair(capsys: pytest.CaptureFixture[str]) -> None:
    rate = {"mode": "rate", "metric": "rate_msgs_per_s"}
    found = [record("velo", 100e6, **rate), record("velo", 300e6, pairs=4, **rate)]
    text = shown(capsys, many_cores.growth(found))
    assert text.splitlines()[-1].split()[-1] == "0.75"


def test_more_cores_than_there_are_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_cores, "physical_cores", lambda _: [0, 1])
    with pytest.raises(UsageError, match="2 physical cores, not 3"):
        many_cores.main(["--cores", "3"])
    with pytest.raises(UsageError, match="nobody to talk to"):
        many_cores.main(["--cores", "1"])
