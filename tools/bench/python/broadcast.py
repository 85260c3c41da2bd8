# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.python.broadcast` measures one writer with several readers.

An inference server hands each batch to all its workers in this way. An object is a number and a
numpy array. Each queue is measured in processes of its own, in rounds, in random order; a figure is
the median of the rounds. A rate counts objects that all readers have taken.
"""

import argparse
import contextlib
import gc
import json
import os
import pickle
import random
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any, Protocol

from velo import arguments, display, units

SIZES = (100, 10_000, 100_000, 1_000_000, 10_000_000)
# The others hold a batch without a limit, so velo is given room for one of short objects, too.
RING_BYTES = 64 << 20
DEPTH_SLOTS = 4096
QUEUE_BYTES = 16 << 20  # The most that a port takes.
# A batch holds so many bytes, within bounds.
BATCH_BYTES = 40_000_000
BATCH_MIN, BATCH_MAX = 8, 2000
PATIENCE_S = 60.0
MARK = 7
context = get_context("fork")
Put = Callable[[Any], Any]
Get = Callable[[], Any]


class Stack(Protocol):
    """From one process to several: made before the fork, and opened in the process that uses it."""

    def open_put(self) -> Put: ...

    def open_get(self, reader: int) -> Get: ...

    def ready(self, readers: int) -> None:
        """In the writer: wait until all readers would get what is put now."""

    def close(self) -> None:
        """In the writer, at the end."""


class Broadcast(Stack):
    """velo.Broadcast: one copy in shared memory."""

    def __init__(self, _readers: int) -> None:
        # Cost: each process measures one queue, and only that one has to be installed.
        import velo

        self._velo: Any = velo
        self._domain = f"measure-{os.getpid()}"

    def open_put(self) -> Put:
        self._ring = self._velo.Broadcast(
            domain=self._domain,
            depth_slots=DEPTH_SLOTS,
            msg_bytes_max=SIZES[-1] + 4096,
            data_bytes=RING_BYTES,
        )
        put: Put = self._ring.put
        return put

    def open_get(self, _reader: int) -> Get:
        get: Get = self._velo.BroadcastReader(domain=self._domain).get
        return get

    def ready(self, readers: int) -> None:
        while self._ring.readers < readers:
            time.sleep(0.001)

    def close(self) -> None:
        self._ring.close()


class Queues(Stack):
    """A queue for each reader; the writer puts each object into all of them."""

    def __init__(self, make: Callable[[], Any], readers: int) -> None:
        self._queues = [make() for _ in range(readers)]

    def open_put(self) -> Put:
        puts = [queue.put for queue in self._queues]

        def put(obj: Any) -> None:
            for one in puts:
                one(obj)

        return put

    def open_get(self, reader: int) -> Get:
        get: Get = self._queues[reader].get
        return get

    def ready(self, _readers: int) -> None: ...

    def close(self) -> None: ...


def velo_queues(readers: int) -> Stack:
    """n single rings."""
    # Cost: as above.
    import velo

    make: Callable[..., Any] = velo.Queue  # type: ignore[attr-defined]
    return Queues(lambda: make(here=False, capacity_bytes=QUEUE_BYTES), readers)


def multiprocessing_queues(readers: int) -> Stack:
    """multiprocessing.Queue, one for each reader."""
    return Queues(context.Queue, readers)


class ZeroMq(Stack):
    """pyzmq: PUB and SUB over ipc, without a limit, so that nothing is dropped."""

    def __init__(self, _readers: int) -> None:
        # Cost: as above.
        import zmq  # type: ignore[import-not-found, unused-ignore]

        self._zmq: Any = zmq
        self._address = f"ipc://@velo-broadcast-{os.getpid()}"

    def open_put(self) -> Put:
        socket = self._socket = self._zmq.Context().socket(self._zmq.XPUB)
        socket.setsockopt(self._zmq.SNDHWM, 0)
        socket.setsockopt(self._zmq.LINGER, 0)
        socket.setsockopt(self._zmq.XPUB_VERBOSE, 1)  # Tells of each reader.
        socket.bind(self._address)
        return lambda obj: socket.send(pickle.dumps(obj, 5))

    def open_get(self, _reader: int) -> Get:
        socket = self._zmq.Context().socket(self._zmq.SUB)
        socket.setsockopt(self._zmq.RCVHWM, 0)
        socket.setsockopt(self._zmq.SUBSCRIBE, b"")
        socket.connect(self._address)
        return lambda: pickle.loads(socket.recv())

    def ready(self, readers: int) -> None:
        for _ in range(readers):
            self._socket.recv()

    def close(self) -> None: ...


STACKS: dict[str, Callable[[int], Stack]] = {
    "velo.Broadcast": Broadcast,
    "n velo.Queue": velo_queues,
    "n multiprocessing.Queue": multiprocessing_queues,
    "pyzmq PUB/SUB": ZeroMq,
}


def _read(stack: Stack, reader: int, done: Any) -> None:
    gc.disable()
    get = stack.open_get(reader)
    taken = 0
    while True:
        number, array = get()
        if number < 0:
            os._exit(0)
        if array is None:
            if number != taken:
                os._exit(1)
            done.send(number)
            taken = 0
        else:
            # Not each object has an array of its own: multiprocessing pickles it after put().
            if number != taken or array[0] != MARK or array[-1] != MARK:
                os._exit(1)
            taken += 1


def _rate(put: Put, done: list[Any], array: Any, count: int) -> float:
    begin_s = time.perf_counter()
    for number in range(count):
        put((number, array))
    put((count, None))
    for one in done:
        if not one.poll(PATIENCE_S) or one.recv() != count:
            raise SystemExit("a reader did not get all that was put")
    return count / (time.perf_counter() - begin_s)


def measure(name: str, readers: int) -> dict[int, float]:
    """One round of one queue: objects a second for each size."""
    # Cost: slow, and only the processes that measure need it.
    import numpy as np

    stack = STACKS[name](readers)
    pipes = [context.Pipe(duplex=False) for _ in range(readers)]
    children = [
        context.Process(target=_read, args=(stack, i, pipe[1]), daemon=True)
        for i, pipe in enumerate(pipes)
    ]
    for child in children:
        child.start()
    done = [pipe[0] for pipe in pipes]
    put = stack.open_put()
    stack.ready(readers)
    gc.disable()
    found = {}
    for size in SIZES:
        count = max(BATCH_MIN, min(BATCH_MAX, BATCH_BYTES // size))
        array = np.full(size, MARK, "u1")
        _rate(put, done, array, BATCH_MIN)  # The first of a size makes the memory for it.
        found[size] = statistics.median(_rate(put, done, array, count) for _ in range(3))
    put((-1, None))
    for child in children:
        child.join(PATIENCE_S)
        if child.exitcode != 0:
            raise SystemExit(f"{name}: a reader got what was not put")
    stack.close()
    return found


def _in_a_process(name: str, readers: int) -> dict[int, float] | None:
    """A round in a process of its own, or None if what it needs is missing."""
    ours, theirs = context.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            theirs.send(measure(name, readers))
        except ModuleNotFoundError as error:
            theirs.send(str(error))
        sys.stdout.flush()
        os._exit(0)  # Threads of a queue are not waited for.
    theirs.close()
    found: dict[int, float] | str | None = None
    with contextlib.suppress(EOFError):
        found = ours.recv()
    os.waitpid(child, 0)
    if found is None:
        raise SystemExit(f"{name}: the measurement ended early")
    if isinstance(found, str):
        print(f"{name} is left out: {found}", file=sys.stderr)
        return None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.python.broadcast", description=__doc__)
    parser.add_argument(
        "--readers", type=arguments.checked(units.parse_count), default=4, help="(default: 4)"
    )
    parser.add_argument(
        "--rounds", type=arguments.checked(units.parse_count), default=7, help="(default: 7)"
    )
    parser.add_argument("--json", action="store_true", help="print each value of each round")
    args = parser.parse_args()
    values: dict[str, dict[int, list[float]]] = {name: {} for name in STACKS}
    for round_ in range(args.rounds):
        names = list(values)
        random.shuffle(names)
        for name in names:
            print(f"round {round_ + 1} of {args.rounds}: {name}", file=sys.stderr)
            found = _in_a_process(name, args.readers)
            if found is None:
                del values[name]
                continue
            for size, value in found.items():
                values[name].setdefault(size, []).append(value)
    if args.json:
        print(json.dumps({"readers": args.readers, "objects_per_s": values}))
    else:
        _show(values)


def _show(values: dict[str, dict[int, list[float]]]) -> None:
    headings = [f">{size:,} B" for size in SIZES]
    table = display.Table("<queue", *headings, title="objects a second that all readers took")
    ours = values["velo.Broadcast"]
    for name, sizes in values.items():
        cells = []
        for size, found in sizes.items():
            value, own = statistics.median(found), statistics.median(ours[size])
            cells.append(f"{units.rate(value)} ({own / value:.3g})")
        table.add_row(name, *cells)
    display.Console().print(table)


if __name__ == "__main__":
    main()
