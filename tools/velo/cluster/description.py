# SPDX-License-Identifier: Apache-2.0
"""The cluster that `velo sim` simulates: of one line, or of a TOML file.

    topology = "torus:2x2x2"      # as on the command line; or `cables`
    clock_mhz = 156               # of all nodes (default 100)
    width_bits = 32               # of their data path: 32, 64 or 128
    cable_cycles = 33             # delay of each cable with its PHYs (default 0)
    error_rate = 1e-9             # of each bit on a cable (default 0)
    compute = "free"              # or "call:NS", "measured:FACTOR"
    cables = [[0, 0, 1, 0]]       # node, link, node, link
    routes = [[0, 1, 0]]          # node, destination, link; then true for the dateline channel

    host = "opteron-ht400"        # a profile (profiles.py), or a file relative to this one

    [host_ns]                     # other times than the profile's, see velo-sim --help
    store = 110

Without `routes` every node sends the shortest way. What cannot be reached, and routes that could
wait for each other in a circle, are refused.
"""

import tomllib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from velo.cluster import profiles, routing
from velo.cluster.host import check_host
from velo.errors import UsageError

CABLE_ENDS = 4


@dataclass(frozen=True)
class Cluster:
    """Hardware, cables and hosts; what is None is left to the simulator."""

    network: routing.Network
    clock_mhz: float = 100
    width_bits: int = 32
    cable_cycles: int | None = None
    error_rate: float | None = None
    compute: str | None = None
    host: profiles.Profile | None = None
    host_ns: Mapping[str, int] = field(default_factory=dict)
    """Other times than the host's."""

    def options(self) -> list[str]:
        """What velo-sim is told, besides the network."""
        words = ["--clock-mhz", f"{self.clock_mhz:g}"]
        words += ["--width", str(self.width_bits)] if self.width_bits != 32 else []
        for name, value in (
            ("cable-cycles", self.cable_cycles),
            ("error-rate", self.error_rate),
            ("compute", self.compute),
        ):
            words += [] if value is None else [f"--{name}", str(value)]
        constants = {**(self.host.ns if self.host else {}), **self.host_ns}
        for name, value in constants.items():
            words += [f"--{name}-ns", str(value)]
        return words + (["--host", self.host_text] if self.host else [])

    @property
    def host_text(self) -> str:
        """What a result calls the host."""
        name = self.host.name if self.host else profiles.DEFAULT
        changes = ",".join(f"{constant}={ns}" for constant, ns in self.host_ns.items())
        return f"{name} with {changes}" if changes else name


def make(topology: str | None, path: str | None, changes: Mapping[str, Any]) -> Cluster:
    """The cluster of a line or a file; `changes` that are not None override what the file says."""
    described = read(Path(path)) if path else {}
    if topology or not described.keys() & {"topology", "cables"}:
        described = {k: v for k, v in described.items() if k not in ("cables", "routes")}
        described["topology"] = topology or "pair"
    host_ns = {**described.pop("host_ns", {}), **(changes.get("host_ns") or {})}
    host = _host(changes.get("host"), described.pop("host", None), path)
    described |= {name: value for name, value in changes.items() if value is not None}
    network = _network(described)
    return Cluster(network, **(described | {"host": host, "host_ns": host_ns}))


def _host(given: str | None, described: str | None, path: str | None) -> profiles.Profile | None:
    """The profile of the command line, else of the file."""
    if given:
        return profiles.find(given)
    return profiles.find(described, Path(path).parent) if described and path else None


def line(text: str) -> routing.Network:
    """A network of one line: `pair`, or KIND:SIZE."""
    kind, _, size = ("full", ":", "2") if text == "pair" else text.partition(":")
    try:
        if kind not in routing.KINDS:
            known = ", ".join(routing.KINDS)
            raise routing.TopologyError(f"there is no '{kind}'; there are pair, {known}")
        return routing.build(kind, size)
    except routing.TopologyError as error:
        raise UsageError(f"topology '{text}': {error}") from error


def read(path: Path) -> dict[str, Any]:
    """A cluster file, of which every key is known and of its type."""
    try:
        described = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    types: dict[str, Any] = {
        "topology": str, "cables": list, "routes": list, "clock_mhz": (int, float),
        "width_bits": int, "cable_cycles": int, "error_rate": (int, float), "compute": str,
        "host": str, "host_ns": dict,
    }  # fmt: skip
    assert types.keys() - {"topology", "cables", "routes"} <= {f.name for f in fields(Cluster)}
    for name, value in described.items():
        if name not in types:
            raise UsageError(f"{path}: there is no '{name}'; known are {', '.join(types)}")
        if isinstance(value, bool) or not isinstance(value, types[name]):
            raise UsageError(f"{path}: {name} = {value!r} makes no sense")
    check_host(described.get("host_ns", {}), str(path))
    if "topology" in described and "cables" in described:
        raise UsageError(f"{path}: topology and cables are two descriptions; leave one out")
    return described


def _network(described: dict[str, Any]) -> routing.Network:
    topology = described.pop("topology", None)
    cables, routes = described.pop("cables", None), described.pop("routes", None)
    if topology:
        return line(topology)
    try:
        network = _plug(cables)
        hops = _shortest(network) if routes is None else _table(network, routes)
        network = routing.Network(network.nodes, network.cables, hops)
        circle = routing.find_cycle(network)
    except routing.TopologyError as error:
        raise UsageError(f"cables: {error}") from error
    if circle:
        shown = ", ".join(f"node {node} link {link}" for node, link, _ in circle)
        raise UsageError(f"these channels can wait for each other: {shown}; give other `routes`")
    return network


def _plug(cables: Sequence[Any]) -> routing.Network:
    plugs: dict[tuple[int, int], tuple[int, int]] = {}
    for cable in cables:
        if not _are_numbers(cable, CABLE_ENDS):
            raise routing.TopologyError(f"{cable!r} is not node, link, node, link")
        for end, other in ((cable[:2], cable[2:]), (cable[2:], cable[:2])):
            if end[0] >= routing.MAX_NODES or end[1] >= routing.MAX_LINKS:
                raise routing.TopologyError(f"there is no node {end[0]} with a link {end[1]}")
            if tuple(end) in plugs:
                raise routing.TopologyError(f"node {end[0]}, link {end[1]} has two cables")
            plugs[end[0], end[1]] = (other[0], other[1])
    return routing.Network(1 + max((node for node, _ in plugs), default=-1), plugs, [])


def _shortest(network: routing.Network) -> list[list[int]]:
    """By the lowest link of those that lead the shortest way."""
    hops = [[routing.HOP_LOCAL] * network.nodes for _ in range(network.nodes)]
    for destination in range(network.nodes):
        distance = {destination: 0}
        queue = deque([destination])
        while queue:
            node = queue.popleft()
            for link in range(routing.MAX_LINKS):
                other = network.cables.get((node, link), (node, 0))[0]
                if other not in distance:
                    distance[other] = distance[node] + 1
                    queue.append(other)
        for node in set(range(network.nodes)) - {destination}:
            if node not in distance:
                raise routing.TopologyError(f"no way from node {node} to node {destination}")
            hops[node][destination] = next(
                link
                for link in range(routing.MAX_LINKS)
                if (node, link) in network.cables
                and distance[network.cables[node, link][0]] == distance[node] - 1
            )
    return hops


def _table(network: routing.Network, routes: Sequence[Any]) -> list[list[int]]:
    """As it is written; _network() has every path walked."""
    hops: list[list[int | None]] = [[None] * network.nodes for _ in range(network.nodes)]
    for route in routes:
        dateline = isinstance(route, list) and len(route) == CABLE_ENDS and route[3] is True
        numbers = route[:3] if dateline else route
        if not _are_numbers(numbers, 3):
            raise routing.TopologyError(f"route {route!r} is not node, destination, link[, true]")
        node, destination, link = numbers
        if max(node, destination) >= network.nodes or (node, link) not in network.cables:
            raise routing.TopologyError(f"route {route!r} leads where no cable is")
        hops[node][destination] = link + routing.HOP_DATELINE * dateline
    table = []
    for node, row in enumerate(hops):
        row[node] = routing.HOP_LOCAL
        if None in row:
            raise routing.TopologyError(f"no route from node {node} to node {row.index(None)}")
        table.append([hop for hop in row if hop is not None])
    return table


def _are_numbers(value: Any, count: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == count
        and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in value)
    )
