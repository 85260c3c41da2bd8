# SPDX-License-Identifier: Apache-2.0
"""`velo predict` between two nodes: the delay found, all runs and what they say are the same again.

predict.py VELO MPI_PERF [--record]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import recorded

RECORD = Path(__file__).with_name("predict.json")
VELO, PROGRAM = sys.argv[1:3]
RATE, CLOCK = 80, 75
COMPUTE_NS = 2

with tempfile.TemporaryDirectory() as folder:
    page, values = Path(folder) / "predict.html", Path(folder) / "predict.json"
    argv = [VELO, "predict", "--rates", str(RATE), "--clocks", str(CLOCK), "--no-direct"]
    argv += ["--compute", f"call:{COMPUTE_NS}", "--metric", '"value":([0-9.e+]+)']
    argv += ["-o", str(page), "--json", str(values), "--"]
    argv += [PROGRAM, "gups", "--no-limit", "--batches", "1", "--table-log2", "10"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    print(done.stdout)
    text = page.read_text(encoding="utf-8")
    said = json.loads(values.read_text(encoding="utf-8"))
assert text.count("<svg") == 3, text.count("<svg")
base, (by_rate, by_clock) = said["base"], said["variations"]
delayed, clocked = by_rate["runs"][0], by_clock["runs"][0]
assert delayed["delay_ns"] > 0 and abs(by_rate["xs"][0] - RATE / 100) < 0.05, by_rate["xs"]
assert by_clock["xs"] == [CLOCK / 100], by_clock["xs"]
assert delayed["performance"] < base["performance"] > clocked["performance"]
assert 0 < said["computing"] < 1
found = {
    run["name"]: [run[what] for what in ("hash", "delay_ns", "rate", "latency_ns", "performance")]
    for run in (base, delayed, clocked)
}
found["predictions"] = [p["performances"] for p in said["predictions"]]
recorded.check(RECORD, found)
