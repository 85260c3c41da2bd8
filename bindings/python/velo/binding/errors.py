# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the binding: one a status of `enum velo_status`, and `Closed`."""
# ruff: noqa: N818 (named as the statuses are; `velo.PeerDead` needs no "Error" behind it)

from velo._velo import ffi, lib


class Error(Exception):
    """What a call of the library failed with; `status` is its number, `name` the C name."""

    status: int = 0

    @property
    def name(self) -> str:
        """The C name of the status, such as "VELO_ERR_FULL"."""
        return _text(lib.velo_strerror(self.status)).split(":")[0]


class Closed(Error, ValueError):
    """The port, connection or message was closed or released before; nothing of it can be used."""


class Timeout(Error, TimeoutError):
    """The time given ran out first."""

    status = lib.VELO_TIMEOUT


class ArgumentError(Error, ValueError):
    """An argument is outside its range."""

    status = lib.VELO_ERR_ARG


class StateError(Error):
    """The call does not fit what was called before."""

    status = lib.VELO_ERR_STATE


class TooBig(Error, ValueError):
    """The message is longer than the ring or the buffer takes."""

    status = lib.VELO_ERR_TOO_BIG


class NoPeer(Error, ConnectionError):
    """No port of that id was open in the time given."""

    status = lib.VELO_ERR_NO_PEER


class PeerClosed(Error, ConnectionError):
    """The peer closed its port."""

    status = lib.VELO_ERR_PEER_CLOSED


class PeerDead(Error, ConnectionError):
    """The peer's process ended without closing its port."""

    status = lib.VELO_ERR_PEER_DEAD


class InUse(Error):
    """A live process has that port open already."""

    status = lib.VELO_ERR_IN_USE


class Full(Error):
    """The peer's connection table, the ids, or the registrations are used up."""

    status = lib.VELO_ERR_FULL


class AccessError(Error, PermissionError):
    """The memory or the port is not ours to reach."""

    status = lib.VELO_ERR_ACCESS


class NoSpace(Error):
    """The shared-memory file system is full."""

    status = lib.VELO_ERR_NO_SPACE


class NoMemory(Error, MemoryError):
    """The process is out of memory or of mappings."""

    status = lib.VELO_ERR_NO_MEMORY


class VersionError(Error):
    """The peer was built with another layout of its segments."""

    status = lib.VELO_ERR_VERSION


class Corrupt(Error):
    """Shared memory holds what no correct peer writes."""

    status = lib.VELO_ERR_CORRUPT


class SystemCallError(Error, OSError):
    """A system call failed; the text names it."""

    status = lib.VELO_ERR_SYSTEM


class Interrupted(Error):
    """`Port.interrupt()` was called. Signals end no wait: Python runs their handlers in it."""

    status = lib.VELO_ERR_INTERRUPTED


class Missed(Error):
    """Messages of a dropping ring were overwritten before this reader took them."""

    status = lib.VELO_ERR_MISSED


_BY_STATUS: dict[int, type[Error]] = {
    kind.status: kind for kind in Error.__subclasses__() if kind.status
}


def _text(chars: object) -> str:
    return ffi.string(chars).decode()


def fail(status: int, *, cold: bool = False) -> Error:
    """The exception of a status. After a call on a cold path it has the library's own sentence."""
    text = _text(lib.velo_last_error()) if cold else ""
    error = _BY_STATUS.get(status, Error)(text or _text(lib.velo_strerror(status)))
    error.status = status
    return error


def check(status: int) -> None:
    """Raise what a call on a cold path failed with."""
    if status < 0:
        raise fail(status, cold=True)
