# SPDX-License-Identifier: Apache-2.0
"""The collector says what to measure next: one copy of each plan serves all samplers."""

import os
import time
from collections import Counter

import numpy as np
from numpy.typing import NDArray

import velo

COLLECTOR, SAMPLERS, PLANS, BLOCK = 0, 4, 200, 500


def measure(this: int, gain: int) -> NDArray[np.float64]:
    return this * gain + np.arange(float(BLOCK))  # A sensor would be read here.


def sample(domain: str, this: int) -> None:
    with (
        velo.Port(domain=domain, vpid=this) as port,
        port.connect(COLLECTOR, timeout=5) as conn,
        velo.BroadcastReader(domain=domain, timeout=5) as plans,
    ):
        for gain in plans:  # Until the collector closes the ring.
            conn.send(measure(this, gain), timeout=5)


def report(sampler: int, sums: Counter[int]) -> None:
    mean = sums[sampler] / PLANS / BLOCK
    print(f"sampler {sampler} has finished, its mean is {mean}")
    assert mean == sampler * (PLANS + 1) / 2 + (BLOCK - 1) / 2


def collect(domain: str) -> None:
    sums = Counter[int]()
    with (
        velo.Port(domain=domain, vpid=COLLECTOR) as port,
        velo.Broadcast(domain=domain) as plans,
    ):
        while plans.readers < SAMPLERS:  # Each gets what is sent after it has joined.
            time.sleep(0.001)
        for gain in range(1, PLANS + 1):
            plans.put(gain, timeout=5)
            for _ in range(SAMPLERS):
                with port.recv(timeout=5) as message:
                    sums[message.source] += np.frombuffer(message.data).sum()
    for sampler in range(1, SAMPLERS + 1):
        report(sampler, sums)


def main() -> None:
    domain = f"tutorial-{os.getpid()}"  # One of our own, so that two runs do not meet.
    for sampler in range(1, SAMPLERS + 1):
        if os.fork() == 0:
            sample(domain, sampler)
            os._exit(0)
    collect(domain)
    for _ in range(SAMPLERS):
        assert os.wait()[1] == 0


if __name__ == "__main__":
    main()
