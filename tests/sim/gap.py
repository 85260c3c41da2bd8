# SPDX-License-Identifier: Apache-2.0
"""The host model's pause after each line that is sent holds up the next line, and no earlier one.

gap.py VELO API_PERF
"""

import itertools
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

VELO, PROGRAM = sys.argv[1:3]
# Longer than anything else between two lines of a stream, so that nothing is hidden behind it.
GAP_NS = 20_000
SHORT_GAP_NS = 400  # Shorter than a round trip.
WARM, REPEATS = 4, 20  # Of velo-api-perf, whose port has this context:
CONTEXT = 9
LINES = {8: 1, 40: 1, 100: 4}  # Payload bytes: lines of a message of velo.h.


def run(mode: str, size_bytes: int, gap_ns: int) -> tuple[str, list[int]]:
    """The output of the program, and the times at which node 0 stored each of its lines, in ps."""
    with tempfile.TemporaryDirectory() as name:
        recording, result = Path(name) / "run.rec", Path(name) / "run.json"
        argv = [VELO, "sim", "-n", "2", "--record", str(recording), "--json", str(result)]
        argv += ["--host-ns", f"gap={gap_ns}", "--", PROGRAM, mode, "--sizes", str(size_bytes)]
        argv += ["--repeats", str(REPEATS)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(argv)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
        assert json.loads(result.read_text(encoding="utf-8"))["host_ns"]["gap"] == gap_ns
        _, records = recording.read_bytes().split(b"\n", 1)
    lines = [struct.unpack("<6BH4q", r) for (r,) in struct.iter_unpack("40s", records)]
    return done.stdout, [line[7] for line in lines if line[:3] == (1, 0, CONTEXT)]


def between_lines(size_bytes: int, gap_ns: int) -> list[int]:
    """From one line of a stream of such messages to the next, in ps."""
    lines = LINES[size_bytes]
    _, sent = run("stream", size_bytes, gap_ns)
    assert len(sent) == (WARM + REPEATS) * lines + 1, len(sent)  # The last one leaves.
    return [b - a for a, b in itertools.pairwise(sent[WARM * lines : -1])]


def half_round_trip_ns(gap_ns: int) -> float:
    return float(json.loads(run("latency", 8, gap_ns)[0])["value"])


for size_bytes in LINES:
    free, paused = between_lines(size_bytes, 0), between_lines(size_bytes, GAP_NS)
    print(f"{size_bytes} bytes: {free[:4]} and {paused[:4]} ps between lines")
    # As long as the way to the node has room, nothing but the pause is new.
    assert paused[:4] == [ps + GAP_NS * 1000 for ps in free[:4]], size_bytes
    assert min(paused) >= GAP_NS * 1000, size_bytes
# A rank that pauses has sent already: only the times of its polls change.
free_ns, paused_ns = half_round_trip_ns(0), half_round_trip_ns(SHORT_GAP_NS)
print(f"half a round trip: {free_ns} and {paused_ns} ns")
assert abs(paused_ns - free_ns) < SHORT_GAP_NS / 4
