# SPDX-License-Identifier: Apache-2.0
"""The binding of libvelo; `import velo` shows what this package names."""

from . import interpreters  # isort: skip  # noqa: F401  It may refuse to load the rest.

from velo._velo import ffi, lib

from .broadcast import Broadcast, BroadcastReader
from .connection import Connection
from .errors import (
    AccessError,
    ArgumentError,
    Closed,
    Corrupt,
    Error,
    Full,
    Interrupted,
    InUse,
    Missed,
    NoMemory,
    NoPeer,
    NoSpace,
    PeerClosed,
    PeerDead,
    StateError,
    SystemCallError,
    Timeout,
    TooBig,
    VersionError,
)
from .message import Message, Received
from .port import Counters, Port
from .queue import Queue
from .reservation import Reservation
from .rma import Class, Memory, Notification, Notify, Right, Rma, RmaPeer

__all__ = [
    "AccessError", "ArgumentError", "Broadcast", "BroadcastReader", "Class", "Closed", "Connection",
    "Corrupt", "Counters", "Error", "Full", "InUse", "Interrupted", "Memory", "Message", "Missed",
    "NoMemory", "NoPeer", "NoSpace",
    "Notification", "Notify", "PeerClosed", "PeerDead", "Port", "Queue", "Received", "Reservation",
    "Right", "Rma", "RmaPeer", "StateError", "SystemCallError", "Timeout", "TooBig", "VersionError",
    "port_id", "version",
]  # fmt: skip


def port_id(node: int, vpid: int) -> int:
    """The id of context `vpid` on node `node`."""
    return node << lib.VELO_ADDRESS_VPID_BITS | vpid


def version() -> str:
    """The release and the segment layout of the library, such as "1.0.0 abi 1"."""
    return ffi.string(lib.velo_version()).decode()
