# SPDX-License-Identifier: Apache-2.0
"""Machines for tests without machines: namespaces of one kernel, with cables between them.

Each has a network, a host name, processes, mounts and a /dev/shm of its own; the other files are
everybody's. Without a Cable plain veth devices join them, which are fast and lose nothing.

    with Machines(3, Cable("build/bin/velo-cable", delay_ms=50, loss=0.01)) as machines:
        machines.run(0, ["ping", "-c", "1", machines.names[1]])
        machines.cut(1)

When the block is left, or this process is killed, nothing of them is left.
"""

import contextlib
import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

SKIPPED = 77
SUBNET = "10.213.7"
LINK_TIMEOUT_S = 10
INIT = Path(__file__).with_name("machine.py")
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
NAMESPACES = ("--net", "--uts", "--pid", "--mount", "--ipc", "--fork", "--kill-child")
# Inside the new namespaces, before the first process. /etc/hosts has the names of the machines.
PREPARE = """\
mount -t proc proc /proc && mount -t tmpfs -o size=512m,mode=1777 tmpfs /dev/shm &&
mount --bind "$1/hosts" /etc/hosts && ip link set lo up || exit 1
[ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 2>/dev/null
shift
exec "$@"
"""


class NotPermittedError(Exception):
    """There can be no namespaces here; says why."""


@dataclass(frozen=True)
class Cable:
    """What the cable does to frames; see cable.c, of which `program` is made."""

    program: str
    delay_ms: float = 0
    loss: float = 0
    """The share of frames that are lost."""
    late: float = 0
    """The share of frames that come late_ms later than others, and so out of order."""
    late_ms: float = 1
    seed: int = 1

    def argv(self) -> list[str]:
        """The command, but for the namespaces."""
        return [self.program, "--delay-us", str(self.delay_ms * 1000), "--loss", str(self.loss),
                "--late", str(self.late), "--late-us", str(self.late_ms * 1000),
                "--seed", str(self.seed)]  # fmt: skip


def become_root() -> None:
    """Start this program anew in a user namespace of its own, if it is not root's."""
    if os.geteuid() != 0:
        words = ["unshare", "--user", "--map-root-user", sys.executable, *sys.argv]
        with contextlib.suppress(OSError):
            if subprocess.run([*words[:3], "true"], check=False, capture_output=True).returncode:
                return
            os.execvp(words[0], words)


def _die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Machines:
    """Some machines that are joined; a context manager."""

    def __init__(self, count: int = 2, cable: Cable | None = None) -> None:
        self.names = [f"velo-{letter}" for letter in "abcdefgh"[:count]]
        self.addresses = [f"{SUBNET}.{number}" for number in range(1, count + 1)]
        self._cable = cable
        self._switch: subprocess.Popen[str] | None = None
        self._stack = contextlib.ExitStack()
        self._inits: list[subprocess.Popen[str]] = []
        self._pids: list[int] = []

    # ---- life --------------------------------------------------------------------------------

    def __enter__(self) -> "Machines":
        with contextlib.ExitStack() as stack:
            old = signal.signal(signal.SIGTERM, lambda *_: sys.exit(BY_SIGTERM))
            stack.callback(signal.signal, signal.SIGTERM, old)
            self.folder = Path(tempfile.mkdtemp(prefix="velo-machines-"))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            stack.callback(self._end)
            self._write_files()
            for name in self.names:
                self._boot(name)
            if self._cable:
                self._lay(self._cable)
                device = "cable"
            else:
                self._join()
                device = "velo0"
            for number, address in enumerate(self.addresses):
                self._ip(number, "addr", "add", f"{address}/24", "dev", device)
                self._ip(number, "link", "set", device, "up")
            for number in range(len(self.names)):
                self._await_link(number, device)
            if self._cable:
                self._introduce()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _write_files(self) -> None:
        hosts = zip(self.addresses, self.names, strict=True)
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for address, name in hosts)]
        (self.folder / "hosts").write_text("\n".join([*lines, ""]))
        enter = shlex.join([sys.executable, str(INIT), "enter", str(self.folder)])
        self.agent.write_text(f'#!/bin/sh\nexec {enter} "$@"\n')
        self.agent.chmod(0o755)

    def _boot(self, name: str) -> None:
        init = subprocess.Popen(
            ["unshare", *NAMESPACES, "sh", "-c", PREPARE, "sh", str(self.folder),
             sys.executable, str(INIT), "boot", str(self.folder), name],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=_die_with_parent,
        )  # fmt: skip
        self._inits.append(init)
        assert init.stdout and init.stderr
        if init.stdout.readline() != "ready\n":
            said = init.stderr.read().strip()
            raise NotPermittedError(f"namespaces cannot be made here: {said}")
        children = Path(f"/proc/{init.pid}/task/{init.pid}/children").read_text().split()
        self._pids.append(int(children[0]))

    def _end(self) -> None:
        if self._switch:
            self._switch.kill()
        for init in self._inits:
            init.kill()
        for process in [*self._inits, *([self._switch] if self._switch else [])]:
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()

    # ---- network -----------------------------------------------------------------------------

    def _ip(self, number: int, *words: str) -> str:
        """`ip` in the network of a machine."""
        words = ("nsenter", "--net", "--target", str(self._pids[number]), "ip", *words)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotPermittedError(f"{shlex.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def _await_link(self, number: int, device: str) -> None:
        """The kernel says some time after `up` that a link runs; libfabric takes no other."""
        deadline = time.monotonic() + LINK_TIMEOUT_S
        while not re.search(
            r" state (UP|UNKNOWN) ", said := self._ip(number, "link", "show", device)
        ):
            if time.monotonic() > deadline:
                raise NotPermittedError(
                    f"{device} of {self.names[number]} does not come up: {said}"
                )
            time.sleep(0.01)

    def _join(self) -> None:
        """By veth: two directly; of three and more the first has a bridge for the others."""
        if len(self.names) == 2:
            self._ip(0, "link", "add", "velo0", "type", "veth", "peer", "name", "velo0", "netns",
                     str(self._pids[1]))  # fmt: skip
            return
        self._ip(0, "link", "add", "velo0", "type", "bridge")
        for number in range(1, len(self.names)):
            self._ip(0, "link", "add", f"to{number}", "master", "velo0", "type", "veth", "peer",
                     "name", "velo0", "netns", str(self._pids[number]))  # fmt: skip
            self._ip(0, "link", "set", f"to{number}", "up")

    def _lay(self, cable: Cable) -> None:
        nets = [f"/proc/{pid}/ns/net" for pid in self._pids]
        self._switch = subprocess.Popen(
            [*cable.argv(), *nets], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, preexec_fn=_die_with_parent,
        )  # fmt: skip
        assert self._switch.stdout and self._switch.stderr
        if self._switch.stdout.readline() != "ready\n":
            raise NotPermittedError(f"no TAP devices here: {self._switch.stderr.read().strip()}")

    def _introduce(self) -> None:
        """Nobody asks for addresses: all frames are those of the test."""
        for number in range(len(self.names)):
            for other, address in enumerate(self.addresses):
                if other != number:
                    self._ip(number, "neigh", "add", address, "lladdr",
                             f"02:76:65:6c:6f:{other:02x}", "dev", "cable")  # fmt: skip

    def _order(self, line: str) -> str:
        assert self._switch and self._switch.stdin and self._switch.stdout, "there is no Cable"
        self._switch.stdin.write(line + "\n")
        self._switch.stdin.flush()
        return self._switch.stdout.readline().strip()

    def cut(self, number: int) -> None:
        """Pull a machine's cable out."""
        assert self._order(f"cut {number}") == "ok"

    def mend(self, number: int) -> None:
        """And put it back."""
        assert self._order(f"mend {number}") == "ok"

    def frames(self) -> dict[str, int]:
        """What became of the frames: taken, delivered, lost, cut, dropped."""
        return json.loads(self._order("count"))

    def sent_bytes(self, number: int) -> int:
        """What a machine has sent to the others."""
        device = "cable" if self._cable else "velo0"
        said = json.loads(self._ip(number, "-json", "-s", "link", "show", device))
        return int(said[0]["stats64"]["tx"]["bytes"])

    # ---- processes ---------------------------------------------------------------------------

    @property
    def agent(self) -> Path:
        """In place of ssh: `agent NAME COMMAND...`; brings no environment along."""
        return self.folder / "agent"

    def start(self, number: int, argv: Sequence[str | Path], **popen: Any) -> subprocess.Popen[str]:
        """A program on a machine, with this environment; killed with the process that is given."""
        words = [sys.executable, INIT, "run", self.folder, self.names[number]]
        line = "exec " + shlex.join(map(str, argv))
        return subprocess.Popen([*map(str, words), line], text=True, **popen)

    def run(
        self,
        number: int,
        argv: Sequence[str | Path],
        timeout_s: float = 60,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """The same to its end; what it says on stdout and stderr is one text.

        What does not end in time is killed; TimeoutExpired has what it has said.
        """
        process = self.start(
            number, argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})},
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            process.kill()
            error.output, _ = process.communicate()
            raise
        except BaseException:
            process.kill()
            process.wait()
            raise
        return subprocess.CompletedProcess(argv, process.returncode, said)

    def halt(self, number: int) -> None:
        """End a machine at once: all of its processes, and its network."""
        os.kill(self._pids[number], signal.SIGKILL)
        self._inits[number].wait()
        (self.folder / f"{self.names[number]}.socket").unlink(missing_ok=True)


BY_SIGTERM = 128 + signal.SIGTERM
