# SPDX-License-Identifier: Apache-2.0
"""Count the instructions of the library's hot calls, and fail if they are not those of counts.json.

Callgrind runs the program and counts; what is called from its functions measure_* is compared, in
total over all calls. Each count is exact: the same build gives the same ones each time. Other
compilers give others, so the test is skipped with one that the table was not made with.

Usage: cost.py PROGRAM COMPILER [--update]
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

TABLE = Path(__file__).with_name("counts.json")
SKIPPED = 77
CALLS = ("velo_", "velo2_", "rma2_")
# How the receiver learns of messages -> what the program is started with.
WAYS = {"polled": {}, "rung": {"VELO_SPIN_NS": "0"}}
Counts = dict[str, dict[str, int]]  # measure_* without that -> the call -> instructions.


def read_profile(text: str) -> Counts:
    """The counts of callgrind for the calls from functions measure_*."""
    counts: Counts = defaultdict(lambda: defaultdict(int))
    caller, callee, is_call = "", "", False
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "fn":
            caller = value
        elif key == "cfn":
            callee = value
        elif key == "calls":
            is_call = True
        elif is_call:  # The line of the call, and what it has cost.
            is_call = False
            if caller.startswith("measure_") and callee.startswith(CALLS):
                counts[caller.removeprefix("measure_")][callee] += int(line.split()[1])
    return {name: dict(calls) for name, calls in counts.items()}


def count(program: str, environment: dict[str, str]) -> Counts:
    """Run the program under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile"
        command = [
            "valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
            f"--callgrind-out-file={profile}", program,
        ]  # fmt: skip
        settings = {
            "LD_BIND_NOW": "1",
            "VELO_DOMAIN": f"cost{os.getpid()}",
            # The C library chooses its copying by the processor, unless it is told not to.
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2_Usable,-AVX2,-ERMS,-FSRM",
        }
        plain = {name: value for name, value in os.environ.items() if "VELO_" not in name}
        done = subprocess.run(
            command, env=plain | settings | environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        return read_profile(profile.read_text())


def differences(expected: dict[str, Counts], found: dict[str, Counts]) -> list[str]:
    """A line for each count that is another."""

    def flat(counts: dict[str, Counts]) -> dict[tuple[str, str, str], int]:
        return {
            (way, name, call): value
            for way, measures in counts.items()
            for name, calls in measures.items()
            for call, value in calls.items()
        }

    before, now = flat(expected), flat(found)
    lines = []
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            way, name, call = key
            lines.append(f"{call}, {name}, {way}: {before.get(key)} before, {now.get(key)} now")
    return lines


def made_with(compiler: str) -> dict[str, str]:
    """The settings on which the counts depend, beside the sources."""
    return {"compiler": compiler, "libc": platform.libc_ver()[1], "machine": platform.machine()}


def main() -> int:
    """Count and compare, or write the table anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("compiler")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: there is no valgrind; scripts/setup test installs it")
        return SKIPPED
    here = made_with(args.compiler)
    table = {} if args.update else json.loads(TABLE.read_text())
    if not args.update and table["made_with"] != here:
        print(f"skipped: counts.json was made with {table['made_with']}, this is {here}")
        return SKIPPED
    found = {way: count(args.program, environment) for way, environment in WAYS.items()}
    if args.update:
        table = {"made_with": here, "instructions": found}
        TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
        return 0
    lines = differences(table["instructions"], found)
    if lines:
        print("Instructions of 1,000 calls each:", *lines, sep="\n")
        print("If this is meant, run `ninja -C build cost_update` and say in the commit why.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
