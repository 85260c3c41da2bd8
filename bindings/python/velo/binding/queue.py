# SPDX-License-Identifier: Apache-2.0
"""A queue of Python objects between processes, in the manner of multiprocessing.Queue."""

import os
import pickle
import queue
import secrets
import struct
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from velo._velo import ffi, lib

from . import turns, waits
from .connection import Connection
from .errors import (
    Closed,
    Error,
    Full,
    InUse,
    NoPeer,
    PeerClosed,
    PeerDead,
    StateError,
    Timeout,
    fail,
)
from .pickles import dumps
from .places import Count, Places
from .port import Port

T = TypeVar("T")
_Whole = Callable[[], Any]
"""Makes an object of which all has come."""

# Senders have ports on the other nodes.
RECEIVER_NODE = 0
# Tags of the messages of a queue.
_BYTES = 0  # A bytes object, whole.
_PICKLE = 1  # A pickle, whole.
_BEGIN = 2  # The lengths of parts that follow: a pickle, then its buffers, or a bytes object.
_PART = 3  # The next piece of those.
# A put() in the middle of another one, as of a signal handler, adds this to both, for each depth.
_LANE = 2
_LANES = 126
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
# A ring has a slot for each of the shortest messages that its bytes hold, within what the library
# allows.
_SLOT_BYTES = 64
_SLOTS_MIN, _SLOTS_MAX = 256, 16384

# Memory of up to this length is kept for the next object.
_KEPT_BYTES = 4 << 20

# Cost: a global name is found faster than an attribute; these are called for each object.
_send = lib.velo_send
_recv_tagged = lib.velo_py_recv_tagged
_unpack = ffi.unpack
_loads = pickle.loads
_TAG_SHIFT = lib.VELO_PY_TAG_SHIFT
_LENGTH_MASK = (1 << _TAG_SHIFT) - 1

_queues: "weakref.WeakSet[Queue[Any]]" = weakref.WeakSet()
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


class _Arriving:
    """A long object of which not all has come."""

    def __init__(self, queue: "Queue[Any]", lengths: list[int], is_bytes: bool) -> None:
        len_bytes = sum(-(-length // _ALIGN_BYTES) * _ALIGN_BYTES for length in lengths)
        len_bytes += _ALIGN_BYTES
        if len_bytes > _OBJECT_BYTES_MAX:
            raise fail(lib.VELO_ERR_TOO_BIG)
        self.queue = queue
        self.is_bytes = is_bytes
        # The object has nothing of the memory, which may serve the next one.
        self.is_copied = len(lengths) == 1 and len_bytes <= _KEPT_BYTES
        memory = None
        if self.is_copied:
            memory, queue._kept = queue._kept, None
        if memory is None or len(memory) < len_bytes:
            memory = _allocate("char[]", len_bytes)
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
            obj: Any = parts[0].tobytes()
        else:
            obj = _loads(parts[0], buffers=parts[1:])
        if self.is_copied:
            self.queue._kept = self.memory
        return obj


def _spans(start: int, lengths: list[int]) -> Iterator[tuple[int, int]]:
    for length in lengths:
        yield start, start + length
        start += -(-length // _ALIGN_BYTES) * _ALIGN_BYTES


class Queue(Generic[T]):
    """A queue of objects: any number of processes put, one process gets.

    It pickles with protocol 5; large buffers, such as those of numpy arrays, travel beside the
    pickle and are not copied into it. Give it to other processes as an argument of
    multiprocessing.Process, or open one with the same `name`, and `maxsize`, there.

    The process that makes a queue gets from it. With `here=False` the first process that calls
    get() does, and put() waits for it. After a fork the child can put.

    Unlike multiprocessing.Queue it has no thread: put() has delivered the object when it returns,
    and waits while the ring of its process is full. The ring has `capacity_bytes` for long objects
    and as many for short ones, of 56 bytes at most, but at most 16,384 objects. `maxsize` bounds
    the objects of all processes together, as that of multiprocessing.Queue. So a process that puts
    more than that into its own queue, and gets nothing, waits for ever. Objects of one process
    arrive in order. An object whose sender dies in the middle of it is dropped. If the receiver is
    gone, put() raises PeerClosed or PeerDead.

    Threads may share it; a time limit covers the wait for other threads. A signal handler, a
    `__del__` and unpickling may put; unpickling may get as well. A signal handler that gets in the
    middle of get() gets StateError, and takes nothing.

    As with every pickle, a receiver trusts its senders; the ports are open to this user alone.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        maxsize: int = 0,
        capacity_bytes: int = 1 << 18,
        here: bool = True,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"a queue's first argument is its name; give maxsize={name!r} by name")
        name = name or f"queue-{os.getpid()}-{secrets.token_hex(6)}"
        self._begin(name, capacity_bytes, max(0, maxsize))
        if here:
            self._receiver(None)

    def _begin(self, name: str, capacity_bytes: int, maxsize: int) -> None:
        self.name = name
        """The domain of its ports."""
        self.maxsize = maxsize
        """How many objects it holds at most; 0: as many as its bytes hold."""
        self._capacity_bytes = capacity_bytes
        self._is_closed = False
        self._forget()
        _queues.add(self)

    def _forget(self) -> None:
        """Begin anew: also in the child of a fork, where the ports are the parent's."""
        self._rx: Port | None = None
        self._tx: Port | None = None
        self._conn: Connection | None = None
        # The same, if nothing is to be done but to send.
        self._plain: Connection | None = None
        self._places: Places | None = None
        self._count: Count | None = None
        self._opening = turns.receiving()
        self._connecting = turns.sending()
        self._short = ffi.new("char[]", _MESSAGE_BYTES)
        self._kept: Any = None
        self._arriving: dict[tuple[int, int, int], _Arriving] = {}
        self._is_torn = False

    # ---- putting ---------------------------------------------------------------------------------

    def put(self, obj: T, block: bool = True, timeout: float | None = None) -> None:
        """Put an object; waits for room, at most `timeout` seconds. queue.Full if there is none.

        An object that is longer than a message goes in pieces. If the time runs out in the middle
        of one, the receiver drops it.
        """
        data: Any = obj
        if type(data) is bytes and timeout is None and block and len(data) <= _WHOLE_BYTES:
            conn = self._plain
            if conn is not None:  # The fast path: of most messages nothing else is done.
                with conn._turn:
                    handle = conn._conn
                    if handle is not None and not _send(
                        handle, data, len(data), _BYTES, waits.SEND_SLICE_NS
                    ):
                        return
        tag = _BYTES
        buffers: list[Any] = []
        if type(data) is not bytes:
            tag = _PICKLE
            data, buffers = dumps(obj, _APART_BYTES)
        end = (None if timeout is None else waits.deadline(timeout)) if block else 0
        try:
            conn = self._conn or self._connect(end)
            places = self._places
            if places is not None:
                places.take(end)
            try:
                with conn._turn.until(end) as depth:
                    if not buffers and len(data) <= min(_WHOLE_BYTES, conn.max_bytes):
                        self._send(conn, data, len(data), tag, end)
                    else:
                        self._put_long(conn, tag, [data, *buffers], end, depth)
            except BaseException:
                if places is not None:
                    with suppress(Error):  # The getter may be gone.
                        places.give_back()
                raise
        except Timeout:
            raise queue.Full from None  # Another thread puts, and waits.
        except (PeerClosed, PeerDead) as error:
            raise _getter_is_gone(error) from None

    def put_nowait(self, obj: T) -> None:
        """Put an object if there is room now; else queue.Full."""
        self.put(obj, block=False)

    def _put_long(
        self, conn: Connection, tag: int, parts: list[Any], end: int | None, depth: int
    ) -> None:
        if depth >= _LANES:
            raise StateError("put() is called in the middle of too many others")
        lane = depth * _LANE
        views = [ffi.from_buffer(part) for part in parts]
        head = struct.pack(f"<{len(views) + 1}Q", tag, *map(len, views))
        if len(head) > conn.max_bytes:
            raise fail(lib.VELO_ERR_TOO_BIG)
        self._send(conn, head, len(head), _BEGIN + lane, end)
        done = ffi.new("size_t *")
        piece_bytes = min(_PIECE_BYTES, conn.max_bytes)
        for view in views:
            done[0] = 0
            while status := lib.velo_py_send_long(
                conn._handle(), view, len(view), piece_bytes, _PART + lane,
                waits.left_ns(end, waits.SEND_SLICE_NS), done,
            ):  # fmt: skip
                self._go_on_putting(conn, status, end)

    def _send(self, conn: Connection, data: Any, len_bytes: int, tag: int, end: int | None) -> None:
        while status := lib.velo_send(
            conn._conn or conn._handle(), data, len_bytes, tag,
            waits.SEND_SLICE_NS if end is None else waits.left_ns(end, waits.SEND_SLICE_NS),
        ):  # fmt: skip
            self._go_on_putting(conn, status, end)

    def _go_on_putting(self, conn: Connection, status: int, end: int | None) -> None:
        if self._is_closed or conn._is_closing:
            raise Closed("the queue was closed")
        if status not in (lib.VELO_TIMEOUT, lib.VELO_AGAIN, lib.VELO_ERR_INTERRUPTED):
            raise fail(status)
        if waits.is_over(end):
            raise queue.Full

    def _connect(self, end: int | None) -> Connection:
        with self._connecting.until(end) as depth:
            self._check()
            if self._conn is not None:
                return self._conn
            if depth and self.maxsize:
                raise StateError(
                    "the put() that was interrupted is about to connect this queue: a signal "
                    "handler, a __del__ or the like can put when it has; nothing was put"
                )
            port = self._rx or self._tx
            if port is None:
                port = self._sender()
                # A signal handler in the middle of this may have been faster; so below.
                if self._tx is None:
                    self._tx = port
                else:
                    port.close()
                    port = self._tx
            receiver = RECEIVER_NODE << lib.VELO_ADDRESS_VPID_BITS
            left_s = None if end is None else waits.left_ns(end, 1 << 62) / 1e9
            try:
                conn = port.connect(receiver, left_s)
                places = Places(port, conn, self.maxsize, end) if self.maxsize else None
            except NoPeer:
                raise queue.Full from None  # Nobody gets yet.
            if self._conn is None:
                self._places = places
                self._plain = conn if places is None else None
                self._conn = conn
            # Otherwise the second one stays: its end would be taken for that of the first.
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
        end = (None if timeout is None else waits.deadline(timeout)) if block else 0
        try:
            port = self._rx or self._receiver(end)
            turn = port._turn
            with turn if end is None else turn.until(end):
                while True:
                    if self._arriving:
                        whole = self._take_piece(port, end)
                        if whole:
                            break
                        continue
                    found = _recv_tagged(
                        port._port or port._handle(), self._short, _MESSAGE_BYTES, port._msg,
                        waits.SLICE_NS if end is None else waits.left_ns(end),
                    )  # fmt: skip
                    if 0 <= found <= _MESSAGE_BYTES:  # The tag is _BYTES, which is 0.
                        if (count := self._count) is not None:
                            count.free()
                        return _unpack(self._short, found)
                    if found < 0:
                        self._go_on_getting(port, found, port._msg, end)
                        continue
                    tag, data = found >> _TAG_SHIFT, _unpack(self._short, found & _LENGTH_MASK)
                    if tag == _PICKLE:
                        whole = None
                        break
                    self._begin_long(port._msg, tag, data)
                if (count := self._count) is not None:
                    count.free()
        except Timeout:
            raise queue.Empty from None  # Another thread gets.
        # Out of turn: what is unpickled may get from here, too.
        return _loads(data) if whole is None else whole()

    def get_nowait(self) -> T:
        """The next object if one is there; else queue.Empty."""
        return self.get(block=False)

    async def get_async(self) -> T:
        """The next object; waits in asyncio. Several tasks may, also beside threads that get."""
        while True:
            try:
                return self.get(block=False)
            except queue.Empty:
                await self._receiver(None).wait_async()

    def _take_piece(self, port: Port, end: int | None) -> _Whole | None:
        """While long objects arrive: the next message, in place, and the pieces behind it."""
        if self._is_torn:  # A signal handler raised an exception behind a piece, perhaps the last.
            self._is_torn = False
            for key, arriving in self._arriving.items():
                if arriving.room()[1] == 0:
                    return self._arriving.pop(key).object
        place = port._place
        status = lib.velo_py_peek(port._handle(), place, waits.left_ns(end))
        if status == lib.VELO_ERR_STATE:
            status = lib.VELO_OK  # The same; `place` tells of the message that is held.
        while status in (lib.VELO_OK, lib.VELO_PY_OTHER):
            key = (place.source, place.generation, place.tag - _PART)
            found = self._arriving.get(key)
            if found is None:
                self._is_torn = False
                return self._take_other(port, place)
            self._is_torn = True
            into, length = found.room()
            if place.len_bytes > length - found.done[0]:
                lib.velo_release(port._port)
                del self._arriving[key]
                self._is_torn = False
                raise fail(lib.VELO_ERR_CORRUPT)
            status = lib.velo_py_take_pieces(
                port._port, into, length, place, waits.left_ns(end), found.done
            )
            if status == lib.VELO_OK:
                if found.room()[1] == 0:
                    self._is_torn = False
                    return self._arriving.pop(key).object
                status = lib.velo_py_peek(port._port, place, waits.left_ns(end))
        self._is_torn = False
        self._go_on_getting(port, status, place, end)
        return None

    def _take_other(self, port: Port, place: Any) -> _Whole | None:
        """A message in place that is no piece: a whole object, or the beginning of a long one."""
        data = _unpack(ffi.cast("char *", place.address), place.len_bytes)
        lib.velo_release(port._port)
        if place.tag == _PICKLE:
            return partial(_loads, data)
        if place.tag == _BYTES:
            return lambda: data
        self._begin_long(place, place.tag, data)
        return None

    def _begin_long(self, said: Any, tag: int, head: bytes) -> None:
        if tag % _LANE == _PART % _LANE:
            return  # A piece of an object whose beginning was dropped.
        kind, *lengths = struct.unpack(f"<{len(head) // 8}Q", head)
        arriving = _Arriving(self, lengths, kind == _BYTES)
        self._arriving[said.source, said.generation, tag - _BEGIN] = arriving

    def _go_on_getting(self, port: Port, status: int, said: Any, end: int | None) -> None:
        """No message came: return if the wait goes on."""
        if status in (lib.VELO_ERR_PEER_CLOSED, lib.VELO_ERR_PEER_DEAD, lib.VELO_ERR_CORRUPT):
            gone = (said.source, said.generation)
            for key in [key for key in self._arriving if key[:2] == gone]:
                del self._arriving[key]
                # Who closed has given the place back.
                if status != lib.VELO_ERR_PEER_CLOSED and (count := self._count) is not None:
                    count.free()
            return
        if status == lib.VELO_ERR_INTERRUPTED:
            port._notice_interrupt()
        elif status not in (lib.VELO_TIMEOUT, lib.VELO_AGAIN):
            raise fail(status)
        if waits.is_over(end):
            raise queue.Empty

    def _receiver(self, end: int | None) -> Port:
        with self._opening.until(end):
            self._check()
            if self._rx is None:
                try:
                    port = Port(
                        domain=self.name, node=RECEIVER_NODE, vpid=0,
                        depth_slots=_slots(self._capacity_bytes), data_bytes=self._capacity_bytes,
                        departures=True,
                    )  # fmt: skip
                except InUse:
                    raise InUse(
                        f"another process gets from this queue ({self.name}) already, and only one "
                        "can: make a queue for each process that gets"
                    ) from None
                self._count = Count(port) if self.maxsize else None
                self._rx = port
            return self._rx

    # ---- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close this process's end. What it put is still delivered."""
        self._is_closed = True
        for port in (self._tx, self._rx):
            if port is not None:
                port.close()
        self._rx = self._tx = self._conn = self._plain = self._places = self._count = None

    def _check(self) -> None:
        if self._is_closed:
            raise Closed("the queue was closed")

    def __getstate__(self) -> tuple[str, int, int]:
        return self.name, self._capacity_bytes, self.maxsize

    def __setstate__(self, state: tuple[str, int, int]) -> None:
        self._begin(*state)

    def __enter__(self) -> "Queue[T]":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<velo.Queue {self.name}>"


def _slots(capacity_bytes: int) -> int:
    """How many slots a ring of so many bytes has: a power of two, as they are."""
    return max(_SLOTS_MIN, min(_SLOTS_MAX, capacity_bytes // _SLOT_BYTES))


def _getter_is_gone(error: Error) -> Error:
    how = "closed it" if isinstance(error, PeerClosed) else "was killed, or crashed"
    return type(error)(
        f"the process that got from this queue {how}; objects that it had not taken are lost, and "
        "no process can get them: make a new queue"
    )


def _forget_all() -> None:
    for one in list(_queues):
        one._forget()


os.register_at_fork(after_in_child=_forget_all)
