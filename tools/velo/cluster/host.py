# SPDX-License-Identifier: Apache-2.0
"""The constants of the host model: their names, and how they are given."""

from collections.abc import Mapping
from typing import Any

from velo.errors import UsageError

CONSTANTS = ("store", "dma", "read", "poll", "clock", "copy", "call")
"""Those of a host; profiles.py has them with their sources."""
HOST_CONSTANTS = (*CONSTANTS, "gap")
"""With the pause after each line, which no host has."""


def check_host(constants: Mapping[str, Any], where: str) -> None:
    """Are these constants of the host model?"""
    for name, value in constants.items():
        if name not in HOST_CONSTANTS:
            raise UsageError(
                f"{where}: the host model has no '{name}'; known are {', '.join(HOST_CONSTANTS)}"
            )
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UsageError(f"{where}: {name} = {value!r} is not a number of nanoseconds")


def host_constants(text: str) -> dict[str, int]:
    """NAME=NS[,NAME=NS...] of the command line."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or not value.isdecimal():
            raise UsageError(f"'{part}' is not of the form store=110")
        found[name] = int(value)
    check_host(found, "--host-ns")
    return found
