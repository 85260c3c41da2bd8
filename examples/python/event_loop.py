# SPDX-License-Identifier: Apache-2.0
"""A server in asyncio waits for several clients, and uses no processor meanwhile."""

import asyncio
import os

import velo

CLIENTS, QUESTIONS = 3, 5


def ask(domain: str, who: int) -> None:
    with velo.Port(domain=domain, vpid=who) as port, port.connect(0, timeout=5) as conn:
        for number in range(QUESTIONS):
            conn.send(f"{number} + {who}".encode())
            assert int(port.recv_bytes(timeout=5)) == number + who


async def serve(port: velo.Port) -> int:
    conns: dict[int, velo.Connection] = {}
    for _ in range(CLIENTS * QUESTIONS):
        async with asyncio.timeout(5):
            with await port.recv_async() as message:
                source, question = message.source, bytes(message)
        a, _, b = question.split()
        if source not in conns:
            conns[source] = port.connect(source, timeout=5)
        conns[source].send(str(int(a) + int(b)).encode())
    return len(conns)


def main() -> None:
    domain = f"event-loop-{os.getpid()}"  # One of our own, so that two runs do not meet.
    for who in range(1, CLIENTS + 1):
        if os.fork() == 0:
            ask(domain, who)
            os._exit(0)
    with velo.Port(domain=domain, vpid=0) as port:
        print(f"{asyncio.run(serve(port))} clients were answered")
        for _ in range(CLIENTS):
            os.wait()


if __name__ == "__main__":
    main()
