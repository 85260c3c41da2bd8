#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Routing tables and cables of a topology, free of deadlock.

    routing.py torus 2x2x2        routing.py mesh 4x3      routing.py ring 4
    routing.py hypercube 3        routing.py full 5

prints one line a cable, `cable NODE LINK NODE LINK`, and one line a route, `route NODE DESTINATION
HOP`; HOP is what the switch's table and a route word hold: output link, plus 8 for the second
virtual channel of the packet's class, or 15 for the node's own ports. With `--group
NUMBER:SOURCE:MEMBERS` (as in 224:0:1,2,5 or 224:0:all) it prints one line a node of that multicast
group, too, `group NODE NUMBER WAY`; WAY is the mask that the table holds: links from bit 0 on,
those where the second channel is taken from bit 6 on, bit 12 the node's own port. Another line,
`barrier NODE NUMBER SETTING`, is for a barrier of the group, whose root is the source: SETTING is
what the register of the group's barrier holds (spec, layout barrier_setting), but for the context
and the number of the first barrier, which are zero.

Deadlock: dimensions are crossed in order. In a ring a packet that has yet to pass the dateline, the
cable between the last node and the first, uses the first channel, any other the second (Dally and
Seitz, IEEE Trans. Computers 36(5), 1987); so neither channel's dependencies go round the ring.

One node sends to a group, its source; the group's tree is made of the routes from there to its
members. A switch keeps a group's packet in the buffer of the channel that it came by until the last
copy has left, so each channel into a node waits for each channel out of it. These are dependencies
of unicast, which have no circle. A barrier's arrivals go up that tree by unicast, a cable each, and
add none. Where members before and behind a dateline share a link, which
then has the first channel, there are a few more. `find_cycle` looks at all of them together.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import prod

MAX_LINKS = 6
# Of the fast model; the hardware itself has ids for RTL_NODES. sim/names.h.
MAX_NODES = 4096
RTL_NODES = 256
KINDS = ("ring", "torus", "mesh", "hypercube", "full")
HOP_LOCAL = 15
HOP_DATELINE = 8

# Bits of a barrier's setting.
BARRIER_ENABLED, BARRIER_ROOT = 1, 2

FIRST_GROUP = 224  # node numbers from here on name groups, where multicast is in
MAX_GROUPS = RTL_NODES - FIRST_GROUP

# A virtual channel of a cable: the sending node, its link, and the dateline bit.
Channel = tuple[int, int, int]


class TopologyError(ValueError):
    """A topology that the hardware cannot form; the message says why."""


@dataclass(frozen=True)
class Network:
    """The cables, and the routes from every node to every other."""

    nodes: int
    cables: dict[tuple[int, int], tuple[int, int]]  # (node, link) -> (node, link), both ways
    routes: list[list[int]]  # [node][destination] -> hop

    def links_used(self) -> int:
        return 1 + max((link for _, link in self.cables), default=-1)

    def path(self, source: int, destination: int) -> list[Channel]:
        """The channels of a packet's way. Raises if it does not arrive."""
        channels: list[Channel] = []
        node = source
        while (hop := self.routes[node][destination]) != HOP_LOCAL:
            link = hop % HOP_DATELINE
            channels.append((node, link, hop // HOP_DATELINE))
            if (node, link) not in self.cables or len(channels) > self.nodes * MAX_LINKS:
                raise TopologyError(f"no way from node {source} to node {destination}")
            node = self.cables[node, link][0]
        if node != destination:
            raise TopologyError(f"node {source}'s packets for {destination} end at {node}")
        return channels


@dataclass(frozen=True)
class Group:
    """A multicast group: the nodes that keep a copy, and by node the channels others leave by."""

    number: int
    source: int
    members: frozenset[int]
    ways: dict[int, list[Channel]]

    def way_bits(self, node: int) -> int:
        """What the table of the node's switch holds."""
        bits = (node in self.members) << 12
        for _, link, dateline in self.ways.get(node, []):
            bits |= 1 << link | dateline << (6 + link)
        return bits

    def children(self, network: Network, node: int) -> list[int]:
        """The nodes of the tree below one, in the order of the links to them."""
        return [network.cables[node, link][0] for _, link, _ in self.ways.get(node, [])]

    def barrier_settings(self, network: Network) -> dict[int, int]:
        """By node of the tree: what it has to know of a barrier, without context and number."""
        settings = {self.source: BARRIER_ROOT}
        for parent in list(self.ways):
            for slot, child in enumerate(self.children(network, parent), start=1):
                settings[child] = parent << 16 | slot << 24
        for node in settings:
            expected = (2 << len(self.children(network, node))) - 2 | (node in self.members)
            settings[node] |= BARRIER_ENABLED | expected << 8
        return settings


def multicast(network: Network, number: int, source: int, members: Iterable[int]) -> Group:
    """The group with the tree of the routes from its source to its members."""
    members = frozenset(members)
    if not FIRST_GROUP <= number < RTL_NODES or network.nodes > FIRST_GROUP:
        raise TopologyError(
            f"group {number}: groups have the numbers {FIRST_GROUP} to {RTL_NODES - 1}, "
            "which no node may have"
        )
    if not members or not {source, *members} <= set(range(network.nodes)):
        raise TopologyError(f"group {number} has no members, or some that are no nodes")
    dateline: dict[tuple[int, int], int] = {}
    entered: dict[int, tuple[int, int]] = {}
    for member in members:
        for node, link, second in network.path(source, member):
            # The member whose way has yet to pass the dateline decides.
            dateline[node, link] = min(second, dateline.get((node, link), 1))
            there = network.cables[node, link][0]
            if there == source or entered.setdefault(there, (node, link)) != (node, link):
                raise TopologyError(f"group {number}: routes from node {source} form no tree")
    ways: dict[int, list[Channel]] = {}
    for (node, link), second in sorted(dateline.items()):
        ways.setdefault(node, []).append((node, link, second))
    return Group(number, source, members, ways)


def find_cycle(network: Network, groups: Iterable[Group] = ()) -> list[Channel]:
    """A circle of channels each of which waits for the next; empty if there is none."""
    waits_for: dict[Channel, set[Channel]] = {}
    for source in range(network.nodes):
        for destination in range(network.nodes):
            channels = network.path(source, destination)
            for here, there in pairwise(channels):
                waits_for.setdefault(here, set()).add(there)
    for group in groups:
        for channels in group.ways.values():
            for here in channels:
                at_next = group.ways.get(network.cables[here[:2]][0], [])
                waits_for.setdefault(here, set()).update(at_next)
    done: set[Channel] = set()
    for start in waits_for:
        # Depth first, by hand: paths are longer than Python's stack.
        stack: list[tuple[Channel, Iterable[Channel]]] = [(start, iter(waits_for[start]))]
        on_stack = {start: None}
        while stack and start not in done:
            channel, rest = stack[-1]
            following = next(iter(rest), None)
            if following is None:
                done.add(channel)
                stack.pop()
                on_stack.pop(channel)
            elif following in on_stack:
                circle = list(on_stack)
                return circle[circle.index(following) :]
            elif following not in done:
                on_stack[following] = None
                stack.append((following, iter(waits_for.get(following, ()))))
    return []


def grid(sizes: list[int], wrap: bool) -> Network:
    """A torus (wrap) or mesh. Link 2d goes up in dimension d, link 2d + 1 down."""
    if not sizes or any(size < 2 for size in sizes):
        raise TopologyError("each dimension needs at least 2 nodes")
    if 2 * len(sizes) > MAX_LINKS:
        raise TopologyError(
            f"{len(sizes)} dimensions need {2 * len(sizes)} links, a node has {MAX_LINKS}"
        )
    nodes = prod(sizes)
    if nodes > MAX_NODES:  # Before anything so large is made.
        raise TopologyError(f"{nodes} nodes, node ids end at {MAX_NODES - 1}")
    strides = [prod(sizes[:dim]) for dim in range(len(sizes))]

    def place(node: int, dim: int) -> int:
        return node // strides[dim] % sizes[dim]

    cables: dict[tuple[int, int], tuple[int, int]] = {}
    for node in range(nodes):
        for dim, size in enumerate(sizes):
            if wrap or place(node, dim) < size - 1:
                up = (place(node, dim) + 1) % size
                other = node + (up - place(node, dim)) * strides[dim]
                cables[node, 2 * dim] = (other, 2 * dim + 1)
                cables[other, 2 * dim + 1] = (node, 2 * dim)

    def hop(node: int, destination: int) -> int:
        for dim, size in enumerate(sizes):
            here, there = place(node, dim), place(destination, dim)
            if here == there:
                continue
            upwards = (there - here) % size
            # The shorter way; between two equal ones, even nodes go up: both ways carry the same.
            up = (
                upwards * 2 < size or (upwards * 2 == size and here % 2 == 0)
                if wrap
                else here < there
            )
            crossed = there > here if up else there < here
            return 2 * dim + (not up) + (HOP_DATELINE if wrap and crossed else 0)
        return HOP_LOCAL

    return Network(nodes, cables, [[hop(a, b) for b in range(nodes)] for a in range(nodes)])


def hypercube(dimensions: int) -> Network:
    """Link d flips bit d of the node number; lowest differing bit first."""
    if not 1 <= dimensions <= MAX_LINKS:
        raise TopologyError(f"a hypercube has 1 to {MAX_LINKS} dimensions")
    nodes = 1 << dimensions
    cables = {(n, d): (n ^ 1 << d, d) for n in range(nodes) for d in range(dimensions)}

    def hop(node: int, destination: int) -> int:
        differ = node ^ destination
        return (differ & -differ).bit_length() - 1 if differ else HOP_LOCAL

    return Network(nodes, cables, [[hop(a, b) for b in range(nodes)] for a in range(nodes)])


def fully_connected(nodes: int) -> Network:
    """Every node has a cable to every other, in the order of their numbers."""
    if not 2 <= nodes <= MAX_LINKS + 1:
        raise TopologyError(f"fully connected networks have 2 to {MAX_LINKS + 1} nodes")

    def link(node: int, other: int) -> int:
        return other - (other > node)

    pairs = [(a, b) for a in range(nodes) for b in range(nodes) if a != b]
    cables = {(a, link(a, b)): (b, link(b, a)) for a, b in pairs}
    routes = [[HOP_LOCAL if a == b else link(a, b) for b in range(nodes)] for a in range(nodes)]
    return Network(nodes, cables, routes)


def build(kind: str, size: str) -> Network:
    """The network of the given kind; size is AxBxC for torus and mesh, else a number."""
    try:
        sizes = [int(part) for part in size.split("x")]
    except ValueError:
        raise TopologyError(f"size {size!r} is not of the form 4 or 2x2x2") from None
    if kind not in ("torus", "mesh") and len(sizes) != 1:
        raise TopologyError(f"the size of a {kind} is one number")
    if kind == "hypercube":
        network = hypercube(sizes[0])
    elif kind == "full":
        network = fully_connected(sizes[0])
    elif kind in KINDS:
        network = grid(sizes, wrap=kind != "mesh")
    else:
        raise TopologyError(f"unknown topology {kind!r}: {', '.join(KINDS)}")
    return network


def parse_group(network: Network, text: str) -> Group:
    """A group as the command's option names it."""
    try:
        number, source, members = text.split(":")
        nodes = range(network.nodes) if members == "all" else map(int, members.split(","))
        return multicast(network, int(number), int(source), nodes)
    except ValueError as error:
        if isinstance(error, TopologyError):
            raise
        raise TopologyError(f"group {text!r} is not of the form 224:0:1,2,5") from None


def to_text(network: Network, groups: Iterable[Group] = ()) -> str:
    lines = [f"cable {a} {b} {c} {d}" for (a, b), (c, d) in sorted(network.cables.items())]
    for node, hops in enumerate(network.routes):
        lines += [f"route {node} {destination} {hop}" for destination, hop in enumerate(hops)]
    for group in groups:
        lines += [
            f"group {node} {group.number} {bits}"
            for node in range(network.nodes)
            if (bits := group.way_bits(node))
        ]
        settings = sorted(group.barrier_settings(network).items())
        lines += [f"barrier {node} {group.number} {setting}" for node, setting in settings]
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", help="torus, mesh, ring, hypercube or full")
    parser.add_argument("size", help="4, or 2x2x2 for torus and mesh")
    parser.add_argument("--group", action="append", default=[], help="NUMBER:SOURCE:MEMBERS")
    args = parser.parse_args(argv)
    try:
        network = build(args.kind, args.size)
        groups = [parse_group(network, text) for text in args.group]
        if circle := find_cycle(network, groups):
            raise TopologyError(f"channels wait for each other: {circle}")
        sys.stdout.write(to_text(network, groups))
    except TopologyError as error:
        print(f"routing: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
