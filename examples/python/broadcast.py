# SPDX-License-Identifier: Apache-2.0
"""One process hands batches to several workers: one copy in shared memory serves them all."""

import multiprocessing
import os
import time

import numpy as np

import velo

WORKERS, BATCHES = 3, 40
DOMAIN = f"broadcast-{os.getpid()}"


def work(domain: str, worker: int) -> None:
    total = 0.0
    with velo.BroadcastReader(domain=domain, timeout=10) as reader:
        for _number, batch in reader:  # Until the ring is closed.
            total += batch[worker::WORKERS].sum()
    assert total == sum(range(BATCHES)) * 30_000 / WORKERS


def main() -> None:
    workers = [
        multiprocessing.Process(target=work, args=(DOMAIN, worker)) for worker in range(WORKERS)
    ]
    with velo.Broadcast(domain=DOMAIN) as ring:
        for worker in workers:
            worker.start()
        while ring.readers < WORKERS:  # Those that join later get what is sent from then on.
            time.sleep(0.001)
        for number in range(BATCHES):
            ring.put((number, np.full(30_000, float(number))), timeout=10)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    print(f"{BATCHES} batches went to each of {WORKERS} workers")


if __name__ == "__main__":
    main()
