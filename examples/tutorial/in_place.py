# SPDX-License-Identifier: Apache-2.0
"""A sampler writes blocks of values into the memory of a collector, which reads them there."""

import os

import numpy as np
from numpy.typing import NDArray

import velo

COLLECTOR, SAMPLER, VALUES, BLOCK = 0, 1, 100_000, 500


def measure(i: NDArray[np.int64]) -> NDArray[np.float64]:
    return i % 1000.0  # A sensor would be read here.


def sample(domain: str) -> None:
    with velo.Port(domain=domain, vpid=SAMPLER) as port, port.connect(COLLECTOR, timeout=5) as conn:
        for i in range(0, VALUES, BLOCK):
            with conn.reserve(BLOCK * 8, timeout=5) as room:
                block = np.frombuffer(room.data)
                block[:] = measure(np.arange(i, i + BLOCK))
                del block  # The message is sent when nobody can change it any more.


def collect(domain: str) -> None:
    with velo.Port(domain=domain, vpid=COLLECTOR) as port:
        total = 0.0
        for _ in range(VALUES // BLOCK):
            with port.recv(timeout=5) as message:
                total += np.frombuffer(message.data).sum()
    print(f"{VALUES} values, their mean is {total / VALUES}")
    assert total / VALUES == 499.5


def main() -> None:
    domain = f"tutorial-{os.getpid()}"  # One of our own, so that two runs do not meet.
    if os.fork() == 0:
        sample(domain)
        os._exit(0)
    collect(domain)
    assert os.wait()[1] == 0


if __name__ == "__main__":
    main()
