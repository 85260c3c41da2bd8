# SPDX-License-Identifier: Apache-2.0
"""`velo what-if` on a ping-pong, of which one knows what comes one after the other.

what_if.py VELO API_PERF
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

VELO, PROGRAM = sys.argv[1:3]
REPEATS = 100


def what_if(folder: Path, repeats: int, *words: str) -> dict[str, object]:
    """What it concludes of so many round trips of 8 bytes."""
    file = folder / "found.json"
    argv = [VELO, "what-if", *words, "--json", str(file), "-o", str(folder / "page.html"), "--"]
    argv += [PROGRAM, "latency", "--sizes", "8", "--repeats", str(repeats)]
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
    axes = ("--latency", "100,300", "--rate", "1e6,2e6")
    few = what_if(folder, REPEATS, *axes)
    many = what_if(folder, 2 * REPEATS, *axes)
    # Twice as many round trips pass two more cables each, whatever starting costs. A pause after a
    # line holds up the next line only, which follows a whole round trip later: nothing to be seen.
    added = slopes(many)["latency"] - slopes(few)["latency"]
    assert abs(added - 2 * REPEATS) < 0.01 * REPEATS, added
    assert slopes(many)["rate"] - slopes(few)["rate"] < 1, (slopes(many), slopes(few))
    assert all(s["r_squared"] > 0.999 for s in many["slopes"] if s["axis"] == "latency")  # type: ignore[attr-defined]
    assert (folder / "page.html").read_text(encoding="utf-8").count("<svg") == 2

    # What the table has is not run again, and is what a run gives.
    table = ("--table", str(folder / "runs.csv"), "--model", "fast", "--latency", "100")
    first = what_if(folder, 10, *table)
    rows = (folder / "runs.csv").read_text(encoding="utf-8")
    again = what_if(folder, 10, *table)
    assert (folder / "runs.csv").read_text(encoding="utf-8") == rows and rows.count("\n") == 3
    assert again == first
    (folder / "runs.csv").unlink()
    assert what_if(folder, 10, *table) == first
