# SPDX-License-Identifier: Apache-2.0
"""Tables of a machine, its domains and their ports, for the terminal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from velo import units
from velo.display import Shown, Table, paint
from velo.results import machine
from velo.runtime.environment import GROUPS, unknown
from velo.runtime.leftovers import Domain
from velo.runtime.ports import COUNTERS, Rates
from velo.runtime.served import Served

# Column -> the counters that it adds up.
TOTALS = {
    "recv": ("rx_msgs",),
    "sent": ("tx_msgs",),
    "full": ("tx_again",),
    "slept": ("rx_sleeps", "tx_sleeps"),
    "lost": ("rx_reclaimed",),
    "bad": ("rx_errors",),
}
LEGEND = """\
in, out: connections, via: by what, --peers lists them; full: times a full ring pushed back;
slept: waits that ended in sleep; lost: senders that died; bad: slots refused because no correct
sender writes them; mem: bytes; kept: bytes of messages that nobody has asked for, red beyond their
bound"""


RING_LEGEND = """\
slow ones: what becomes of readers that are slower than the writer; behind: messages that the
slowest reader has not taken, red if the ring is full of them"""


def screen(found: dict[str, Any], rate: dict[int, Rates], peers: bool = False) -> list[Shown]:
    """The tables of one look; with a table of all connections, if that is wanted."""
    ports = _ports_screen(found, rate, peers) if found["ports"] else []
    rings = _rings_screen(found) if found["rings"] else []
    if not ports and not rings:
        return [f"domain {found['domain']}: no port open"]
    return [*ports, *([""] if ports and rings else []), *rings]


def _rings_screen(found: dict[str, Any]) -> list[Shown]:
    rings = found["rings"]
    dead = sum(not ring["alive"] for ring in rings)
    head = f"domain {found['domain']}: {_count(len(rings), 'ring')}, {dead} dead"
    return [head, rings_table(found), *(paint(line, "dim") for line in RING_LEGEND.split("\n"))]


def _ports_screen(found: dict[str, Any], rate: dict[int, Rates], peers: bool) -> list[Shown]:
    ports = found["ports"]
    dead = sum(not port["alive"] for port in ports)
    received = sum(r["rx_msgs"] for r in rate.values())
    total = f"{_count(len(ports), 'port')}, {dead} dead, {units.rate(received)} received"
    head = f"domain {found['domain']}: {total}"
    more: list[Shown] = ["", peers_table(found)] if peers else []
    legend = (paint(line, "dim") for line in LEGEND.split("\n"))
    return [head, ports_table(found, rate), *legend, *more]


def mpi_lines(found: Sequence[Served]) -> list[Shown]:
    """A line for each MPI: what serves it, or what is missing."""
    lines: list[Shown] = []
    for each in found:
        served = f"over {each.by}" if each.by else "not served"
        more = f": {each.why}" if each.why else ""
        lines.append(f"{each.mpi}, {each.mpi.launcher}: {served}{more}")
    return lines or [
        "no MPI in PATH: 'apt-get install openmpi-bin libopenmpi-dev' (Debian) and then 'make "
        "build' is one way to have one over velo"
    ]


def kept(port: dict[str, Any]) -> str:
    """Memory of messages that nobody has asked for; marked where it exceeds its bound."""
    text = units.short(port["kept_bytes"])
    return paint(text, "red") if port["kept_bytes"] > port["kept_bound_bytes"] > 0 else text


def via(port: dict[str, Any]) -> str:
    """By what a port reaches its peers: shm for shared memory, or a transport."""
    return ", ".join(port["connections"]) or "–"


def _ids(peers: list[str]) -> str:
    """Peers of one direction, each with how many connections there are, if several."""
    return " ".join(
        f"{peer}×{count}" if count > 1 else peer for peer, count in Counter(peers).items()
    )


def peers_table(found: dict[str, Any]) -> Table:
    """One row for each port and each way to its peers."""
    table = Table("<port", "<via", "<from", "<to")
    for port in found["ports"]:
        for name, peers in port["connections"].items():
            ends = (_ids(peers.get(direction, [])) or "–" for direction in ("in", "out"))
            table.add_row(f"{port['node']}.{port['vpid']}", name, *ends)
    return table


def ports_table(found: dict[str, Any], rate: dict[int, Rates] | None = None) -> Table:
    """One row for each port; with the rates where there are any."""
    rates_names = [] if rate is None else ["recv/s", "B/s", "sent/s", "B/s"]
    names = ("port", "pid", "in", "out", "via", *rates_names, *TOTALS, "mem", "kept")
    table = Table(*(f">{name}" for name in names))
    for port in found["ports"]:
        c = port["counters"]
        mine = (rate or {}).get(port["id"])
        table.add_row(
            f"{port['node']}.{port['vpid']}",
            str(port["pid"]) if port["alive"] else "dead",
            units.short(c["rx_conns"]),
            units.short(c["tx_conns"]),
            via(port),
            *(units.short(mine[name]) if mine else "–" for name in COUNTERS if rate is not None),
            *(units.short(sum(c[name] for name in names)) for names in TOTALS.values()),
            units.short(port["memory_bytes"]),
            kept(port),
            style="" if port["alive"] else "red",
        )
    return table


def rings_table(found: dict[str, Any]) -> Table:
    """One row for each ring of one writer and many readers."""
    names = ("ring", "pid", "readers", "slow ones", "wrote", "behind", "slots", "mem")
    table = Table(*(f">{name}" for name in names))
    for ring in found["rings"]:
        full = ring["behind_msgs"] >= ring["depth_slots"]
        behind = units.short(ring["behind_msgs"])
        table.add_row(
            f"{ring['node']}.{ring['vpid']}",
            str(ring["pid"]) if ring["alive"] else "dead",
            f"{ring['readers']} of {ring['readers_max']}",
            "miss messages" if ring["drops"] else "hold it up",
            units.short(ring["msgs"]),
            paint(behind, "red") if full else behind,
            units.short(ring["depth_slots"]),
            units.short(ring["memory_bytes"]),
            style="" if ring["alive"] else "red",
        )
    return table


def domains_table(domains: list[Domain]) -> Table:
    """One row for each domain: how many segments live, and what velo clean would remove."""
    table = Table("<domain", ">alive", ">dead", ">others'", ">mem", ">to clean")
    for domain in domains:
        table.add_row(
            domain["domain"],
            *(str(domain[name]) for name in ("alive", "dead", "unknown")),
            units.short(domain["memory_bytes"]),
            units.short(domain["removable_bytes"]),
            style="red" if domain["removable"] else "",
        )
    return table


def config(environment: Mapping[str, str]) -> list[Shown]:
    """Every environment variable that velo reads, in groups."""
    table = Table("<variable", "<value", "<default", "<meaning")
    for group in GROUPS:
        table.add_row(paint(group.title, "bold"))
        for name, default, meaning in group.variables:
            value = environment.get(name)
            shown = "–" if value is None else paint(value or '""', "green")
            table.add_row(f"  {name}", shown, default or "–", meaning)
    unread = [f"nothing reads {name}={environment[name]}" for name in unknown(environment)]
    return [table, *(paint(line, "red") for line in unread)]


def facts_table(found: dict[str, Any]) -> Table:
    """Facts that are not about a single port, a line each."""
    table = Table("<", "<")
    for name, value in _facts(found):
        table.add_row(paint(name, "dim"), value)
    return table


def _facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    host = found["machine"]
    free, size = host.get("shm_free_bytes"), host.get("shm_size_bytes")
    room = f", {free >> 20:,} of {size >> 20:,} MiB free" if size else ""
    barrier = "yes" if host["membarrier"] else "no: senders fence each message"
    return [
        ("engine", found["engine"]),
        ("version", f"{found['version']}, layout {found['spec_hash']}"),
        ("machine", machine.describe()),
        ("CPUs", ", ".join(map(str, host["cpus"]))),
        ("cache line", f"{host['cache_line_bytes']} bytes"),
        ("membarrier", barrier),
        *_copies(found.get("copies")),
        ("segments", f"{host['shm_dir']}{room}"),
        ("network", host.get("network", "shm")),
        ("domain", f"{found['domain']}, {_open(found)}"),
    ]


def _copies(copies: dict[str, Any] | None) -> list[tuple[str, str]]:
    """How payloads are copied, and which way long messages take."""
    if copies is None:
        return []
    ways = {
        "string": "the processor's string moves",
        "libc": "the C library's memcpy()",
    }
    long = f", from {copies['long_bytes']:,} bytes on " if copies["long_bytes"] else ""
    text = f"line by line{long and long + ways[copies['by']]} ({copies['reason']})"
    paths = {
        "copy": "copied piece by piece",
        "get": "fetched in one copy",
        "measured": "copied or fetched, as each receiver measures it",
    }
    path = paths[copies["path"]]
    if copies["path_bytes"]:
        path = f"copied piece by piece, from {copies['path_bytes']:,} bytes on {path}"
    return [("copies", text), ("long messages", path)]


def _open(found: dict[str, Any]) -> str:
    """What is open in a domain, in words."""
    ports, rings = len(found["ports"]), len(found["rings"])
    return ", ".join(
        [
            _count(ports, "port") if ports else "no port open",
            *([_count(rings, "ring")] if rings else []),
        ]
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
