# SPDX-License-Identifier: Apache-2.0
"""Remote memory: allocate or register it, put, get, update, and be notified."""

import enum
import itertools
from contextlib import AbstractContextManager
from functools import partial
from time import monotonic_ns
from typing import Any, NamedTuple

from velo._velo import ffi, lib

from . import turns, waits
from .errors import Closed, Error, StateError, Timeout, check, fail
from .memory import Lent
from .port import Buffer, Port, for_loop

# Notifications that one call takes at most.
_TAKEN_MAX = 64
# A unit that threads shared a second ago lets the others in so often.
_SHARED_NS = 1_000_000_000
_SHARED_SLICE_NS = 5_000_000
# After these a flush goes on.
_RETRY = (lib.VELO_AGAIN, lib.VELO_TIMEOUT, lib.VELO_ERR_INTERRUPTED)


class Right(enum.IntFlag):
    """What peers may do with registered memory."""

    READ = lib.VELO_RMA_RIGHT_READ
    WRITE = lib.VELO_RMA_RIGHT_WRITE
    ATOMIC = lib.VELO_RMA_RIGHT_ATOMIC
    ALL = lib.VELO_RMA_RIGHT_ALL


class Notify(enum.IntFlag):
    """Which sides of an operation are told of its end."""

    NONE = 0
    REQUESTER = lib.VELO_RMA_NOTIFY_REQUESTER
    RESPONDER = lib.VELO_RMA_NOTIFY_RESPONDER
    COMPLETER = lib.VELO_RMA_NOTIFY_COMPLETER


class Class(enum.IntEnum):
    """To whom a notification speaks."""

    REQUESTER = lib.VELO_RMA_CLASS_REQUESTER
    RESPONDER = lib.VELO_RMA_CLASS_RESPONDER
    COMPLETER = lib.VELO_RMA_CLASS_COMPLETER
    ERROR = lib.VELO_RMA_CLASS_ERROR


class Notification(NamedTuple):
    """One notification; see struct velo_rma_notification in velo-rma(7)."""

    kind: Class
    operation: int
    peer: int
    len_bytes: int
    cookie: int
    error: Error | None
    """Of kind ERROR: what the operation failed with."""


class Rma:
    """The remote memory unit of a port; one a port. It is closed with its port.

    Threads that use it, its peers and its memories take turns; a wait lets the others in. A signal
    handler or a `__del__` may use it in the middle of a call.
    """

    def __init__(self, port: Port) -> None:
        if port._rma is not None:
            raise StateError("the port has a unit already")
        handle = port._handle()
        if not port._unit[0]:
            check(lib.velo_rma_open(handle, ffi.NULL, port._unit))
        self._rma: Any = port._unit[0]
        self._port = port
        self._turn = turns.sending()
        self._is_closing = False
        self._shared_until = 0
        self._memories: set[Memory] = set()
        self._peers: set[RmaPeer] = set()
        self._taken = ffi.new("struct velo_rma_notification[]", _TAKEN_MAX)
        port._rma = self

    def alloc(self, len_bytes: int, rights: Right = Right.ALL, peer: int | None = None) -> "Memory":
        """New memory that peers reach with loads and stores: zeroed, page aligned, registered.

        peer: the one port that may use it; None: every port that may connect.
        """
        mem = ffi.new("struct velo_rma_mem **")
        who = lib.VELO_RMA_PEER_ANY if peer is None else peer
        with self._now():
            check(lib.velo_rma_mem_alloc(self._handle(), len_bytes, rights, who, mem))
            return Memory(self, mem[0], len_bytes, None)

    def register(
        self, buffer: Buffer, rights: Right = Right.ALL, peer: int | None = None
    ) -> "Memory":
        """Let peers reach memory that Python has; it must be writable, and stays in use until then.

        Slower than alloc(): the kernel, or this process itself, moves the data.
        """
        mem = ffi.new("struct velo_rma_mem **")
        kept = ffi.from_buffer(buffer, require_writable=True)
        who = lib.VELO_RMA_PEER_ANY if peer is None else peer
        with self._now():
            check(lib.velo_rma_mem_register(self._handle(), kept, len(kept), rights, who, mem))
            return Memory(self, mem[0], len(kept), kept)

    def connect(self, peer: int, timeout: float | None = None) -> "RmaPeer":
        """Gain reach of a peer's memory; waits for it to open its unit."""
        out = ffi.new("struct velo_rma_peer **")
        end = waits.deadline(timeout)
        while True:
            with self._now(end):
                ns = waits.left_ns(end, waits.SEND_SLICE_NS)
                status = lib.velo_rma_connect(self._handle(), peer, out, ns)
                if status == 0:
                    return RmaPeer(self, out[0], peer)
                if not waits.may_still_come(status, end):
                    raise fail(status, cold=True)
            self._let_others()

    def poll(self, timeout: float | None = None) -> list[Notification]:
        """Notifications that are there, the oldest first; waits for one, at most `timeout` seconds.

        Also carries out what peers ask for.
        """
        end = waits.deadline(timeout)
        while True:
            with self._turn.until(end) as depth:
                taken = self._taken_at(depth)
                ns = self._slice_ns(end)
                count = lib.velo_rma_poll(self._handle(), taken, _TAKEN_MAX, ns)
                if count >= 0:
                    return [_notification(taken[i]) for i in range(count)]
            self._let_others()
            self._port._go_on(count, end, None)

    def try_poll(self) -> list[Notification]:
        """Notifications that are there now; also carries out what peers ask for."""
        try:
            with self._turn.until(0) as depth:
                taken = self._taken_at(depth)
                count = lib.velo_rma_try_poll(self._handle(), taken, _TAKEN_MAX)
                check(count)
                return [_notification(taken[i]) for i in range(count)]
        except Timeout:
            return []  # Another thread polls, and takes what is there.

    def _taken_at(self, depth: int) -> Any:
        """Where the library puts notifications; a poll() inside of another has its own memory."""
        return ffi.new("struct velo_rma_notification[]", _TAKEN_MAX) if depth else self._taken

    def fileno(self) -> int:
        """A descriptor for event loops, as Port.fileno()."""
        fd = ffi.new("int *")
        with for_loop(self._turn):
            check(lib.velo_rma_fd(self._handle(), fd))
        return fd[0]

    def arm(self) -> bool:
        """As Port.arm(); False if there is something to do: call try_poll()."""
        self.fileno()
        with for_loop(self._turn):
            status = lib.velo_rma_arm(self._handle())
        if status not in (lib.VELO_OK, lib.VELO_AGAIN, lib.VELO_ERR_INTERRUPTED):
            raise fail(status)
        return status == lib.VELO_OK

    def close(self) -> None:
        """End all registrations, close the unit. BufferError while an allocated memory is seen.

        In a signal handler, in the middle of a call on it: that call ends first.
        """
        self._is_closing = True
        if self._turn.is_own():
            self._turn.then(self.close)
            return
        try:
            with self._now():
                if self._rma is not None:
                    self._end()
        finally:
            self._is_closing = False

    def _end(self) -> None:
        for memory in list(self._memories):
            while not memory._end(waits.SLICE_NS):
                pass
        for peer in list(self._peers):
            peer._end()
        rma, self._rma = self._rma, None
        self._port._rma, self._port._unit[0] = None, ffi.NULL
        check(lib.velo_rma_close(rma))

    def _now(self, end: int | None = None) -> AbstractContextManager[int]:
        """The turn for a call that others' waits let in, between two slices."""
        if self._turn.is_others():
            self._shared_until = monotonic_ns() + _SHARED_NS
        return self._turn.until(end)

    def _slice_ns(self, end: int | None) -> int:
        """How long to wait next: shorter while threads share the unit."""
        is_shared = monotonic_ns() < self._shared_until
        return waits.left_ns(end, _SHARED_SLICE_NS if is_shared else waits.SEND_SLICE_NS)

    def _let_others(self) -> None:
        """Between two slices of a wait."""
        if self._is_closing:
            raise Closed("the RMA unit is being closed")
        if self._port._is_closing:
            raise Closed("the port of this unit is being closed")
        self._turn.let_others()

    def _forget(self) -> None:
        self._rma = None
        self._turn = turns.sending()
        self._is_closing = False
        for memory in self._memories:
            memory._forget()
        for peer in self._peers:
            peer._forget()

    def _handle(self) -> Any:
        if self._rma is None:
            raise Closed("the RMA unit was closed")
        return self._rma

    def __enter__(self) -> "Rma":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Memory:
    """Registered memory: `data` shows it here, `key` names it to peers."""

    def __init__(self, rma: Rma, mem: Any, len_bytes: int, kept: Any) -> None:
        self._rma = rma
        self._mem = mem
        self._kept = kept
        self._key: int = lib.velo_rma_mem_key(mem)
        address = lib.velo_py_mem_addr(mem)
        self._lent = Lent(rma, address, len_bytes, readonly=False)
        rma._memories.add(self)

    @property
    def data(self) -> memoryview:
        """The memory, writable."""
        self._handle()
        return self._lent.view

    @property
    def key(self) -> int:
        """The number that peers need to reach it; send it to them."""
        self._handle()
        return self._key

    def publish(self, number: int) -> None:
        """Let peers find it with `RmaPeer.lookup(number)`; 0: no more."""
        with self._rma._now():
            check(lib.velo_rma_mem_publish(self._handle(), number))

    def close(self, timeout: float | None = None) -> None:
        """End the registration; free allocated memory. BufferError while an array of it is alive.

        Waits for peers that are touching it now.
        """
        if self._rma._turn.is_own():
            self._rma._turn.then(partial(self.close, timeout))
            return
        end = waits.deadline(timeout)
        while True:
            with self._rma._now(end):
                if self._mem is None or self._end(waits.left_ns(end, waits.SEND_SLICE_NS)):
                    return
            if waits.is_over(end):
                raise Timeout("a peer is still touching the memory; close it again later")
            self._rma._let_others()

    def _end(self, timeout_ns: int) -> bool:
        """In one's turn; False: a peer is touching the memory."""
        self._lent.end()
        status = lib.velo_rma_mem_deregister(self._mem, timeout_ns)
        if status == lib.VELO_TIMEOUT:
            return False
        if status:
            raise fail(status, cold=True)
        self._rma._memories.discard(self)
        self._forget()
        return True

    def _forget(self) -> None:
        self._mem = self._kept = None

    def _handle(self) -> Any:
        if self._mem is None:
            raise Closed("the registration has ended")
        return self._mem

    def __len__(self) -> int:
        return len(self.data)

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class RmaPeer:
    """The right to reach one peer's registered memory.

    put() and get() return when the operation is under way; flush() waits for its end. Until then
    the local buffer is kept alive and must not change (put), or is not yet filled in (get).
    """

    def __init__(self, rma: Rma, peer: Any, peer_id: int) -> None:
        self._rma = rma
        self._peer = peer
        # The buffers of what is under way, each with a number that grows.
        self._in_use: dict[int, Any] = {}
        self._numbers = itertools.count()
        self.peer = peer_id
        rma._peers.add(self)

    def lookup(self, number: int, rights: Right = Right.ALL) -> int:
        """The key of the registration that the peer published under this number."""
        place = ffi.new("struct velo_rma_place *")
        with self._rma._now():
            check(lib.velo_rma_mem_lookup(self._handle(), number, rights, place))
        return place.key

    def put(
        self,
        data: Buffer,
        key: int,
        offset: int = 0,
        notify: Notify = Notify.NONE,
        cookie: int = 0,
    ) -> None:
        """Write a buffer to the peer's memory."""
        local = ffi.from_buffer(data)
        self._post(lib.velo_rma_put, local, len(local), (key, offset), notify, cookie, kept=local)

    def get(
        self,
        into: Buffer,
        key: int,
        offset: int = 0,
        notify: Notify = Notify.NONE,
        cookie: int = 0,
    ) -> None:
        """Read from the peer's memory into a buffer, as many bytes as it has."""
        local = ffi.from_buffer(into, require_writable=True)
        self._post(lib.velo_rma_get, local, len(local), (key, offset), notify, cookie, kept=local)

    def put_word(
        self,
        value: int,
        key: int,
        offset: int = 0,
        len_bytes: int = 8,
        notify: Notify = Notify.NONE,
        cookie: int = 0,
    ) -> None:
        """Write a number of 1 to 8 bytes; one store where it is aligned."""
        self._post(lib.velo_rma_put_immediate, value, len_bytes, (key, offset), notify, cookie)

    def notify(self, cookie: int, notify: Notify = Notify.COMPLETER) -> None:
        """Notify the peer; it arrives after the data of earlier puts."""
        self._post(lib.velo_rma_notify, notify, cookie)

    def fetch_add(
        self,
        key: int,
        offset: int,
        value: int,
        timeout: float | None = None,
        at_most: int | None = None,
    ) -> int:
        """Add to a 64-bit word, atomically; returns what it was. Waits for the answer.

        at_most: only if the word is not above that, as a signed number.
        """
        old = ffi.new("uint64_t *")
        flags = lib.VELO_RMA_ADD_ALWAYS if at_most is None else lib.VELO_RMA_ADD_AT_MOST
        compare, add = (at_most or 0) % 2**64, value % 2**64
        self._post(
            lib.velo_rma_fetch_compare_add, old, (key, offset), compare, add, flags, 0, kept=old
        )
        self.flush(timeout)
        return old[0]

    def compare_swap(
        self, key: int, offset: int, compare: int, desired: int, timeout: float | None = None
    ) -> int:
        """Replace a 64-bit word if it equals `compare`, atomically; returns what it was."""
        old = ffi.new("uint64_t *")
        words = [ffi.new("uint64_t *", word) for word in (compare, desired)]
        self._post(lib.velo_rma_compare_swap, old, 8, (key, offset), *words, 0, 0, kept=old)
        self.flush(timeout)
        return old[0]

    def fence(self) -> None:
        """What is posted from here on takes effect after what was posted before."""
        with self._rma._now():
            check(lib.velo_rma_fence(self._handle()))

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything posted is done: written data is there, read data is here.

        An operation that failed meanwhile has left a notification of kind ERROR.
        """
        end = waits.deadline(timeout)
        while True:
            with self._rma._now(end):
                last = next(self._numbers)
                ns = self._rma._slice_ns(end)
                status = lib.velo_rma_flush(self._handle(), ns)
                if status == lib.VELO_OK:
                    # A signal handler may have posted meanwhile.
                    for number in list(self._in_use):
                        if number < last:
                            self._in_use.pop(number, None)
                    return
            self._rma._let_others()
            if status == lib.VELO_AGAIN:
                raise StateError("too many notifications wait; poll() them, then flush again")
            if status not in _RETRY:
                raise fail(status)
            if waits.is_over(end):
                raise Timeout("operations on the peer are still under way")

    def close(self) -> None:
        """Give the peer up. Operations under way end with notifications of kind ERROR."""
        if self._rma._turn.is_own():
            self._rma._turn.then(self.close)
            return
        with self._rma._now():
            if self._peer is not None:
                self._end()

    def _end(self) -> None:
        peer, self._peer = self._peer, None
        self._rma._peers.discard(self)
        check(lib.velo_rma_disconnect(peer))
        self._in_use.clear()

    def _forget(self) -> None:
        self._peer = None

    def _post(self, call: Any, *args: Any, kept: Any = None) -> None:
        while True:
            with self._rma._now():
                status = call(self._handle(), *args)
                if status == lib.VELO_OK:
                    if kept is not None:
                        self._in_use[next(self._numbers)] = kept
                    return
            if status != lib.VELO_AGAIN:
                raise fail(status)
            # No room: what is under way has to end first.
            self.flush()

    def _handle(self) -> Any:
        if self._peer is None:
            raise Closed("the peer was given up, or its unit was closed")
        return self._peer

    def __enter__(self) -> "RmaPeer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _notification(said: Any) -> Notification:
    kind = Class(said.class_)
    error = fail(said.status) if kind is Class.ERROR else None
    return Notification(kind, said.op, said.peer, said.len_bytes, said.cookie, error)
