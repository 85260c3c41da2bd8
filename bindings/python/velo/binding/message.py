# SPDX-License-Identifier: Apache-2.0
"""A message that was received and still lies in its ring."""

from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import Closed
from .memory import Lent

if TYPE_CHECKING:
    from .broadcast import BroadcastReader
    from .port import Port

# A message of no bytes has no address to lend.
_EMPTY = memoryview(b"")


class Received(NamedTuple):
    """What `Port.recv_into()` says of a message that it has copied."""

    len_bytes: int
    tag: int
    source: int
    generation: int


class Message:
    """A message in place: `data` is a memoryview of the ring itself, nothing is copied.

    The memory goes back to the sender with `release()`, at the end of a `with` block, or when the
    port, or the reader of a ring, is closed. After that `data` raises Closed, and so does a view
    that was taken before (ValueError). While an array or a slice of `data` is alive, the release is
    refused with a BufferError: delete it, or copy what is to be kept.

    The sender can still write to this memory. If it is not trusted, copy before you check.
    """

    __slots__ = ("_lent", "_port", "generation", "len_bytes", "source", "tag")

    def __init__(
        self, port: "Port | BroadcastReader", address: int, len_bytes: int, tag: int,
        source: int, generation: int,
    ) -> None:  # fmt: skip
        self._port: Port | BroadcastReader | None = port
        self._lent = Lent(port, address, len_bytes, readonly=True) if len_bytes else None
        self.len_bytes = len_bytes
        self.tag = tag
        """The sender's tag, 0 to 255."""
        self.source = source
        """Id of the port that sent it."""
        self.generation = generation
        """Generation of that port: another one after it was opened again."""

    @property
    def data(self) -> memoryview:
        """The payload, read-only, in place."""
        if self._port is None:
            raise Closed("the message was released, or its port was closed")
        return self._lent.view if self._lent else _EMPTY

    def release(self) -> None:
        """Give the memory back to the sender. Once is enough; more does nothing."""
        if self._port is not None:
            self._port._release(self)

    def _end(self) -> None:
        """Take the memory back from whoever looks; the port calls this."""
        if self._lent:
            self._lent.end()
        self._lent = self._port = None

    def __len__(self) -> int:
        return self.len_bytes

    def __bytes__(self) -> bytes:
        return bytes(self.data)

    def __enter__(self) -> "Message":
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()

    def __repr__(self) -> str:
        state = "released" if self._port is None else f"{self.len_bytes} bytes"
        return f"<velo.Message tag={self.tag} source={self.source:#x}, {state}>"
