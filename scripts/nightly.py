#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run all checks of the night, one after the other, fresh, and write one page about it.

  nightly.py [--hours N] [--from STEP | --resume] [STEP...]
  nightly.py --list

Without names all steps run, those first whose last pass is the longest ago ($XDG_CACHE_HOME/velo
has when that was). --from begins at a step of the last night's order; --resume goes on with what
the last night did not pass, if it was interrupted or failed: of such a step too, what has passed
since that night began is not run again. A step that took longer the last time
than there is left of the hours (10 by default) is put off, and so comes first in the next night.

The page is build/nightly/summary.md: what ran, for how long, what fell short, and the slowest
twenty checks. What a step printed is in build/nightly/STEP.log. Ctrl-C ends the step and still
writes the page.

Exit code: 0 if all steps passed, 1 if one failed or was put off, 2 for wrong arguments, 130 if
interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import kept

ROOT = kept.ROOT
OUT = ROOT / "build" / "nightly"
STATE = OUT / "state.json"
SUMMARY = OUT / "summary.md"
SLOWEST = 20
LAST_LINES = 30

CTEST = "ctest --preset {} --output-junit build/nightly/{}.xml"
RELEASE = "scripts/setup test sim && scripts/build --with-sim release && "
GUESTS = "scripts/setup test sim vm aarch64 && scripts/build --with-sim release && "
# Tests may be skipped only where tests/skips.toml says so.
XML = "build/nightly/{step}.xml"
SKIPS = f" && {{ [ ! -e {XML} ] || scripts/check_skips.py {XML}; }}"
# Each step by its name; {step} in it is the name again.
STEPS = {
    "lint": "make lint && " + RELEASE + "scripts/tidy.py --sim",
    "test": "make test",
    "check": "make check",
    "asan": "scripts/build asan && " + CTEST.format("asan", "{step}"),
    "tsan": "scripts/build tsan && " + CTEST.format("tsan", "{step}"),
    "long": RELEASE + CTEST.format("nightly", "{step}") + " -LE 'simulator|mpi'",
    "long-mpi": RELEASE + CTEST.format("nightly", "{step}") + " -L mpi -LE simulator",
    "long-simulator": RELEASE + CTEST.format("nightly", "{step}") + " -L simulator -E '^vm[.]'",
    "guests": GUESTS + CTEST.format("nightly", "{step}") + " -R '^vm[.]'",
    "aarch64": "scripts/test-aarch64",
    "driver": "scripts/setup test vm aarch64 driver && .venv/bin/python scripts/check_driver.py",
    "packages": "scripts/setup package && scripts/package && scripts/wheel && "
    "{ scripts/check_packages || [[ $? = 77 && $EUID != 0 ]]; }",
    "hardware-random": "scripts/rtl nightly 1",
    "hardware-proofs": "scripts/rtl formal-nightly",
    "hardware-breaks": "scripts/rtl mutate",
    # Others each night.
    "hardware-sample": "scripts/rtl breaks --sample 30 --seed $(date +%Y%j)",
}


class Night:
    """What has become of the steps, kept in a file after each."""

    def __init__(self) -> None:
        self.begin = time.time()
        self.order: list[str] = []
        self.steps: dict[str, dict[str, Any]] = {}

    @classmethod
    def last(cls) -> Night:
        night = cls()
        try:
            state = json.loads(STATE.read_text(encoding="utf-8"))
            night.begin = float(state["begin"])
            night.order = [name for name in state["order"] if name in STEPS]
            night.steps = {name: state["steps"][name] for name in state["steps"] if name in STEPS}
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return night

    def write(self) -> None:
        OUT.mkdir(parents=True, exist_ok=True)
        part = STATE.with_suffix(".part")
        state = {"begin": self.begin, "order": self.order, "steps": self.steps}
        part.write_text(json.dumps(state, indent=2) + "\n")
        part.replace(STATE)

    def passed(self, name: str) -> bool:
        return self.steps.get(name, {}).get("outcome") == "passed"


def passes() -> Path:
    """Where it is kept when each step has passed, and how long it took."""
    return kept.folder().parent / "nightly.json"


def last_passes() -> dict[str, dict[str, float]]:
    try:
        known = json.loads(passes().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: known[name] for name in STEPS if name in known}


def keep_pass(name: str, seconds: float) -> None:
    known = last_passes() | {name: {"date": time.time(), "seconds": seconds}}
    passes().parent.mkdir(parents=True, exist_ok=True)
    passes().write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def run(name: str, since: float) -> tuple[str, float]:
    """One step, with no result of before `since`; how it ended and how long it took.

    An interrupt ends all of it."""
    log = OUT / f"{name}.log"
    (OUT / f"{name}.xml").unlink(missing_ok=True)
    begin = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", (STEPS[name] + SKIPS).replace("{step}", name)],
            cwd=ROOT,
            env=os.environ | {"FRESH": str(math.ceil(since))},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            raise
    return "passed" if status == 0 else f"failed, status {status}", time.monotonic() - begin


def seconds_text(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def cases_of(names: Sequence[str]) -> Iterator[tuple[str, ET.Element]]:
    """The tests of CTest that some steps have run, each behind its step."""
    for name in names:
        try:
            root = ET.parse(OUT / f"{name}.xml").getroot()
        except (OSError, ET.ParseError):
            continue  # It has no tests, or did not come to its end.
        yield from ((name, case) for case in root.iter("testcase"))


def slowest(since: float, names: Sequence[str]) -> list[tuple[float, str]]:
    """The checks that took longest: tests of CTest, and what kept.py has recorded."""
    cases = cases_of(names)
    found = [(float(case.get("time") or 0), f"{step}: {case.get('name')}") for step, case in cases]
    for line in kept.records(None):
        if line["end"] >= since:
            found.append((line["seconds"], f"{line['group']}: {line['name']}"))
    return sorted(found, reverse=True)[:SLOWEST]


def skips(names: Sequence[str]) -> list[str]:
    """Tests that were skipped."""
    cases = cases_of(names)
    return [f"{step}: {c.get('name')}" for step, c in cases if c.find("skipped") is not None]


def write_summary(night: Night) -> None:
    """One page about the night."""
    lines = ["# The night", "", f"Began {time.strftime('%F %T', time.localtime(night.begin))}.", ""]
    lines += ["| step | outcome | time |", "| --- | --- | --- |"]
    for name in night.order:
        step = night.steps.get(name, {"outcome": "not begun", "seconds": 0})
        lines.append(f"| {name} | {step['outcome']} | {seconds_text(step['seconds'])} |")
    lines += ["", "## What fell short", ""]
    short = [name for name in night.order if not night.passed(name)]
    for name in short:
        log = OUT / f"{name}.log"
        if night.steps.get(name, {}).get("outcome", "").startswith("failed") and log.is_file():
            text = log.read_text(encoding="utf-8", errors="replace").splitlines()
            lines += [f"{name}, the end of {log.relative_to(ROOT)}:", "", "```"]
            lines += [*text[-LAST_LINES:], "```", ""]
        else:
            lines += [f"{name}: {night.steps.get(name, {}).get('outcome', 'not begun')}", ""]
    left_out = skips(night.order)
    lines += [f"Skipped tests: {len(left_out)}", *(f"* {name}" for name in left_out), ""]
    lines += [f"## The slowest {SLOWEST}", "", "| time | check |", "| --- | --- |"]
    lines += [f"| {seconds_text(s)} | {name} |" for s, name in slowest(night.begin, night.order)]
    OUT.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text("\n".join(lines) + "\n", encoding="utf-8")


def plan(args: argparse.Namespace, last: Night) -> tuple[list[str], Night]:
    """Which steps to run, in order, and the night that they belong to."""
    known = last_passes()
    if args.resume or args.first:
        order = last.order + [name for name in STEPS if name not in last.order]
        if args.first:
            todo = order[order.index(args.first) :]
            last.begin = time.time()
        else:
            todo = [name for name in order if not last.passed(name)]
        last.order = order
        return todo, last
    night = Night()
    chosen = args.steps or list(STEPS)
    night.order = sorted(chosen, key=lambda name: known.get(name, {}).get("date", 0))
    return night.order, night


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="nightly.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    parser.add_argument("--hours", type=float, default=10, help="how long it may take")
    parser.add_argument("--from", dest="first", metavar="STEP", choices=list(STEPS))
    parser.add_argument("--resume", action="store_true", help="what the last night did not pass")
    parser.add_argument("--list", action="store_true", help="show steps and their last passes")
    args = parser.parse_args(argv)
    unknown = [name for name in args.steps if name not in STEPS]
    if unknown:
        parser.error(f"there is no step {unknown[0]}; there are {', '.join(STEPS)}")
    if sum(map(bool, (args.steps, args.first, args.resume))) > 1:
        parser.error("name steps, or --from, or --resume")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    args = parse(argv)
    known = last_passes()
    if args.list:
        for name in STEPS:
            date = known.get(name, {}).get("date")
            when = time.strftime("%F %T", time.localtime(date)) if date else "never"
            print(f"{name:16} {when:20} {seconds_text(known.get(name, {}).get('seconds', 0))}")
        return 0
    todo, night = plan(args, Night.last())
    end = time.time() + args.hours * 3600
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for name in todo:
            if time.time() + known.get(name, {}).get("seconds", 0) > end:
                night.steps[name] = {"outcome": "put off", "seconds": 0}
                print(f"nightly: {name}: put off, as the hours are over", flush=True)
                continue
            print(f"nightly: {name}: {time.strftime('%T')}", flush=True)
            night.steps[name] = {"outcome": "interrupted", "seconds": 0}
            night.write()
            outcome, seconds = run(name, night.begin)
            night.steps[name] = {"outcome": outcome, "seconds": seconds}
            if outcome == "passed":
                keep_pass(name, seconds)
            print(f"nightly: {name}: {outcome}, {seconds_text(seconds)}", flush=True)
            night.write()
            write_summary(night)
    except KeyboardInterrupt:
        print("nightly: interrupted; --resume goes on", file=sys.stderr)
        return 130
    finally:
        night.write()
        write_summary(night)
        print(f"nightly: the page is {SUMMARY.relative_to(ROOT)}")
    return 0 if all(night.passed(name) for name in todo) else 1


if __name__ == "__main__":
    sys.exit(main())
