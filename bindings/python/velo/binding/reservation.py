# SPDX-License-Identifier: Apache-2.0
"""Messages that are built in place: what connections and the writers of rings have in common."""

import threading
from abc import ABC, abstractmethod
from typing import Any

from velo._velo import ffi, lib

from . import waits
from .errors import Closed, fail
from .memory import Lent


class Sender(ABC):
    """What can lend room for one message at a time."""

    def __init__(self) -> None:
        self._sending = threading.RLock()
        self._reservation: Reservation | None = None

    def reserve(self, len_bytes: int, timeout: float | None = None) -> "Reservation":
        """Room where the message goes, to build one of up to so many bytes in place.

            with sender.reserve(800) as room:
                numpy.frombuffer(room.data)[:] = 1.5

        The end of the block sends it. If the block fails, nothing is sent, and the room is kept for
        the next reservation, which must not be longer.
        """
        end = waits.deadline(timeout)
        address = ffi.new("uint64_t *")
        with self._sending:
            kept = self._reservation
            if kept is not None and not kept.is_open and len_bytes <= kept.room_bytes:
                kept._open(len_bytes)
                return kept
            while True:
                ns = waits.left_ns(end, waits.SEND_SLICE_NS)
                status = self._reserve(len_bytes, address, ns)
                if status == 0:
                    self._reservation = Reservation(self, address[0], len_bytes)
                    return self._reservation
                self._go_on(status, end)

    def _drop_reservation(self) -> None:
        """At the end of the sender. BufferError while the room is seen."""
        if self._reservation is not None:
            self._reservation._end()
            self._reservation = None

    @abstractmethod
    def _reserve(self, len_bytes: int, address: Any, timeout_ns: int) -> int:
        """The library's call; a status."""

    @abstractmethod
    def _commit(self, len_bytes: int, tag: int) -> int:
        """The library's call; a status."""

    @abstractmethod
    def _go_on(self, status: int, end: int | None) -> None:
        """After a slice of a wait without room: return if the wait goes on."""


class Reservation:
    """Room for one message in shared memory; see `reserve()` of what sends it."""

    def __init__(self, sender: Sender, address: int, len_bytes: int) -> None:
        self._sender = sender
        self._address = address
        self.room_bytes = len_bytes
        self._lent: Lent | None = None
        self._open(len_bytes)

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
        with sender._sending:
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
