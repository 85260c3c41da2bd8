# SPDX-License-Identifier: Apache-2.0
"""A queue of Python objects between processes, in the manner of multiprocessing.Queue."""

import os
import pickle
import queue
import secrets
import struct
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from velo._velo import ffi, lib

from . import waits
from .connection import Connection
from .errors import Closed, Full, NoPeer, fail
from .pickles import dumps
from .port import Port

T = TypeVar("T")

# Senders have ports on the other nodes.
RECEIVER_NODE = 0
# Tags of the messages of a queue.
_BYTES = 0  # A bytes object, whole.
_PICKLE = 1  # A pickle, whole.
_BEGIN = 2  # The lengths of parts that follow: a pickle, then its buffers, or a bytes object.
_PART = 3  # The next piece of those.
# No message is longer.
_MESSAGE_BYTES = 65536
# A buffer below this length is pickled with its object: apart it would cost more.
_APART_BYTES = 1024
# A longer object goes in pieces.
_WHOLE_BYTES = 32 * 1024
# Pieces of long parts: short enough that both sides copy at the same time, and in cache.
_PIECE_BYTES = 32 * 1024
# Parts begin at multiples of this, so that arrays in them are aligned.
_ALIGN_BYTES = 64
# A receiver checks what it is asked to allocate.
_OBJECT_BYTES_MAX = 1 << 40

# Memory of up to this length is kept for the next object.
_KEPT_BYTES = 4 << 20

# Cost: a global name is found faster than an attribute; these are called for each object.
_send = lib.velo_send
_recv_tagged = lib.velo_py_recv_tagged
_unpack = ffi.unpack
_TAG_SHIFT = lib.VELO_PY_TAG_SHIFT
_LENGTH_MASK = (1 << _TAG_SHIFT) - 1

_queues: "weakref.WeakSet[Queue[Any]]" = weakref.WeakSet()
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


class _Arriving:
    """A long object of which not all has come."""

    def __init__(self, lengths: list[int], is_bytes: bool, memory: Any) -> None:
        self.is_bytes = is_bytes
        self.memory = memory
        self.base = ffi.cast("char *", memory)
        first = -int(ffi.cast("uintptr_t", memory)) % _ALIGN_BYTES
        self.spans = list(_spans(first, lengths))
        self.part = 0
        self.done = ffi.new("size_t *")

    def room(self) -> tuple[Any, int]:
        """Where the current part goes, and how long it is; 0: all is there."""
        while self.part < len(self.spans):
            start, end = self.spans[self.part]
            if self.done[0] < end - start:
                return self.base + start, end - start
            self.part += 1
            self.done[0] = 0
        return self.base, 0

    def object(self) -> Any:
        """The object, which shares its buffers with the memory."""
        view = memoryview(ffi.buffer(self.memory))  # Keeps the memory.
        parts = [view[start:end] for start, end in self.spans]
        if self.is_bytes:
            return parts[0].tobytes()
        return pickle.loads(parts[0], buffers=parts[1:])


def _spans(start: int, lengths: list[int]) -> Iterator[tuple[int, int]]:
    for length in lengths:
        yield start, start + length
        start += -(-length // _ALIGN_BYTES) * _ALIGN_BYTES


class Queue(Generic[T]):
    """A queue of objects: any number of processes put, one process gets.

    It pickles with protocol 5; large buffers, such as those of numpy arrays, travel beside the
    pickle and are not copied into it. Give it to other processes as an argument of
    multiprocessing.Process, or open one with the same `name` there.

    The process that makes a queue gets from it. With `here=False` the first process that calls
    get() does, and put() waits for it. After a fork the child can put.

    Unlike multiprocessing.Queue it has no thread: put() has delivered the object when it returns,
    and waits while the ring of its process is full (`capacity_bytes`). So a process that puts more
    than that into its own queue, and gets nothing, waits for ever. Objects of one process arrive in
    order. An object whose sender dies in the middle of it is dropped. If the receiver is gone,
    put() raises PeerClosed or PeerDead.

    As with every pickle, a receiver trusts its senders; the ports are open to this user alone.
    """

    def __init__(
        self, name: str | None = None, *, capacity_bytes: int = 1 << 18, here: bool = True
    ) -> None:
        self._begin(name or f"queue-{os.getpid()}-{secrets.token_hex(6)}", capacity_bytes)
        if here:
            self._receiver()

    def _begin(self, name: str, capacity_bytes: int) -> None:
        self.name = name
        """The domain of its ports."""
        self._capacity_bytes = capacity_bytes
        self._is_closed = False
        self._forget()
        _queues.add(self)

    def _forget(self) -> None:
        """Begin anew: also in the child of a fork, where the ports are the parent's."""
        self._rx: Port | None = None
        self._tx: Port | None = None
        self._conn: Connection | None = None
        self._opening = threading.Lock()
        self._short = ffi.new("char[]", _MESSAGE_BYTES)
        self._short_view = memoryview(ffi.buffer(self._short))
        self._kept = self._short
        self._arriving: dict[tuple[int, int], _Arriving] = {}

    # ---- putting ---------------------------------------------------------------------------------

    def put(self, obj: T, block: bool = True, timeout: float | None = None) -> None:
        """Put an object; waits for room, at most `timeout` seconds. queue.Full if there is none.

        An object that is longer than a message goes in pieces. If the time runs out in the middle
        of one, the receiver drops it.
        """
        data: Any = obj
        if type(data) is bytes and timeout is None and len(data) <= _WHOLE_BYTES:
            conn = self._conn
            if conn is not None:  # The fast path: of most messages nothing else is done.
                slice_ns = waits.SEND_SLICE_NS if block else 0
                with conn._sending:
                    handle = conn._conn
                    if handle is not None and not _send(handle, data, len(data), _BYTES, slice_ns):
                        return
        tag = _BYTES
        buffers: list[Any] = []
        if type(data) is not bytes:
            tag = _PICKLE
            data, buffers = dumps(obj, _APART_BYTES)
        end = None if block and timeout is None else waits.deadline(timeout if block else 0)
        conn = self._conn or self._connect(end)
        with conn._sending:
            if not buffers and len(data) <= min(_WHOLE_BYTES, conn.max_bytes):
                self._send(conn, data, len(data), tag, end)
            else:
                self._put_long(conn, tag, [data, *buffers], end)

    def put_nowait(self, obj: T) -> None:
        """Put an object if there is room now; else queue.Full."""
        self.put(obj, block=False)

    def _put_long(self, conn: Connection, tag: int, parts: list[Any], end: int | None) -> None:
        views = [ffi.from_buffer(part) for part in parts]
        head = struct.pack(f"<{len(views) + 1}Q", tag, *map(len, views))
        if len(head) > conn.max_bytes:
            raise fail(lib.VELO_ERR_TOO_BIG)
        self._send(conn, head, len(head), _BEGIN, end)
        done = ffi.new("size_t *")
        piece_bytes = min(_PIECE_BYTES, conn.max_bytes)
        for view in views:
            done[0] = 0
            while status := lib.velo_py_send_long(
                conn._handle(), view, len(view), piece_bytes, _PART,
                waits.left_ns(end, waits.SEND_SLICE_NS), done,
            ):  # fmt: skip
                self._go_on_putting(status, end)

    def _send(self, conn: Connection, data: Any, len_bytes: int, tag: int, end: int | None) -> None:
        while status := lib.velo_send(
            conn._conn or conn._handle(), data, len_bytes, tag,
            waits.SEND_SLICE_NS if end is None else waits.left_ns(end, waits.SEND_SLICE_NS),
        ):  # fmt: skip
            self._go_on_putting(status, end)

    def _go_on_putting(self, status: int, end: int | None) -> None:
        if self._is_closed:
            raise Closed("the queue was closed")
        if status not in (lib.VELO_TIMEOUT, lib.VELO_AGAIN, lib.VELO_ERR_INTERRUPTED):
            raise fail(status)
        if waits.is_over(end):
            raise queue.Full

    def _connect(self, end: int | None) -> Connection:
        with self._opening:
            self._check()
            if self._conn is None:
                port = self._rx
                if port is None:
                    port = self._tx = self._tx or self._sender()
                receiver = RECEIVER_NODE << lib.VELO_ADDRESS_VPID_BITS
                left_s = None if end is None else waits.left_ns(end, 1 << 62) / 1e9
                try:
                    self._conn = port.connect(receiver, left_s)
                except NoPeer:
                    raise queue.Full from None  # Nobody gets yet.
            return self._conn

    def _sender(self) -> Port:
        for node in range(RECEIVER_NODE + 1, lib.VELO_NODES):
            try:
                return Port(domain=self.name, node=node, conns_max=1)
            except Full:
                continue
        raise fail(lib.VELO_ERR_FULL)

    # ---- getting ---------------------------------------------------------------------------------

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """The next object; waits for it, at most `timeout` seconds. queue.Empty if none comes."""
        end = None if block and timeout is None else waits.deadline(timeout if block else 0)
        port = self._rx or self._receiver()
        with port._receiving:
            while True:
                if self._arriving:
                    whole = self._take_piece(port, end)
                    if whole:
                        return whole[0]
                    continue
                found = _recv_tagged(
                    port._port or port._handle(), self._short, _MESSAGE_BYTES, port._msg,
                    waits.SLICE_NS if end is None else waits.left_ns(end),
                )  # fmt: skip
                if 0 <= found <= _MESSAGE_BYTES:  # The tag is _BYTES, which is 0.
                    return _unpack(self._short, found)
                if found < 0:
                    self._go_on_getting(port, found, port._msg, end)
                    continue
                tag, length = found >> _TAG_SHIFT, found & _LENGTH_MASK
                if tag == _PICKLE:
                    return pickle.loads(self._short_view[:length])
                if tag == _BEGIN:
                    self._begin_long(port._msg, _unpack(self._short, length))

    def get_nowait(self) -> T:
        """The next object if one is there; else queue.Empty."""
        return self.get(block=False)

    async def get_async(self) -> T:
        """The next object; waits in asyncio."""
        while True:
            try:
                return self.get(block=False)
            except queue.Empty:
                await self._receiver().wait_async()

    def _take_piece(self, port: Port, end: int | None) -> tuple[Any] | None:
        """While long objects arrive: the next message, in place, and the pieces behind it."""
        place = port._place
        status = lib.velo_py_peek(port._handle(), place, waits.left_ns(end))
        while status in (lib.VELO_OK, lib.VELO_PY_OTHER):
            source = (place.source, place.generation)
            arriving = self._arriving.get(source)
            if place.tag != _PART or arriving is None:
                return self._take_other(port, place)
            into, length = arriving.room()
            if place.len_bytes > length - arriving.done[0]:
                lib.velo_release(port._port)
                del self._arriving[source]
                raise fail(lib.VELO_ERR_CORRUPT)
            status = lib.velo_py_take_pieces(
                port._port, into, length, place, waits.left_ns(end), arriving.done
            )
            if status == lib.VELO_OK:
                if arriving.room()[1] == 0:
                    del self._arriving[source]
                    return (arriving.object(),)
                status = lib.velo_py_peek(port._port, place, waits.left_ns(end))
        self._go_on_getting(port, status, place, end)
        return None

    def _take_other(self, port: Port, place: Any) -> tuple[Any] | None:
        """A message in place that is no piece: a whole object, or the beginning of a long one."""
        data = memoryview(ffi.buffer(ffi.cast("char *", place.address), place.len_bytes))
        try:
            if place.tag == _PICKLE:
                return (pickle.loads(data),)
            if place.tag == _BYTES:
                return (bytes(data),)
            if place.tag == _BEGIN:
                self._begin_long(place, bytes(data))
            return None
        finally:
            lib.velo_release(port._port)

    def _begin_long(self, said: Any, head: bytes) -> None:
        tag, *lengths = struct.unpack(f"<{len(head) // 8}Q", head)
        len_bytes = sum(-(-length // _ALIGN_BYTES) * _ALIGN_BYTES for length in lengths)
        len_bytes += _ALIGN_BYTES
        if len_bytes > _OBJECT_BYTES_MAX:
            raise fail(lib.VELO_ERR_TOO_BIG)
        self._arriving[said.source, said.generation] = _Arriving(
            lengths, tag == _BYTES, self._memory(len_bytes, is_copied=len(lengths) == 1)
        )

    def _memory(self, len_bytes: int, is_copied: bool) -> Any:
        """Memory for a long object. One that is copied out of it may use the same as the last."""
        if not is_copied or len_bytes > _KEPT_BYTES or self._arriving:
            return _allocate("char[]", len_bytes)
        if len(self._kept) < len_bytes:
            self._kept = _allocate("char[]", len_bytes)
        return self._kept

    def _go_on_getting(self, port: Port, status: int, said: Any, end: int | None) -> None:
        """No message came: return if the wait goes on."""
        if status in (lib.VELO_ERR_PEER_CLOSED, lib.VELO_ERR_PEER_DEAD, lib.VELO_ERR_CORRUPT):
            self._arriving.pop((said.source, said.generation), None)
            return
        if status == lib.VELO_ERR_INTERRUPTED:
            port._notice_interrupt()
        elif status not in (lib.VELO_TIMEOUT, lib.VELO_AGAIN):
            raise fail(status)
        if waits.is_over(end):
            raise queue.Empty

    def _receiver(self) -> Port:
        with self._opening:
            self._check()
            if self._rx is None:
                self._rx = Port(
                    domain=self.name, node=RECEIVER_NODE, vpid=0,
                    data_bytes=self._capacity_bytes, departures=True,
                )  # fmt: skip
            return self._rx

    # ---- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close this process's end. What it put is still delivered."""
        self._is_closed = True
        for port in (self._tx, self._rx):
            if port is not None:
                port.close()
        self._rx = self._tx = self._conn = None

    def _check(self) -> None:
        if self._is_closed:
            raise Closed("the queue was closed")

    def __getstate__(self) -> tuple[str, int]:
        return self.name, self._capacity_bytes

    def __setstate__(self, state: tuple[str, int]) -> None:
        self._begin(*state)

    def __enter__(self) -> "Queue[T]":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<velo.Queue {self.name}>"


def _forget_all() -> None:
    for one in list(_queues):
        one._forget()


os.register_at_fork(after_in_child=_forget_all)
