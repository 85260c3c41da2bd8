# SPDX-License-Identifier: Apache-2.0
"""The domain that a command is about."""

from typing import Any


def add_domain(parser: Any) -> None:
    """The option that names a domain to look at."""
    parser.add_argument(
        "--domain", metavar="NAME", help="the domain to look at (default: $VELO_DOMAIN, or u<uid>)"
    )


def add_peers(parser: Any) -> None:
    """The option that lists the connections of each port."""
    parser.add_argument(
        "--peers",
        action="store_true",
        help="list each port's peers, and by what they are reached: shared memory or a transport",
    )


def domain_words(domain: str | None) -> list[str]:
    """The same for one of our C programs."""
    return ["--domain", domain] if domain else []
