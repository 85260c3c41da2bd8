# SPDX-License-Identifier: Apache-2.0
"""One to many: rings with one writer and up to 64 readers, and objects over them."""

import atexit
import os
import pickle
import struct
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

from velo._velo import ffi, lib

from . import turns, waits
from .errors import (
    Closed,
    Corrupt,
    Interrupted,
    PeerClosed,
    StateError,
    Timeout,
    check,
    fail,
)  # fmt: skip
from .message import Message, Received
from .pickles import dumps
from .port import Buffer
from .reservation import Sender, refused_inside

# Tags of the messages that put() sends.
_BYTES = 0  # A bytes object.
_PICKLE = 1  # A pickle.
# The number of parts, their lengths, a pickle, and the buffers that were taken out of it.
_PARTS = 2
# A buffer below this length is pickled with its object: apart it would cost more.
_APART_BYTES = 32768
# Parts begin at multiples of this, so that arrays in them are aligned.
_ALIGN_BYTES = 64
# A reader makes a buffer of its own for each message that is longer.
_SHORT_BYTES = 65536

_ends: "weakref.WeakSet[Broadcast | BroadcastReader]" = weakref.WeakSet()
# Cost: a global name is found faster than an attribute; these are called for each object.
_recv = lib.velo_py_bcast_recv
_TAG_SHIFT = lib.VELO_PY_TAG_SHIFT
_LENGTH_MASK = (1 << _TAG_SHIFT) - 1
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


class Broadcast(Sender):
    """The writer of a ring: each message is written once, and every reader gets it.

    By default a send waits for the slowest reader. With `drop` it never waits, and readers that are
    too slow miss messages: they get `Missed` and go on with the newest.

    domain, node, vpid, group, depth_slots, msg_bytes_max, data_bytes and readers_max are those of
    velo_bcast_open(3). The memory, four times `msg_bytes_max` at least, is allocated here. Close
    it, or use it in a `with` block: readers take what was sent, and then get PeerClosed.
    """

    def __init__(
        self,
        *,
        domain: str | None = None,
        node: int = 0,
        vpid: int = 0,
        depth_slots: int = 0,
        msg_bytes_max: int = 1 << 20,
        data_bytes: int = 0,
        readers_max: int = 0,
        group: str | None = None,
        drop: bool = False,
    ) -> None:
        self._bcast: Any = None
        self._why_closed = "the ring was closed"
        super().__init__()
        attr, _names = _attr(domain, node, vpid, group)
        attr.depth_slots, attr.data_bytes = depth_slots, data_bytes
        attr.msg_bytes_max, attr.readers_max = msg_bytes_max, readers_max
        attr.flags = lib.VELO_BCAST_DROP if drop else 0
        bcast = ffi.new("struct velo_bcast **")
        _ends.add(self)
        try:
            check(lib.velo_bcast_open(attr, bcast))
        finally:
            # A signal handler may have raised when the ring was open: then __del__ closes it.
            self._bcast = bcast[0] or None

    @property
    def id(self) -> int:
        """The id of the ring, which its messages name as their source."""
        return int(lib.velo_bcast_id(self._handle()))

    @property
    def readers(self) -> int:
        """How many readers have joined and live; a system call for each."""
        with self._turn:
            count = lib.velo_bcast_readers(self._handle())
            if count < 0:
                raise fail(count)
            return count

    @property
    def closed(self) -> bool:
        """Was it closed, or is this the child of the process that opened it?"""
        return self._bcast is None

    def send(self, data: Buffer, tag: int = 0, timeout: float | None = None) -> None:
        """Send a message to all readers; waits for the slowest, at most `timeout` seconds."""
        if type(data) is not bytes:
            data = ffi.from_buffer(data)
        self._send(data, tag, waits.deadline(timeout))

    def try_send(self, data: Buffer, tag: int = 0) -> bool:
        """Send a message if the slowest reader has left room; False if not."""
        if type(data) is not bytes:
            data = ffi.from_buffer(data)
        try:
            with self._at_once:
                status = lib.velo_bcast_try_send(self._handle(), data, len(data), tag)
        except Timeout:
            return False  # Another thread sends, or waits for room.
        if status and status != lib.VELO_AGAIN:
            raise self._failed(status)
        return status == 0

    def put(self, obj: Any, timeout: float | None = None) -> None:
        """Send an object, for `BroadcastReader.get()`; waits as send() does.

        It pickles with protocol 5. Large buffers, such as those of numpy arrays, are copied
        straight into the ring. TooBig if it is longer than the ring's msg_bytes_max in all.
        """
        end = waits.deadline(timeout)
        if type(obj) is bytes:
            self._send(obj, _BYTES, end)
            return
        data, buffers = dumps(obj, _APART_BYTES)
        if not buffers:
            self._send(data, _PICKLE, end)
            return
        parts = [ffi.from_buffer(part) for part in (data, *buffers)]
        head = struct.pack(f"<{len(parts) + 1}Q", len(parts), *map(len, parts))
        spans = list(_spans(len(head), [len(part) for part in parts]))
        while True:
            with self._turn.until(end) as depth:
                if depth:
                    raise refused_inside()
                ns = waits.left_ns(end, waits.SEND_SLICE_NS)
                status = self._reserve_room(spans[-1][1], ns)
                if status == 0:
                    self._send_parts(parts, head, spans)
                    return
            self._go_on(status, end)

    def interrupt(self) -> None:
        """End a wait for room, the one under way or else the next, with Interrupted. From any
        thread, and from a signal handler.
        """
        self._interrupt(lib.velo_bcast_interrupt)

    def _send_parts(self, parts: list[Any], head: bytes, spans: list[tuple[int, int]]) -> None:
        room = self._reservation
        assert room is not None
        with room:
            room.data[: len(head)] = head
            with ffi.from_buffer(room.data, require_writable=True) as base:
                for part, (start, _) in zip(parts, spans, strict=True):
                    ffi.memmove(base + start, part, len(part))
            room._send(None, _PARTS)

    def _end(self) -> None:
        with self._use:
            bcast, self._bcast = self._bcast, None
        lib.velo_bcast_close(bcast)

    def _send(self, data: Any, tag: int, end: int | None) -> None:
        turn = self._turn
        while True:
            with turn if end is None else turn.until(end):
                ns = waits.SEND_SLICE_NS if end is None else waits.left_ns(end, waits.SEND_SLICE_NS)
                status = lib.velo_bcast_send(
                    self._bcast or self._handle(), data, len(data), tag, ns
                )
            if status == 0:
                return
            self._go_on(status, end)

    def _reserve(self, len_bytes: int, room: Any, timeout_ns: int) -> int:
        return lib.velo_py_bcast_reserve(self._handle(), len_bytes, room, timeout_ns)

    def _commit(self, len_bytes: int, tag: int) -> int:
        return lib.velo_bcast_commit(self._handle(), len_bytes, tag)

    def _handle(self) -> Any:
        if self._bcast is None:
            raise Closed(self._why_closed)
        return self._bcast

    def _forget(self) -> None:
        """In the child of a fork: nothing of it may be used, nor closed."""
        self._bcast = None
        self._why_closed = "the ring belongs to the parent process"
        self._set_turn()
        self._is_closing = False

    def __enter__(self) -> "Broadcast":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_bcast", None) is not None:
            try:
                warnings.warn(
                    f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=1
                )
            finally:  # Warnings may be errors.
                self.close()

    def __repr__(self) -> str:
        return "<velo.Broadcast closed>" if self.closed else f"<velo.Broadcast {self.id:#x}>"


class BroadcastReader:
    """One reader of a ring; it gets what is sent after it has joined.

    It waits for the ring to be opened, at most `timeout` seconds. Waits hold neither the GIL nor a
    processor; in asyncio use `await asyncio.to_thread(reader.get)`. Behind the last message of a
    writer that is gone every receive raises PeerClosed or PeerDead.
    """

    def __init__(
        self,
        *,
        domain: str | None = None,
        node: int = 0,
        vpid: int = 0,
        group: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self._reader: Any = None
        self._why_closed = "the reader has left the ring"
        self._is_closing = False
        self._is_interrupted = False
        self._turn = turns.receiving()
        self._use = threading.RLock()
        self._held: Message | None = None
        self._msg = ffi.new("struct velo_msg *")
        self._place = ffi.new("struct velo_py_place *")
        self._short = ffi.new("char[]", _SHORT_BYTES)
        attr, _names = _attr(domain, node, vpid, group)
        reader = ffi.new("struct velo_bcast_reader **")
        end = waits.deadline(timeout)
        _ends.add(self)
        try:
            while True:
                status = lib.velo_bcast_join(attr, reader, waits.left_ns(end))
                if not waits.may_still_come(status, end):
                    break
            check(status)
        finally:
            # A signal handler may have raised when it had joined: then __del__ leaves the ring.
            self._reader = reader[0] or None

    @property
    def missed(self) -> int:
        """How many messages of a dropping ring it has missed."""
        with self._use:
            return lib.velo_bcast_missed(self._handle())

    @property
    def closed(self) -> bool:
        """Has it left, or is this the child of the process that joined?"""
        return self._reader is None

    def recv(self, timeout: float | None = None) -> Message:
        """The next message, in place; waits for it, at most `timeout` seconds.

        One message is held at a time: release it before the next (`with reader.recv() as message`).
        The writer waits for it. A dropping ring has none in place: StateError.
        """
        end = waits.deadline(timeout)
        with self._turn.until(end):
            while status := lib.velo_py_bcast_peek(self._handle(), self._place, _left_ns(end)):
                # A signal handler may have raised an exception when the message had come.
                if status == lib.VELO_ERR_STATE and self._held is None and self._place.address:
                    break
                self._go_on(status, end)
            place = self._place
            self._held = Message(
                self, place.address, place.len_bytes, place.tag, place.source, place.generation
            )
            return self._held

    def recv_bytes(self, timeout: float | None = None) -> bytes:
        """The next message, copied; waits for it, at most `timeout` seconds."""
        end = waits.deadline(timeout)
        with self._turn.until(end):
            memory, start, found = self._copy(end)
            return ffi.unpack(memory + start, found & _LENGTH_MASK)

    def recv_into(self, buffer: Buffer, timeout: float | None = None) -> Received:
        """The next message, copied into a buffer; waits for it, at most `timeout` seconds.

        TooBig if it does not fit; the message stays, and a dropping ring may overwrite it.
        """
        end = waits.deadline(timeout)
        into = ffi.from_buffer(buffer, require_writable=True)
        msg = self._msg
        with self._turn.until(end):
            while (
                found := lib.velo_py_bcast_recv(self._handle(), into, len(into), msg, _left_ns(end))
            ) < 0:
                self._go_on(found, end)
            return Received(msg.len_bytes, msg.tag, msg.source, msg.generation)

    def get(self, timeout: float | None = None) -> Any:
        """The next object that `Broadcast.put()` sent; waits for it, at most `timeout` seconds.

        It is this reader's own copy; arrays in it are aligned and writable. As with every pickle, a
        reader trusts the writer.
        """
        end = waits.deadline(timeout)
        turn = self._turn
        short = None
        with turn if end is None else turn.until(end):
            memory, start, found = self._copy(end)
            tag, length = found >> _TAG_SHIFT, found & _LENGTH_MASK
            if memory is self._short:  # The next call writes to it.
                if tag == _PARTS:
                    memory, start = _aligned(length)  # The object keeps its memory.
                    ffi.memmove(memory + start, self._short, length)
                else:
                    short = ffi.unpack(memory + start, length)
        # Out of turn: what is unpickled may get from here, too.
        if tag == _BYTES:
            return ffi.unpack(memory + start, length) if short is None else short
        view = memoryview(ffi.buffer(memory))[start : start + length]
        if tag == _PICKLE:
            return pickle.loads(view if short is None else short)
        if tag == _PARTS:
            return _object(view)
        raise Corrupt(f"a message with tag {tag} is no object of put()")

    def close(self) -> None:
        """Leave the ring; the writer no longer waits for this reader.

        Other threads that wait for it get Closed, within a tenth of a second. BufferError while an
        array or a slice of a message is alive. In a signal handler, in the middle of a call on it:
        that call ends first.
        """
        self._is_closing = True
        if self._turn.is_own():
            self._turn.then(self.close)
            return
        try:
            with self._turn:
                if self._reader is not None:
                    if self._held is not None:
                        self._end_message(self._held)
                    with self._use:
                        reader, self._reader = self._reader, None
                    lib.velo_bcast_leave(reader)
        finally:
            self._is_closing = False

    def interrupt(self) -> None:
        """End a wait of this reader, the one under way or else the next, with Interrupted. From any
        thread, and from a signal handler.
        """
        with self._use:
            reader = self._handle()
            self._is_interrupted = True
            lib.velo_bcast_reader_interrupt(reader)

    def __iter__(self) -> Iterator[Any]:
        """The objects, until the writer closes the ring."""
        while True:
            try:
                obj = self.get()
            except PeerClosed:
                return
            yield obj

    def _copy(self, end: int | None) -> tuple[Any, int, int]:
        """Copy the next message: the memory, where in it the message begins, its tag and length."""
        memory = at = self._short
        start, room_bytes = 0, _SHORT_BYTES
        while (
            found := _recv(
                self._reader or self._handle(), at, room_bytes, self._msg,
                waits.SEND_SLICE_NS if end is None else _left_ns(end),
            )
        ) < 0:  # fmt: skip
            if found != lib.VELO_ERR_TOO_BIG:
                self._go_on(found, end)
                continue
            # A dropping ring may overwrite it meanwhile; then the next one may be longer still.
            room_bytes = self._msg.len_bytes
            memory, start = _aligned(room_bytes)
            at = memory + start
        return memory, start, found

    def _release(self, message: Message) -> None:
        with self._turn:
            if message is self._held:
                self._end_message(message)

    def _end_message(self, message: Message) -> None:
        # In this order: if a signal handler raises in between, the message is not seen twice.
        message._end()
        lib.velo_bcast_release(self._reader)
        self._held = None

    def _go_on(self, status: int, end: int | None) -> None:
        """After a slice of a wait without a message: return if the wait goes on."""
        if self._is_closing:
            raise Closed(self._why_closed)
        if status == lib.VELO_ERR_STATE:
            raise StateError("a message is held, or this is a dropping ring, which only copies")
        if status == lib.VELO_ERR_INTERRUPTED and self._is_interrupted:
            self._is_interrupted = False
            raise Interrupted("interrupt() was called")
        if status not in (lib.VELO_TIMEOUT, lib.VELO_AGAIN, lib.VELO_ERR_INTERRUPTED):
            raise fail(status)
        if waits.is_over(end):
            raise Timeout("no message came in the time given")

    def _handle(self) -> Any:
        if self._reader is None:
            raise Closed(self._why_closed)
        return self._reader

    def _forget(self) -> None:
        """In the child of a fork: nothing of it may be used, nor closed."""
        self._reader = None
        self._why_closed = "the reader belongs to the parent process; a child joins anew"
        self._turn = turns.receiving()
        self._use = threading.RLock()
        self._is_closing = False

    def __enter__(self) -> "BroadcastReader":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_reader", None) is not None:
            try:
                warnings.warn(
                    f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=1
                )
            finally:  # Warnings may be errors.
                self.close()

    def __repr__(self) -> str:
        return f"<velo.BroadcastReader {'closed' if self.closed else 'joined'}>"


def _attr(domain: str | None, node: int, vpid: int, group: str | None) -> tuple[Any, list[Any]]:
    """The attributes, and what has to live as long as they are used."""
    names = [ffi.NULL if n is None else ffi.new("char[]", n.encode()) for n in (domain, group)]
    attr = ffi.new("struct velo_bcast_attr *")
    attr.size_bytes = ffi.sizeof("struct velo_bcast_attr")
    attr.domain, attr.group = names
    attr.node, attr.vpid = node, vpid
    return attr, names


def _aligned(len_bytes: int) -> tuple[Any, int]:
    """New memory, and where in it so many bytes are aligned."""
    memory = _allocate("char[]", len_bytes + _ALIGN_BYTES)
    return memory, -int(ffi.cast("uintptr_t", memory)) % _ALIGN_BYTES


def _left_ns(end: int | None) -> int:
    return waits.left_ns(end, waits.SEND_SLICE_NS)  # No call wakes a reader for close().


def _spans(start: int, lengths: list[int]) -> Iterator[tuple[int, int]]:
    for length in lengths:
        start = -(-start // _ALIGN_BYTES) * _ALIGN_BYTES
        yield start, start + length
        start += length


def _object(view: memoryview) -> Any:
    """The object of a message with parts, which shares its buffers with the message."""
    count = struct.unpack_from("<Q", view)[0] if len(view) >= 8 else 0
    if not 1 <= count < len(view) // 8:
        raise Corrupt("a message of parts has no room for their lengths")
    lengths = list(struct.unpack_from(f"<{count}Q", view, 8))
    spans = list(_spans(8 * (count + 1), lengths))
    if spans[-1][1] > len(view):
        raise Corrupt("the parts of a message are longer than the message")
    pickled, *buffers = (view[start:end] for start, end in spans)
    return pickle.loads(pickled, buffers=buffers)


def _close_all() -> None:
    """Readers are to hear that the ring was closed, not that this process died."""
    for end in list(_ends):
        try:
            end.close()
        except BufferError:
            continue  # The process ends with it.


def _forget_all() -> None:
    for end in list(_ends):
        end._forget()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)
