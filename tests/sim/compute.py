# SPDX-License-Identifier: Apache-2.0
"""The cost of computing in virtual time: nothing, a constant, or its processor time.

compute.py VELO API_PERF BUSY
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

VELO, PROGRAM, BUSY = sys.argv[1:4]
CALL_NS = 100


def half_round_trip(*options: str) -> tuple[float, str, int]:
    """Of 8 bytes, in ns; the run's hash; and how many ps were charged for computing."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        argv = [VELO, "sim", "-n", "2", "--json", str(result), *options, "--"]
        argv += [PROGRAM, "latency", "--sizes", "8", "--repeats", "50"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(argv)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
        said = json.loads(result.read_text(encoding="utf-8"))
    most_ps = said["calls"] * said["host_ns"]["compute"] * 1000
    assert said["compute_permille"] or 0.9 * most_ps <= said["computed_ps"] <= most_ps, said
    return json.loads(done.stdout)["value"], said["hash"], said["computed_ps"]


free = half_round_trip()
assert free[2] == 0
assert half_round_trip("--compute", "call:0") == free
dear = half_round_trip("--compute", f"call:{CALL_NS}")
print(f"free {free}, {CALL_NS} ns a call {dear}")
# A half round trip is a store and at least one poll, and a poll in vain ends with the next.
assert free[0] + CALL_NS / 2 < dear[0] < free[0] + 4 * CALL_NS
assert dear[2] > 0 and dear[2] % (CALL_NS * 1000) == 0
assert half_round_trip("--compute", f"call:{CALL_NS}") == dear
measured = half_round_trip("--compute", "measured:10")
print(f"10 times the processor time {measured}")
assert measured[0] > free[0] and measured[2] > 0

# A call that costs nothing drops no computing: a long message registers its memory by one.
for size in ("8", "65536"):
    argv = [VELO, "sim", "-n", "2", "--compute", "measured:1", "--", BUSY, size]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    computed_us, took_us = map(float, done.stdout.split())
    print(f"{size} bytes: computed for {computed_us} us of {took_us} us")
    assert took_us > 0.9 * computed_us > 0
