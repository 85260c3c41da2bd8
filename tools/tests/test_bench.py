# SPDX-License-Identifier: Apache-2.0
"""`velo bench` and its drivers of peers."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench import bracket, peers, tasks
from bench.peers import Case
from velo.cli import main
from velo.errors import UsageError, VeloError
from velo.measure import limits, velo_perf
from velo.measure.cpus import two_cpus
from velo.measure.limits import BANDWIDTH, LATENCY, RATE

HEADING = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"


@dataclass
class FakePeer:
    """A peer that answers at once."""

    stack: str = "fake-1.0"
    config: str = "as it comes"
    cases: Sequence[Case] = (Case(LATENCY, 8), Case(RATE, 8), Case(BANDWIDTH, 16384))
    why_missing: str | None = None
    failing: bool = False
    runs: list[Case] = field(default_factory=list)

    def missing(self) -> str | None:
        return self.why_missing

    def measure(self, case: Case, cpus: Sequence[int]) -> float:
        if self.failing:
            raise VeloError("it fell over")
        self.runs.append(case)
        return {LATENCY: 90.0, RATE: 32e6, BANDWIDTH: 7e9}[case.mode]


needs_two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="a pair needs two CPUs"
)


def run_bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *present: FakePeer) -> list[dict]:
    monkeypatch.setattr(tasks, "PEERS", present)
    monkeypatch.setattr(tasks, "STACKS", ())
    monkeypatch.setattr(tasks, "CHANNELS", {})
    out = tmp_path / "bench.json"
    assert main(["bench", "--rounds", "2", "--json", str(out)]) == 0
    return json.loads(out.read_text())


@needs_two_cpus
def test_peers_get_records_with_the_limit_of_their_mode(
    fake_perf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = FakePeer()
    found = run_bench(monkeypatch, tmp_path, peer)
    assert len(peer.runs) == 6
    mine = {r["mode"]: r for r in found if r["stack"] == "fake-1.0"}
    assert mine["latency"]["ratio"] == pytest.approx(90 / 45)
    assert mine["rate"]["ratio"] == pytest.approx(32 / 320)  # The better of the two streams.
    assert mine["bandwidth"]["ratio"] == pytest.approx(7 / 35)  # The copy of the same size.
    assert {r["config"] for r in mine.values()} == {"as it comes"}
    assert {(r["class"], r["samples"]) for r in mine.values()} == {("near", 2)}
    assert any(r["stack"] == "velo" for r in found)


def test_messages_in_place_are_chosen_with_latency_and_stay_apart_from_those_by_copy() -> None:
    jobs = {job.title: job for job in tasks.velo_jobs([0, 1])}
    assert jobs["velo latency in place"].mode == "in place"
    assert jobs["velo latency"].mode is None
    choice = tasks.Choice.parse("native,latency", "ucx")
    into = velo_perf.Collected(), bracket.Peers()
    found = tasks.native_tasks(choice, [0, 1], False, *into, {}, {})
    assert [task.title for task in found] == ["velo latency", "velo latency in place"]


@pytest.mark.parametrize("only", ["native,velo", "mpi,velo"])
def test_the_limits_are_measured_with_either_part(only: str) -> None:
    choice = tasks.Choice.parse(only, None)
    into = velo_perf.Collected(), bracket.Peers()
    found = tasks.native_tasks(choice, [0, 1], False, *into, {}, {})
    assert "velo limits" in [task.title for task in found]


@needs_two_cpus
def test_a_peer_that_is_not_installed_is_named_with_the_reason(
    fake_perf: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_bench(monkeypatch, tmp_path, FakePeer(why_missing="not installed; run 'make bench'"))
    assert "absent: fake-1.0: not installed; run 'make bench'" in capsys.readouterr().out


@needs_two_cpus
def test_a_peer_that_fails_is_named_and_the_others_go_on(
    fake_perf: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = run_bench(monkeypatch, tmp_path, FakePeer("bad-1", failing=True), FakePeer("good-1"))
    assert "failed: bad-1, latency, 8 B: it fell over" in capsys.readouterr().out
    assert {r["stack"] for r in found} == {"velo", "good-1"}


@pytest.mark.parametrize(
    ("before", "after", "kept", "moved"),
    [(45, 48, "near", 0), (210, 200, "far", 0), (45, 210, None, 1), (None, 45, None, 1)],
)
def test_a_run_counts_only_if_the_cores_stayed(
    monkeypatch: pytest.MonkeyPatch,
    before: float | None,
    after: float,
    kept: str | None,
    moved: int,
) -> None:
    looks = iter([before, after])

    def look(_cpus: Sequence[int]) -> limits.Limits | None:
        hop = next(looks)
        return None if hop is None else limits.Limits(hop, 3e8, {4096: 27e9})

    monkeypatch.setattr(limits, "look", look)
    into = bracket.Peers()
    bracket.measure_peer(FakePeer(), Case(LATENCY, 8), [0, 1], into)
    assert [s.hop for s in into.samples] == ([kept] if kept else [])
    assert into.moved == moved


def test_the_copy_limit_is_that_of_the_largest_size_not_above_the_message() -> None:
    both = limits.Limits(45, 3e8, {4096: 27e9, 16384: 35e9})
    found = [both.of(BANDWIDTH, size) for size in (256, 4096, 8192, 16384, 65536)]
    assert found == [27e9, 27e9, 27e9, 35e9, 35e9]


def test_limits_are_read_from_velo_perf(fake_perf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near = limits.look([0, 1])
    assert near == limits.Limits(45.0, 320e6, {4096: 27e9, 16384: 35e9})
    monkeypatch.setenv("FAKE_SCENARIO", "far")
    far = limits.look([0, 1])
    assert far
    assert far.hop_ns == 180


@pytest.mark.parametrize("wanted", [[0], [0, 100_000], [0, 1, 2]])
def test_other_than_two_allowed_cpus_are_refused(wanted: list[int]) -> None:
    with pytest.raises(UsageError, match="a pair needs two CPUs"):
        two_cpus(wanted)


def test_every_row_of_ucx_perftest_is_read() -> None:
    text = "batch.txt," + HEADING + "a,1000,0.300,0,0,0,0,0,111\nb,300000,0.065,0,0,9,9,124,125\n"
    assert peers.parse_ucx(text) == [peers.UcxRow(0.3, 111), peers.UcxRow(0.065, 125)]


def test_columns_of_ucx_perftest_are_found_by_name() -> None:
    text = "iterations,extra,50.0_percentile_lat,overall_mr\n5,9,0.5,7\n"
    assert peers.parse_ucx(text) == [peers.UcxRow(0.5, 7)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Segmentation fault",
        HEADING,
        "300000,0.065,0.081,0.081,94,94,12400501,12400502\n",
        HEADING + "300000,0.065\n",
        HEADING + "300000,nonsense,0,0,0,0,0,7\n",
        HEADING + "300000,0.000,0,0,0,0,0,7\n",
    ],
)
def test_other_output_of_ucx_perftest_is_an_error(text: str) -> None:
    with pytest.raises(VeloError, match="ucx_perftest printed"):
        peers.parse_ucx(text)


def test_a_missing_ucx_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for peer in peers.PEERS:
        reason = peer.missing()
        assert reason
        assert "apt-get install ucx-utils" in reason
        assert peer.stack.startswith("ucx-?")


@needs_two_cpus
@pytest.mark.skipif(not peers.ucx_version(), reason="ucx_perftest is not installed")
@pytest.mark.skipif(not Path("/sys/class").is_dir(), reason="UCX aborts where /sys is not mounted")
@pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: peer.stack)
def test_the_installed_ucx_can_be_driven(peer: peers.Peer) -> None:
    assert peer.missing() is None
    cpus = two_cpus(None)
    assert 5 < peer.measure(peer.cases[0], cpus) < 1e9


@needs_two_cpus
def test_what_extolls_interface_costs_is_in_the_result(fake_perf: Path, tmp_path: Path) -> None:
    for ours, bare in (("velo2", "velo"), ("rma2", "rma")):
        line = {"mode": "rate", "size_bytes": 8, f"{ours}_ns": 30.5, f"{bare}_ns": 20.25}
        path = fake_perf.parent / "libexec" / f"{ours}-perf"
        path.write_text(f"#!/bin/sh\necho '{json.dumps(line | {'cost_ns': 10.25})}'\n")
        path.chmod(0o755)
    out = tmp_path / "bench.json"
    assert main(["bench", "--only", "extoll", "--rounds", "3", "--json", str(out)]) == 0
    found = {r["stack"]: r for r in json.loads(out.read_text())}
    assert sorted(found) == ["rma2", "velo2"]
    assert all(r["mode"] == "extoll rate" and r["samples"] == 3 for r in found.values())
    assert found["rma2"]["value"] == 30.5
    assert found["velo2"]["extra"] == {"velo_ns": 20.25, "cost_ns": 10.25}
    assert main(["report", str(out), "-o", str(tmp_path / "page.html")]) == 0
    assert "extoll rate, rma2" in (tmp_path / "page.html").read_text()
