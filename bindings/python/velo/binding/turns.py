# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is: the lock of the binding.

The library takes one thread at a time at each of its objects. What receives and what sends has a
`Turn` (turn.c) each. With `with turn.until(end)` a call's time limit covers the wait for its turn,
too, and a call that does not wait has 0 as its end.

A thread never waits for itself. A signal handler or a `__del__` that runs in the middle of a call
may send: what a send has to remember is in the library, or in variables of its own. It may not
receive where its thread is receiving, nor build a message where it is building one; then it gets
StateError, and nothing has happened. It may close: the call in whose middle it is ends with Closed,
and the closing is done after that (`Turn.then`).

What must not wait for a turn, such as an interrupt, holds the `_use` of the object, for one short
call. `close()` takes the library's object away under `_use`, so that no such call meets freed
memory.
"""

from functools import partial

from velo._turn import Turn

from .errors import StateError, Timeout

__all__ = ["Turn", "receiving", "sending"]


def receiving() -> Turn:
    """For what receives: a thread that has the turn does not get it once more."""
    return Turn(
        partial(Timeout, "another thread was receiving here for the time given"),
        partial(StateError, "this thread is in the middle of receiving here, so a signal handler, "
                "a __del__ or the like cannot receive, too; nothing was taken"),
    )  # fmt: skip


def sending() -> Turn:
    """For what sends: the depth, of `with turn as depth`, tells calls inside of others."""
    return Turn(partial(Timeout, "another thread was sending here for the time given"), None)
