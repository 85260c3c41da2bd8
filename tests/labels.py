# SPDX-License-Identifier: Apache-2.0
"""Fail if a test has not exactly one of the labels that say when it runs: no target would run it.

A test that runs the simulator has the label `simulator`: its result depends on the hardware, too,
and is kept only as long as that is the same (scripts/kept.py).

Usage: labels.py CTEST BUILD-FOLDER
"""

import json
import re
import subprocess
import sys

LABELS = {"quick", "full", "nightly"}


SIMULATOR = re.compile(r"velo-(sim|tlm)\b|/velo (sim|vm|paper|predict)\b|/tests/(sim|vm)/")


def wrong(test: dict) -> str:
    """What is wrong with a test's labels; nothing if all is well."""
    properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
    labels = set(properties.get("LABELS", []))
    if len(LABELS & labels) != 1:
        return f"needs one of the labels {', '.join(sorted(LABELS))}; see tests/README.md"
    command = " ".join(map(str, test.get("command", [])))
    if SIMULATOR.search(command) and "simulator" not in labels:
        return "runs the simulator and needs the label simulator"
    return ""


def main() -> int:
    """Ask CTest for all tests; the exit status says whether each has its label."""
    ctest, folder = sys.argv[1:]
    command = [ctest, "--test-dir", folder, "--show-only=json-v1"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    tests = json.loads(listing)["tests"]
    bad = {test["name"]: wrong(test) for test in tests if wrong(test)}
    for name, why in bad.items():
        print(f"{name}: {why}")
    print(f"{len(tests)} tests, {len(bad)} with wrong labels")
    return 1 if bad or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
