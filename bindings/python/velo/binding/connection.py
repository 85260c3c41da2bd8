# SPDX-License-Identifier: Apache-2.0
"""Connections: the right to send to one port."""

from collections.abc import Sequence
from typing import Any

from velo._velo import ffi, lib

from . import waits
from .errors import Closed, Error, Interrupted, Timeout, check, fail
from .port import Buffer, Port
from .reservation import Sender


class Connection(Sender):
    """The right to send to one remote port; `Port.connect()` makes it.

    Messages of one connection arrive in order, each exactly once. Threads may share a connection,
    and take turns; one each is faster. A signal handler or a `__del__` in the middle of a send may
    send, too. It is closed with its port.
    """

    def __init__(self, port: Port, conn: Any, peer: int) -> None:
        self._port = port
        self._conn = conn
        self._why_closed = "the connection was closed"
        super().__init__()
        self._max_bytes: int = lib.velo_conn_max_bytes(conn)
        self._done = ffi.new("size_t *")
        self.peer = peer
        """Id of the port that it leads to."""

    @property
    def max_bytes(self) -> int:
        """The longest message that it takes."""
        return self._max_bytes

    @property
    def generation(self) -> int:
        """Which opening of its peer it leads to."""
        with self._use:
            return lib.velo_conn_generation(self._handle())

    @property
    def closed(self) -> bool:
        """Was it closed, by itself or with its port?"""
        return self._conn is None

    def send(self, data: Buffer, tag: int = 0, timeout: float | None = None) -> None:
        """Send a message; waits for room in the peer's ring, at most `timeout` seconds."""
        end = None if timeout is None else waits.deadline(timeout)
        if type(data) is not bytes:
            data = ffi.from_buffer(data)
        turn = self._turn
        while True:
            with turn if end is None else turn.until(end):
                ns = waits.SEND_SLICE_NS if end is None else waits.left_ns(end, waits.SEND_SLICE_NS)
                status = lib.velo_send(self._conn or self._handle(), data, len(data), tag, ns)
            if status == 0:
                return
            self._go_on(status, end)

    def try_send(self, data: Buffer, tag: int = 0) -> bool:
        """Send a message if there is room now; False if there is none."""
        if type(data) is not bytes:
            data = ffi.from_buffer(data)
        try:
            with self._at_once:
                status = lib.velo_try_send(self._conn or self._handle(), data, len(data), tag)
        except Timeout:
            return False  # Another thread sends, or waits for room.
        if status == 0:
            return True
        if status == lib.VELO_AGAIN:
            return False
        raise self._failed(status)

    def send_pieces(
        self, pieces: Sequence[Buffer], tag: int = 0, timeout: float | None = None
    ) -> None:
        """Send several buffers as one message, one behind the other, without joining them."""
        end = waits.deadline(timeout)
        buffers = [ffi.from_buffer(piece) for piece in pieces]
        vector = ffi.new("struct iovec[]", len(buffers))
        for entry, buffer in zip(vector, buffers, strict=True):
            entry.iov_base, entry.iov_len = buffer, len(buffer)
        while True:
            with self._turn.until(end):
                ns = waits.left_ns(end, waits.SEND_SLICE_NS)
                status = lib.velo_sendv(self._handle(), vector, len(buffers), tag, ns)
            if status == 0:
                return
            self._go_on(status, end)

    def send_many(
        self,
        messages: Sequence[Buffer],
        tag: int | Sequence[int] = 0,
        timeout: float | None = None,
    ) -> int:
        """Send several messages, all with one tag or each with its own; waits for room in the
        peer's ring, at most `timeout` seconds in all.

        Returns how many were sent, at least one unless there are none. If that is less than all, a
        call that begins with the next one tells why it was not sent.
        """
        end = waits.deadline(timeout)
        buffers = [ffi.from_buffer(message) for message in messages]
        tags = [tag] * len(buffers) if isinstance(tag, int) else tag
        msgs = ffi.new("struct velo_msg[]", len(buffers))
        for msg, buffer, its_tag in zip(msgs, buffers, tags, strict=True):
            msg.data, msg.len_bytes, msg.tag = buffer, len(buffer), its_tag
        sent = 0
        while sent < len(buffers):
            with self._turn.until(end):
                ns = waits.left_ns(end, waits.SEND_SLICE_NS)
                status = lib.velo_send_many(self._handle(), msgs + sent, len(buffers) - sent, ns)
            if status > 0:
                sent += status
                continue
            try:
                self._go_on(status, end)
            except Interrupted:
                if sent == 0:
                    raise
                self.interrupt()  # The next wait tells of it.
                break
            except Error:
                if sent == 0:
                    raise
                break
        return sent

    def interrupt(self) -> None:
        """End a wait for room on this connection, the one under way or else the next, with
        Interrupted. From any thread, and from a signal handler.
        """
        self._interrupt(lib.velo_conn_interrupt)

    def check_peer(self) -> None:
        """Raise PeerClosed or PeerDead if the peer takes no more messages; one system call."""
        with self._turn:
            status = lib.velo_conn_status(self._handle())
            if status:
                raise fail(status)

    def _end(self) -> None:
        with self._use:
            conn, self._conn = self._conn, None
        self._port._conns.discard(self)
        check(lib.velo_disconnect(conn))

    def _forget(self) -> None:
        self._conn = None
        self._why_closed = "the connection belongs to the parent process; a child opens its own"
        self._set_turn()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._conn is None else f"to {self.peer:#x}"
        return f"<velo.Connection {state}>"

    def _handle(self) -> Any:
        if self._conn is None:
            raise Closed(self._why_closed)
        return self._conn

    def _reserve(self, len_bytes: int, room: Any, timeout_ns: int) -> int:
        return lib.velo_py_reserve(self._handle(), len_bytes, room, timeout_ns)

    def _commit(self, len_bytes: int, tag: int) -> int:
        return lib.velo_commit(self._handle(), len_bytes, tag)

    def _go_on(self, status: int, end: int | None) -> None:
        if self._port._is_closing:
            raise Closed("the port of this connection is being closed")
        super()._go_on(status, end)
