#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""See that tests were skipped only where tests/skips.toml expects it, and that no part is missing.

check_skips.py FILE... [-- COMMAND...]

With a COMMAND, that is run first, and must end well. Each FILE is a JUnit file of ctest
(--output-junit) or pytest (--junit-xml), named after its run: quick-tests.xml. Exit code: 0 all is
as listed, 1 a test was skipped that should not have been, a part of the tests is not there, or the
list has an entry that fits nothing any more; else the command's.
"""

import argparse
import functools
import os
import re
import resource
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "skips.toml"
FIELDS = {
    "skip": ({"tests", "says"}, {"runs", "when"}),
    "part": ({"tests", "runs"}, {"unless"}),
}


@dataclass(frozen=True)
class Case:
    """One test of a run, and what it said when it was skipped."""

    run: str
    name: str
    said: str | None


# ---- what a machine is ---------------------------------------------------------------------------


def may_unshare() -> bool:
    """May this user have namespaces of its own, as tests/machines needs?"""
    kinds = ["--net", "--mount", "--pid", "--fork", "--uts", "--ipc"]
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    try:
        return not subprocess.run(
            ["unshare", *user, *kinds, "true"], check=False, capture_output=True
        ).returncode
    except OSError:
        return False


def may_attach() -> bool:
    """May a process read the memory of another one of its user?"""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return not scope.exists() or int(scope.read_text()) == 0 or os.geteuid() == 0


def is_system(name: str) -> bool:
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    fields = dict(line.partition("=")[::2] for line in lines)
    here = " ".join(fields.get(key, "").strip('"') for key in ("ID", "VERSION_ID"))
    return here == name


def is_there(patterns: str) -> bool:
    """Is there a file of one of the patterns, from the root of the tree on?"""
    paths = (ROOT / Path(one).expanduser() for one in patterns.split())
    return any(any(Path("/").glob(str(path.relative_to("/")))) for path in paths)


# What `when` and `unless` may say. With a colon: followed by what it is asked about.
CONDITIONS: dict[str, Callable[[str], bool]] = {
    "not root": lambda _: os.geteuid() != 0,
    "no namespaces": lambda _: not may_unshare(),
    "no attach": lambda _: not may_attach(),
    "not Debian": lambda _: not Path("/etc/debian_version").exists(),
    "not x86-64": lambda _: os.uname().machine != "x86_64",
    "one processor": lambda _: len(os.sched_getaffinity(0)) < 2,
    "another system:": lambda name: not is_system(name),
    "fewer open files:": lambda least: resource.getrlimit(resource.RLIMIT_NOFILE)[1] < int(least),
    "no program:": lambda program: shutil.which(program) is None,
    "no file:": lambda patterns: not is_there(patterns),
}


@functools.cache
def holds(condition: str) -> bool:
    kind, colon, about = condition.partition(":")
    return CONDITIONS[kind + colon](about.strip())


def any_holds(conditions: list[str]) -> bool:
    return any(holds(one) for one in conditions)


# ---- the list ------------------------------------------------------------------------------------


def read_list(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Its entries; ValueError: it has a mistake."""
    entries: dict[str, list[dict[str, Any]]] = tomllib.loads(path.read_text(encoding="utf-8"))
    for kind, of_kind in entries.items():
        if kind not in FIELDS:
            raise ValueError(f"{path.name}: there is no kind '{kind}'")
        needed, possible = FIELDS[kind]
        for entry in of_kind:
            if not needed <= set(entry) <= needed | possible:
                raise ValueError(f"{path.name}: [[{kind}]] has {sorted(needed)}, not {list(entry)}")
            for condition in entry.get("when", []) + entry.get("unless", []):
                name, colon, _ = condition.partition(":")
                if name + colon not in CONDITIONS:
                    raise ValueError(f"{path.name}: nobody knows whether '{condition}'")
    return {kind: entries.get(kind, []) for kind in FIELDS}


def is_of(case: Case, entry: dict[str, Any]) -> bool:
    return bool(re.fullmatch(entry["tests"], case.name)) and case.run in entry.get(
        "runs", [case.run]
    )


# ---- what was run --------------------------------------------------------------------------------


def cases_of(path: Path) -> Iterator[Case]:
    for element in Xml.parse(path).iter("testcase"):
        name = element.get("name", "")
        folder = element.get("classname", "")
        said = None
        skipped = element.find("skipped")
        if skipped is not None:
            said = skipped.get("message", "") + "\n" + (element.findtext("system-out") or "")
        # For ctest both are the same.
        yield Case(path.stem, name if folder in (name, "") else f"{folder}.{name}", said)


def judge(cases: list[Case], entries: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What is not as it should be."""
    wrong = []
    used: set[int] = set()
    skipped = [case for case in cases if case.said is not None]
    for case in skipped:
        fitting = [
            (number, entry)
            for number, entry in enumerate(entries["skip"])
            if is_of(case, entry) and re.search(entry["says"], case.said or "")
        ]
        used |= {number for number, _ in fitting}
        if not any("when" not in entry or any_holds(entry["when"]) for _, entry in fitting):
            why = "; on this machine it should run" if fitting else ""
            last = (case.said or "").strip().splitlines()[-1:] or [""]
            wrong.append(f"{case.run}: {case.name} was skipped{why}: {last[0].strip()}")
    for number, entry in enumerate(entries["skip"]):
        # Where it holds on each machine, each run of those that it names has such a skip.
        is_sure = "runs" in entry and "when" not in entry
        if is_sure and number not in used and any(is_of(case, entry) for case in cases):
            wrong.append(f"nothing of '{entry['tests']}' is skipped any more: '{entry['says']}'")
    runs = {case.run for case in cases}
    for entry in entries["part"]:
        for run in sorted(runs & set(entry["runs"])):
            ran = any(
                case.run == run and case.said is None and is_of(case, entry) for case in cases
            )
            if not ran and not any_holds(entry.get("unless", [])):
                wrong.append(f"{run}: no test of '{entry['tests']}' has run")
    return wrong


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a JUnit file of a run")
    parser.add_argument("--list", type=Path, default=LIST, help="what may be skipped")
    words = sys.argv[1:] if argv is None else argv
    divide = words.index("--") if "--" in words else len(words)
    args, command = parser.parse_args(words[:divide]), words[divide + 1 :]
    if command and (status := subprocess.run(command, check=False).returncode):
        return status if status > 0 else 128 - status
    try:
        entries = read_list(args.list)
    except (ValueError, tomllib.TOMLDecodeError) as error:
        sys.exit(f"check_skips: {error}")
    cases = [case for path in args.files for case in cases_of(path)]
    if not cases:
        sys.exit("check_skips: nothing has run")
    wrong = judge(cases, entries)
    for line in wrong:
        print(f"check_skips: {line}", file=sys.stderr)
    skipped = sum(case.said is not None for case in cases)
    print(f"check_skips: {len(cases) - skipped} tests ran, {skipped} were skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
