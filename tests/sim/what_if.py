# SPDX-License-Identifier: Apache-2.0
"""`velo what-if` on programs of which one knows what comes one after the other.

what_if.py VELO API_PERF
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

VELO, PROGRAM = sys.argv[1:3]
REPEATS = 100


def what_if(folder: Path, mode: str, repeats: int, *words: str) -> dict[str, object]:
    """What it concludes of so many round trips, or messages of a stream, of 8 bytes."""
    file = folder / "found.json"
    argv = [VELO, "what-if", *words, "--json", str(file), "-o", str(folder / "page.html"), "--"]
    argv += [PROGRAM, mode, "--sizes", "8", "--repeats", str(repeats)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=280, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    print(done.stdout)
    found: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    return found


def slopes(found: dict[str, object]) -> dict[str, float]:
    return {s["axis"]: s["count"] for s in found["slopes"]}  # type: ignore[attr-defined]


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    # Twice as many round trips pass two more cables each, whatever starting costs.
    axis = ("--latency", "100,300")
    few, many = (what_if(folder, "latency", n * REPEATS, *axis) for n in (1, 2))
    added = slopes(many)["latency"] - slopes(few)["latency"]
    assert abs(added - 2 * REPEATS) < 0.01 * REPEATS, added
    assert (folder / "page.html").read_text(encoding="utf-8").count("<svg") == 1
    # Of a stream no message waits for a cable, but each for the line before.
    axes = ("--latency", "100,300", "--rate", "1e6,2e6")
    few, many = (what_if(folder, "stream", n * REPEATS, *axes) for n in (1, 2))
    added = slopes(many)["rate"] - slopes(few)["rate"]
    assert abs(added - REPEATS) < 0.1 * REPEATS, added
    added = slopes(many)["latency"] - slopes(few)["latency"]
    assert abs(added) < 0.05 * REPEATS, added

    # What the table has is not run again, and is what a run gives.
    table = ("--table", str(folder / "runs.csv"), "--model", "fast", "--latency", "100")
    first = what_if(folder, "latency", 10, *table)
    rows = (folder / "runs.csv").read_text(encoding="utf-8")
    again = what_if(folder, "latency", 10, *table)
    assert (folder / "runs.csv").read_text(encoding="utf-8") == rows and rows.count("\n") == 3
    assert again == first
    (folder / "runs.csv").unlink()
    assert what_if(folder, "latency", 10, *table) == first
