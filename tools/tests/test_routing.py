# SPDX-License-Identifier: Apache-2.0
"""Every topology reaches every node, and no circle of channels can wait for itself."""

from collections import deque

import pytest

from velo.cluster import routing

NETWORKS = [
    ("ring", "2"),
    ("ring", "3"),
    ("ring", "4"),
    ("ring", "7"),
    ("ring", "16"),
    ("torus", "2x2x2"),
    ("torus", "3x3"),
    ("torus", "4x4x4"),
    ("torus", "5x4x3"),
    ("torus", "2x6"),
    ("mesh", "2x2"),
    ("mesh", "4x3"),
    ("mesh", "3x4x5"),
    ("hypercube", "1"),
    ("hypercube", "3"),
    ("hypercube", "6"),
    ("full", "2"),
    ("full", "7"),
]


@pytest.fixture(params=NETWORKS, ids=lambda network: "-".join(network))
def network(request: pytest.FixtureRequest) -> routing.Network:
    return routing.build(*request.param)


def test_cables_have_two_ends(network: routing.Network) -> None:
    for end, other in network.cables.items():
        assert network.cables[other] == end
        assert end != other


def test_a_node_has_no_more_links_than_the_switch(network: routing.Network) -> None:
    assert 1 <= network.links_used() <= routing.MAX_LINKS


def test_every_node_reaches_every_node(network: routing.Network) -> None:
    for source in range(network.nodes):
        for destination in range(network.nodes):
            assert (network.path(source, destination) == []) == (source == destination)


def test_no_channels_wait_for_each_other_in_a_circle(network: routing.Network) -> None:
    assert routing.find_cycle(network) == []


def test_paths_are_shortest(network: routing.Network) -> None:
    neighbours: dict[int, set[int]] = {}
    for (node, _), (other, _) in network.cables.items():
        neighbours.setdefault(node, set()).add(other)
    for source in range(network.nodes):
        distance = {source: 0}
        queue = deque([source])
        while queue:
            node = queue.popleft()
            for other in neighbours[node] - distance.keys():
                distance[other] = distance[node] + 1
                queue.append(other)
        for destination, hops in distance.items():
            assert len(network.path(source, destination)) == hops


def test_without_datelines_a_ring_does_wait_for_itself() -> None:
    ring = routing.build("ring", "5")
    flat = [[h if h == routing.HOP_LOCAL else h % 8 for h in hops] for hops in ring.routes]
    broken = routing.Network(ring.nodes, ring.cables, flat)
    circle = routing.find_cycle(broken)
    assert len(circle) == 5
    assert {link for _, link, _ in circle} <= {0, 1}


def test_a_table_that_leads_in_circles_is_noticed() -> None:
    ring = routing.build("ring", "4")
    circling = routing.Network(4, ring.cables, [[0] * 4 for _ in range(4)])
    with pytest.raises(routing.TopologyError, match="no way from node 0 to node 1"):
        circling.path(0, 1)


def test_both_directions_of_an_even_ring_carry_the_same() -> None:
    ring = routing.build("ring", "4")
    loads = [0, 0]
    for source in range(4):
        for destination in range(4):
            for _, link, _ in ring.path(source, destination):
                loads[link] += 1
    assert loads[0] == loads[1]


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        ("torus", "2x2x2x2", "need 8 links"),
        ("torus", "1x4", "at least 2 nodes"),
        ("mesh", "17x16", "node ids end at 255"),
        ("hypercube", "7", "1 to 6"),
        ("full", "8", "2 to 7"),
        ("star", "4", "unknown topology 'star'"),
        ("ring", "2x2", "one number"),
        ("ring", "four", "not of the form"),
    ],
)
def test_what_cannot_be_built_says_why(kind: str, size: str, message: str) -> None:
    with pytest.raises(routing.TopologyError, match=message):
        routing.build(kind, size)


def test_the_command_prints_cables_and_routes(capsys: pytest.CaptureFixture[str]) -> None:
    assert routing.main(["ring", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cable 0 0 1 1"
    assert "route 0 0 15" in lines
    assert len([line for line in lines if line.startswith("route")]) == 4
    assert routing.main(["ring", "1"]) == 1
    assert "at least 2" in capsys.readouterr().err
