# SPDX-License-Identifier: Apache-2.0
"""numpy arrays are built in the receiver's memory, and read there: nothing is copied."""

import os

import numpy as np

import velo

ROWS, COLUMNS = 40, 25


def send(domain: str) -> None:
    with velo.Port(domain=domain, vpid=1) as port, port.connect(0, timeout=5) as conn:
        for number in range(10):
            with conn.reserve(ROWS * COLUMNS * 8, timeout=5) as room:
                array = np.frombuffer(room.data).reshape(ROWS, COLUMNS)
                array[:] = number
                del array  # The message is sent when nobody can change it any more.


def main() -> None:
    domain = f"in-place-{os.getpid()}"  # One of our own, so that two runs do not meet.
    if os.fork() == 0:
        send(domain)
        os._exit(0)
    with velo.Port(domain=domain, vpid=0) as port:
        for number in range(10):
            with port.recv(timeout=5) as message:
                array = np.frombuffer(message.data).reshape(ROWS, COLUMNS)
                total = array.sum()
                del array  # The memory goes back to the sender when nobody can see it any more.
            assert total == number * ROWS * COLUMNS
        try:
            print(message.data)
        except velo.Closed as error:
            print(f"ten arrays came; of the last one now: {error}")
        os.wait()


if __name__ == "__main__":
    main()
