# SPDX-License-Identifier: Apache-2.0
"""Stands in for velo-perf: writes what FAKE_SCENARIO says, in the same format."""

import json
import os
import signal
import subprocess
import sys
import time

LIMITS = (
    ("half_rtt_ns", "pingpong", 8, 45.0),
    ("rate_msgs_per_s", "stream8", 8, 300e6),
    ("rate_msgs_per_s", "stream8_pause", 8, 320e6),
    ("bandwidth_bytes_per_s", "peer_copy", 4096, 27e9),
    ("bandwidth_bytes_per_s", "peer_copy", 16384, 35e9),
)


def line(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


def sample(mode: str, batch: int, **fields: object) -> None:
    usual: dict[str, object] = {
        "metric": "half_rtt_ns",
        "size_bytes": 8,
        "pairs": 1,
        "threads": 1,
        "senders": 1,
        "value": 50.0 + batch,
        "limit_name": "pingpong",
        "limit_before": 44.0,
        "limit_after": 46.0,
        "near": True,
        "extra": {"ring_pause_ns": 46.0},
    }
    line(type="sample", mode=mode, batch=batch, **(usual | fields))


def limits(scenario: str) -> None:
    scale = 4.0 if scenario == "far" else 1.0
    for metric, name, size, value in LIMITS:
        value = value * scale if metric == "half_rtt_ns" else value / scale
        sample("limit", 0, metric=metric, limit_name=name, size_bytes=size, value=value,
               limit_before=value, limit_after=value, near=scale == 1.0)  # fmt: skip


def main() -> int:
    scenario = os.environ.get("FAKE_SCENARIO", "good")
    mode = sys.argv[1]
    if log := os.environ.get("FAKE_LOG"):
        with open(log, "a", encoding="utf-8") as file:  # noqa: PTH123
            print(*sys.argv[1:], file=file)
    line(type="meta", version="1.0.0 abi 1", mode=mode, processes=8 if mode == "ring" else 2)
    line(type="plan", samples=4)
    if mode == "limit":
        limits(scenario)
    else:
        for batch in range(3):
            sample(mode, batch)
        sample(mode, 3, value=210.0, limit_before=190.0, limit_after=200.0, near=False)
    match scenario:
        case "error":
            line(type="error", message="cannot open a port: no space in /dev/shm; free some")
            return 1
        case "crash":
            print("velo-perf: about to fall over", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        case "truncated":
            print('{"type":"sample","mode":"lat', end="", flush=True)
            return 0
        case "garbage":
            print("Hello.", flush=True)
        case "no end":
            return 0
        case "verify":
            line(type="error", message="message 7: byte 3 is 0x00, not 0x2a")
            return 3
        case "bad sample":
            line(type="sample", mode=mode, metric="half_rtt_ns", size_bytes=8, value=-1)
        case "hang":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
            line(type="sample-pids", pids=[os.getpid(), child.pid])
            time.sleep(100)
    line(type="end", ok=True, dropped=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
