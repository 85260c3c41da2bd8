#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compile a file list with slang, all warnings on; fail if it says anything."""

import argparse
import sys
from pathlib import Path

import pyslang.driver

# Casts and defaults that only some parameter values make redundant are meant.
OPTIONS = "-Wextra -Wno-useless-cast -Wno-case-redundant-default --single-unit"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", type=Path, help="file list, without nested lists")
    args = parser.parse_args(argv)
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    sources = " ".join(args.list.read_text(encoding="utf-8").split())
    if not driver.parseCommandLine(f"slang {OPTIONS} {sources}"):
        return 1
    if not driver.processOptions() or not driver.parseAllSources():
        return 1
    compilation = driver.createCompilation()
    driver.reportCompilation(compilation, True)
    driver.reportDiagnostics(True)
    return 1 if driver.diagEngine.numErrors or driver.diagEngine.numWarnings else 0


if __name__ == "__main__":
    sys.exit(main())
