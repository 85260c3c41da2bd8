# SPDX-License-Identifier: Apache-2.0
"""velo.Broadcast: one writer, many readers, messages and objects."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import velo

PATIENCE_S = 20.0


@pytest.fixture
def ring(domain: str) -> Iterator[velo.Broadcast]:
    with velo.Broadcast(domain=domain) as ring:
        yield ring


@pytest.fixture
def reader(ring: velo.Broadcast, domain: str) -> Iterator[velo.BroadcastReader]:
    with velo.BroadcastReader(domain=domain, timeout=0) as reader:
        yield reader


def test_each_reader_gets_each_message(ring: velo.Broadcast, domain: str) -> None:
    readers = [velo.BroadcastReader(domain=domain, timeout=0) for _ in range(3)]
    assert ring.readers == 3
    ring.send(b"to all", tag=7)
    assert ring.try_send(bytearray(b"and this"))
    for one in readers:
        with one.recv(PATIENCE_S) as message:
            assert bytes(message.data) == b"to all"
            assert (message.tag, message.source) == (7, ring.id)
        assert one.recv_bytes(PATIENCE_S) == b"and this"
        one.close()
        one.close()
    assert ring.readers == 0


def test_a_reader_begins_with_what_is_sent_after_it_joined(
    ring: velo.Broadcast, domain: str
) -> None:
    ring.send(b"too early")
    with velo.BroadcastReader(domain=domain, timeout=0) as late:
        with pytest.raises(velo.Timeout):
            late.recv_bytes(0)
        ring.send(b"in time")
        assert late.recv_bytes(0) == b"in time"


@pytest.mark.parametrize(
    "obj",
    [
        None,
        b"",
        b"x" * 100_000,
        {"a": [1, 2.5, "text"]},
        "long text" * 20_000,
        np.arange(10),
        np.arange(1000.0),
        np.arange(60_000.0),
        np.arange(3000.0).reshape(30, 100).T,
        np.arange(20_000)[::2],
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_an_object_comes_back_as_it_was(
    ring: velo.Broadcast, reader: velo.BroadcastReader, obj: Any
) -> None:
    for _ in range(2):
        ring.put(obj, PATIENCE_S)
        got = reader.get(PATIENCE_S)
        assert type(got) is type(obj)
        assert np.array_equal(got, obj) if isinstance(obj, np.ndarray) else got == obj


def test_arrays_are_the_reader_s_own_aligned_and_writable(
    ring: velo.Broadcast, reader: velo.BroadcastReader
) -> None:
    sent = [np.arange(n, dtype=t) for n, t in ((1500, "u1"), (501, "u4"), (50_000, "f8"))]
    for _ in range(2):
        ring.put(sent)
        first, second = reader.get(0), None
        ring.put([np.zeros(n) for n in (1500, 501, 50_000)])
        second = reader.get(0)
        for got, was in zip(first, sent, strict=True):
            assert np.array_equal(got, was)
            assert got.flags.aligned
            got[:] = 1
        assert not any(array.any() for array in second)


def test_an_object_longer_than_the_ring_takes_is_refused_and_the_ring_goes_on(
    ring: velo.Broadcast, reader: velo.BroadcastReader
) -> None:
    with pytest.raises(velo.TooBig):
        ring.put(np.zeros(1 << 20))
    with pytest.raises(velo.TooBig):
        ring.put(bytes(2 << 20))
    ring.put("after")
    assert reader.get(0) == "after"


def test_a_message_that_is_seen_is_not_given_back(
    ring: velo.Broadcast, reader: velo.BroadcastReader
) -> None:
    ring.send(bytes(range(200)))
    message = reader.recv(0)
    array = np.frombuffer(message.data, "u1")
    with pytest.raises(BufferError):
        message.release()
    with pytest.raises(BufferError):
        reader.close()
    with pytest.raises(velo.StateError):
        reader.recv(0)
    assert array[199] == 199
    del array
    message.release()
    with pytest.raises(velo.Closed):
        _ = message.data


def test_a_message_is_built_in_place(ring: velo.Broadcast, reader: velo.BroadcastReader) -> None:
    with ring.reserve(800) as room:
        np.frombuffer(room.data)[:] = 1.5
    with reader.recv(0) as message:
        assert (np.frombuffer(message.data) == 1.5).all()


def test_the_writer_waits_for_the_slowest_reader(domain: str) -> None:
    with (
        velo.Broadcast(domain=domain, depth_slots=8) as ring,
        velo.BroadcastReader(domain=domain, timeout=0) as reader,
    ):
        for n in range(8):
            ring.put(n, 0)
        assert not ring.try_send(b"one too many")
        with pytest.raises(velo.Timeout):
            ring.put(8, 0.05)
        with pytest.raises(velo.Timeout):
            ring.put(np.zeros(1000), 0.05)
        assert reader.get(0) == 0
        ring.put(8, 0)
        assert [reader.get(0) for _ in range(8)] == list(range(1, 9))


def test_a_slow_reader_of_a_dropping_ring_learns_what_it_missed(domain: str) -> None:
    with (
        velo.Broadcast(domain=domain, depth_slots=8, drop=True) as ring,
        velo.BroadcastReader(domain=domain, timeout=0) as reader,
    ):
        for n in range(100):
            ring.put(n)
        with pytest.raises(velo.Missed):
            reader.get(0)
        assert reader.missed == 99
        assert reader.get(0) == 99
        ring.put(np.arange(20_000.0))
        assert np.array_equal(reader.get(0), np.arange(20_000.0))
        with pytest.raises(velo.StateError, match="dropping"):
            reader.recv(0)


def read_all(domain: str, count: int) -> None:
    with velo.BroadcastReader(domain=domain, timeout=PATIENCE_S) as reader:
        got = list(reader)
    assert [number for number, _ in got] == list(range(count))
    assert all((array == number).all() for number, array in got)


def test_processes_get_every_object_in_order_until_the_ring_is_closed(
    domain: str, fork: Callable[..., Any]
) -> None:
    count = 200
    children = [fork(read_all, domain, count) for _ in range(3)]
    with velo.Broadcast(domain=domain, depth_slots=8) as ring:
        while ring.readers < len(children):
            time.sleep(0.001)
        for number in range(count):
            ring.put((number, np.full(number * 10, number)), PATIENCE_S)
    for child in children:
        child.join(PATIENCE_S)
        assert child.exitcode == 0


def be_killed(domain: str) -> None:
    with velo.Broadcast(domain=domain) as ring:
        while not ring.readers:
            time.sleep(0.001)
        ring.put("last")
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_writer_that_dies_is_an_error_behind_its_last_message(
    domain: str, fork: Callable[..., Any]
) -> None:
    fork(be_killed, domain)
    with velo.BroadcastReader(domain=domain, timeout=PATIENCE_S) as reader:
        assert reader.get(PATIENCE_S) == "last"
        with pytest.raises(velo.PeerDead):
            reader.get(PATIENCE_S)


def test_close_ends_a_wait_of_another_thread(reader: velo.BroadcastReader) -> None:
    found: list[type[BaseException]] = []

    def wait() -> None:
        try:
            reader.get()
        except velo.Error as error:
            found.append(type(error))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    reader.close()
    thread.join(PATIENCE_S)
    assert found == [velo.Closed]
    with pytest.raises(velo.Closed):
        reader.get(0)


def test_interrupt_ends_one_wait_of_writer_and_reader(
    ring: velo.Broadcast, reader: velo.BroadcastReader
) -> None:
    ring.interrupt()  # What need not wait takes no notice.
    while ring.try_send(b"x"):
        pass
    with pytest.raises(velo.Interrupted):
        ring.send(b"x", timeout=PATIENCE_S)
    with pytest.raises(velo.Timeout):
        ring.send(b"x", timeout=0.01)
    timer = threading.Timer(0.05, reader.interrupt)
    timer.start()
    with pytest.raises(velo.Interrupted):
        while True:
            reader.recv_bytes(PATIENCE_S)
    timer.join()
    with pytest.raises(velo.Timeout):
        while True:
            reader.recv_bytes(0.01)


def use_the_parent_s(ring: velo.Broadcast, reader: velo.BroadcastReader) -> None:
    for call in (lambda: ring.send(b""), lambda: reader.get(0)):
        with pytest.raises(velo.Closed, match="parent"):
            call()


def test_a_child_cannot_use_what_its_parent_opened(
    ring: velo.Broadcast, reader: velo.BroadcastReader, fork: Callable[..., Any]
) -> None:
    fork(use_the_parent_s, ring, reader).join(PATIENCE_S)
    ring.put("still there")
    assert reader.get(0) == "still there"


def test_a_wait_lets_other_threads_run_and_sleeps(reader: velo.BroadcastReader) -> None:
    def wait() -> None:
        with pytest.raises(velo.Timeout):
            reader.get(1.0)

    thread = threading.Thread(target=wait)
    begin_s = time.process_time()
    thread.start()
    counted = 0
    while thread.is_alive() and counted < 20:
        time.sleep(0.05)
        counted += 1
    thread.join(PATIENCE_S)
    assert counted >= 15
    assert time.process_time() - begin_s < 0.2


def test_what_no_put_has_sent_is_refused(
    ring: velo.Broadcast, reader: velo.BroadcastReader
) -> None:
    for bad in (b"", b"12345678", (1 << 60).to_bytes(8, "little") * 4, bytes(64)):
        ring.send(bad, tag=2)
        with pytest.raises(velo.Corrupt):
            reader.get(0)
    ring.send((1).to_bytes(8, "little") + (1 << 62).to_bytes(8, "little") + bytes(64), tag=2)
    with pytest.raises(velo.Corrupt):
        reader.get(0)
    ring.send(b"x", tag=99)
    with pytest.raises(velo.Corrupt):
        reader.get(0)


def test_arguments_are_checked() -> None:
    with pytest.raises(velo.ArgumentError, match="depth_slots"):
        velo.Broadcast(depth_slots=7)
    with pytest.raises(velo.NoPeer):
        velo.BroadcastReader(domain=f"nobody-{os.getpid()}", timeout=0.01)
