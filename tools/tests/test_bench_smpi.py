# SPDX-License-Identifier: Apache-2.0
"""scripts/bench_smpi.py: what SimGrid's SMPI is told of the cluster that velo sim has."""

import sys
import xml.etree.ElementTree as ElementTree
from typing import Any

import bench_smpi
import pytest

from velo.cluster import profiles, routing

HOST = profiles.find("opteron-ht400")


def parsed(network: routing.Network) -> Any:
    return ElementTree.fromstring(bench_smpi.platform(network, HOST).split("\n", 2)[2])


def way(zone: Any, source: int, target: int) -> list[str]:
    route = zone.find(f".//route[@src='node{source}'][@dst='node{target}']")
    return [each.get("id") for each in route]


def test_messages_take_the_cables_that_they_take_here() -> None:
    network = routing.build("ring", "4")
    zone = parsed(network)
    assert way(zone, 0, 1)[1:-1] == [f"cable{n}.{link}" for n, link, _ in network.path(0, 1)]
    assert len(way(zone, 0, 2)) == 4 and way(zone, 0, 2)[::3] == ["out0", "in2"]
    assert way(zone, 3, 3) == ["out3", "in3"]


def test_latency_is_the_hosts_and_the_hardwares() -> None:
    zone = parsed(routing.build("full", "2"))
    ns = {link.get("id"): float(link.get("latency")[:-2]) for link in zone.iter("link")}
    # store, 28 cycles, dma
    assert sum(ns[link] for link in way(zone, 0, 1)) == 90 + 280 + 90
    assert {link.get("bandwidth") for link in zone.iter("link")} == {"311111111Bps"}


def test_overheads_are_the_hosts() -> None:
    said = bench_smpi.overheads(HOST)
    # A call and a line, but no less than 4 words; a look, a call and a line.
    assert said["smpi/os"].startswith("0:4e-08:1.78571e-10")
    assert said["smpi/or"].startswith("0:6e-08:")
    assert said["smpi/wtime"] == "2e-08"


def test_a_run_is_what_the_program_says_and_a_failed_one_is_its_last_line() -> None:
    run = bench_smpi.measure([sys.executable, "-c", "print('halo took 12.5 us')"], {})
    assert isinstance(run, bench_smpi.Run)
    assert run.predicted_us == 12.5 and run.memory_mb > 0 and run.wall_s > 0
    wrong = "import sys; print('took 1 us'); sys.exit('no room')"
    assert bench_smpi.measure([sys.executable, "-c", wrong], {}) == "no room"


def test_without_smpi_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench_smpi.py"])
    monkeypatch.setattr(bench_smpi.shutil, "which", lambda _: None)
    assert bench_smpi.main() == bench_smpi.SKIPPED
    assert "apt-get install libsimgrid-dev" in capsys.readouterr().err
