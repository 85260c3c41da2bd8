# SPDX-License-Identifier: Apache-2.0
"""Ask programs what they know, all at once and without waiting: the answer is fetched when it is
needed."""

import functools
import select
import subprocess
import time

TIMEOUT_S = 10.0
READ_BYTES = 64 << 10


class Question:
    """A program that runs, and what it says on stdout."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        """Start it; whoever cannot be started says nothing."""
        self._text: str | None = None
        self._until = time.monotonic() + TIMEOUT_S
        try:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            self._text = ""

    def answer(self) -> str:
        """All that it has said at its end; nothing if it goes on for longer than TIMEOUT_S."""
        if self._text is None:
            said = self._read()
            # It has closed its output, or it is late. Popen.wait() with a limit would look, sleep
            # and look again.
            self._process.kill()
            self._process.wait()
            self._text = "" if said is None else said.decode(errors="replace")
        return self._text

    def _read(self) -> bytes | None:
        """What it says; None: it does not end."""
        said = []
        assert self._process.stdout
        with self._process.stdout as pipe:
            poll = select.poll()
            poll.register(pipe, select.POLLIN)
            while poll.poll(max(0.0, self._until - time.monotonic()) * 1000):
                said.append(pipe.read1(READ_BYTES))  # type: ignore[attr-defined]
                if not said[-1]:
                    return b"".join(said)
        return None


@functools.cache
def ask(*argv: str) -> Question:
    """The question, which is asked once."""
    return Question(argv)
