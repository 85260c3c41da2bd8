# SPDX-License-Identifier: Apache-2.0
"""Profiles of hosts: the constants of the host model, each with its source.

A profile is a TOML file. Those in sim/hosts are known by their names; a user's own is given as a
file:

    what = "a server of ours"                # in one line
    fitted_to = "the paper's 970 ns"         # only if some were chosen to give a result
    [store]                                  # and so on for each of CONSTANTS
    ns = 110
    source = "data sheet X, table 3"         # or "assumed", and why

`fitted_to` names the result that constants were chosen for: a run with them is not evidence for it.
"""

import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velo import tree
from velo.cluster.host import CONSTANTS
from velo.errors import UsageError

DEFAULT = "ht200-fitted"
"""The profile of a run that names none."""
FOLDER = tree.hosts()
NS_MAX = 10**9
WIDTH = 100


@dataclass(frozen=True)
class Constant:
    """A time of the host model, and where it is from."""

    ns: int
    source: str


@dataclass(frozen=True)
class Profile:
    """A host."""

    name: str
    what: str
    constants: Mapping[str, Constant]
    """One for each of CONSTANTS, in their order."""
    fitted_to: str = ""

    @property
    def ns(self) -> dict[str, int]:
        return {name: constant.ns for name, constant in self.constants.items()}


def known() -> list[str]:
    """The names of the profiles that come with the simulator, the default first."""
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    return sorted(names, key=lambda name: name != DEFAULT)


def find(text: str, folder: Path | None = None) -> Profile:
    """The profile of a name, or of a file; one in a cluster's file is relative to its folder."""
    if text in known():
        return read(FOLDER / f"{text}.toml")
    if "/" not in text and not text.endswith(".toml"):
        raise UsageError(
            f"there is no host '{text}'; there are {', '.join(known())}, or give a file (.toml)"
        )
    return read((folder or Path()) / text)


def read(path: Path) -> Profile:
    """The profile in a file, of which every key is known and every constant has its source."""
    try:
        described = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    keys = ("what", "fitted_to", *CONSTANTS)
    for name in described:
        if name not in keys:
            raise UsageError(f"{path}: a host has no '{name}'; known are {', '.join(keys)}")
    what, fitted_to = described.get("what"), described.get("fitted_to", "")
    if not _is_line(what):
        raise UsageError(f"{path}: what = says in one line which host this is")
    if (fitted_to and not _is_line(fitted_to)) or not isinstance(fitted_to, str):
        raise UsageError(f"{path}: fitted_to = names a result in one line")
    constants = {name: _constant(described.get(name), f"{path}: {name}") for name in CONSTANTS}
    return Profile(path.stem, str(what), constants, fitted_to)


def _constant(described: Any, where: str) -> Constant:
    if described is None:
        raise UsageError(f"{where} is missing; a host has all of {', '.join(CONSTANTS)}")
    if not isinstance(described, dict):
        raise UsageError(f"{where} is a table with ns = and source =")
    for name in described:
        if name not in ("ns", "source"):
            raise UsageError(f"{where} has no '{name}'; known are ns and source")
    ns, source = described.get("ns"), described.get("source")
    if isinstance(ns, bool) or not isinstance(ns, int) or not 0 <= ns <= NS_MAX:
        shown = "missing" if ns is None else f"{ns!r}"
        raise UsageError(f"{where}.ns is {shown}; give whole nanoseconds, 0 to {NS_MAX}")
    if not _is_line(source):
        raise UsageError(
            f"{where} has no source: name the paper and section or the data sheet, or write "
            "'assumed' and why"
        )
    return Constant(ns, str(source))


def _is_line(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip()) and "\n" not in text


def listing() -> str:
    """All profiles with their sources, for the terminal."""
    lines: list[str] = []
    for name in known():
        profile = find(name)
        lines += ["", f"{name}{' (default)' if name == DEFAULT else ''}: {profile.what}"]
        lines += [f"  fitted to {profile.fitted_to}"] if profile.fitted_to else []
        for constant, found in profile.constants.items():
            head = f"  {constant:<6} {found.ns:>4} ns  "
            lines += textwrap.wrap(
                found.source, WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
            )
    return "\n".join(lines[1:]) + "\n"


def reference() -> str:
    """The same, as docs/reference/simulator.md has it."""
    profiles = [find(name) for name in known()]
    lines = [
        "| host | " + " | ".join(CONSTANTS) + " | what |",
        "| --- " * (len(CONSTANTS) + 2) + "|",
    ]
    for profile in profiles:
        name = f"`{profile.name}`" + (" (default)" if profile.name == DEFAULT else "")
        times = " | ".join(str(ns) for ns in profile.ns.values())
        lines.append(f"| {name} | {times} | {profile.what} |")
    for profile in profiles:
        lines += ["", f"`{profile.name}`:", ""]
        lines += [f"* fitted to: {profile.fitted_to}"] if profile.fitted_to else []
        lines += [f"* {name}: {c.source}" for name, c in profile.constants.items()]
    return "\n".join(lines) + "\n"
