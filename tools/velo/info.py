# SPDX-License-Identifier: Apache-2.0
"""`velo info`: what velo-info says about library, machine and ports, for people."""

import argparse
import contextlib
import json
from pathlib import Path
from typing import Any

from rich.table import Table

from velo import clean, display, helpers, units
from velo.errors import VeloError
from velo.results import machine
from velo.top import ports_table

PROGRAM = "velo-info"


def arguments(domain: str | None) -> list[str]:
    """The options of velo-info for a domain."""
    return ["--domain", domain] if domain else []


def look(domain: str | None) -> dict[str, Any]:
    """One look at the domain."""
    argv: list[str | Path] = [helpers.find(PROGRAM), "--json", *arguments(domain)]
    with contextlib.closing(helpers.stream(argv, has_end=False)) as lines:
        found = next(lines, None)
        if found is None:
            raise VeloError(f"{PROGRAM} said nothing")
        for _ in lines:  # To the end, so that its exit code is checked.
            pass
    return found


def command(args: argparse.Namespace) -> None:
    """`velo info`."""
    found = look(args.domain)
    if args.all:
        found["domains"] = clean.look()
    if args.json:
        print(json.dumps(found, indent=1))
        return
    console = display.console()
    table = Table.grid(padding=(0, 3, 0, 0))
    for name, value in facts(found):
        table.add_row(f"[dim]{name}[/]", value)
    console.print(table)
    if args.all:
        console.print()
        console.print(domains_table(found["domains"]) if found["domains"] else "no domain")
    elif found["ports"]:
        console.print()
        console.print(ports_table(found))


def domains_table(domains: list[clean.Domain]) -> Table:
    """One row for each domain: how many segments live, and what velo clean would remove."""
    table = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("domain", no_wrap=True)
    for name in ("alive", "dead", "others'", "mem", "to clean"):
        table.add_column(name, justify="right", no_wrap=True)
    for domain in domains:
        table.add_row(
            domain["domain"],
            *(str(domain[name]) for name in ("alive", "dead", "unknown")),
            units.short(domain["memory_bytes"]),
            units.short(domain["removable_bytes"]),
            style="red" if domain["removable"] else None,
        )
    return table


def facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What is not about a single port."""
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
        ("segments", f"{host['shm_dir']}{room}"),
        ("domain", f"{found['domain']}, {_count(len(found['ports']))}"),
    ]


def _count(ports: int) -> str:
    return "no port open" if ports == 0 else "1 port" if ports == 1 else f"{ports} ports"
