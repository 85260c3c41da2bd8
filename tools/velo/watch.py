# SPDX-License-Identifier: Apache-2.0
"""Watch a job from outside: whether it used velo."""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

LIBC = ctypes.CDLL(None)
IN_CREATE = 0x100
IN_Q_OVERFLOW = 0x4000
IN_ONLYDIR = 0x1000000
EVENT = struct.Struct("iIII")
READ_BYTES = 64 << 10

LOOK_INTERVAL_S = 1.0


class PortWatch:
    """Tells whether a port was opened in a domain: the kernel notes each new name in the folder.

    Where it cannot be known the answer is yes.
    """

    def __init__(self, folder: Path, domain: str) -> None:
        self._start = f"velo.{domain}.".encode()
        self._fd = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        path, mask = os.fsencode(folder), IN_CREATE | IN_ONLYDIR
        self._opened = self._fd < 0 or LIBC.inotify_add_watch(self._fd, path, mask) < 0

    def look(self) -> bool:
        """Has a port been opened by now? To be asked often: the kernel keeps so many names only."""
        with contextlib.suppress(BlockingIOError):
            while not self._opened:
                self._opened = any(
                    mask & IN_Q_OVERFLOW or name.startswith(self._start)
                    for mask, name in _events(os.read(self._fd, READ_BYTES))
                )
        return self._opened

    def close(self) -> None:
        """No more questions."""
        if self._fd >= 0:
            os.close(self._fd)


def _events(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        _, mask, _, name_bytes = EVENT.unpack_from(data, at)
        at += EVENT.size + name_bytes
        yield mask, data[at - name_bytes : at]
