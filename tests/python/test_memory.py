# SPDX-License-Identifier: Apache-2.0
"""Memory that was given back cannot be reached: each way to it ends with an exception."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import velo

PATIENCE_S = 20.0


@pytest.fixture
def message(port: velo.Port, conn: velo.Connection) -> velo.Message:
    conn.send(bytes(range(64)))
    return port.recv(PATIENCE_S)


def gone(look: Callable[[], Any]) -> None:
    """Looking fails with the exceptions that say so."""
    with pytest.raises(ValueError):  # velo.Closed is one.
        look()


def test_a_released_message_is_out_of_reach(message: velo.Message) -> None:
    view = message.data
    assert view[3] == 3
    message.release()
    message.release()
    for look in (
        lambda: message.data,
        lambda: bytes(message),
        lambda: view[3],
        lambda: view[1:],
        lambda: bytes(view),
        lambda: np.frombuffer(view, np.uint8),
        lambda: memoryview(view),
        lambda: memoryview(message._port or view.obj),
    ):
        gone(look)


def test_a_closed_port_takes_back_what_it_lent(port: velo.Port, message: velo.Message) -> None:
    view = message.data
    port.close()
    gone(lambda: message.data)
    gone(lambda: view[0])
    gone(lambda: port.recv(0))
    assert port.closed


@pytest.mark.parametrize(
    "derive",
    [
        lambda view: np.frombuffer(view, np.uint8),
        lambda view: np.frombuffer(view, np.uint8)[3:5],
        lambda view: view[3:],
        lambda view: view.cast("B")[1:2],
        lambda view: memoryview(view)[::2],
        lambda view: memoryview(view.obj),
        lambda view: iter(view[1:]),
    ],
)
@pytest.mark.parametrize("end", ["release", "close"])
def test_memory_that_is_still_seen_is_not_given_back(
    port: velo.Port, conn: velo.Connection, message: velo.Message, derive: Any, end: str
) -> None:
    derived = derive(message.data)
    with pytest.raises(BufferError):
        (message.release if end == "release" else port.close)()
    assert not port.closed
    # Nothing has happened: the message is whole, and the port works.
    assert bytes(message) == bytes(range(64))
    conn.send(b"next")
    with pytest.raises(velo.StateError):
        port.recv(0)
    del derived
    gc.collect()
    message.release()
    assert port.recv_bytes(PATIENCE_S) == b"next"


def test_a_message_cannot_be_written_to(message: velo.Message) -> None:
    assert message.data.readonly
    with pytest.raises(TypeError):
        message.data[0] = 1  # type: ignore[index]
    array = np.frombuffer(message.data, np.uint8)
    assert not array.flags.writeable
    del array
    message.release()


def test_a_message_keeps_its_port(domain: str) -> None:
    port = velo.Port(domain=domain)
    port.connect(port.id).send(b"kept")
    array = np.frombuffer(port.recv(PATIENCE_S).data, np.uint8)
    seen = weakref.ref(port)
    del port
    gc.collect()
    assert seen() is not None
    assert bytes(array) == b"kept"
    del array
    seen().close()  # type: ignore[union-attr]


def test_a_port_that_is_dropped_is_closed_with_a_warning(domain: str) -> None:
    port = velo.Port(domain=domain, vpid=3)
    port.connect(port.id)
    with pytest.warns(ResourceWarning):
        del port
        gc.collect()
    velo.Port(domain=domain, vpid=3).close()


def test_a_reservation_is_out_of_reach_once_it_is_sent(
    port: velo.Port, conn: velo.Connection
) -> None:
    room = conn.reserve(16)
    view = room.data
    part = view[4:]
    with pytest.raises(BufferError):
        room.commit()
    with pytest.raises(BufferError):
        conn.close()
    with pytest.raises(BufferError):
        port.close()
    assert port.try_recv() is None
    del part
    room.commit()
    for look in (lambda: room.data, lambda: view[0], lambda: room.commit()):
        gone(look)
    assert len(port.recv_bytes(PATIENCE_S)) == 16
    kept = conn.reserve(16)
    conn.close()
    gone(lambda: kept.data)
    gone(lambda: conn.send(b"x"))
