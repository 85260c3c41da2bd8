#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a command and judge both how it ends and what it prints.

expect.py [--status N] PATTERN... -- COMMAND...

It must end with status N (0 if not given), not by a signal, and print something that matches each
PATTERN, a regular expression whose dot is a newline, too. Ctest's own PASS_REGULAR_EXPRESSION looks
at the words alone: a crash after them would pass. Status 77, of a skipped test, is handed on.
"""

import argparse
import re
import subprocess
import sys

SKIPPED = 77


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--status", type=int, default=0, help="how the command must end")
    parser.add_argument("patterns", nargs="+", metavar="PATTERN", help="what it must print")
    divide = sys.argv.index("--")
    args, command = parser.parse_args(sys.argv[1:divide]), sys.argv[divide + 1 :]
    said = ""
    with subprocess.Popen(
        command, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as job:
        assert job.stdout
        for line in job.stdout:
            said += line
            print(line, end="", flush=True)
    if job.returncode == SKIPPED != args.status:
        return SKIPPED
    wrong = [f"nothing matches {one}" for one in args.patterns if not re.search(one, said, re.S)]
    if job.returncode != args.status:
        wrong.append(f"status {job.returncode}, not {args.status}")
    for line in wrong:
        print(f"expect: FAILED: {line}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
