# SPDX-License-Identifier: Apache-2.0
"""Several samplers write to one collector, which sees whose block it is, and who has gone."""

import os
from collections import Counter

import numpy as np
from numpy.typing import NDArray

import velo

COLLECTOR, SAMPLERS, VALUES, BLOCK = 0, 4, 100_000, 500


def measure(this: int, i: NDArray[np.int64]) -> NDArray[np.float64]:
    return this * 1000 + i % 1000.0  # A sensor would be read here.


def sample(domain: str, this: int) -> None:
    with velo.Port(domain=domain, vpid=this) as port, port.connect(COLLECTOR, timeout=5) as conn:
        for i in range(0, VALUES, BLOCK):
            with conn.reserve(BLOCK * 8, timeout=5) as room:
                block = np.frombuffer(room.data)
                block[:] = measure(this, np.arange(i, i + BLOCK))
                del block  # The message is sent when nobody can change it any more.


def report(sampler: int, sums: Counter[int]) -> None:
    mean = sums[sampler] / VALUES
    print(f"sampler {sampler} has gone, its mean is {mean}")
    assert mean == sampler * 1000 + 499.5


def collect(domain: str) -> None:
    sums = Counter[int]()
    gone = 0
    with velo.Port(domain=domain, vpid=COLLECTOR, departures=True) as port:
        while gone < SAMPLERS:
            try:
                with port.recv(timeout=5) as message:
                    sums[message.source] += np.frombuffer(message.data).sum()
            except (velo.PeerClosed, velo.PeerDead) as departure:
                report(departure.source, sums)
                gone += 1


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
