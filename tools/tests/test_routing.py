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


def test_a_groups_message_comes_once_to_each_member_and_nobody_else(
    network: routing.Network,
) -> None:
    for source in range(network.nodes):
        members = {n for n in range(network.nodes) if (n * 7 + source) % 3 != 1} or {source}
        group = routing.multicast(network, 224 + source % 32, source, members)
        came = [source]
        for node in came:
            bits = group.way_bits(node)
            came += [network.cables[node, link][0] for link in range(6) if bits >> link & 1]
            assert bits >> 6 & 63 & ~bits == 0
        assert len(came) == len(set(came))
        assert {n for n in came if group.way_bits(n) >> 12} == members


def test_a_barrier_is_complete_at_the_root_when_all_members_have_arrived(
    network: routing.Network,
) -> None:
    for source in range(network.nodes):
        members = {n for n in range(network.nodes) if (n * 5 + source) % 3 != 1} or {source}
        group = routing.multicast(network, 224, source, members)
        settings = group.barrier_settings(network)
        missing = {node: setting >> 8 & 255 for node, setting in settings.items()}
        assert all(missing.values()), "a node of the tree that waits for nobody never sends"
        complete = []
        for member in sorted(members, key=lambda n: n * 7 % 11):
            node, bit = member, 1
            while not complete:
                assert missing[node] & bit, "an arrival that nobody expects, or the second"
                missing[node] &= ~bit
                if missing[node]:
                    break
                if settings[node] & routing.BARRIER_ROOT:
                    complete.append(node)
                    break
                parent, slot = settings[node] >> 16 & 255, settings[node] >> 24 & 7
                # It goes by one cable, so arrivals add no dependency to those of unicast.
                assert len(network.path(node, parent)) == 1
                node, bit = parent, 1 << slot
            assert bool(complete) == (not any(missing.values()))
        assert complete == [source]


def test_no_channels_wait_for_each_other_in_a_circle_with_groups_of_all_nodes(
    network: routing.Network,
) -> None:
    groups = [
        routing.multicast(network, 224 + source % 32, source, members)
        for source in range(network.nodes)
        for members in (range(network.nodes), range(source % 2, network.nodes, 2))
    ]
    assert routing.find_cycle(network, groups) == []


def test_a_tree_against_the_order_of_dimensions_is_noticed() -> None:
    mesh = routing.build("mesh", "2x2")
    # Round the mesh, each link a dependency that some route or group has.
    around = [0, 1, 3, 2]
    ways: dict[int, list[routing.Channel]] = {}
    for here, there in zip(around, [1, 3, 2, 0], strict=True):
        link = next(link for link in range(4) if mesh.cables.get((here, link), (-1,))[0] == there)
        ways[here] = [(here, link, 0)]
    group = routing.Group(224, 0, frozenset(around), ways)
    assert len(routing.find_cycle(mesh, [group])) == 4


def test_members_on_both_sides_of_a_dateline_share_the_first_channel() -> None:
    ring = routing.build("ring", "8")
    assert routing.multicast(ring, 224, 5, [7]).ways == {5: [(5, 0, 1)], 6: [(6, 0, 1)]}
    group = routing.multicast(ring, 224, 5, [7, 0])
    assert group.ways == {5: [(5, 0, 0)], 6: [(6, 0, 0)], 7: [(7, 0, 0)]}
    assert [group.way_bits(node) for node in (5, 7, 0, 1)] == [1, 1 | 1 << 12, 1 << 12, 0]


def test_routes_that_form_no_tree_are_refused() -> None:
    ring = routing.build("ring", "4")
    routes = [list(hops) for hops in ring.routes]
    # To node 2 over node 1, to node 3 over nodes 1 and 2, to node 1 over nodes 3 and 2.
    routes[0] = [15, 1, 0, 1]
    routes[1][2], routes[3][1], routes[2][1] = 0, 1, 1
    odd = routing.Network(4, ring.cables, routes)
    with pytest.raises(routing.TopologyError, match="no tree"):
        routing.multicast(odd, 224, 0, [1, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("223:0:1", "numbers 224 to 255"),
        ("256:0:1", "numbers 224 to 255"),
        ("224:4:1", "no nodes"),
        ("224:0:4", "no nodes"),
        ("224:0:", "not of the form"),
        ("224:0", "not of the form"),
    ],
)
def test_a_group_that_cannot_be_says_why(
    text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert routing.main(["ring", "4", "--group", text]) == 1
    assert message in capsys.readouterr().err


def test_the_command_prints_the_nodes_of_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert routing.main(["ring", "4", "--group", "230:1:all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("group")] == [
        ["group", str(node), "230"] for node in range(4)
    ]
    # Node 1 sends to 2 and 0, one of them to 3: the root waits for both and itself.
    barriers = [line.split() for line in lines if line.startswith("barrier")]
    assert [line[:3] for line in barriers] == [["barrier", str(node), "230"] for node in range(4)]
    assert int(barriers[1][3]) == 1 | 2 | 0b111 << 8
    assert [int(line[3]) >> 8 & 255 for line in barriers].count(1) == 2


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
        ("mesh", "65x64", "node ids end at 4095"),
        ("torus", "99x99x99", "970299 nodes, node ids end at 4095"),
        ("ring", "999999999", "node ids end at 4095"),
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
