#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The `yosys` command as far as sby and scripts/rtl need it, over the native pyosys library.

The WebAssembly build of Yosys has a command of its own but takes a minute to start the first time;
the native wheel is faster and has none.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

RUNNER = """
import os, sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
libyosys.log_flush()
os._exit(0)  # The library's own clean-up crashes the interpreter.
"""


def run(commands: list[str], log_path: Path | None, quiet: bool) -> int:
    """Run the commands in a process of their own: an error in the library ends it."""
    with tempfile.TemporaryDirectory() as folder:
        # An unbuffered file keeps what was said before a crash.
        output_path = log_path or Path(folder) / "log"
        with output_path.open("wb") as output:
            result = subprocess.run(
                [sys.executable, "-c", RUNNER, *commands],
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        text = output_path.read_text(encoding="utf-8", errors="replace")
    if not quiet:
        sys.stdout.write(text)
    elif result.returncode:
        sys.stdout.write("\n".join(text.splitlines()[-20:]) + "\n")
    return 1 if result.returncode else 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="yosys", description=__doc__.splitlines()[0])
    parser.add_argument("-V", action="store_true", help="print the version")
    parser.add_argument("-q", action="store_true", help="print errors only")
    parser.add_argument("-l", type=Path, metavar="FILE", help="write the log to a file")
    parser.add_argument("-p", action="append", default=[], metavar="COMMAND")
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT")
    args = parser.parse_args(argv)
    if args.V:
        print("Yosys (pyosys)")
        return 0
    commands = [f"script {script}" for script in args.scripts] + args.p
    return run(commands, args.l, args.q)


if __name__ == "__main__":
    sys.exit(main())
