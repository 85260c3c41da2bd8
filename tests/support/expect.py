#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a command and judge both how it ends and what it prints.

expect.py [--status N | --fails] [--lines-max N] PATTERN... -- COMMAND...

It must end with status N (0 if not given), or any other than 0, not by a signal; print no more
lines than that; and print something that matches each PATTERN, a regular expression whose dot is a
newline, too. Ctest's own PASS_REGULAR_EXPRESSION looks at the words alone: a crash after them would
pass. Status 77, of a skipped test, is handed on.
"""

import argparse
import re
import subprocess
import sys

SKIPPED = 77


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--status", type=int, default=0, help="how the command must end")
    parser.add_argument("--fails", action="store_true", help="it must not end with 0")
    parser.add_argument("--lines-max", type=int, help="it must not print more")
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
    if args.fails and job.returncode <= 0:
        wrong.append(f"status {job.returncode}, not that of a failure")
    if not args.fails and job.returncode != args.status:
        wrong.append(f"status {job.returncode}, not {args.status}")
    if args.lines_max is not None and said.count("\n") > args.lines_max:
        wrong.append(f"{said.count(chr(10))} lines, more than {args.lines_max}")
    for line in wrong:
        print(f"expect: FAILED: {line}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
