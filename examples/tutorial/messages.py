# SPDX-License-Identifier: Apache-2.0
"""A sampler measures, and sends each value to a collector, which takes their mean."""

import os
import struct

import velo

COLLECTOR, SAMPLER, VALUES = 0, 1, 100_000


def measure(i: int) -> float:
    return i % 1000  # A sensor would be read here.


def sample(domain: str) -> None:
    with velo.Port(domain=domain, vpid=SAMPLER) as port, port.connect(COLLECTOR, timeout=5) as conn:
        for i in range(VALUES):
            conn.send(struct.pack("d", measure(i)), timeout=5)


def collect(domain: str) -> None:
    with velo.Port(domain=domain, vpid=COLLECTOR) as port:
        total = 0.0
        for _ in range(VALUES):
            (value,) = struct.unpack("d", port.recv_bytes(timeout=5))
            total += value
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
