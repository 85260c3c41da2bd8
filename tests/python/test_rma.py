# SPDX-License-Identifier: Apache-2.0
"""Remote memory from Python."""

import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import velo

PATIENCE_S = 20.0


@pytest.fixture
def rma(port: velo.Port) -> Iterator[velo.Rma]:
    with velo.Rma(port) as rma:
        yield rma


@pytest.fixture
def peer(port: velo.Port, rma: velo.Rma) -> velo.RmaPeer:
    """Of the port itself."""
    return rma.connect(port.id, 0)


def test_put_and_get_move_arrays(rma: velo.Rma, peer: velo.RmaPeer) -> None:
    memory = rma.alloc(8000)
    assert bytes(memory.data) == bytes(8000)
    peer.put(np.arange(500.0), memory.key, 4000)
    into = np.zeros(1000)
    peer.flush(PATIENCE_S)
    peer.get(into, memory.key)
    peer.flush(PATIENCE_S)
    assert np.array_equal(into[500:], np.arange(500.0))
    peer.put_word(0x0102, memory.key, 16, 2)
    peer.flush(PATIENCE_S)
    assert bytes(memory.data[16:19]) == b"\x02\x01\x00"


def test_memory_of_python_is_registered(rma: velo.Rma, peer: velo.RmaPeer) -> None:
    own = np.zeros(64, np.uint8)
    with rma.register(own) as memory:
        peer.put(b"abc", memory.key, 5)
        peer.flush(PATIENCE_S)
        assert bytes(own[5:8]) == b"abc"
    with pytest.raises((BufferError, ValueError)):
        rma.register(b"constant")


def test_words_are_updated_atomically(
    domain: str, port: velo.Port, rma: velo.Rma, fork: Callable[..., Any]
) -> None:
    def child(node: int) -> None:
        with velo.Port(domain=domain, node=node) as own, velo.Rma(own) as unit:
            peer = unit.connect(port_id, PATIENCE_S)
            key = peer.lookup(1)
            for _ in range(300):
                peer.fetch_add(key, 8, 1, PATIENCE_S)
            peer.notify(cookie=node)
            peer.flush(PATIENCE_S)

    port_id = port.id
    memory = rma.alloc(64)
    memory.publish(1)
    for node in (1, 2):
        fork(child, node)
    cookies = []
    while len(cookies) < 2:
        for said in rma.poll(PATIENCE_S):
            assert said.kind is velo.Class.COMPLETER
            cookies.append(said.cookie)
    assert sorted(cookies) == [1, 2]
    assert struct.unpack_from("<Q", memory.data, 8) == (600,)


def test_compare_and_swap(rma: velo.Rma, peer: velo.RmaPeer) -> None:
    memory = rma.alloc(8)
    assert peer.compare_swap(memory.key, 0, 0, 7) == 0
    assert peer.compare_swap(memory.key, 0, 0, 9) == 7
    assert peer.fetch_add(memory.key, 0, -7) == 7
    assert bytes(memory.data) == bytes(8)


def test_each_side_is_notified(port: velo.Port, rma: velo.Rma, peer: velo.RmaPeer) -> None:
    memory = rma.alloc(64)
    both = velo.Notify.REQUESTER | velo.Notify.COMPLETER
    peer.put(b"12345678", memory.key, 8, both, cookie=77)
    said = []
    while len(said) < 2:
        said += rma.poll(PATIENCE_S)
    assert {n.kind for n in said} == {velo.Class.REQUESTER, velo.Class.COMPLETER}
    assert all((n.cookie, n.len_bytes, n.peer) == (77, 8, port.id) for n in said)
    with pytest.raises(velo.Timeout):
        rma.poll(0.02)


def test_what_is_not_granted_is_refused(rma: velo.Rma, peer: velo.RmaPeer) -> None:
    memory = rma.alloc(64, velo.Right.READ)
    with pytest.raises(velo.AccessError):
        peer.put(b"x", memory.key)
    with pytest.raises(velo.AccessError):
        peer.get(bytearray(65), memory.key)
    assert bytes(memory.data) == bytes(64)


def test_closing_ends_a_poll_in_another_thread(port: velo.Port, rma: velo.Rma) -> None:
    threading.Timer(0.05, port.close).start()
    with pytest.raises(velo.Closed):
        rma.poll(PATIENCE_S)


def test_freed_memory_is_out_of_reach(port: velo.Port, rma: velo.Rma, peer: velo.RmaPeer) -> None:
    memory = rma.alloc(4096)
    array = np.frombuffer(memory.data, np.uint8)
    for end in (memory.close, rma.close, port.close):
        with pytest.raises(BufferError):
            end()
    array[:] = 1
    key = memory.key
    view = memory.data
    del array
    memory.close()
    for look in (lambda: memory.data, lambda: memory.key, lambda: view[0]):
        with pytest.raises(ValueError):
            look()
    with pytest.raises(velo.AccessError):
        peer.put(b"x", key)
    second = rma.alloc(4096)
    view = second.data
    port.close()
    for look in (lambda: second.data, lambda: view[0], lambda: peer.put(b"x", key), rma.try_poll):
        with pytest.raises(ValueError):
            look()
