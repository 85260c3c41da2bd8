# SPDX-License-Identifier: Apache-2.0
"""Two processes exchange a message a hundred thousand times."""

import os
import time

import velo

ROUNDS = 100_000


def answer(domain: str) -> None:
    with velo.Port(domain=domain, vpid=1) as port, port.connect(0, timeout=5) as conn:
        for _ in range(ROUNDS):
            conn.send(port.recv_bytes(timeout=5))


def main() -> None:
    domain = f"ping-pong-{os.getpid()}"  # One of our own, so that two runs do not meet.
    if os.fork() == 0:
        answer(domain)
        os._exit(0)
    with velo.Port(domain=domain, vpid=0) as port, port.connect(1, timeout=5) as conn:
        begin_s = time.perf_counter()
        for number in range(ROUNDS):
            conn.send(number.to_bytes(8, "little"))
            assert int.from_bytes(port.recv_bytes(timeout=5), "little") == number
        half_s = (time.perf_counter() - begin_s) / ROUNDS / 2
        os.wait()
    print(f"half a round trip takes {half_s * 1e6:.2f} us")


if __name__ == "__main__":
    main()
