#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run clang-tidy on each file of the release build, unless it has passed with the same inputs.

  tidy.py [--sim]

A file's inputs are itself, all headers that it includes, of the system too (the compiler names
them), how it is compiled, and the settings of clang-tidy; results are kept by scripts/kept.py. Of a
file that several programs are made of, the first entry of the build's list counts: the library's
without test hooks. The simulator is read with --sim only: it takes minutes, mostly in headers.
What includes a Verilated model is never read, as it is not there before the model is made.

Exit code: 0 if all files pass, 1 if one does not.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import kept

ROOT = Path(__file__).resolve().parents[1]
TIDY = ROOT / ".venv" / "bin" / "clang-tidy"
BUILD = ROOT / "build"
LIST = BUILD / "lint" / "compile_commands.json"  # What clang-tidy reads: an entry for each file.
GROUP = "clang-tidy"
GENERATED = "build/"  # What cffi writes is in its style.
SIMULATOR = ("sim/",)
MODELS = ("sim/rtl/model.cc", "sim/boards/model.cc", "sim/tlm/rtl/")


class Result(NamedTuple):
    """What became of a file: kept, run or failed, and what clang-tidy printed."""

    outcome: str
    text: str


def sources(sim: bool) -> dict[str, dict[str, str]]:
    """The files to read, from the root of the tree, and how each is compiled."""
    left_out = MODELS if sim else SIMULATOR
    entries: dict[str, dict[str, str]] = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        path = os.path.relpath(entry["file"], ROOT)
        cut = path.startswith(GENERATED) or (path.endswith(".cc") and path.startswith(left_out))
        if not cut:
            entries.setdefault(path, entry)
    return entries


def included(entry: dict[str, str]) -> list[str]:
    """All files that a compilation reads; those of the tree from its root."""
    command = shlex.split(entry["command"])
    if Path(command[0]).name == "ccache":
        command = command[1:]
    output = command.index("-o")
    del command[output : output + 2]
    command[command.index("-c")] = "-M"
    done = subprocess.run(
        command, cwd=entry["directory"], capture_output=True, text=True, check=True
    )
    names = done.stdout.replace("\\\n", " ").partition(":")[2].split()
    base = Path(entry["directory"])
    return sorted({os.path.relpath(base / n, ROOT) if inside(base / n) else n for n in names})


def inside(path: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(ROOT)


def key_of(path: str, entry: dict[str, str], settings: Sequence[str]) -> str:
    """What a file's result is kept by."""
    command = entry["command"].replace(str(ROOT), "ROOT").removeprefix("ccache ")
    words = [
        "clang-tidy",
        path,
        command,
        *kept.versions((("cc", "--version"),), ("requirements-dev.txt",)),
    ]
    return kept.key_of([*settings, "scripts/tidy.py", *included(entry)], words)


def read(path: str, entry: dict[str, str], settings: Sequence[str]) -> Result:
    """One file."""
    try:
        key = key_of(path, entry, settings)
    except subprocess.CalledProcessError as error:
        return Result("failed", f"{path}: {error.stderr}")
    if kept.passed(key):
        kept.record(GROUP, path, "kept", 0)
        return Result("kept", "")
    begin = time.monotonic()
    # Its count of suppressed warnings is noise; what matters is on stdout.
    done = subprocess.run(
        [TIDY, "-p", LIST.parent, "--quiet", ROOT / path],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begin
    outcome = "failed" if done.returncode else "run"
    kept.record(GROUP, path, outcome, seconds)
    if not done.returncode:
        kept.keep(key, path, seconds)
    return Result(outcome, done.stdout)


def main(argv: Sequence[str] | None = None) -> int:
    """Read all files; the exit status says whether all pass."""
    parser = argparse.ArgumentParser(
        prog="tidy.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sim", action="store_true", help="the simulator's C++, too")
    entries = sources(parser.parse_args(argv).sim)
    LIST.parent.mkdir(parents=True, exist_ok=True)
    LIST.write_text(json.dumps(list(entries.values())), encoding="utf-8")
    settings = [name for name in kept.checkout() or [".clang-tidy"] if name.endswith(".clang-tidy")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: read(path, entries[path], settings), sorted(entries)))
    for result in results:
        if result.text:
            print(result.text, end="")
    counts = {word: sum(r.outcome == word for r in results) for word in ("run", "kept", "failed")}
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["failed"] or not results else 0


if __name__ == "__main__":
    sys.exit(main())
