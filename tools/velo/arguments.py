# SPDX-License-Identifier: Apache-2.0
"""Types of arguments, for argparse: each says itself what is wrong with a value."""

import argparse
import contextlib
from collections.abc import Callable
from typing import Any

from velo.errors import UsageError


def checked(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """A parser of units.py as an argparse type, with its own message on a mistake."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def seconds(text: str) -> float:
    """A time that people wait for."""
    with contextlib.suppress(ValueError):
        value = float(text)
        if 0.1 <= value <= 86400:
            return value
    raise argparse.ArgumentTypeError(f"'{text}' is not a time in seconds from 0.1 to 86400")


def positive(text: str) -> float:
    """Any number above 0."""
    with contextlib.suppress(ValueError):
        value = float(text)
        if 0 < value < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")


def share(text: str) -> float:
    """A part of a whole; not nothing."""
    with contextlib.suppress(ValueError):
        value = float(text)
        if 0 < value <= 1:
            return value
    raise argparse.ArgumentTypeError(f"'{text}' is not a share above 0 and up to 1, such as 0.89")


def numbers(text: str) -> list[float]:
    """Numbers above 0 with commas between them, in the order given; for checked()."""
    found = []
    for part in text.split(","):
        try:
            found.append(positive(part))
        except argparse.ArgumentTypeError as error:
            raise UsageError(str(error)) from error
    return found
