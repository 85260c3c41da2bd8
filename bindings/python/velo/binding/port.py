# SPDX-License-Identifier: Apache-2.0
"""Ports: where messages are received, and where connections begin."""

import asyncio
import atexit
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from velo._velo import ffi, lib

from . import turns, waits
from .errors import Closed, Interrupted, StateError, Timeout, check, fail
from .message import Message, Received

if TYPE_CHECKING:
    from .connection import Connection
    from .rma import Rma

Buffer = Any
"""Anything with a buffer: bytes, bytearray, memoryview, array, a numpy array, ..."""

# An event loop looks again so often: arming finds senders that have died.
LOOK_S = 1.0
_GONE = (lib.VELO_ERR_PEER_CLOSED, lib.VELO_ERR_PEER_DEAD, lib.VELO_ERR_CORRUPT)
_ports: "weakref.WeakSet[Port]" = weakref.WeakSet()


class Counters(NamedTuple):
    """Counts of a port since it was opened; see velo_port_counters(3)."""

    rx_msgs: int
    rx_bytes: int
    rx_doorbells: int
    rx_sleeps: int
    rx_errors: int
    rx_conns: int
    rx_reclaimed: int
    tx_msgs: int
    tx_bytes: int
    tx_again: int
    tx_sleeps: int
    tx_conns: int


def _copied(msg: Any) -> tuple[bytes, Received]:
    """A message of recv_many()."""
    about = Received(msg.len_bytes, msg.tag, msg.source, msg.generation)
    return bytes(ffi.buffer(msg.data, msg.len_bytes)), about


class Port:
    """One receive queue, reached under an id; and the place where connections begin.

    A port belongs to the process that opened it: after fork() the child opens its own. Any thread
    may use it; calls that receive take turns, and their time limits cover the wait for the turn. A
    signal handler in the middle of such a call gets StateError if it receives, too. Waits hold
    neither the GIL nor a processor. Close it, or use it in a `with` block; that closes its
    connections and takes back all memory that it lent.

    domain, node, vpid, group, depth_slots, data_bytes and conns_max are those of
    velo_port_open(3); without a vpid the port takes the lowest free one of its node. With
    `departures`, receiving raises PeerClosed or PeerDead, with `source`, behind the last message of
    a sender that is gone. Closing waits at most `linger` seconds for messages to leave over a
    network, by itself half a second.
    """

    def __init__(
        self,
        *,
        domain: str | None = None,
        node: int = 0,
        vpid: int | None = None,
        depth_slots: int = 0,
        data_bytes: int = 0,
        conns_max: int = 0,
        group: str | None = None,
        departures: bool = False,
        linger: float = 0.0,
    ) -> None:
        self._port: Any = None
        self._why_closed = "the port was closed"
        self._is_closing = False
        self._is_interrupted = False
        self._set_turn()
        # Calls of connect() under way, and their threads.
        self._connecting: dict[object, int] = {}
        self._held: Message | None = None
        self._conns: set[Connection] = set()
        self._rma: Rma | None = None
        # The unit itself; also without an Rma, if a signal handler raised when it had been opened.
        self._unit = ffi.new("struct velo_rma **")
        # Tasks that wait, each with its loop.
        self._waiters: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}
        self._fd = -1
        self._msg = ffi.new("struct velo_msg *")
        self._place = ffi.new("struct velo_py_place *")
        names = [ffi.NULL if n is None else ffi.new("char[]", n.encode()) for n in (domain, group)]
        attr = ffi.new("struct velo_port_attr *")
        attr.size_bytes = ffi.sizeof("struct velo_port_attr")
        attr.domain, attr.group = names
        attr.node = node
        attr.vpid = lib.VELO_VPID_ANY if vpid is None else vpid
        attr.depth_slots, attr.data_bytes, attr.conns_max = depth_slots, data_bytes, conns_max
        attr.flags = lib.VELO_PORT_DEPARTURES if departures else 0
        if linger < 0:
            raise ValueError(f"linger is {linger}; give 0 or more seconds")
        attr.linger_ns = waits.nanoseconds(linger)
        port = ffi.new("struct velo_port **")
        self._buf_bytes = 65536
        self._buf = ffi.new("char[]", self._buf_bytes)
        _ports.add(self)
        try:
            check(lib.velo_port_open(attr, port))
        finally:
            # A signal handler may have raised when the port was open: then __del__ closes it.
            self._port = port[0] or None

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def id(self) -> int:
        """The id under which peers in the same domain connect to it."""
        return int(lib.velo_port_id(self._handle()))

    @property
    def generation(self) -> int:
        """Which opening of its id this is; never 0."""
        return int(lib.velo_port_generation(self._handle()))

    @property
    def closed(self) -> bool:
        """Was it closed, or is this the child of the process that opened it?"""
        return self._port is None

    def counters(self) -> Counters:
        """Its counters; each is read by itself."""
        out = ffi.new("struct velo_port_counters *")
        size = ffi.sizeof("struct velo_port_counters")
        check(lib.velo_port_counters(self._handle(), out, size))
        return Counters(*(getattr(out, name) for name in Counters._fields))

    # ---- sending ---------------------------------------------------------------------------------

    def connect(self, peer: int, timeout: float | None = None) -> "Connection":
        """Connect to the port with that id; waits for it to be opened, at most `timeout` seconds.

        Each thread that sends should have a connection of its own.
        """
        # A circle at load time otherwise: a connection knows its port.
        from .connection import Connection

        conn = ffi.new("struct velo_conn **")
        end = waits.deadline(timeout)
        call = object()
        while True:
            self._connecting[call] = threading.get_ident()
            try:
                self._check_open()
                # A slice of a sender: close() waits for its end, and cannot wake it.
                ns = waits.left_ns(end, waits.SEND_SLICE_NS)
                status = lib.velo_connect(self._handle(), peer, conn, ns)
                if status == 0:
                    connection = Connection(self, conn[0], peer)
                    self._conns.add(connection)
                    return connection
            finally:
                self._connecting.pop(call, None)
                if self._is_closing:  # By a signal handler in the middle of this, perhaps.
                    self.close()
            if not waits.may_still_come(status, end):
                raise fail(status, cold=True)

    def try_connect(self, peer: int) -> "Connection | None":
        """The right to send to a peer, without a wait; None: it has not answered yet.

        That is so over a network only. NoPeer: no such port is open.
        """
        from .connection import Connection

        conn = ffi.new("struct velo_conn **")
        status = lib.velo_try_connect(self._handle(), peer, conn)
        if status == lib.VELO_AGAIN:
            return None
        if status:
            raise fail(status, cold=True)
        connection = Connection(self, conn[0], peer)
        self._conns.add(connection)
        return connection

    # ---- receiving -------------------------------------------------------------------------------

    def recv(self, timeout: float | None = None) -> Message:
        """The next message, in place; waits for it, at most `timeout` seconds.

        One message is held at a time: release it before the next (`with port.recv() as message:`).
        """
        end = waits.deadline(timeout)
        with self._turn.until(end):
            while True:
                status = lib.velo_py_peek(self._handle(), self._place, waits.left_ns(end))
                if status == 0 or (status == lib.VELO_ERR_STATE and self._held is None):
                    return self._hold()
                self._go_on(status, end, self._place)

    def try_recv(self) -> Message | None:
        """The next message in place if one is there."""
        try:
            with self._at_once:
                status = lib.velo_py_peek(self._handle(), self._place, 0)
                if status == 0 or (status == lib.VELO_ERR_STATE and self._held is None):
                    return self._hold()
                self._nothing(status, self._place)
        except Timeout:
            pass  # Another thread receives, and takes what comes.
        return None

    def recv_bytes(self, timeout: float | None = None) -> bytes:
        """The next message, copied; waits for it, at most `timeout` seconds."""
        end = None if timeout is None else waits.deadline(timeout)
        with self._turn.until(end):
            while True:
                len_bytes = lib.velo_py_recv(
                    self._port or self._handle(),
                    self._buf,
                    self._buf_bytes,
                    self._msg,
                    waits.SLICE_NS if end is None else waits.left_ns(end),
                )
                if len_bytes >= 0:
                    return ffi.unpack(self._buf, len_bytes)
                if len_bytes == lib.VELO_ERR_STATE and self._held is None:
                    return self._copy_held()
                self._go_on(len_bytes, end, self._msg)

    def try_recv_bytes(self) -> bytes | None:
        """The next message, copied, if one is there."""
        try:
            with self._at_once:
                len_bytes = lib.velo_py_recv(
                    self._port or self._handle(), self._buf, self._buf_bytes, self._msg, 0
                )
                if len_bytes >= 0:
                    return ffi.unpack(self._buf, len_bytes)
                if len_bytes == lib.VELO_ERR_STATE and self._held is None:
                    return self._copy_held()
                self._nothing(len_bytes, self._msg)
        except Timeout:
            pass  # Another thread receives, and takes what comes.
        return None

    def recv_into(self, buffer: Buffer, timeout: float | None = None) -> Received:
        """The next message, copied into a buffer; waits for it, at most `timeout` seconds.

        TooBig if it does not fit; the message stays.
        """
        end = waits.deadline(timeout)
        into = ffi.from_buffer(buffer, require_writable=True)
        msg = self._msg
        with self._turn.until(end):
            while True:
                len_bytes = lib.velo_py_recv(
                    self._handle(), into, len(into), msg, waits.left_ns(end)
                )
                if len_bytes >= 0:
                    return Received(len_bytes, msg.tag, msg.source, msg.generation)
                self._go_on(len_bytes, end, msg)

    def recv_many(
        self, most: int = 64, timeout: float | None = None
    ) -> list[tuple[bytes, Received]]:
        """The next messages, copied, and what is known of each; waits for the first, at most
        `timeout` seconds, and takes those that are there, at most so many.
        """
        end = waits.deadline(timeout)
        msgs = ffi.new("struct velo_msg[]", max(most, 1))
        with self._turn.until(end):
            while True:
                count = lib.velo_recv_many(
                    self._handle(), msgs, most, self._buf, self._buf_bytes, waits.left_ns(end)
                )
                if count > 0:
                    return [_copied(msgs[i]) for i in range(count)]
                if count == lib.VELO_ERR_STATE and self._held is None:
                    held = self._hold()
                    about = Received(held.len_bytes, held.tag, held.source, held.generation)
                    data = bytes(held)
                    self._end_message(held)
                    return [(data, about)]
                self._go_on(count, end, msgs[0])

    def interrupt(self) -> None:
        """End a wait on this port, the one under way or else the next, with Interrupted.

        From any thread, and from a signal handler.
        """
        with self._use:
            port = self._handle()
            self._is_interrupted = True
            lib.velo_port_interrupt(port)

    # ---- event loops -----------------------------------------------------------------------------

    def fileno(self) -> int:
        """A descriptor for select, poll, epoll and the like; readable when something may have come.

        It tells only after `arm()`: receive until nothing is there, arm, wait, begin anew.
        """
        if self._fd < 0:
            with for_loop(self._turn):
                fd = ffi.new("int *")
                check(lib.velo_port_fd(self._handle(), fd))
                self._fd = fd[0]
        return self._fd

    def arm(self) -> bool:
        """Have the descriptor tell of what comes from now on; False if something is there already.

        Each wait needs a call before it. A loop should come back each second: arming also finds
        senders that have died. StateError if another thread is receiving.
        """
        with for_loop(self._turn):
            return self._arm()

    def _arm(self) -> bool:
        if self._fd < 0:
            fd = ffi.new("int *")
            check(lib.velo_port_fd(self._handle(), fd))
            self._fd = fd[0]
        status = lib.velo_port_arm(self._handle())
        if status == lib.VELO_ERR_INTERRUPTED:
            self._notice_interrupt()
        elif status not in (lib.VELO_OK, lib.VELO_AGAIN):
            raise fail(status)
        return status == lib.VELO_OK

    async def wait_async(self) -> None:
        """Wait in asyncio until a message may be there; then receive with try_recv().

        Several tasks may wait, also beside threads that receive; all are woken, and one of them
        finds the message.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        while self._watch(loop, future):
            look = loop.call_later(LOOK_S, _finish, future)
            try:
                await future
            finally:
                look.cancel()
                self._unwatch(loop, future)
            future = loop.create_future()

    def _watch(self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[None]") -> bool:
        """Have the future end when a message may be there; False if one may be there now."""
        try:
            with self._turn.until(0):
                if not self._arm():
                    return False
                self._waiters[future] = loop
                loop.add_reader(self._fd, self._wake_all)
                # A thread that receives meanwhile, and sleeps, takes the alarm for itself.
                self._turn.watch(self._wake_all)
        except Timeout:
            self._turn.then(partial(_wake, loop, future))
        return True

    def _unwatch(self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[None]") -> None:
        if self._waiters.pop(future, None) is None:
            return  # It waited for a turn, or close() has taken it out.
        if loop not in self._waiters.values():
            loop.remove_reader(self._fd)
        if not self._waiters:
            self._turn.watch(None)

    def _wake_all(self) -> None:
        for future, loop in list(self._waiters.items()):
            _wake(loop, future)

    async def recv_async(self) -> Message:
        """The next message, in place; waits in asyncio. Use asyncio.timeout() to wait less."""
        while True:
            message = self.try_recv()
            if message is not None:
                return message
            await self.wait_async()

    async def recv_bytes_async(self) -> bytes:
        """The next message, copied; waits in asyncio."""
        while True:
            data = self.try_recv_bytes()
            if data is not None:
                return data
            await self.wait_async()

    # ---- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close it with everything that was opened from it; wakes threads that wait for it.

        They get Closed. BufferError, and nothing is closed, while an array or a slice of memory
        that it lent is alive. Messages that wait to be received are lost. In a signal handler, in
        the middle of a call on this port: that call ends first.
        """
        with self._use:
            if self._port is None:
                return
            if not self._is_closing:
                self._is_closing = True
                lib.velo_port_interrupt(self._port)
        if threading.get_ident() in self._connecting.values():
            return  # This is a signal handler, or the like: connect() closes when it ends.
        for turn in self._turns():
            if turn.is_own():  # The same, in the middle of another call.
                turn.then(self.close)
                return
        try:
            with self._turn:
                while self._connecting:
                    time.sleep(waits.LOOK_S)
                if self._port is not None:
                    self._close()
        finally:
            self._is_closing = False

    def _turns(self) -> list[turns.Turn]:
        """Of all calls that use the port."""
        used = [self._turn, *(conn._turn for conn in list(self._conns))]
        return used if self._rma is None else [*used, self._rma._turn]

    def _close(self) -> None:
        # Everything that may be refused comes first.
        if self._held is not None:
            self._end_message(self._held)
        if self._rma is not None:
            self._rma.close()
        elif self._unit[0]:
            check(lib.velo_rma_close(self._unit[0]))
            self._unit[0] = ffi.NULL
        for connection in list(self._conns):
            connection.close()
        for future, loop in list(self._waiters.items()):
            loop.remove_reader(self._fd)
            _wake(loop, future, _break)
        self._waiters.clear()
        self._turn.watch(None)
        self._fd = -1
        with self._use:
            port, self._port = self._port, None
        lib.velo_port_close(port)

    def _forget(self) -> None:
        """In the child of a fork: nothing of it may be used, nor closed."""
        self._port = None
        self._why_closed = "the port belongs to the parent process; a child opens its own"
        self._set_turn()
        self._connecting = {}
        self._is_closing = False
        self._waiters = {}
        for connection in self._conns:
            connection._forget()
        self._conns = set()
        if self._rma is not None:
            self._rma._forget()
        self._fd = -1

    def __enter__(self) -> "Port":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_port", None) is not None:
            try:
                warnings.warn(
                    f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=1
                )
            finally:  # Warnings may be errors.
                self.close()

    def __repr__(self) -> str:
        return "<velo.Port closed>" if self._port is None else f"<velo.Port {self.id:#x}>"

    # ---- inside ----------------------------------------------------------------------------------

    def _handle(self) -> Any:
        if self._port is None:
            raise Closed(self._why_closed)
        return self._port

    def _set_turn(self) -> None:
        self._turn = turns.receiving()
        self._at_once = self._turn.until(0)  # Cost: made once, not for each try.
        self._use = threading.RLock()

    def _check_open(self) -> None:
        if self._is_closing:
            raise Closed(self._why_closed)

    def _hold(self) -> Message:
        place = self._place
        self._held = Message(
            self, place.address, place.len_bytes, place.tag, place.source, place.generation
        )
        return self._held

    def _copy_held(self) -> bytes:
        """The message that the library holds and nobody else: when it came, a signal handler raised
        an exception."""
        message = self._hold()
        data = bytes(message)
        self._end_message(message)
        return data

    def _release(self, message: Message) -> None:
        with self._turn:
            if message is self._held:
                self._end_message(message)

    def _end_message(self, message: Message) -> None:
        # In this order: if a signal handler raises in between, the message is not seen twice.
        message._end()
        lib.velo_release(self._port)
        self._held = None

    def _notice_interrupt(self) -> None:
        """A wait was interrupted: by close(), by interrupt(), or by a signal: that one goes on."""
        self._check_open()
        if self._is_interrupted:
            self._is_interrupted = False
            raise Interrupted("interrupt() was called")

    def _go_on(self, status: int, end: int | None, said: Any) -> None:
        """After a slice of a wait without a message: return if the wait goes on."""
        if self._is_closing or status == lib.VELO_ERR_INTERRUPTED:
            self._notice_interrupt()
        elif status not in (lib.VELO_TIMEOUT, lib.VELO_AGAIN):
            raise _refused(status, said)
        if waits.is_over(end):
            raise Timeout(f"no message came in the time given to {self!r}")

    def _nothing(self, status: int, said: Any) -> None:
        if status != lib.VELO_AGAIN:
            raise _refused(status, said)


def _refused(status: int, said: Any) -> Exception:
    error = fail(status)
    if status in _GONE:
        error.source = said.source  # type: ignore[attr-defined]
        error.generation = said.generation  # type: ignore[attr-defined]
    return error


@contextmanager
def for_loop(turn: turns.Turn) -> Iterator[None]:
    """The turn for a call of an event loop, which must not wait for it."""
    try:
        with turn.until(0):
            yield
    except Timeout:
        raise StateError("another thread is receiving here") from None


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _break(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_exception(Closed("the port was closed"))


def _wake(
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[None]",
    how: "Callable[[asyncio.Future[None]], None]" = _finish,
) -> None:
    """From any thread."""
    with suppress(RuntimeError):  # The loop was closed.
        loop.call_soon_threadsafe(how, future)


def _close_all() -> None:
    """Peers are to hear that the ports were closed, not that this process died."""
    for port in list(_ports):
        try:
            port.close()
        except BufferError:
            continue  # The process ends with it.


def _forget_all() -> None:
    for port in list(_ports):
        port._forget()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)
