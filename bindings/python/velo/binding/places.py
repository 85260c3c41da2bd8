# SPDX-License-Identifier: Apache-2.0
"""The places of a queue with a `maxsize`: all its processes count its objects together."""

import queue
import time

from velo._velo import lib

from . import waits
from .connection import Connection
from .errors import Error, StateError
from .port import Port
from .rma import Right, Rma

# The number under which the getter's process publishes the word that counts.
_NUMBER = 1
# After the getter has opened its port, how long it may take to publish the word.
_PUBLISHED_S = 5.0


class Count:
    """In the process that gets: the word. It goes with its port."""

    def __init__(self, port: Port) -> None:
        self._memory = Rma(port).alloc(8, Right.READ | Right.ATOMIC)
        self._memory.publish(_NUMBER)
        self._address = lib.velo_py_mem_addr(self._memory._handle())

    def free(self) -> None:
        """An object was taken out. In the turn of the port, which keeps the word."""
        lib.velo_py_count_down(self._address)


class Places:
    """In a process that puts: it takes a place before it sends an object."""

    def __init__(self, port: Port, conn: Connection, maxsize: int, end: int | None) -> None:
        self._conn = conn
        self._maxsize = maxsize
        left_s = None if end is None else waits.left_ns(end, 1 << 62) / 1e9
        self._peer = (port._rma or Rma(port)).connect(conn.peer, left_s)
        self._key = self._find()

    def _find(self) -> int:
        late = waits.deadline(_PUBLISHED_S)
        while True:
            try:
                return self._peer.lookup(_NUMBER, Right.ATOMIC)
            except Error as error:
                self._conn.check_peer()
                if waits.is_over(late):
                    raise StateError(
                        "this queue was given a maxsize, but not by the process that gets"
                    ) from error
            time.sleep(waits.LOOK_S)

    def take(self, end: int | None) -> None:
        """Wait for a place, and take it; queue.Full if there is none."""
        looks = 0
        while self._peer.fetch_add(self._key, 0, 1, at_most=self._maxsize - 1) >= self._maxsize:
            if waits.is_over(end):
                raise queue.Full
            if looks % 100 == 0:
                self._conn.check_peer()
            looks += 1
            time.sleep(waits.LOOK_S)

    def give_back(self) -> None:
        """What was to be put was not."""
        self._peer.fetch_add(self._key, 0, -1)
