# SPDX-License-Identifier: Apache-2.0
"""Samplers write all their values into a table in the collector's memory, and notify it."""

import os

import numpy as np
from numpy.typing import NDArray

import velo

COLLECTOR, SAMPLERS, VALUES, BLOCK = 0, 4, 100_000, 500
TABLE = 1  # The number that it is published under.


def measure(this: int, i: NDArray[np.int64]) -> NDArray[np.float64]:
    return this * 1000 + i % 1000.0  # A sensor would be read here.


def sample(domain: str, this: int) -> None:
    with velo.Port(domain=domain, vpid=this) as port, velo.Rma(port) as rma:
        collector = rma.connect(COLLECTOR, timeout=5)
        table = collector.lookup(TABLE, velo.Right.WRITE)
        for i in range(0, VALUES, BLOCK):
            block = measure(this, np.arange(i, i + BLOCK))
            collector.put(block, table, offset=(this * VALUES + i) * 8)
        collector.notify(cookie=this)  # It comes after the data.
        collector.flush(timeout=5)


def report(sampler: int, mean: float) -> None:
    print(f"sampler {sampler} is done, its mean is {mean}")
    assert mean == sampler * 1000 + 499.5


def collect(rma: velo.Rma, memory: velo.Memory) -> None:
    done = 0
    while done < SAMPLERS:
        table = np.frombuffer(memory.data).reshape(-1, VALUES)
        for notification in rma.poll(timeout=5):
            report(notification.peer, table[notification.peer].mean())
            done += 1
        del table  # The memory can be freed when nobody can see it any more.


def main() -> None:
    domain = f"tutorial-{os.getpid()}"  # One of our own, so that two runs do not meet.
    port = velo.Port(domain=domain, vpid=COLLECTOR)
    rma = velo.Rma(port)
    memory = rma.alloc((SAMPLERS + 1) * VALUES * 8, velo.Right.WRITE)
    memory.publish(TABLE)
    for sampler in range(1, SAMPLERS + 1):
        if os.fork() == 0:
            sample(domain, sampler)
            os._exit(0)
    collect(rma, memory)
    for _ in range(SAMPLERS):
        assert os.wait()[1] == 0
    port.close()


if __name__ == "__main__":
    main()
