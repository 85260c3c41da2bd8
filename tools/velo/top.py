# SPDX-License-Identifier: Apache-2.0
"""`velo top`: the ports of a domain and what they are doing, again and again."""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table

from velo import display, helpers, units

PROGRAM = "velo-info"
COUNTERS = ("rx_msgs", "rx_bytes", "tx_msgs", "tx_bytes")
Rates = dict[str, float]
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
in, out: connections; full: times a full ring pushed back; slept: waits that ended in sleep;
lost: senders that died; bad: slots refused because no correct sender writes them; mem: bytes;
kept: bytes of messages that nobody has asked for, red beyond their bound"""


def command(args: argparse.Namespace) -> None:
    """`velo top`."""
    console = display.console()
    argv: list[str | Path] = [helpers.find(PROGRAM), "--watch-ms", f"{args.interval * 1000:.0f}"]
    argv += ["--domain", args.domain] if args.domain else []
    with contextlib.closing(helpers.stream(argv, has_end=False)) as looks:
        if args.once:
            # Rates need two looks.
            before = next(looks, None)
            after = next(looks, None)
            if before and after:
                console.print(screen(after, rates(before, after)))
        elif console.is_terminal:
            with Live(console=console, screen=True, auto_refresh=False) as live:
                for found, rate in _with_rates(looks):
                    live.update(screen(found, rate), refresh=True)
        else:
            for found, rate in _with_rates(looks):
                console.print(screen(found, rate))


def _with_rates(
    looks: Iterator[dict[str, Any]],
) -> Iterator[tuple[dict[str, Any], dict[int, Rates]]]:
    before: dict[str, Any] | None = None
    for found in looks:
        yield found, rates(before, found) if before else {}
        before = found


def rates(before: dict[str, Any], after: dict[str, Any]) -> dict[int, Rates]:
    """Per port id, what its counters grew by in a second between two looks.

    A port that was opened anew in between, by another process or with counters that fell, has none.
    """
    seconds = (after["time_ns"] - before["time_ns"]) / 1e9
    old = {(port["id"], port["pid"]): port["counters"] for port in before["ports"]}
    out = {}
    for port in after["ports"]:
        past, now = old.get((port["id"], port["pid"])), port["counters"]
        if past and seconds > 0 and all(now[name] >= past[name] for name in COUNTERS):
            out[port["id"]] = {name: (now[name] - past[name]) / seconds for name in COUNTERS}
    return out


def screen(found: dict[str, Any], rate: dict[int, Rates]) -> Group | str:
    """What is shown of one look."""
    ports = found["ports"]
    if not ports:
        return f"domain {found['domain']}: no port open"
    dead = sum(not port["alive"] for port in ports)
    received = sum(r["rx_msgs"] for r in rate.values())
    total = f"{len(ports)} ports, {dead} dead, {units.rate(received)} received"
    head = f"domain {found['domain']}: {total}"
    return Group(head, ports_table(found, rate), f"[dim]{LEGEND}[/]")


def kept(port: dict[str, Any]) -> str:
    """Memory of messages that nobody has asked for; marked where it exceeds its bound."""
    text = units.short(port["kept_bytes"])
    return f"[red]{text}[/]" if port["kept_bytes"] > port["kept_bound_bytes"] > 0 else text


def ports_table(found: dict[str, Any], rate: dict[int, Rates] | None = None) -> Table:
    """One row for each port; with the rates where there are any."""
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    rates_names = [] if rate is None else ["recv/s", "B/s", "sent/s", "B/s"]
    for name in ("port", "pid", "in", "out", *rates_names, *TOTALS, "mem", "kept"):
        table.add_column(name, justify="right", no_wrap=True)
    for port in found["ports"]:
        c = port["counters"]
        mine = (rate or {}).get(port["id"])
        table.add_row(
            f"{port['node']}.{port['vpid']}",
            str(port["pid"]) if port["alive"] else "dead",
            units.short(c["rx_conns"]),
            units.short(c["tx_conns"]),
            *(units.short(mine[name]) if mine else "–" for name in COUNTERS if rate is not None),
            *(units.short(sum(c[name] for name in names)) for names in TOTALS.values()),
            units.short(port["memory_bytes"]),
            kept(port),
            style=None if port["alive"] else "red",
        )
    return table
