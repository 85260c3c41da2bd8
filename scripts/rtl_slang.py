#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compile a file list with slang, all warnings on; fail if it says anything."""

import argparse
import sys
from pathlib import Path

import pyslang.driver

# Left out of "everything":
OFF = [
    # casts and defaults that only some values of parameters make redundant;
    "useless-cast",
    "case-redundant-default",
    # other types with the same bits: packed structs and arrays, an enum's values in a field;
    "packed-array-conv",
    "bitwise-op-mismatch",
    "comparison-mismatch",
    "case-type",
    # names of a struct's fields in a port's connection, taken for nets (Verilator finds real ones);
    "implicit-net",
    # signs: `8'(i)` is signed where `i` is a loop's variable, and nothing here is negative.
    "sign-compare",
    "sign-conversion",
    "arith-op-mismatch",
]
# Generated sources have a style of their own; of vendors' blocks there are the ports alone.
FOREIGN = "--suppress-warnings build/rtl --suppress-warnings rtl/board_acorn/vendor"
OPTIONS = " ".join(["-Weverything", *(f"-Wno-{name}" for name in OFF), FOREIGN, "--single-unit"])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", type=Path, help="file list, without nested lists")
    parser.add_argument("--top", help="only this module, and what is in it")
    parser.add_argument(
        "--parameters", nargs="*", default=[], metavar="NAME=VALUE", help="of the top"
    )
    parser.add_argument("--errors", action="store_true", help="warnings do not count")
    args = parser.parse_args(argv)
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    sources = " ".join(args.list.read_text(encoding="utf-8").split())
    top = [f"--top {args.top}"] if args.top else []
    checks = "-Wnone --single-unit" if args.errors else OPTIONS
    options = " ".join([checks, *top, *(f"-G {one}" for one in args.parameters)])
    if not driver.parseCommandLine(f"slang {options} {sources}"):
        return 1
    if not driver.processOptions() or not driver.parseAllSources():
        return 1
    compilation = driver.createCompilation()
    driver.reportCompilation(compilation, True)
    driver.reportDiagnostics(True)
    return 1 if driver.diagEngine.numErrors or driver.diagEngine.numWarnings else 0


if __name__ == "__main__":
    sys.exit(main())
