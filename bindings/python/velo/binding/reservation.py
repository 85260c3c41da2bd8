# SPDX-License-Identifier: Apache-2.0
"""Messages that are built in place: what connections and the writers of rings have in common."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from velo._velo import ffi, lib

from . import turns, waits
from .errors import Closed, Interrupted, StateError, Timeout, fail
from .memory import Lent


class Sender(ABC):
    """What can lend room for one message at a time."""

    _why_closed: str

    def __init__(self) -> None:
        self._set_turn()
        self._is_closing = False
        self._is_interrupted = False
        self._reservation: Reservation | None = None
        self._room = ffi.new("struct velo_py_room *")

    def _set_turn(self) -> None:
        self._turn = turns.sending()
        self._at_once = self._turn.until(0)  # Cost: made once, not for each try.
        self._use = threading.RLock()

    def reserve(self, len_bytes: int, timeout: float | None = None) -> "Reservation":
        """Room where the message goes, to build one of up to so many bytes in place.

            with sender.reserve(800) as room:
                numpy.frombuffer(room.data)[:] = 1.5

        The end of the block sends it. If the block fails, nothing is sent, and the room is kept for
        the next reservation, which must not be longer.
        """
        end = waits.deadline(timeout)
        while True:
            with self._turn.until(end) as depth:
                if depth:
                    raise refused_inside()
                status = self._reserve_room(len_bytes, waits.left_ns(end, waits.SEND_SLICE_NS))
                if status == 0:
                    assert self._reservation is not None
                    return self._reservation
            self._go_on(status, end)

    def _reserve_room(self, len_bytes: int, timeout_ns: int) -> int:
        """In one's turn: have a reservation, or know why not; a status."""
        kept = self._reservation
        if kept is None:
            status = self._reserve(len_bytes, self._room, timeout_ns)
            # With a state error a signal handler has raised an exception behind the library's call.
            if status not in (lib.VELO_OK, lib.VELO_ERR_STATE):
                return status
            kept = self._reservation = Reservation(self, self._room.address, self._room.len_bytes)
        if kept.is_open or len_bytes > kept.room_bytes:
            return lib.VELO_ERR_STATE
        kept._open(len_bytes)
        return 0

    def close(self) -> None:
        """End it. What was sent is still delivered. BufferError while a reservation is seen.

        A thread that waits in it gets Closed, within a tenth of a second. In a signal handler, in
        the middle of a call on it: that call ends first.
        """
        self._is_closing = True
        if self._turn.is_own():
            self._turn.then(self.close)
            return
        try:
            with self._turn:
                if not self.closed:
                    self._drop_reservation()
                    self._end()
        finally:
            self._is_closing = False

    def _interrupt(self, library_call: Callable[[Any], None]) -> None:
        with self._use:
            handle = self._handle()
            self._is_interrupted = True
            library_call(handle)

    def _drop_reservation(self) -> None:
        if self._reservation is not None:
            self._reservation._end()
            self._reservation = None

    def _go_on(self, status: int, end: int | None) -> None:
        """After a slice of a wait without room: return if the wait goes on."""
        if self._is_closing:
            raise Closed(self._why_closed)
        if status == lib.VELO_ERR_INTERRUPTED and self._is_interrupted:
            self._is_interrupted = False
            raise Interrupted("interrupt() was called")
        if status not in (lib.VELO_TIMEOUT, lib.VELO_AGAIN, lib.VELO_ERR_INTERRUPTED):
            raise self._failed(status)
        if waits.is_over(end):
            raise Timeout(f"{self!r} had no room in the time given")
        self._turn.let_others()

    def _failed(self, status: int) -> Exception:
        if status == lib.VELO_ERR_STATE and self._reservation is not None:
            return StateError("a message is being built here; send it first")
        return fail(status)

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Is it closed?"""

    @abstractmethod
    def _handle(self) -> Any:
        """The library's object; Closed if there is none."""

    @abstractmethod
    def _end(self) -> None:
        """Close it, in one's turn."""

    @abstractmethod
    def _reserve(self, len_bytes: int, room: Any, timeout_ns: int) -> int:
        """The library's call; a status."""

    @abstractmethod
    def _commit(self, len_bytes: int, tag: int) -> int:
        """The library's call; a status."""


class Reservation:
    """Room for one message in shared memory; see `reserve()` of what sends it."""

    def __init__(self, sender: Sender, address: int, len_bytes: int) -> None:
        self._sender = sender
        self._address = address
        self.room_bytes = len_bytes
        self._lent: Lent | None = None

    @property
    def is_open(self) -> bool:
        """Can the message still be written?"""
        return self._lent is not None

    @property
    def data(self) -> memoryview:
        """The room, writable, in place. Do not read it back to decide anything: it is shared."""
        if self._lent is None:
            raise Closed("the message was sent, or what sends it was closed")
        return self._lent.view

    def commit(self, len_bytes: int | None = None, tag: int = 0) -> None:
        """Send what was written: its first `len_bytes`, or all. BufferError while it is seen."""
        sender = self._sender
        with sender._turn as depth:
            if depth:
                raise refused_inside()
            self._send(len_bytes, tag)

    def _send(self, len_bytes: int | None, tag: int) -> None:
        """In the sender's turn."""
        sender = self._sender
        len_bytes = len(self.data) if len_bytes is None else len_bytes
        if not 0 <= len_bytes <= self.room_bytes:
            raise fail(lib.VELO_ERR_TOO_BIG)
        self._end()
        sender._reservation = None
        status = sender._commit(len_bytes, tag)
        if status:
            raise fail(status)

    def _open(self, len_bytes: int) -> None:
        self._lent = Lent(self._sender, self._address, len_bytes, readonly=False)

    def _end(self) -> None:
        if self._lent is not None:
            self._lent.end()
            self._lent = None

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(self, failed: Any, *_: Any) -> None:
        if self._lent is None:
            return
        if failed:
            self._end()
        else:
            self.commit()


def refused_inside() -> StateError:
    """Of a call inside of another one of the same thread."""
    return StateError(
        "this thread is in the middle of sending here: a signal handler, a __del__ or the like may "
        "send a message, but not build one in place"
    )
