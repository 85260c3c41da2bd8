# SPDX-License-Identifier: Apache-2.0
"""Processes write into an array of another one, and count together in a word of it."""

import os

import numpy as np

import velo

WRITERS, EACH = 3, 1000
COUNTER, ARRAY = 1, 2  # Numbers that registrations are published under.


def write(domain: str, who: int) -> None:
    with velo.Port(domain=domain, vpid=who) as port, velo.Rma(port) as rma:
        owner = rma.connect(0, timeout=5)
        counter, array = owner.lookup(COUNTER), owner.lookup(ARRAY)
        row = np.full(EACH, float(who))
        owner.put(row, array, offset=(who - 1) * row.nbytes)
        for _ in range(EACH):
            owner.fetch_add(counter, 0, 1)
        owner.notify(cookie=who)  # It arrives after the data.
        owner.flush()


def main() -> None:
    domain = f"remote-memory-{os.getpid()}"  # One of our own, so that two runs do not meet.
    port = velo.Port(domain=domain, vpid=0)
    rma = velo.Rma(port)
    counter, array = rma.alloc(8), rma.alloc(WRITERS * EACH * 8)
    counter.publish(COUNTER)
    array.publish(ARRAY)
    for who in range(1, WRITERS + 1):
        if os.fork() == 0:
            write(domain, who)
            os._exit(0)
    heard = 0
    while heard < WRITERS:
        heard += len(rma.poll(timeout=5))
    total, count = np.frombuffer(array.data).sum(), int.from_bytes(counter.data, "little")
    assert (total, count) == (EACH * sum(range(1, WRITERS + 1)), WRITERS * EACH)
    for _ in range(WRITERS):
        os.wait()
    port.close()
    print(f"{WRITERS} rows were written, and {count} counted")


if __name__ == "__main__":
    main()
