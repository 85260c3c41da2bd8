# SPDX-License-Identifier: Apache-2.0
"""A pool: each worker has a queue of tasks, and all put their results into one."""

import multiprocessing
from typing import Any

import numpy as np

import velo

WORKERS, TASKS = 3, 30


def work(tasks: "velo.Queue[Any]", results: "velo.Queue[Any]") -> None:
    while (task := tasks.get(timeout=10)) is not None:
        number, array = task
        results.put((number, np.sqrt(array)))


def check(results: "velo.Queue[Any]") -> None:
    number, array = results.get(timeout=10)
    assert array.shape == (10_000,)
    assert (array == number).all()


def main() -> None:
    results = velo.Queue[Any]()
    queues = [velo.Queue[Any](here=False) for _ in range(WORKERS)]  # The worker gets from it.
    workers = [multiprocessing.Process(target=work, args=(queue, results)) for queue in queues]
    for worker in workers:
        worker.start()
    for number in range(TASKS):
        queues[number % WORKERS].put((number, np.full(10_000, float(number * number))))
        if number >= WORKERS:  # Each is given the next task while it has one.
            check(results)
    for _ in range(WORKERS):
        check(results)
    for queue in queues:
        queue.put(None)
    for worker in workers:
        worker.join()
    for queue in (results, *queues):
        queue.close()
    print(f"{TASKS} arrays went to {WORKERS} workers and came back")


if __name__ == "__main__":
    main()
