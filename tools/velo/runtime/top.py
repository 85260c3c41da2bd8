# SPDX-License-Identifier: Apache-2.0
"""`velo top`: the ports and rings of a domain and what they are doing, again and again."""

import argparse
import contextlib
from typing import Any

from velo import arguments
from velo.runtime.domain import add_domain, add_peers


def register(commands: Any) -> None:
    """The command line of `velo top`."""
    parser = commands.add_parser(
        "top",
        help="live counters of the ports of a domain",
        description="Show the ports of a domain with their rates, counters and connections, and "
        "its rings; those whose process died are marked. Ctrl-C ends it, with exit code 0.",
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
    add_peers(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo top`."""
    # Cost: subprocess is slow to import.
    from velo import display
    from velo.runtime.ports import rates, watch, with_rates
    from velo.runtime.tables import screen

    console = display.Console()
    with contextlib.closing(watch(args.domain, args.interval)) as looks:
        if args.once:
            # Rates need two looks.
            before = next(looks, None)
            after = next(looks, None)
            if before and after:
                console.print(*screen(after, rates(before, after), args.peers))
            return
        with contextlib.suppress(KeyboardInterrupt):  # That is how it is meant to end.
            if console.is_terminal:
                with display.Screen(console) as live:
                    for found, rate in with_rates(looks):
                        live.show(*screen(found, rate, args.peers))
            else:
                for found, rate in with_rates(looks):
                    console.print(*screen(found, rate, args.peers))
