# SPDX-License-Identifier: Apache-2.0
"""`velo top`: the ports of a domain and what they are doing, again and again."""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from velo import arguments, helpers
from velo.runtime.domain import add_domain, domain_words

PROGRAM = "velo-info"
COUNTERS = ("rx_msgs", "rx_bytes", "tx_msgs", "tx_bytes")
Rates = dict[str, float]


def register(commands: Any) -> None:
    """The command line of `velo top`."""
    parser = commands.add_parser(
        "top",
        help="live counters of the ports of a domain",
        description="Show the ports of a domain with their rates, counters and connections; ports "
        "whose process died are marked. Ctrl-C ends it.",
        allow_abbrev=False,
    )
    add_domain(parser)
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=arguments.seconds,
        default=1.0,
        help="time between two looks, over which the rates are taken (default: 1)",
    )
    parser.add_argument("--once", action="store_true", help="print one table and end")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo top`."""
    # Cost: rich is slow to import, and only what is shown needs it.
    from rich.live import Live

    from velo import display
    from velo.runtime.tables import screen

    console = display.console()
    argv: list[str | Path] = [helpers.find(PROGRAM), "--watch-ms", f"{args.interval * 1000:.0f}"]
    argv += domain_words(args.domain)
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
