# SPDX-License-Identifier: Apache-2.0
"""Several callers at one object: threads, signal handlers, and what runs inside of a call.

A time limit holds, nothing is lost, nothing blocks for ever.
"""

import gc
import itertools
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import velo
from velo.binding import broadcast, port, turns

PATIENCE_S = 20.0
LIMIT_S = 0.2
# A call with that limit has ended by then, on a busy machine too.
LATE_S = 5.0


def ended(call: Callable[[], Any]) -> Any:
    """What a call in a thread of its own returned or raised, in time."""
    out: list[Any] = []

    def run() -> None:
        try:
            out.append(call())
        except Exception as error:
            out.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LATE_S)
    assert out, "the call did not return"
    return out[0]


@contextmanager
def waiting(call: Callable[[], Any], end: Callable[[], Any]) -> Iterator[None]:
    """Another thread is in a call that waits; `end` ends the wait."""

    def run() -> None:
        with pytest.raises(velo.Closed):
            while True:
                call()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(0.1)
    try:
        yield
    finally:
        end()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


# ---- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda own: own.get(timeout=LIMIT_S), queue.Empty),
        (lambda own: own.get_nowait(), queue.Empty),
        (lambda own: own.get(block=False), queue.Empty),
    ],
)
def test_getting_ends_in_time_beside_a_thread_that_gets(call: Any, says: Any) -> None:
    own = velo.Queue[Any]()
    with waiting(own.get, own.close):
        assert type(ended(lambda: call(own))) is says


@pytest.mark.parametrize("size", [100, 200_000])
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda own, data: own.put(data, timeout=LIMIT_S), queue.Full),
        (lambda own, data: own.put_nowait(data), queue.Full),
        (lambda own, data: own.put([data], block=False), queue.Full),
    ],
)
def test_putting_ends_in_time_beside_a_thread_that_puts(call: Any, says: Any, size: int) -> None:
    own = velo.Queue[Any](capacity_bytes=1 << 16)
    with waiting(lambda: own.put(b"x" * size), own.close):
        assert type(ended(lambda: call(own, b"x" * 100))) is says


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda port: port.recv(LIMIT_S), velo.Timeout),
        (lambda port: port.recv_bytes(LIMIT_S), velo.Timeout),
        (lambda port: port.recv_into(bytearray(8), LIMIT_S), velo.Timeout),
        (lambda port: port.try_recv(), type(None)),
        (lambda port: port.try_recv_bytes(), type(None)),
        (lambda port: port.arm(), velo.StateError),
    ],
)
def test_receiving_ends_in_time_beside_a_thread_that_receives(
    port: velo.Port, call: Any, says: Any
) -> None:
    with waiting(port.recv_bytes, port.close):
        assert type(ended(lambda: call(port))) is says


SENDS = [
    (lambda one: one.send(b"y" * 4000, timeout=LIMIT_S), velo.Timeout),
    (lambda one: one.try_send(b"y" * 4000), bool),
    (lambda one: one.reserve(4000, LIMIT_S), velo.Timeout),
]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        *SENDS,
        (lambda conn: conn.send_pieces([b"y" * 4000], timeout=LIMIT_S), velo.Timeout),
        (lambda conn: conn.check_peer(), type(None)),
        (lambda conn: conn.close(), type(None)),
    ],
)
def test_sending_ends_in_time_beside_a_thread_that_sends(
    port: velo.Port, conn: velo.Connection, call: Any, says: Any
) -> None:
    with waiting(lambda: conn.send(b"x" * 4000), port.close):
        assert type(ended(lambda: call(conn))) is says


@pytest.mark.parametrize(
    ("call", "says"),
    [
        *SENDS,
        (lambda ring: ring.put([1], LIMIT_S), velo.Timeout),
        (lambda ring: ring.put(np.zeros(9000), LIMIT_S), velo.Timeout),
        (lambda ring: ring.readers, int),
        (lambda ring: ring.close(), type(None)),
    ],
)
def test_a_ring_s_writer_ends_in_time_beside_a_thread_that_writes(
    domain: str, call: Any, says: Any
) -> None:
    ring = velo.Broadcast(domain=domain)
    with velo.BroadcastReader(domain=domain), waiting(lambda: ring.put(bytes(9999)), ring.close):
        assert type(ended(lambda: call(ring))) is says


@pytest.mark.parametrize("name", ["get", "recv", "recv_bytes"])
def test_a_ring_s_reader_ends_in_time_beside_a_thread_that_reads(domain: str, name: str) -> None:
    with velo.Broadcast(domain=domain):
        reader = velo.BroadcastReader(domain=domain)
        with waiting(reader.get, reader.close):
            assert type(ended(lambda: getattr(reader, name)(LIMIT_S))) is velo.Timeout


def test_remote_memory_is_used_beside_a_thread_that_polls(port: velo.Port) -> None:
    rma = velo.Rma(port)
    peer = rma.connect(port.id, 0)
    memory = rma.alloc(64)
    with waiting(rma.poll, port.close):
        for number in range(20):
            assert ended(lambda: peer.put_word(7, memory.key, 8)) is None
            assert ended(lambda: peer.flush(PATIENCE_S)) is None
            assert ended(lambda: peer.fetch_add(memory.key, 0, 1)) == number
        assert ended(rma.try_poll) == []
        assert type(ended(lambda: rma.poll(LIMIT_S))) is velo.Timeout


def test_a_put_that_waits_for_a_getter_lets_its_own_process_get() -> None:
    with velo.Queue[int](here=False) as own:
        thread = threading.Thread(target=own.put, args=(1,), daemon=True)
        thread.start()
        time.sleep(0.1)
        assert type(ended(lambda: own.put(2, timeout=LIMIT_S))) is queue.Full
        assert ended(lambda: own.get(timeout=PATIENCE_S)) == 1
        thread.join(PATIENCE_S)


def test_closing_ends_a_connect_that_waits(port: velo.Port) -> None:
    with waiting(lambda: port.connect(velo.port_id(5, 5)), port.close):
        pass


def test_connects_do_not_wait_for_one_another(port: velo.Port) -> None:
    with waiting(lambda: port.connect(velo.port_id(5, 5)), port.close):
        assert isinstance(ended(lambda: port.connect(port.id, 0)), velo.Connection)


# ---- signal handlers -----------------------------------------------------------------------------


@contextmanager
def handled(handler: Callable[[], Any], after_s: float = 0.0) -> Iterator[list[Any]]:
    """SIGALRM, once after so long if that is given, calls it; the list has what came of it."""
    out: list[Any] = []

    def run(*_: Any) -> None:
        try:
            out.append(handler())
        except Exception as error:
            out.append(error)

    before = signal.signal(signal.SIGALRM, run)
    if after_s:
        signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        yield out
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def after_call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have a signal arrive in the next successful call of the library that has this name.

    That is where Python runs handlers: when the library has answered, and nobody has looked yet.
    """

    def arrange(name: str) -> None:
        from velo.binding import broadcast, connection, port, queue, rma

        left = [1]
        real = getattr(port.lib, name)

        def call(*args: Any) -> Any:
            status = real(*args)
            if status >= 0 and left:
                left.clear()
                signal.raise_signal(signal.SIGALRM)
            return status

        real_lib = port.lib

        class Lib:
            def __getattr__(self, other: str) -> Any:
                return call if other == name else getattr(real_lib, other)

        for module in (broadcast, connection, port, queue, rma):
            monkeypatch.setattr(module, "lib", Lib())
        for module, alias in ((queue, "_recv_tagged"), (queue, "_send"), (broadcast, "_recv")):
            if getattr(module, alias) is real:
                monkeypatch.setattr(module, alias, call)

    return arrange


@pytest.mark.parametrize("size", [10, 300_000])
def test_a_handler_puts_in_the_middle_of_a_put(size: int, fork: Callable[..., Any]) -> None:

    def child() -> None:
        while (obj := own.get(timeout=PATIENCE_S)) != b"end":
            got.append((obj[:1], len(obj)))
            if len(obj) > 1000:
                time.sleep(0.01)
        counts.put({kind: got.count((kind, size)) for kind in (b"m", b"s")})
        counts.close()

    got: list[tuple[bytes, int]] = []
    with velo.Queue[bytes](here=False) as own, velo.Queue[dict[bytes, int]]() as counts:
        fork(child)
        put = {b"m": 0, b"s": 0}
        for _ in range(20):
            with handled(lambda: own.put(b"s" * size), 0.003) as out:
                while not out:
                    own.put(b"m" * size)
                    put[b"m"] += 1
            assert out == [None]
            put[b"s"] += 1
        own.put(b"end")
        assert counts.get(timeout=PATIENCE_S) == put


def test_a_handler_sends_in_the_middle_of_a_send(port: velo.Port, conn: velo.Connection) -> None:
    sent = 0
    while conn.try_send(b"m" * 4000):
        sent += 1

    def receive() -> None:
        time.sleep(0.2)
        for _ in range(sent + 2):
            got.append(port.recv_bytes(PATIENCE_S)[:1])

    got: list[bytes] = []
    thread = threading.Thread(target=receive)
    thread.start()
    with handled(lambda: conn.send(b"s" * 4000, timeout=PATIENCE_S), 0.05) as out:
        conn.send(b"m" * 4000, timeout=PATIENCE_S)
    thread.join(PATIENCE_S)
    assert out == [None]
    assert sorted(got) == [b"m"] * (sent + 1) + [b"s"]


@pytest.mark.parametrize("size", [8, 80_000])
def test_a_handler_puts_into_a_ring_in_the_middle_of_a_put(domain: str, size: int) -> None:
    """Whatever it is told, each object that was put arrives whole."""
    with velo.Broadcast(domain=domain) as ring, velo.BroadcastReader(domain=domain) as reader:
        main, other = np.full(size, 1, "u1"), np.full(size, 2, "u1")
        sent = 0
        with pytest.raises(velo.Timeout):
            while True:
                ring.put(main, 0)
                sent += 1

        def read() -> None:
            time.sleep(0.2)
            for _ in range(sent + 1):
                got.append(reader.get(PATIENCE_S))
            with pytest.raises(velo.Timeout):
                while True:
                    got.append(reader.get(0.5))

        got: list[Any] = []
        thread = threading.Thread(target=read)
        thread.start()
        with handled(lambda: ring.put(other, PATIENCE_S), 0.05) as out:
            ring.put(main, PATIENCE_S)
        thread.join(PATIENCE_S)
        put = out == [None]
        assert put or isinstance(out[0], velo.StateError)
        assert sorted(array[0] for array in got) == [1] * (sent + 1) + [2] * put
        assert all((array == array[0]).all() and len(array) == size for array in got)


@pytest.mark.parametrize(
    ("name", "receive"),
    [
        ("velo_py_recv", lambda port: port.recv_bytes(PATIENCE_S)),
        ("velo_py_recv", lambda port: port.try_recv_bytes()),
        ("velo_py_peek", lambda port: bytes(port.recv(PATIENCE_S))),
        ("velo_py_peek", lambda port: bytes(port.try_recv())),
    ],
)
def test_a_handler_that_receives_inside_of_a_receive_is_refused(
    port: velo.Port, conn: velo.Connection, after_call: Any, name: str, receive: Any
) -> None:
    conn.send(b"first")
    conn.send(b"second")
    with handled(lambda: port.try_recv_bytes()) as out:
        after_call(name)
        assert receive(port) == b"first"
    assert [type(one) for one in out] == [velo.StateError]
    if port._held:
        port._held.release()
    assert port.recv_bytes(PATIENCE_S) == b"second"


def test_a_handler_that_gets_inside_of_a_get_is_refused(after_call: Any) -> None:
    with velo.Queue[Any]() as own:
        for obj in ("first", b"second", ["third"]):
            own.put(obj)
        with handled(own.get_nowait) as out:
            after_call("velo_py_recv_tagged")
            assert own.get(timeout=PATIENCE_S) == "first"
        assert [type(one) for one in out] == [velo.StateError]
        assert own.get(timeout=PATIENCE_S) == b"second"
        assert own.get(timeout=PATIENCE_S) == ["third"]


def test_a_handler_that_reads_inside_of_a_read_is_refused(domain: str, after_call: Any) -> None:
    with velo.Broadcast(domain=domain) as ring, velo.BroadcastReader(domain=domain) as reader:
        ring.put("first")
        ring.put("second")
        with handled(lambda: reader.get(0)) as out:
            after_call("velo_py_bcast_recv")
            assert reader.get(PATIENCE_S) == "first"
        assert [type(one) for one in out] == [velo.StateError]
        assert reader.get(0) == "second"


@pytest.mark.parametrize("name", ["conn", "ring"])
def test_a_handler_that_builds_a_message_inside_of_building_one_is_refused(
    domain: str, port: velo.Port, conn: velo.Connection, after_call: Any, name: str
) -> None:
    with velo.Broadcast(domain=domain) as ring, velo.BroadcastReader(domain=domain) as reader:
        sender: Any = conn if name == "conn" else ring
        with handled(lambda: sender.reserve(8)) as out:
            after_call("velo_py_reserve" if name == "conn" else "velo_py_bcast_reserve")
            room = sender.reserve(8, PATIENCE_S)
        assert [type(one) for one in out] == [velo.StateError]
        room.data[:] = b"12345678"
        room.commit()
        got = port.recv_bytes(PATIENCE_S) if name == "conn" else reader.recv_bytes(PATIENCE_S)
        assert got == b"12345678"


def test_a_handler_that_raises_loses_no_message_that_waits(
    domain: str, port: velo.Port, conn: velo.Connection, after_call: Any
) -> None:
    """Ctrl-C at the worst moment: the library has found the message."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    for receive in (
        lambda: bytes(port.recv(PATIENCE_S)),
        lambda: port.recv_bytes(PATIENCE_S),
        lambda: port.try_recv_bytes(),
    ):
        conn.send(b"message")
        with handled(interrupt):
            after_call("velo_py_peek")
            with pytest.raises(KeyboardInterrupt):
                port.recv(PATIENCE_S)
        assert receive() == b"message"
        if port._held:
            port._held.release()
        with handled(interrupt):
            after_call("velo_py_reserve")
            with pytest.raises(KeyboardInterrupt):
                conn.reserve(100)
        with conn.reserve(50) as room:
            room.data[:] = bytes(50)
        assert port.recv_bytes(PATIENCE_S) == bytes(50)
    with velo.Broadcast(domain=domain) as ring, velo.BroadcastReader(domain=domain) as reader:
        ring.send(b"to all")
        with handled(interrupt):
            after_call("velo_py_bcast_peek")
            with pytest.raises(KeyboardInterrupt):
                reader.recv(PATIENCE_S)
        with reader.recv(PATIENCE_S) as message:
            assert bytes(message) == b"to all"


def test_a_handler_that_raises_leaves_no_unit_behind(domain: str, after_call: Any) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    for again in (True, False):
        port = velo.Port(domain=domain, vpid=7)
        with handled(interrupt):
            after_call("velo_rma_open")
            with pytest.raises(KeyboardInterrupt):
                velo.Rma(port)
        if again:
            memory = velo.Rma(port).alloc(64)
            assert len(memory.data) == 64
        port.close()
    with velo.Port(domain=domain, vpid=7) as port:
        velo.Rma(port)  # Its name is free.


@pytest.mark.parametrize("name", ["velo_py_peek", "velo_py_take_pieces"])
def test_a_handler_that_raises_loses_no_long_object(after_call: Any, name: str) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with velo.Queue[Any]() as own:
        own.put(b"x" * 100_000)
        own.put("next")
        with handled(interrupt):
            after_call(name)
            with pytest.raises(KeyboardInterrupt):
                own.get(timeout=PATIENCE_S)
        assert own.get(timeout=PATIENCE_S) == b"x" * 100_000
        assert own.get(timeout=PATIENCE_S) == "next"


class Interrupt(BaseException):
    """What a handler may raise at any moment, as Ctrl-C does."""


def take_all(own: Any, results: Any) -> None:
    """Get in the main program, and in a signal handler; say what came, in order."""
    got: list[Any] = []

    def get_more(*_: Any) -> None:
        with suppress(velo.StateError, queue.Empty):
            inside.append(own.get_nowait())

    inside: list[Any] = []
    signal.signal(signal.SIGALRM, get_more)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.0017)
    while "end" not in got and "end" not in inside:
        with suppress(queue.Empty):
            got.append(own.get(timeout=1))
    signal.setitimer(signal.ITIMER_REAL, 0)
    said = [[obj for obj in some if obj != "end"] for some in (got, inside)]
    whole = all(data == bytes([n % 251]) * len(data) for _, n, data in itertools.chain(*said))
    results.put(([[obj[:2] for obj in some] for some in said], whole))
    results.close()


@pytest.mark.parametrize("what", ["Port", "Broadcast", "BroadcastReader"])
def test_what_is_open_when_a_handler_raises_is_closed(
    domain: str, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The library has opened it, and the constructor has not ended."""
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def handler(_status: int) -> None:
        raise Interrupt

    with velo.Broadcast(domain=domain, node=1) as ring:
        limits = {"node": 1, "timeout": 0} if what == "BroadcastReader" else {"vpid": 3}
        with monkeypatch.context() as patch, pytest.warns(ResourceWarning, match="was not closed"):
            module = port if what == "Port" else broadcast
            patch.setattr(module, "check", handler)
            with pytest.raises(Interrupt):
                getattr(velo, what)(domain=domain, **limits)
            gc.collect()
        assert not unraisable
        assert ring.readers == 0
        getattr(velo, what)(domain=domain, **limits).close()  # Nobody has its number.


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("maxsize", [0, 20])
def test_handlers_put_get_and_raise_at_any_moment(
    fork: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, maxsize: int, raises: bool
) -> None:
    """What put() has taken arrives once and whole; what the main program has put, in order."""
    # Python ignores what a handler raises inside of a __del__ and calls this hook. A hook in
    # Python, as pytest's, would be interrupted by the next signal, too.
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    random = Random(maxsize)
    put: set[tuple[str, int]] = set()
    numbers = itertools.count()
    is_inside, depth = False, 0

    def put_one(who: str, **limit: Any) -> None:
        number = next(numbers)
        size = random.choice((1, 10, 57, 1000, 30_000, 40_000, 200_000))
        own.put((who, number, bytes([number % 251]) * size), **limit)
        put.add((who, number))

    def handler(*_: Any) -> None:
        nonlocal depth
        if raises and is_inside and random.random() < 0.3:
            raise Interrupt
        if depth < 3:
            depth += 1
            try:
                with suppress(velo.StateError):  # It is being connected.
                    put_one("handler", timeout=PATIENCE_S)
            finally:
                depth -= 1

    own, results = velo.Queue[Any](here=False, maxsize=maxsize), velo.Queue[Any]()
    fork(take_all, own, results)
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        try:
            is_inside = True
            put_one("main")
            is_inside = False
        except Interrupt:
            is_inside = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    own.put("end", timeout=PATIENCE_S)
    (got, inside), whole = results.get(timeout=PATIENCE_S)
    own.close()
    results.close()
    assert all(one.exc_type is Interrupt for one in ignored)
    assert whole
    assert put <= {*got, *inside}
    assert len(got) + len(inside) == len({*got, *inside})
    main = [number for who, number in got if who == "main"]
    assert main == sorted(main)
    assert len(main) > 100


CLOSES: list[Any] = [
    ("velo_py_peek", lambda o: o.port.recv(PATIENCE_S), lambda o: o.port),
    ("velo_py_recv", lambda o: o.port.recv_bytes(PATIENCE_S), lambda o: o.port),
    ("velo_send", lambda o: o.conn.send(b"x"), lambda o: o.conn),
    ("velo_send", lambda o: o.conn.send(b"x"), lambda o: o.port),
    ("velo_py_reserve", lambda o: o.conn.reserve(8), lambda o: o.port),
    ("velo_py_bcast_peek", lambda o: o.reader.recv(PATIENCE_S), lambda o: o.reader),
    ("velo_py_bcast_reserve", lambda o: o.ring.reserve(8), lambda o: o.ring),
    ("velo_connect", lambda o: o.port.connect(o.port.id), lambda o: o.port),
]


@pytest.mark.parametrize(("name", "call", "closes"), CLOSES)
def test_a_handler_closes_what_a_call_uses(
    domain: str, fork: Callable[..., Any], after_call: Any, name: str, call: Any, closes: Any
) -> None:
    """The call ends first. In a child, since memory that is gone would end the process."""

    def child() -> None:
        port = velo.Port(domain=domain)
        own = SimpleNamespace(port=port, conn=port.connect(port.id))
        own.ring = velo.Broadcast(domain=domain, vpid=9)
        own.reader = velo.BroadcastReader(domain=domain, vpid=9)
        own.conn.send(b"message")
        own.ring.send(b"message")
        with handled(lambda: closes(own).close()) as out:
            after_call(name)
            got = call(own)
        assert out == [None]
        assert closes(own).closed
        if isinstance(got, velo.Message | velo.Reservation):
            with pytest.raises(velo.Closed):
                _ = got.data
        for one in (own.reader, own.ring, own.port):
            one.close()

    fork(child)


def test_a_handler_uses_remote_memory_in_the_middle_of_a_call(
    port: velo.Port, after_call: Any
) -> None:
    rma = velo.Rma(port)
    peer, memory = rma.connect(port.id, 0), rma.alloc(64)
    add = lambda: peer.fetch_add(memory.key, 0, 7)  # noqa: E731
    with handled(add, 0.05) as out, pytest.raises(velo.Timeout):
        rma.poll(LIMIT_S)
    assert out == [0]
    with handled(rma.try_poll) as out:
        after_call("velo_rma_poll")
        peer.notify(5)
        assert [said.cookie for said in rma.poll(PATIENCE_S)] == [5]
    assert out == [[]]
    # The buffer of what a handler has posted behind a flush is still kept.
    with handled(lambda: peer.put(np.full(8, 9, "u1"), memory.key, 8)) as out:
        after_call("velo_rma_flush")
        peer.flush(PATIENCE_S)
    assert out == [None]
    assert len(peer._in_use) == 1
    peer.flush(PATIENCE_S)
    assert not peer._in_use
    assert bytes(memory.data[:16]) == b"\7" + bytes(7) + b"\11" * 8


# ---- inside of unpickling ------------------------------------------------------------------------


class Header:
    """Its parts follow in the queue."""

    source: Any = None

    def __init__(self, count: int) -> None:
        self.count = count

    def __setstate__(self, state: dict[str, int]) -> None:
        self.count = state["count"]
        self.parts = [Header.source.get(timeout=PATIENCE_S) for _ in range(self.count)]


@pytest.mark.parametrize("size", [10, 3000, 100_000])
@pytest.mark.parametrize("kind", ["queue", "ring"])
def test_unpickling_gets_the_rest_of_an_object(
    domain: str, monkeypatch: pytest.MonkeyPatch, kind: str, size: int
) -> None:
    parts = [np.arange(size), "p" * size, b"q" * size, ["r" * size]]
    with (
        velo.Broadcast(domain=domain) as ring,
        velo.BroadcastReader(domain=domain) as reader,
        velo.Queue[Any](capacity_bytes=1 << 22) as own,
    ):
        source: Any = own if kind == "queue" else reader
        monkeypatch.setattr(Header, "source", source)
        put = own.put if kind == "queue" else ring.put
        for obj in ((Header(4), "tail" * size), *parts, "next"):
            put(obj)
        header, tail = source.get(timeout=PATIENCE_S)
        assert tail == "tail" * size
        assert np.array_equal(header.parts[0], parts[0])
        assert header.parts[1:] == parts[1:]
        assert source.get(timeout=PATIENCE_S) == "next"


# ---- the turn itself -----------------------------------------------------------------------------


def test_a_turn_is_entered_by_one_thread() -> None:
    turn = turns.sending()
    with turn as depth, turn.until(0) as inner:
        assert (depth, inner) == (0, 1)
        assert turn.is_own()
        assert not turn.is_others()
        assert ended(turn.is_others) is True
        assert isinstance(ended(lambda: turn.until(0).__enter__()), velo.Timeout)
        begin = time.monotonic()
        end = time.monotonic_ns() + 50_000_000
        assert isinstance(ended(lambda: turn.until(end).__enter__()), velo.Timeout)
        assert time.monotonic() - begin >= 0.05
    assert not turn.is_own()
    assert ended(lambda: turn.until(0).__enter__()) == 0
    with pytest.raises(ValueError):
        turn.until(-1)
    with pytest.raises(TypeError):
        turn.until("soon")  # type: ignore[arg-type]


def test_what_is_to_come_after_a_turn_comes_after_all_of_it() -> None:
    turn, done = turns.sending(), []
    turn.then(lambda: done.append(0))
    assert done == [0]
    with turn:
        with turn:
            turn.then(lambda: done.append(1))
            turn.then(lambda: (done.append(2), done.append(turn.is_own())))
        assert done == [0]
    assert done == [0, 1, 2, False]
    with turn:
        pass
    assert done == [0, 1, 2, False]


def test_a_signal_handler_ends_the_wait_for_a_turn(port: velo.Port) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with (
        waiting(port.recv_bytes, port.close),
        handled(interrupt, 0.1),
        pytest.raises(KeyboardInterrupt),
    ):
        port.recv_bytes(PATIENCE_S)


def test_a_turn_forgets_nobody_in_a_crowd() -> None:
    turn, inside, done = turns.receiving(), [], []

    def work() -> None:
        for _ in range(300):
            with turn.until(time.monotonic_ns() + 10**10):
                inside.append(1)
                assert len(inside) == 1
                time.sleep(0)
                inside.pop()
        done.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(done) == 4


def test_after_a_fork_the_child_takes_turns_anew(port: velo.Port, fork: Callable[..., Any]) -> None:
    """Another thread of the parent has the turn, and does not exist in the child."""

    def child() -> None:
        with pytest.raises(velo.Closed, match="parent"):
            port.recv_bytes(LIMIT_S)
        assert own.put(1, timeout=PATIENCE_S) is None
        os._exit(0)

    own = velo.Queue[int]()
    with waiting(port.recv_bytes, port.close):
        fork(child)
        assert own.get(timeout=PATIENCE_S) == 1
    own.close()
