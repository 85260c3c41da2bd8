#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keep the results of checks by content: what has passed with the same inputs is not run again.

  kept.py begin NAME     a target begins: its table has what is recorded from here on
  kept.py step NAME [--build OPTIONS] [--without SET,...] -- COMMAND...
                         run a command, unless it has passed with the same inputs: all files of the
                         checkout without those of some sets, the command, the tools' versions, the
                         environment, the machine. Before it scripts/build runs with the options.
                         In the command {junit} is a file that counts of tests are read from
  kept.py table [NAME]   what was run, kept and skipped since NAME began, and for how long
  kept.py sets           what the sets of files are

FRESH=1 in the environment ignores what is kept, FRESH=SECONDS (since 1970) what was kept before
then; what passes is kept all the same. Results are below $XDG_CACHE_HOME/velo/kept (~/.cache by
default), a file for each key, and go when nobody has asked for them for 60 days. Files that Git
does not know and does not ignore count as inputs; where there is no Git, nothing is kept. While a
step runs, the files that are not among its inputs are watched (inotify): if one is opened, by
whomever, the result is not kept, and a line names the file.

Exit code: the command's; 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fnmatch
import functools
import hashlib
import json
import math
import os
import platform
import re
import select
import shlex
import struct
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ROOT / "scripts" / "packages"
RECORDS = ROOT / "build" / "checks" / "records.jsonl"
KEEP_DAYS = 60
DATE = "%Y-%m-%d %H:%M:%S"
FORMAT = "1"  # Another one makes all that is kept void.

# What a step may do without: patterns of paths, in which * matches any part of a path, / too.
SETS = {
    "pages": ("docs/*", "*.md", "LICENSES/*", "REUSE.toml", "CITATION.cff"),
    # What a step does is part of its key in any case.
    "front-door": ("Makefile", ".ci/*"),
    "proofs": ("rtl/*/formal/*", "rtl/*/mutants.toml", "rtl/*/equivalent.toml"),
    "rtl-tests": ("rtl/*/test/*", "rtl/bench/*", "rtl/conftest.py"),
    "hardware": ("rtl/*",),
    "simulator": ("sim/*", "tests/sim/*", "tests/vm/*"),
    "tools-tests": ("tools/tests/*",),
    "lint": (
        "scripts/lint",
        "scripts/check_deps.py",
        "scripts/draw_deps.py",
        ".clang-tidy",
        ".clang-format",
    ),
}
# What would belong to a set by its name, but is read by programs, linked with them, preloaded, or
# installed.
NOT_IN_SETS = ("tests/mutation/README.md", "sim/client/*", "sim/preload/*", "sim/hosts/*")

# Their versions are part of every key. A tool that is not there is a version, too.
TOOLS = (
    ("cc", "--version"),
    ("c++", "--version"),
    ("clang", "--version"),
    ("ld", "--version"),
    ("cmake", "--version"),
    ("spin", "-V"),
    ("mpirun", "--version"),
    ("valgrind", "--version"),
    ("cargo", "--version"),
    ("ldd", "--version"),
    ("pkg-config", "--modversion", "libfabric"),
)
# What of the environment a check may depend on.
VARIABLES = (
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "SEED",
    "RTL_OPT_FAST",
    "COCOTB_TEST_FILTER",
)
PREFIXES = ("VELO_", "OMPI_", "FI_", "WERROR")

IN_OPEN = 0x20
EVENT = struct.Struct(
    "iIII"
)  # Of inotify(7): watch, mask, cookie, length of the name that follows.


# ----- keys ---------------------------------------------------------------------------------------


def checkout() -> list[str] | None:
    """All files of the checkout, from its root; None where Git does not know it."""
    command = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    names = sorted(set(os.fsdecode(done.stdout).split("\0")) - {""})
    return [name for name in names if os.path.lexists(ROOT / name)]


def without(names: Iterable[str], sets: Iterable[str]) -> list[str]:
    """The files that are in none of some sets."""
    patterns = [pattern for name in sets for pattern in SETS[name]]

    def fits(name: str, some: Iterable[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in some)

    return [name for name in names if fits(name, NOT_IN_SETS) or not fits(name, patterns)]


def packages(requirements: Iterable[str]) -> list[str]:
    """What the private Python environment has of the packages in some lists; without lists, all."""
    folders = (ROOT / ".venv").glob("lib/*/site-packages/*.dist-info")
    found = {re.sub(r"[-_.]+", "-", path.name.split("-")[0]).lower(): path.name for path in folders}
    if not requirements:
        return sorted(found.values())
    lines = [line for name in requirements for line in (PACKAGES / name).read_text().splitlines()]
    wanted = {
        re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in lines if "==" in line
    }
    return sorted(found.get(name, f"{name}: none") for name in wanted)


@functools.cache
def versions(
    tools: tuple[tuple[str, ...], ...] = TOOLS, requirements: tuple[str, ...] = ()
) -> list[str]:
    """What the tools say of themselves, and the packages in the private Python environment."""
    said = []
    for command in tools:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
            )
            said.append(f"{command[0]}: {done.stdout}{done.stderr}")
        except OSError:
            said.append(f"{command[0]}: none")
    return [*said, platform.python_version(), *packages(requirements)]


def machine() -> list[str]:
    """Kernel and processor: tests that ran on another one say nothing of this one."""
    wanted = ("vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part")
    facts = {f"processors: {os.cpu_count()}", platform.release(), platform.machine()}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.split("\t")[0].split(":")[0].strip() in wanted:
                facts.add(line)
    return sorted(facts)


def variables(prefixes: tuple[str, ...] = PREFIXES) -> list[str]:
    """What of the environment counts."""
    names = [n for n in os.environ if n in VARIABLES or n.startswith(prefixes)]
    return [f"{name}={os.environ[name]}" for name in sorted(names)]


def key_of(names: Iterable[str], words: Iterable[str]) -> str:
    """A name for the content of some files and for some words. A file may be missing."""
    result = hashlib.sha256(FORMAT.encode())
    for word in words:
        result.update(hashlib.sha256(word.encode()).digest())
    for name in names:
        path = ROOT / name
        mode = b"none"
        content = b""
        if path.is_symlink():
            mode, content = b"link", os.fsencode(path.readlink())
        elif path.is_file():
            mode = b"program" if os.access(path, os.X_OK) else b"file"
            content = path.read_bytes()
        result.update(hashlib.sha256(name.encode() + b"\0" + mode + b"\0" + content).digest())
    return result.hexdigest()


# ----- what is kept -------------------------------------------------------------------------------


def folder() -> Path:
    """Where results are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "velo" / "kept"


def passed(key: str) -> dict[str, Any] | None:
    """What was kept of a check that has passed with this key, if that is fresh enough."""
    path = folder() / key
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
        ended = time.mktime(time.strptime(stamp["date"], DATE))
        if ended < oldest_that_counts():
            return None
        os.utime(path)  # Somebody still asks for it.
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stamp if isinstance(stamp, dict) else None


def oldest_that_counts() -> float:
    """When a result must have been kept at the earliest, as FRESH says."""
    fresh = os.environ.get("FRESH", "")
    if fresh in ("", "0"):
        return 0
    return float(fresh) if fresh.isdecimal() and fresh != "1" else math.inf


def keep(key: str, name: str, seconds: float, **more: Any) -> None:
    """A check has passed. A full disk or a folder that cannot be written costs only the result."""
    path = folder() / key
    stamp = {"name": name, "seconds": round(seconds, 1), "date": time.strftime(DATE), **more}
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{key}.{os.getpid()}")
        part.write_text(json.dumps(stamp) + "\n", encoding="utf-8")
        part.replace(path)


def prune() -> None:
    """Take away what nobody has asked for in a long time."""
    oldest = time.time() - KEEP_DAYS * 86400
    with contextlib.suppress(OSError):
        for path in folder().iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()


# ----- records and their table --------------------------------------------------------------------


def record(group: str, name: str, outcome: str, seconds: float, **counts: int) -> None:
    """One line for the table: a check that ended now, or with counts a step of many."""
    entry = {"group": group, "name": name, "outcome": outcome, "seconds": seconds}
    entry["end"] = time.time()
    RECORDS.parent.mkdir(parents=True, exist_ok=True)
    with RECORDS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry | counts) + "\n")


def records(since: str | None) -> list[dict[str, Any]]:
    """What was recorded since a target began, or at all."""
    try:
        lines = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return []
    begins = [i for i, line in enumerate(lines) if since and line.get("begin") == since]
    return [line for line in lines[begins[-1] if begins else 0 :] if "group" in line]


def seconds_of(group: str) -> dict[str, float]:
    """How long each check of a group took when it ran last; those that never ran are not there."""
    return {
        line["name"]: line["seconds"]
        for line in records(None)
        if line["group"] == group and line["outcome"] != "kept"
    }


COLUMNS = ("run", "kept", "skipped", "failed")


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """How much time lies in at least one of some spans."""
    total, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def table(lines: Iterable[dict[str, Any]]) -> str:
    """A row for each group: how many of each outcome, and how long any of it ran; then sums."""
    rows: dict[str, dict[str, int]] = {}
    spans: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        row = rows.setdefault(line["group"], dict.fromkeys(COLUMNS, 0))
        counted = {name: line[name] for name in COLUMNS if name in line}
        for name, count in (counted or {line["outcome"]: 1}).items():
            row[name] += count
        span = (line["end"] - line["seconds"], line["end"])
        spans.setdefault(line["group"], []).append(span)
    width = max([len(name) for name in rows] + [5])
    text = [f"{'check':{width}}" + "".join(f"{name:>9}" for name in COLUMNS) + "  seconds"]
    for name, row in rows.items():
        counts = "".join(f"{row[column] or '-':>9}" for column in COLUMNS)
        text.append(f"{name:{width}}{counts}{covered(spans[name]):9.0f}")
    sums = {column: sum(row[column] for row in rows.values()) for column in COLUMNS}
    good = sums["run"] + sums["kept"]
    text.append(f"checks: {good} passed, {sums['failed']} failed, {sums['skipped']} skipped")
    return "\n".join(text)


# ----- a step -------------------------------------------------------------------------------------


class Watch:
    """Sees which of some files are opened while it is entered; `opened` has them."""

    def __init__(self, names: Iterable[str]):
        self.opened: set[str] = set()
        self.names = set(names)
        self.folders: dict[int, Path] = {}
        self.stop_read, self.stop_write = os.pipe()
        libc = ctypes.CDLL(None, use_errno=True)
        self.inotify = libc.inotify_init1(os.O_CLOEXEC)
        self.works = self.inotify >= 0
        for parent in sorted({Path(name).parent for name in self.names}):
            watch = libc.inotify_add_watch(self.inotify, os.fsencode(ROOT / parent), IN_OPEN)
            self.works = self.works and watch >= 0
            self.folders[watch] = parent
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self.stop_write, b".")
        self.thread.join()
        for descriptor in (self.stop_read, self.stop_write, self.inotify):
            if descriptor >= 0:
                os.close(descriptor)

    def _look(self) -> None:
        descriptors = [self.stop_read, *([self.inotify] if self.inotify >= 0 else [])]
        while True:
            ready, _, _ = select.select(descriptors, [], [])
            if self.inotify not in ready:
                return  # Asked to stop, and all events are read.
            self.opened.update(name for name in self._events() if name in self.names)

    def _events(self) -> Iterator[str]:
        data = os.read(self.inotify, 65536)
        at = 0
        while at < len(data):
            watch, mask, _, length = EVENT.unpack_from(data, at)
            at += EVENT.size
            name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
            at += length
            if watch < 0:
                self.works = False  # Events were lost.
            elif mask & IN_OPEN:
                yield str(self.folders[watch] / name)


def counts_of(junit: Path) -> dict[str, int]:
    """How many tests ran, were skipped and failed, as CTest and pytest write it."""
    try:
        suites = list(ET.parse(junit).getroot().iter("testsuite"))
    except (OSError, ET.ParseError):
        return {}

    def count(*names: str) -> int:
        return sum(int(suite.get(name) or 0) for suite in suites for name in names)

    skipped, failed = count("skipped", "disabled"), count("failures", "errors")
    return {"run": count("tests") - skipped - failed, "skipped": skipped, "failed": failed}


def step_key(name: str, sets: Sequence[str], command: Sequence[str]) -> str | None:
    """What a step's result is kept by; None where Git does not know the checkout."""
    files = checkout()
    if files is None:
        return None
    words = [name, *command, *versions(), *machine(), *variables()]
    return key_of(without(files, sets), words)


def step(name: str, sets: Sequence[str], command: Sequence[str], build: Sequence[str] = ()) -> int:
    """Run a command unless it is kept; its exit code."""
    key = step_key(name, sets, command)
    stamp = passed(key) if key else None
    if stamp:
        count, when, seconds = stamp.get("run", 1), stamp["date"], stamp["seconds"]
        print(f"kept: {name}: passed on {when} in {seconds:.0f} s; checks in it: {count}")
        record(name, name, "kept", 0, kept=count, skipped=stamp.get("skipped", 0))
        return 0
    junit = RECORDS.parent / (name.replace(" ", "-").replace(",", "") + ".xml")
    junit.parent.mkdir(parents=True, exist_ok=True)
    junit.unlink(missing_ok=True)
    begin = time.monotonic()
    if build:
        status = subprocess.run([ROOT / "scripts" / "build", *build], check=False).returncode
        if status:
            record(name, "build", "failed", time.monotonic() - begin)
            return status
    files = checkout() or []
    with Watch(set(files) - set(without(files, sets))) as watch:
        words = [word.replace("{junit}", str(junit)) for word in command]
        status = subprocess.run(words, check=False).returncode
    seconds = time.monotonic() - begin
    counts = counts_of(junit)
    record(name, name, "failed" if status else "run", seconds, **counts)
    if status:
        return status if status > 0 else 128 - status
    if watch.opened or not watch.works:
        why = f"{min(watch.opened)} was opened, which" if watch.opened else "what it opened"
        print(
            f"kept: {name}: not kept, as {why} is not known to be among its inputs", file=sys.stderr
        )
    elif key and key == step_key(name, sets, command):  # Else somebody changed a file meanwhile.
        keep(key, name, seconds, **counts)
    return 0


# ----- the command --------------------------------------------------------------------------------


def set_names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in SETS:
            raise argparse.ArgumentTypeError(f"there is no set {name}; there are {', '.join(SETS)}")
    return names


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="kept.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("begin").add_argument("name")
    one = verbs.add_parser("step")
    one.add_argument("name")
    one.add_argument("--build", default="", metavar="OPTIONS")
    one.add_argument("--without", type=set_names, default=[], metavar="SET,...")
    verbs.add_parser("table").add_argument("name", nargs="?")
    verbs.add_parser("sets")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    end = words.index("--") if "--" in words else len(words)
    args, command = parse(words[:end]), words[end + 1 :]
    if args.verb == "begin":
        RECORDS.parent.mkdir(parents=True, exist_ok=True)
        with RECORDS.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"begin": args.name, "end": time.time()}) + "\n")
    elif args.verb == "step":
        if not command:
            print("kept.py: step needs a command after --", file=sys.stderr)
            return 2
        return step(args.name, args.without, command, shlex.split(args.build))
    elif args.verb == "sets":
        for name, patterns in SETS.items():
            print(f"{name:10} {' '.join(patterns)}")
    else:
        prune()
        print(table(records(args.name)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
