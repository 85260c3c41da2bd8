#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a measuring program and check what it prints: check_output.py MODE COMMAND..."""

import json
import subprocess
import sys

NUMBERS = ("size_bytes", "value", "limit_before", "limit_after")


def problems(mode: str, text: str) -> list[str]:
    """The errors in an output."""
    lines = [json.loads(line) for line in text.splitlines()]
    kinds = [line.get("type") for line in lines]
    samples = [line for line in lines if line.get("type") == "sample"]
    out = []
    if kinds[:1] != ["meta"] or kinds[-1:] != ["end"]:
        out.append(f"the lines are {kinds}, not meta, samples, end")
    dropped = lines[-1].get("dropped", 0) if lines else 0
    # On a machine whose cores move every batch may be dropped; but then it says so.
    if not samples and not dropped:
        out.append("there is no sample, and none was dropped")
    # Batches of other modes may end early; that of the limits has a line for each of them.
    planned = sum(line["samples"] for line in lines if line.get("type") == "plan")
    if mode == "limit" and len(samples) + dropped != planned:
        out.append(f"{len(samples)} samples and {dropped} dropped, where {planned} were announced")
    for sample in samples:
        if sample.get("mode") != mode:
            out.append(f"a sample is of mode {sample.get('mode')!r}")
        if any(not isinstance(sample.get(name), int | float) for name in NUMBERS):
            out.append(f"a sample lacks numbers: {sample}")
        elif sample["value"] <= 0 or sample["limit_before"] <= 0 or sample["limit_after"] <= 0:
            out.append(f"a sample is not above zero: {sample}")
        if sample.get("near") not in (True, False):
            out.append(f"a sample has no class: {sample}")
    return out


def main() -> int:
    mode, *command = sys.argv[1:]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        print(f"exit code {run.returncode}: {run.stdout}", file=sys.stderr)
        return 1
    found = problems(mode, run.stdout)
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
