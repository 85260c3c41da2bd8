# SPDX-License-Identifier: Apache-2.0
"""The two CPUs that a pair of processes is pinned to."""

import argparse
import os
from collections.abc import Sequence

from velo import units
from velo.arguments import checked
from velo.errors import UsageError


def add_cpus(parser: argparse.ArgumentParser) -> None:
    """The option that names them."""
    parser.add_argument(
        "--cpus",
        metavar="LIST",
        type=checked(units.parse_cpus),
        help="the two CPUs to pin to: 0,1 (default: the first two allowed)",
    )


def two_cpus(wanted: Sequence[int] | None) -> list[int]:
    """The CPUs that everything is pinned to."""
    allowed = sorted(os.sched_getaffinity(0))
    cpus = list(wanted or allowed[:2])
    if len(cpus) != 2 or not set(cpus) <= set(allowed):
        raise UsageError(
            f"a pair needs two CPUs out of those allowed here, {','.join(map(str, allowed))};"
            " name them with --cpus"
        )
    return cpus
