# SPDX-License-Identifier: Apache-2.0
"""The queues that are measured, each as two functions: one that puts bytes, one that gets them.

A channel is made before the fork; each end is opened in the process that uses it.
"""

import multiprocessing
import os
from collections.abc import Callable
from typing import Any, Protocol

Put = Callable[[bytes], Any]
Get = Callable[[], bytes]

RING_BYTES = 8 << 20
"""For those that ask how much they may hold; larger than the longest object several times over."""


class Channel(Protocol):
    """From one process to the other."""

    def open_put(self) -> Put: ...

    def open_get(self) -> Get: ...

    def close(self) -> None:
        """Leave nothing behind, if that needs more than the end of the process."""


class Velo(Channel):
    """velo.Queue, with the capacity that it has by itself."""

    def __init__(self) -> None:
        # Cost: each process measures one of these, and only that one has to be installed.
        import velo

        self._queue: Any = velo.Queue(here=False)  # type: ignore[attr-defined]

    def open_put(self) -> Put:
        put: Put = self._queue.put
        return put

    def open_get(self) -> Get:
        get: Get = self._queue.get
        return get

    def close(self) -> None:
        self._queue.close()


class Multiprocessing(Channel):
    """multiprocessing.Queue."""

    def __init__(self) -> None:
        self._queue: Any = multiprocessing.get_context("fork").Queue()

    def open_put(self) -> Put:
        put: Put = self._queue.put
        return put

    def open_get(self) -> Get:
        get: Get = self._queue.get
        return get


class Pipe(Channel):
    """multiprocessing.Pipe, with the calls that take bytes as they are."""

    def __init__(self) -> None:
        self._reader, self._writer = multiprocessing.get_context("fork").Pipe(duplex=False)

    def open_put(self) -> Put:
        return self._writer.send_bytes

    def open_get(self) -> Get:
        return self._reader.recv_bytes


class ZeroMq(Channel):
    """pyzmq: PUSH and PULL over ipc."""

    def __init__(self) -> None:
        # Cost: as above.
        import zmq  # type: ignore[import-not-found, unused-ignore]

        self._zmq: Any = zmq
        self._address = f"ipc://@velo-bench-{os.getpid()}-{id(self)}"  # It needs no file.

    def _open(self, kind: int) -> Any:
        socket = self._zmq.Context().socket(kind)
        socket.setsockopt(self._zmq.LINGER, 0)
        return socket

    def open_put(self) -> Put:
        socket = self._open(self._zmq.PUSH)
        socket.connect(self._address)
        put: Put = socket.send
        return put

    def open_get(self) -> Get:
        socket = self._open(self._zmq.PULL)
        socket.bind(self._address)
        get: Get = socket.recv
        return get


class FasterFifo(Channel):
    """faster-fifo: a queue in shared memory, with a lock. It waits for ever only if asked to."""

    def __init__(self) -> None:
        # Cost: as above.
        import faster_fifo  # type: ignore[import-not-found, unused-ignore]

        self._queue: Any = faster_fifo.Queue(max_size_bytes=RING_BYTES)

    def open_put(self) -> Put:
        queue = self._queue
        return lambda data: queue.put(data, timeout=60.0)

    def open_get(self) -> Get:
        queue = self._queue
        return lambda: queue.get(timeout=60.0)


CHANNELS: dict[str, Callable[[], Channel]] = {
    "velo.Queue": Velo,
    "multiprocessing.Queue": Multiprocessing,
    "multiprocessing.Pipe": Pipe,
    "pyzmq ipc": ZeroMq,
    "faster-fifo": FasterFifo,
}


def pin(cpu: int) -> None:
    """This process and the threads that it will start."""
    os.sched_setaffinity(0, {cpu})
