# SPDX-License-Identifier: Apache-2.0
"""velo.Queue: objects of every kind and length between processes."""

import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import velo

PATIENCE_S = 20.0
CAPACITY_BYTES = 1 << 18


def same(got: Any, sent: Any) -> bool:
    if isinstance(sent, np.ndarray):
        return got.dtype == sent.dtype and np.array_equal(got, sent)
    return type(got) is type(sent) and got == sent


@pytest.mark.parametrize(
    "obj",
    [
        None,
        7,
        {"a": [1, 2.5, "text"]},
        b"",
        b"x" * 64,
        b"y" * 65535,
        os.urandom(65536),
        os.urandom(200_000),
        bytearray(b"z" * 100_000),
        "long text" * 20_000,
        np.arange(10),
        np.arange(20_000.0),
        np.arange(3000.0).reshape(30, 100).T,
        np.arange(20_000)[::2],
        np.zeros((0, 3)),
    ],
    ids=lambda obj: f"{type(obj).__name__}-{len(obj) if hasattr(obj, '__len__') else 0}",
)
def test_an_object_comes_back_as_it_was(obj: Any) -> None:
    with velo.Queue[Any]() as own:
        for _ in range(2):
            own.put(obj, timeout=PATIENCE_S)
            assert same(own.get(timeout=PATIENCE_S), obj)


def test_several_arrays_in_one_object_arrive_aligned_and_writable() -> None:
    arrays = [np.arange(n, dtype=t) for n, t in ((1500, "u1"), (501, "u4"), (1000, "f8"))]
    with velo.Queue[Any]() as own:
        own.put({"arrays": arrays, "small": np.arange(3)})
        got = own.get(timeout=PATIENCE_S)
        assert all(same(a, b) for a, b in zip(got["arrays"], arrays, strict=True))
        assert all(a.flags.aligned and a.ctypes.data % 64 == 0 for a in got["arrays"])
        lie_around = []
        for number in range(16):  # The allocator gives what it likes.
            own.put(np.arange(2000 + 2 * number, dtype="u1"))
            lie_around.append(own.get(timeout=PATIENCE_S))
        assert all(a.ctypes.data % 64 == 0 for a in lie_around)
        got["arrays"][0][:] = 7
        own.put(arrays[0])
        own.put(b"x" * 70_000)  # The memory of the one is not that of the next.
        kept = own.get(timeout=PATIENCE_S)
        assert len(own.get(timeout=PATIENCE_S)) == 70_000
        assert same(kept, arrays[0])
        assert got["arrays"][0][5] == 7


def test_it_is_empty_and_full_in_time() -> None:
    with velo.Queue[bytes](capacity_bytes=1 << 16) as own:
        with pytest.raises(queue.Empty):
            own.get_nowait()
        begin = time.monotonic()
        with pytest.raises(queue.Empty):
            own.get(timeout=0.05)
        assert time.monotonic() - begin >= 0.05
        put = 0
        with pytest.raises(queue.Full):
            for put in range(10**6):
                own.put_nowait(bytes([put % 256]) * 1000)
        assert put > 10
        with pytest.raises(queue.Full):
            own.put(b"x" * 1000, timeout=0.02)
        for number in range(put):
            assert own.get_nowait() == bytes([number % 256]) * 1000
        # A long object that does not fit is dropped; the next one is whole.
        with pytest.raises(queue.Full):
            own.put(b"a" * 1_000_000, timeout=0.02)
        with pytest.raises(queue.Empty):
            own.get(timeout=0.02)
        own.put(b"b" * 30_000, timeout=PATIENCE_S)
        assert own.get(timeout=PATIENCE_S) == b"b" * 30_000


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_put_and_the_parent_gets(method: str) -> None:
    context = multiprocessing.get_context(method)
    with velo.Queue[tuple[int, int, bytes]]() as own:
        children = [context.Process(target=put_many, args=(own, who)) for who in range(3)]
        for child in children:
            child.start()
        next_of = dict.fromkeys(range(3), 0)
        for _ in range(3 * MANY):
            who, number, data = own.get(timeout=PATIENCE_S)
            assert number == next_of[who]
            assert data == pattern(who, number)
            next_of[who] += 1
        for child in children:
            child.join(PATIENCE_S)
            assert child.exitcode == 0


MANY = 60


def pattern(who: int, number: int) -> bytes:
    return bytes([who * 64 + number]) * (number * number * 50)  # Up to 174 kB.


def put_many(own: Any, who: int) -> None:
    for number in range(MANY):
        own.put((who, number, pattern(who, number)), timeout=PATIENCE_S)
    own.close()


def test_the_parent_puts_and_a_child_gets(fork: Callable[..., Any]) -> None:
    def child() -> None:
        while (obj := tasks.get(timeout=PATIENCE_S)) is not None:
            results.put(np.sqrt(obj))
        results.close()
        tasks.close()

    with velo.Queue[Any](here=False) as tasks, velo.Queue[Any]() as results:
        fork(child)
        for number in range(20):
            tasks.put(np.full(number * 1000, 4.0), timeout=PATIENCE_S)
            assert same(results.get(timeout=PATIENCE_S), np.full(number * 1000, 2.0))
        tasks.put(None)


def test_two_processes_meet_by_the_name(domain: str, fork: Callable[..., Any]) -> None:
    def child() -> None:
        with velo.Queue[str](domain, here=False) as own:
            own.put("by name", timeout=PATIENCE_S)

    with velo.Queue[str](domain) as own:
        fork(child)
        assert own.get(timeout=PATIENCE_S) == "by name"


def test_an_object_whose_sender_dies_is_dropped(fork: Callable[..., Any]) -> None:
    """The sender is stopped by a full ring, in the middle of its object, and killed there."""

    def child() -> None:
        own.put("whole")
        own.put(b"x" * (8 * CAPACITY_BYTES))

    def get_nothing() -> None:
        with pytest.raises(queue.Empty):
            own.get(timeout=0.05)

    with velo.Queue[Any](capacity_bytes=CAPACITY_BYTES) as own:
        for tries in range(1, 20):
            victim = fork(child)
            assert own.get(timeout=PATIENCE_S) == "whole"
            time.sleep(0.05 * tries)  # On a busy machine it may not have begun by then.
            os.kill(victim.pid, signal.SIGKILL)
            victim.join(PATIENCE_S)
            get_nothing()
            if own._arriving:
                break
        assert own._arriving
        own.put("next")
        assert own.get(timeout=PATIENCE_S) == "next"
        end = time.monotonic() + PATIENCE_S
        while own._arriving and time.monotonic() < end:
            get_nothing()
        assert not own._arriving


def test_a_receiver_that_dies_is_an_error_not_a_hang(fork: Callable[..., Any]) -> None:
    def child() -> None:
        tasks.get(timeout=PATIENCE_S)
        os.kill(os.getpid(), signal.SIGKILL)

    with velo.Queue[Any](here=False) as tasks:
        fork(child)
        with pytest.raises((velo.PeerDead, velo.PeerClosed)):
            for _ in range(10**6):
                tasks.put(b"x" * 1000, timeout=PATIENCE_S)


def test_a_closed_queue_says_so() -> None:
    own = velo.Queue[int]()
    own.put(1)
    own.close()
    own.close()
    for call in (lambda: own.put(2), own.get, own.get_nowait):
        with pytest.raises(velo.Closed):
            call()


def test_what_cannot_be_pickled_leaves_the_queue_whole() -> None:
    with velo.Queue[Any]() as own:
        with pytest.raises((pickle.PicklingError, AttributeError)):
            own.put(lambda: None)
        own.put("fine")
        assert own.get(timeout=PATIENCE_S) == "fine"


@pytest.mark.parametrize("what", ["get", "put"])
def test_closing_ends_a_wait_in_another_thread(what: str) -> None:
    own = velo.Queue[bytes]()
    threading.Timer(0.05, own.close).start()
    with pytest.raises(velo.Closed):
        while True:
            own.get(timeout=PATIENCE_S) if what == "get" else own.put(b"x" * 5000)


def test_it_holds_what_its_bytes_hold() -> None:
    """Objects that are put before anybody gets."""
    with velo.Queue[Any]() as own:
        sizes = [32] * 3000, [100] * 1500, [1000] * 200
        for each in sizes:
            for number, size in enumerate(each):
                own.put_nowait(number.to_bytes(2, "big") * (size // 2))
            for number, size in enumerate(each):
                assert own.get_nowait() == number.to_bytes(2, "big") * (size // 2)


def test_maxsize_counts_objects_of_all_processes_whatever_their_length(
    fork: Callable[..., Any],
) -> None:
    def child() -> None:
        own.put(b"c" * 50_000, timeout=PATIENCE_S)
        with pytest.raises(queue.Full):
            own.put_nowait("one too many")
        go_on.put(1)
        own.put("when there is room", timeout=PATIENCE_S)

    with velo.Queue[Any](maxsize=3) as own, velo.Queue[int]() as go_on:
        own.put(b"x" * 1000)
        own.put({"a": 1})
        fork(child)
        assert go_on.get(timeout=PATIENCE_S) == 1
        begin = time.monotonic()
        with pytest.raises(queue.Full):
            own.put(0, timeout=0.05)
        assert time.monotonic() - begin >= 0.05
        got = [own.get(timeout=PATIENCE_S) for _ in range(4)]
        assert got == [b"x" * 1000, {"a": 1}, b"c" * 50_000, "when there is room"]
        for _ in range(5):  # As often as one likes.
            for number in range(3):
                own.put_nowait(number)
            with pytest.raises(queue.Full):
                own.put_nowait(3)
            assert [own.get_nowait() for _ in range(3)] == [0, 1, 2]


def test_what_was_not_put_takes_no_place() -> None:
    with velo.Queue[Any](maxsize=2, capacity_bytes=1 << 16) as own:
        for _ in range(3):
            with pytest.raises(queue.Full):
                own.put(b"x" * 1_000_000, timeout=0.02)
        own.put(1, timeout=PATIENCE_S)
        own.put(2, timeout=PATIENCE_S)
        with pytest.raises(queue.Full):
            own.put_nowait(3)
        assert [own.get(timeout=PATIENCE_S) for _ in range(2)] == [1, 2]


def test_a_place_is_waited_for_without_a_processor_and_not_behind_a_dead_getter(
    fork: Callable[..., Any],
) -> None:
    def child() -> None:
        tasks.get(timeout=PATIENCE_S)
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)

    with velo.Queue[int](here=False, maxsize=1) as tasks:
        fork(child)
        tasks.put(1, timeout=PATIENCE_S)
        tasks.put(2, timeout=PATIENCE_S)
        begin, begin_cpu = time.monotonic(), time.process_time()
        with pytest.raises((velo.PeerDead, velo.PeerClosed), match="killed"):
            tasks.put(3)
        used = (time.process_time() - begin_cpu) / (time.monotonic() - begin)
        assert used < 0.1


def test_a_second_getter_is_told_that_one_process_gets(fork: Callable[..., Any]) -> None:
    def child() -> None:
        for call in (lambda: same.get(timeout=1), same.get_nowait):
            with pytest.raises(velo.InUse, match="another process gets from this queue"):
                call()
        same.put("but it can put", timeout=PATIENCE_S)
        same.close()

    with velo.Queue[str]() as own:
        same = pickle.loads(pickle.dumps(own))
        fork(child)
        assert own.get(timeout=PATIENCE_S) == "but it can put"


def test_who_puts_is_told_that_the_getter_is_gone(fork: Callable[..., Any]) -> None:
    def child(how: str) -> None:
        tasks.get(timeout=PATIENCE_S)
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        tasks.close()

    for how in ("killed", "closed"):
        with velo.Queue[Any](here=False) as tasks:
            fork(child, how)
            with pytest.raises((velo.PeerDead, velo.PeerClosed), match=f"got from.*{how}.*lost"):
                for _ in range(10**6):
                    tasks.put(b"x" * 1000, timeout=PATIENCE_S)


def test_a_number_is_not_taken_for_a_name() -> None:
    with pytest.raises(TypeError, match="maxsize=100"):
        velo.Queue(100)  # type: ignore[arg-type]
