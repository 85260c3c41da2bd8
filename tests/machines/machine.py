# SPDX-License-Identifier: Apache-2.0
"""Process number 1 of a machine, and the way in.

    machine.py boot FOLDER NAME             start NAME's first process, which serves the others
    machine.py enter FOLDER NAME WORD...    run a command line there, as ssh would
    machine.py run FOLDER NAME WORD...      the same, with this environment and folder

A machine is a set of namespaces (machines.py makes them). Files are everybody's, so a socket in
FOLDER is the way in even where the cable is cut. The process that enters hands over its own stdin,
stdout and stderr, waits, and ends with the command's exit code. If it is killed, so is the command.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
from pathlib import Path

UNREACHABLE = 255  # ssh's.
NOT_FOUND = 127  # The shell's.
BY_SIGNAL = 128
ORDER_BYTES_MAX = 1 << 20
# What a remote shell has, whatever the one who enters has set.
REMOTE = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
          "HOME": str(Path.home())}  # fmt: skip


def socket_of(folder: str, name: str) -> str:
    """Where a machine listens."""
    return str(Path(folder) / f"{name}.socket")


class Machine:
    """The first process: starts what is asked for, collects all that ends."""

    def __init__(self, listener: socket.socket) -> None:
        self.selector = selectors.DefaultSelector()
        self.waiting: dict[int, socket.socket] = {}
        """Who waits for the end of which process."""
        self.listener = listener
        ended, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.ended = ended
        self.selector.register(listener, selectors.EVENT_READ)
        self.selector.register(ended, selectors.EVENT_READ)

    def serve(self) -> None:
        """Without end: whoever made the machine kills it."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    self.start(self.listener.accept()[0])
                elif key.fileobj == self.ended:
                    os.read(self.ended, 4096)
                else:
                    self.give_up(key.data)
            self.collect()

    def start(self, client: socket.socket) -> None:
        """Run what a client asks for."""
        data, fds, _, _ = socket.recv_fds(client, ORDER_BYTES_MAX, 3)
        if not data or len(fds) != 3:
            client.close()
            return
        order = json.loads(data)
        pid = os.fork()
        if pid == 0:
            become(order, fds)
        for fd in fds:
            os.close(fd)
        self.waiting[pid] = client
        self.selector.register(client, selectors.EVENT_READ, pid)

    def give_up(self, pid: int) -> None:
        """A client has gone before its command."""
        client = self.waiting.pop(pid)
        self.selector.unregister(client)
        client.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)

    def collect(self) -> None:
        """Tell clients of what has ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            client = self.waiting.pop(pid, None)
            if client:
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):
                    client.send(b"%d" % (code if code >= 0 else BY_SIGNAL - code))
                self.selector.unregister(client)
                client.close()


def become(order: dict, fds: list[int]) -> None:
    """In the child: the command."""
    try:
        os.setpgrp()  # Not setsid(): the kernel shares cores out between sessions.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.closerange(3, 256)
        os.chdir(order["cwd"])
        os.execvpe("sh", ["sh", "-c", order["line"]], order["env"])
    except BaseException as error:
        os.write(2, f"machine: {error}\n".encode())
    os._exit(NOT_FOUND)


def temporary_of(folder: str, name: str) -> Path:
    """The folder for temporary files of a machine: what one leaves that was switched off is not in
    the way of the next one of that name."""
    return Path(folder) / f"{name}.tmp"


def boot(folder: str, name: str) -> None:
    """The machine's first process."""
    socket.sethostname(name)
    temporary_of(folder, name).mkdir(exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(socket_of(folder, name))
    listener.listen(64)
    machine = Machine(listener)
    print("ready", flush=True)
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 1)  # Who made us reads no more.
    machine.serve()


def enter(folder: str, name: str, line: str, env: dict[str, str], cwd: str) -> int:
    """Run a command line on a machine; its exit code."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.connect(socket_of(folder, name))
    except OSError:
        print(f"machine: {name}: no route to host", file=sys.stderr)
        return UNREACHABLE
    env = {**env, "TMPDIR": str(temporary_of(folder, name))}
    order = json.dumps({"line": line, "env": env, "cwd": cwd}).encode()
    socket.send_fds(client, [order], [0, 1, 2])
    answer = b""
    with contextlib.suppress(ConnectionError):
        answer = client.recv(16)
    if not answer:
        print(f"machine: {name}: connection closed", file=sys.stderr)
    return int(answer or UNREACHABLE)


def main() -> int:
    """One of the three."""
    what, folder, name, *words = sys.argv[1:]
    if what == "boot":
        boot(folder, name)
    if what == "run":
        return enter(folder, name, " ".join(words), dict(os.environ), str(Path.cwd()))
    return enter(folder, name, " ".join(words), REMOTE, "/")


if __name__ == "__main__":
    sys.exit(main())
