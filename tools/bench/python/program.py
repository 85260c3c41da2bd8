# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.python.program STACK CPU,CPU MS` measures one queue, two processes.

Prints a JSON line for each figure. The sizes take turns, so that a busy moment of the machine does
not hit one of them alone; each figure is the median of many short batches.
"""

import gc
import json
import os
import statistics
import sys
import time
from typing import NoReturn

from bench.python.channels import CHANNELS, Channel, Get, Put, pin

SIZES = (64, 1024, 8192, 65536, 1 << 20)
# A batch of messages one way holds so many bytes, within bounds.
BATCH_BYTES = 4 << 20
BATCH_MESSAGES_MIN, BATCH_MESSAGES_MAX = 8, 1000
ROUND_TRIPS = 50
TURNS = 4
IDLE_S = 0.5
# What the other process is asked to do, as the first bytes of a message.
ANSWER, TAKE, IDLE, END = b"answer", b"take", b"idle", b"end"


def batch_of(size_bytes: int) -> int:
    """How many messages of this size are sent one way."""
    return max(BATCH_MESSAGES_MIN, min(BATCH_MESSAGES_MAX, BATCH_BYTES // size_bytes))


def serve(put: Put, get: Get) -> None:
    """The other process: does what it is asked."""
    put(b"ready")
    while True:
        what, _, count = get().partition(b" ")
        if what == END:
            return
        if what == IDLE:
            begin_s = time.process_time()
            get()
            put(repr(time.process_time() - begin_s).encode())
        for _ in range(int(count or 0)):
            data = get()
            if what == ANSWER:
                put(data)
        if what == TAKE:
            put(b"done")


def half_round_trip_s(put: Put, get: Get, data: bytes) -> float:
    """Of one batch, the mean."""
    put(b"%s %d" % (ANSWER, ROUND_TRIPS + 1))
    put(data)
    get()
    begin_s = time.perf_counter()
    for _ in range(ROUND_TRIPS):
        put(data)
        get()
    return (time.perf_counter() - begin_s) / ROUND_TRIPS / 2


def messages_per_s(put: Put, get: Get, data: bytes) -> float:
    """Of one batch, until the last has been taken."""
    count = batch_of(len(data))
    put(b"%s %d" % (TAKE, count))
    begin_s = time.perf_counter()
    for _ in range(count):
        put(data)
    get()
    return count / (time.perf_counter() - begin_s)


def idle_part(put: Put, get: Get) -> float:
    """How much of a processor the other process uses while it waits."""
    put(IDLE)
    time.sleep(IDLE_S)
    put(b"end of idle")
    return float(get()) / IDLE_S


def measure(put: Put, get: Get, time_ms: int) -> None:
    """All sizes; each gets so many milliseconds of each kind."""
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(TURNS):
        for size in SIZES:
            data = os.urandom(size)
            for mode, act in (("latency", half_round_trip_s), ("rate", messages_per_s)):
                end_s = time.perf_counter() + time_ms / 1e3 / TURNS
                act(put, get, data)  # The first one of a size makes the memory for it.
                while True:
                    found.setdefault((mode, size), []).append(act(put, get, data))
                    if time.perf_counter() >= end_s:
                        break
    for (mode, size), values in found.items():
        print(json.dumps({"mode": mode, "size_bytes": size, "value": statistics.median(values)}))
    print(json.dumps({"mode": "idle", "size_bytes": 0, "value": idle_part(put, get)}))


def main() -> None:
    stack, cpus, time_ms = sys.argv[1:]
    ours, theirs = map(int, cpus.split(","))
    there, back = CHANNELS[stack](), CHANNELS[stack]()
    child = os.fork()
    pin(theirs if child == 0 else ours)
    gc.disable()
    if child == 0:
        serve(back.open_put(), there.open_get())
        _end(there, back)
    put, get = there.open_put(), back.open_get()
    get()
    measure(put, get, int(time_ms))
    put(END)
    os.waitpid(child, 0)
    _end(there, back)


def _end(*channels: Channel) -> NoReturn:
    for channel in channels:
        channel.close()
    sys.stdout.flush()
    os._exit(0)  # Threads of a queue are not waited for.


if __name__ == "__main__":
    main()
