# SPDX-License-Identifier: Apache-2.0
"""`velo paper`, shortened: its page is whole, and every run the one that is recorded.

paper.py VELO [--record]
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import recorded

RECORD = Path(__file__).with_name("paper.json")
SKIPPED = 77
ONLY = (
    "api latency,api stream,mpi latency,netpipe latency,netpipe stream,rate by size,rate by pairs,"
    "pingpong,gups by table,gups"
)

if not shutil.which("NPopenmpi"):
    print("NPopenmpi is not there; install netpipe-openmpi (Debian's name)")
    sys.exit(SKIPPED)
with tempfile.TemporaryDirectory() as folder:
    page, values = Path(folder) / "paper.html", Path(folder) / "paper.json"
    # The prediction has a test of its own, predict.py.
    argv = [sys.argv[1], "paper", "--quick", "--only", ONLY, "-o", str(page), "--json", str(values)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    print(done.stdout)
    text = page.read_text(encoding="utf-8")
    found = {s["experiment"]: s["hashes"] for s in json.loads(values.read_text())["series"]}
assert text.count("<svg") == 11, text.count("<svg")
for word in ("970 ns", "9.73 M/s", "2.44 µs", "TCP over Gigabit Ethernet"):
    assert word in text, word
recorded.check(RECORD, found)
