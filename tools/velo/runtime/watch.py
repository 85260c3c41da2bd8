# SPDX-License-Identifier: Apache-2.0
"""Watch a job from outside: whether it used velo, and whether mpirun still ends it."""

import contextlib
import ctypes
import fcntl
import os
import signal
import struct
import sys
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import NamedTuple

LIBC = ctypes.CDLL(None)
IN_CREATE = 0x100
IN_Q_OVERFLOW = 0x4000
IN_ONLYDIR = 0x1000000
EVENT = struct.Struct("iIII")
READ_BYTES = 64 << 10

LOOK_INTERVAL_S = 1.0
# mpirun collects a rank that has died within milliseconds.
DEAD_LOOKS_MAX = 10
# The kernel waits twice as long each time: three seconds for so many, from 0.2 s on.
SENT_AGAIN = 4


class PortWatch:
    """Tells whether a port was opened in a domain: the kernel notes each new name in the folder.

    Where it cannot be known the answer is yes. When the answer becomes yes the watch ends, as its
    end takes the kernel 10 to 25 ms (it waits until no CPU looks at the watched folder's list):
    time that the job has meanwhile, and that otherwise comes behind it.
    """

    def __init__(self, folder: Path, domain: str) -> None:
        self._start = f"velo.{domain}.".encode()
        self._fd = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        path, mask = os.fsencode(folder), IN_CREATE | IN_ONLYDIR
        self._opened: bool = self._fd < 0 or LIBC.inotify_add_watch(self._fd, path, mask) < 0

    def signal_names(self) -> None:
        """From now on each new name in the folder sends us SIGIO, for which the caller waits."""
        if self._fd >= 0:
            fcntl.fcntl(self._fd, fcntl.F_SETOWN, os.getpid())
            flags = fcntl.fcntl(self._fd, fcntl.F_GETFL)
            fcntl.fcntl(self._fd, fcntl.F_SETFL, flags | os.O_ASYNC)

    def look(self) -> bool:
        """Has a port been opened by now? To be asked often: the kernel keeps so many names only."""
        with contextlib.suppress(BlockingIOError):
            while self._fd >= 0 and not self._opened:
                self._opened = any(
                    mask & IN_Q_OVERFLOW or name.startswith(self._start)
                    for mask, name in _events(os.read(self._fd, READ_BYTES))
                )
        if self._opened:
            self.close()
        return self._opened

    def close(self) -> None:
        """No more is noted: look() goes on to say what is known by now."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


def _events(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        _, mask, _, name_bytes = EVENT.unpack_from(data, at)
        at += EVENT.size + name_bytes
        yield mask, data[at - name_bytes : at]


class RankWatch:
    """Notices that mpirun hangs although ranks are dead.

    When a rank dies while others start, Open MPI 4.1's mpirun may end up waiting in
    PMIx_server_finalize() for a lock that nobody gives back: its ranks are dead, and it never ends.
    Where it has something to say to a host that is gone, it waits as long as the kernel does: a
    quarter of an hour.
    """

    def __init__(self, pid: int, depth: int) -> None:
        """Ranks are so many generations below a process."""
        self._pid = pid
        self._depth = depth
        self._looks: dict[Hashable, int] = {}

    def look(self) -> str:
        """A sentence on what is wrong; empty while all is well. To be called again and again."""
        signs = dict(sign for pid in self._launchers() for sign in _signs(pid))
        self._looks = {key: self._looks.get(key, 0) + 1 for key in signs}
        return next((signs[key] for key, n in self._looks.items() if n > DEAD_LOOKS_MAX), "")

    def _launchers(self) -> list[int]:
        pids = [self._pid]
        for _ in range(self._depth - 1):
            pids = [child for pid in pids for child in children(pid)]
        return pids


def _signs(launcher: int) -> Iterator[tuple[Hashable, str]]:
    """Signs that a launcher hangs, if they stay: what it is known by, and what it means."""
    own = stat(launcher)
    if own is None or own.state in "Tt":  # Stopped by hand, or by a debugger.
        return
    ranks = children(launcher)
    for rank in ranks:
        found = stat(rank)
        if found and found.state == "Z":
            yield (rank, found.started), f"rank process {rank} is dead and mpirun does not notice"
    # With its ranks gone it may rightly wait for the output of what they left running, but that is
    # no wait for a lock.
    if not ranks and waits_for_lock(launcher):
        yield own, "the ranks are gone and mpirun does not end"
    for address in unanswered(launcher):
        yield address, f"host {address} does not answer mpirun"


class Stat(NamedTuple):
    """What the kernel says of a process."""

    pid: int
    state: str
    started: int
    cpu_ticks: int


def stat(pid: int) -> Stat | None:
    """None: there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return Stat(pid, fields[0], int(fields[19]), int(fields[11]) + int(fields[12]))


def waits_for_lock(pid: int) -> bool:
    """Does the first thread of a process sleep on a futex?"""
    try:
        return Path(f"/proc/{pid}/wchan").read_text().startswith("futex")
    except OSError:
        return False


def unanswered(pid: int) -> set[str]:
    """Addresses to which the kernel sends a process's words again and again: none is answered."""
    # Cost: slow to import; the first look comes after a second.
    import socket

    sockets = set()
    with contextlib.suppress(OSError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(str(fd.readlink()))
    found = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                words = line.split()
                if f"socket:[{words[9]}]" in sockets and int(words[6], 16) >= SENT_AGAIN:
                    found.add(socket.inet_ntop(family, _address(words[2].partition(":")[0])))
    return found


def _address(text: str) -> bytes:
    """An address as the kernel shows it: words of four bytes, each as the processor has it."""
    words = (int(text[at : at + 8], 16) for at in range(0, len(text), 8))
    return b"".join(word.to_bytes(4, sys.byteorder) for word in words)


def end_all(pid: int) -> None:
    """Kill a process with all that it has started, and what those start meanwhile."""
    found = [pid]
    for parent in found:  # It grows.
        # A stopped process starts no others.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(parent, signal.SIGSTOP)
        found += children(parent)
    for each in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """The processes that a process has started and not yet collected."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, thread.read_text().split())
    return found
