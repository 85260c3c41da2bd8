# SPDX-License-Identifier: Apache-2.0
"""Time limits: each call that has one takes every number of seconds in the same way."""

import inspect
import queue
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import velo

LONG = [9.3e9, 1e10, 1e30, sys.float_info.max, float("inf"), 10**400]
OVER = [0, -0.0, -1e-9, -1, -1e30, float("-inf")]


class Stage:
    """A port that is connected to itself, a ring with a reader, and a queue."""

    def __init__(self, domain: str, stack: ExitStack) -> None:
        self.domain = domain
        self.port = stack.enter_context(velo.Port(domain=domain))
        self.conn = self.port.connect(self.port.id)
        self.rma = velo.Rma(self.port)
        self.peer = self.rma.connect(self.port.id)
        self.memory = self.rma.alloc(64)
        self.ring = stack.enter_context(velo.Broadcast(domain=domain))
        self.reader = stack.enter_context(velo.BroadcastReader(domain=domain))
        self.queue: velo.Queue[Any] = stack.enter_context(velo.Queue())

    def sent(self) -> velo.Port:
        self.conn.send(b"x")
        return self.port

    def told(self) -> velo.BroadcastReader:
        self.ring.send(b"x")
        return self.reader

    def word(self, call: str, *args: int, timeout: float | None) -> Any:
        return getattr(self.peer, call)(self.memory.key, 0, *args, timeout=timeout)

    def join(self, timeout: float | None) -> None:
        velo.BroadcastReader(domain=self.domain, timeout=timeout).close()

    def reserve(self, sender: velo.Connection | velo.Broadcast, timeout: float | None) -> None:
        sender.reserve(8, timeout).commit(8)

    def poll(self, timeout: float | None) -> None:
        self.peer.notify(cookie=1)
        assert self.rma.poll(timeout)

    def put(self, timeout: float | None) -> None:
        self.ring.put([1], timeout)
        assert self.reader.get() == [1]


# What each call does where nothing is in its way.
CALLS: dict[str, Callable[[Stage, float | None], object]] = {
    "Broadcast.put": Stage.put,
    "Broadcast.reserve": lambda stage, limit: stage.reserve(stage.ring, limit),
    "Broadcast.send": lambda stage, limit: stage.ring.send(b"x", 0, limit),
    "BroadcastReader": Stage.join,
    "BroadcastReader.get": lambda stage, limit: (stage.ring.put(1), stage.reader.get(limit)),
    "BroadcastReader.recv": lambda stage, limit: stage.told().recv(limit).release(),
    "BroadcastReader.recv_bytes": lambda stage, limit: stage.told().recv_bytes(limit),
    "BroadcastReader.recv_into": lambda stage, limit: stage.told().recv_into(bytearray(8), limit),
    "Connection.reserve": lambda stage, limit: stage.reserve(stage.conn, limit),
    "Connection.send": lambda stage, limit: stage.conn.send(b"x", 0, limit),
    "Connection.send_many": lambda stage, limit: stage.conn.send_many([b"x"], timeout=limit),
    "Connection.send_pieces": lambda stage, limit: stage.conn.send_pieces([b"x"], 0, limit),
    "Memory.close": lambda stage, limit: stage.rma.alloc(8).close(limit),
    "Port.connect": lambda stage, limit: stage.port.connect(stage.port.id, limit),
    "Port.recv": lambda stage, limit: stage.sent().recv(limit).release(),
    "Port.recv_bytes": lambda stage, limit: stage.sent().recv_bytes(limit),
    "Port.recv_into": lambda stage, limit: stage.sent().recv_into(bytearray(8), limit),
    "Port.recv_many": lambda stage, limit: stage.sent().recv_many(1, limit),
    "Queue.get": lambda stage, limit: (stage.queue.put(1), stage.queue.get(timeout=limit)),
    "Queue.put": lambda stage, limit: (stage.queue.put(1, timeout=limit), stage.queue.get()),
    "Rma.connect": lambda stage, limit: stage.rma.connect(stage.port.id, limit).close(),
    "Rma.poll": Stage.poll,
    "RmaPeer.compare_swap": lambda s, limit: s.word("compare_swap", 0, 0, timeout=limit),
    "RmaPeer.fetch_add": lambda s, limit: s.word("fetch_add", 0, timeout=limit),
    "RmaPeer.flush": lambda stage, limit: stage.peer.flush(limit),
}

# Those that find nothing and end with velo.Timeout or queue.Empty.
VAIN: dict[str, Callable[[Stage, float], object]] = {
    "BroadcastReader.get": lambda stage, limit: stage.reader.get(limit),
    "BroadcastReader.recv": lambda stage, limit: stage.reader.recv(limit),
    "BroadcastReader.recv_bytes": lambda stage, limit: stage.reader.recv_bytes(limit),
    "BroadcastReader.recv_into": lambda stage, limit: stage.reader.recv_into(bytearray(8), limit),
    "Port.recv": lambda stage, limit: stage.port.recv(limit),
    "Port.recv_bytes": lambda stage, limit: stage.port.recv_bytes(limit),
    "Port.recv_into": lambda stage, limit: stage.port.recv_into(bytearray(8), limit),
    "Port.recv_many": lambda stage, limit: stage.port.recv_many(1, limit),
    "Queue.get": lambda stage, limit: stage.queue.get(timeout=limit),
    "Rma.poll": lambda stage, limit: stage.rma.poll(limit),
}


@pytest.fixture
def stage(domain: str) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(domain, stack)


def test_each_call_with_a_limit_is_here() -> None:
    found = set()
    for kind in filter(inspect.isclass, (getattr(velo, name) for name in dir(velo))):
        for name, call in inspect.getmembers(kind, inspect.isfunction):
            if "timeout" in inspect.signature(call).parameters:
                found.add(kind.__name__ + ("" if name == "__init__" else f".{name}"))
    assert found == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_any_limit_is_one(stage: Stage, name: str) -> None:
    for limit in [None, *LONG]:
        CALLS[name](stage, limit)


@pytest.mark.parametrize("name", CALLS)
def test_a_limit_that_is_no_number_is_refused(stage: Stage, name: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        CALLS[name](stage, float("nan"))
    CALLS[name](stage, 1)  # Nothing is in the way of the next one.


@pytest.mark.parametrize("name", VAIN)
def test_a_limit_that_is_over_tries_once(stage: Stage, name: str) -> None:
    for limit in OVER:
        with pytest.raises((velo.Timeout, queue.Empty)):
            VAIN[name](stage, limit)


@pytest.mark.parametrize("linger", LONG)
def test_a_port_may_linger_for_ever(domain: str, linger: float) -> None:
    velo.Port(domain=domain, linger=linger).close()


@pytest.mark.parametrize("linger", [float("nan"), -1, -1e-9])
def test_a_port_cannot_linger_for_less_than_nothing(domain: str, linger: float) -> None:
    with pytest.raises(ValueError, match=r"limit|linger"):
        velo.Port(domain=domain, linger=linger)
