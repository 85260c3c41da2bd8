# SPDX-License-Identifier: Apache-2.0
"""Fail if a test has not exactly one of the labels that say when it runs: no target would run it.

Usage: labels.py CTEST BUILD-FOLDER
"""

import json
import subprocess
import sys

LABELS = {"quick", "full", "nightly"}


def wrong(test: dict) -> bool:
    """Has a test none of the labels, or several?"""
    properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
    return len(LABELS & set(properties.get("LABELS", []))) != 1


def main() -> int:
    """Ask CTest for all tests; the exit status says whether each has its label."""
    ctest, folder = sys.argv[1:]
    command = [ctest, "--test-dir", folder, "--show-only=json-v1"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    tests = json.loads(listing)["tests"]
    bad = [test["name"] for test in tests if wrong(test)]
    for name in bad:
        print(f"{name}: needs one of the labels {', '.join(sorted(LABELS))}; see tests/README.md")
    print(f"{len(tests)} tests, {len(bad)} without")
    return 1 if bad or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
