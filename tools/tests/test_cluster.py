# SPDX-License-Identifier: Apache-2.0
"""Clusters of `velo sim`: what a line, a file and options come to, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from velo.cluster import description, routing
from velo.cluster.host import host_constants
from velo.errors import UsageError

# Three nodes in a row; node 1 in the middle.
ROW = "cables = [[0, 0, 1, 0], [1, 1, 2, 0]]\n"
RING = "cables = [[0, 0, 1, 1], [1, 0, 2, 1], [2, 0, 3, 1], [3, 0, 4, 1], [4, 0, 0, 1]]\n"


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / "cluster.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def refused(path: str, topology: str | None = None) -> str:
    with pytest.raises(UsageError) as error:
        description.make(topology, path, {})
    return str(error.value)


def test_without_anything_it_is_a_pair() -> None:
    assert description.make(None, None, {}) == description.Cluster(routing.build("full", "2"))


def test_a_file_says_it_all_and_options_come_first(file: Any) -> None:
    path = file(
        'topology = "ring:4"\nclock_mhz = 156\ncable_cycles = 33\nerror_rate = 1e-6\n'
        'compute = "call:50"\nwidth_bits = 64\n[host_ns]\nstore = 200\npoll = 10\n'
    )
    described = description.make(None, path, {"clock_mhz": 300.0, "host_ns": {"poll": 5}})
    assert described.network == routing.build("ring", "4")
    assert described.options() == [
        "--clock-mhz", "300", "--width", "64", "--cable-cycles", "33", "--error-rate", "1e-06",
        "--compute", "call:50", "--store-ns", "200", "--poll-ns", "5",
    ]  # fmt: skip
    assert description.make("pair", path, {}).network.nodes == 2


def test_cables_alone_are_routed_the_shortest_way(file: Any) -> None:
    network = description.make(None, file(ROW), {}).network
    local = routing.HOP_LOCAL
    assert network.routes == [[local, 0, 0], [0, local, 1], [0, 0, local]]
    assert network.cables[1, 1] == (2, 0)


def test_routes_are_taken_as_they_are(file: Any) -> None:
    routes = "routes = [[0,1,0],[0,2,0],[1,0,0],[1,2,1,true],[2,0,0],[2,1,0]]\n"
    network = description.make(None, file(ROW + routes), {}).network
    assert network.routes[1][2] == 1 + routing.HOP_DATELINE


def test_a_circle_of_channels_is_refused(file: Any) -> None:
    assert "can wait for each other: node" in refused(file(RING))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("clock_mhz = [1]", "clock_mhz = [1] makes no sense"),
        ("clock_mzh = 1", "there is no 'clock_mzh'"),
        ("[host_ns]\nstor = 1", "the host model has no 'stor'"),
        ("[host_ns]\nstore = -1", "not a number of nanoseconds"),
        ('topology = "cube:3"', "topology 'cube:3'"),
        ('topology = "pair"\n' + ROW, "two descriptions"),
        ("cables = [[0, 0, 1]]", "is not node, link, node, link"),
        ("cables = [[0, 0, 1, 9]]", "no node 1 with a link 9"),
        ("cables = [[0, 0, 1, 0], [0, 0, 2, 0]]", "node 0, link 0 has two cables"),
        ("cables = [[0, 0, 1, 0], [2, 0, 3, 0]]", "no way from node"),
        (ROW + "routes = [[0, 1, 0]]", "no route from node 0 to node 2"),
        (ROW + "routes = [[0, 1, 3]]", "leads where no cable is"),
        (ROW + "routes = [[0, 1, 0], [0, 2, 0], [1, 0, 0], [1, 2, 0], [2, 0, 0], [2, 1, 0]]",
         "no way from node 0 to node 2"),
        ("= 3", "Invalid statement"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(file: Any, text: str, why: str) -> None:
    assert why in refused(file(text))


def test_host_constants_of_the_command_line() -> None:
    assert host_constants("store=5,dma=0") == {"store": 5, "dma": 0}
    for text in ("store", "store=x", "shop=1", ""):
        with pytest.raises(UsageError):
            host_constants(text)
