# SPDX-License-Identifier: Apache-2.0
"""A run of `velo vm`: simulator and guests from the start to the end, and what comes of it."""

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from velo import helpers
from velo.errors import VeloError, writing
from vm import guest, image
from vm import plan as planning
from vm.guest import Guest
from vm.image import Images
from vm.progress import say

BOOT_TIMEOUT_S = 180.0
# Of a kernel that looks for faults, which is slower by several times.
BOOT_FAULTS_TIMEOUT_S = 1200.0
CARDS_TIMEOUT_S = 60.0
CHECK_TIMEOUT_S = 600.0
LOOK_INTERVAL_S = 0.5
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
CHUNK = 1 << 16
FOLDER_PREFIX = "velo-vm-"
# A folder that is younger may be one whose command has not locked it yet.
LEFTOVER_AGE_S = 60.0
REPORT_MAX = 4096
EXIT_CODE = re.compile(r"[0-9]{1,3}")
PATH_MAX = 90
"""Sockets' paths have 107 characters at most."""


def run(args: argparse.Namespace) -> None:
    """Carries out the command line; ends with the program's exit code."""
    if args.headers:
        kernel = image.ensure_kernel(*planning.system(args))
        print(image.headers_folder(kernel))
        return
    if args.prepare:
        image.ensure(*planning.system(args))
        return
    _remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as name, _lock(Path(name)):
        folder = Path(name)
        if len(name) > PATH_MAX:
            raise VeloError(f"{name} is too long a path for sockets; set TMPDIR to a shorter one")
        planned = planning.make(args, folder)
        images = image.ensure(*planning.system(args))
        if args.print:
            _show(planned, images)
            return
        try:
            code = Session(args, planned, images).run()
        finally:
            if args.keep:
                _keep(folder, Path(args.keep))
    sys.exit(code)


def _show(planned: planning.Run, images: Images) -> None:
    if planned.simulator:
        print(shlex.join(planned.simulator))
    for each in planned.guests:
        sockets = [each.folder / f"{each.name}.{share.tag}" for share in each.shares]
        numbers = {name: 3 + at for at, name in enumerate(guest.PORTS)}
        print(shlex.join(each.command(images, numbers, sockets)))


def _keep(folder: Path, target: Path) -> None:
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.is_file():
                shutil.copy(path, target)


def _remove_leftovers() -> None:
    """Takes away what a command left that was killed; all else of it ended by itself."""
    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):  # It is another user's, is in use, or has gone.
            if time.time() - path.stat().st_mtime > LEFTOVER_AGE_S:
                with _lock(path):
                    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """The folder's owner has it until it ends, however it ends, and in whatever PID namespace."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)


class Session:
    """Everything that runs."""

    def __init__(self, args: argparse.Namespace, planned: planning.Run, images: Images) -> None:
        self.args = args
        self.planned = planned
        self.images = images
        self.folder = planned.guests[0].folder
        self.guests: list[Guest] = []
        self.simulator: subprocess.Popen[str] | None = None
        self.reports: dict[int, bytes] = {}
        self.boot_s: dict[str, float] = {}
        self.begun = time.monotonic()

    def run(self) -> int:
        """From the simulator's start to the program's exit code."""
        with contextlib.ExitStack() as stack:
            if self.planned.simulator:
                self._start_simulator(stack)
            for plan in self.planned.guests:
                started = guest.started(plan, self.images, self.args.shell and plan.node == 0)
                self.guests.append(stack.enter_context(started))
            self._boot()
            for each in self.guests:
                each.ports["report"].sendall(b"go\n")
            code = self._console() if self.args.shell else self._job()
            if planning.faults(self.args):
                self._check()
        complaint = self._complaint()
        if self.args.json:
            self._write_result(Path(self.args.json), code, complaint)
        if complaint:
            raise VeloError(f"a guest's kernel complained:\n{complaint}")
        return code

    def _start_simulator(self, stack: contextlib.ExitStack) -> None:
        log = stack.enter_context((self.folder / "velo-sim.log").open("w"))
        self.simulator = stack.enter_context(
            # Its standard output is that of programs beside the guests.
            helpers.running(self.planned.simulator, stdout=None, stderr=log, preexec_fn=_follow)
        )
        deadline = time.monotonic() + CARDS_TIMEOUT_S
        for each in self.planned.guests:
            while each.card and not each.card.is_socket():
                self._look()
                if time.monotonic() > deadline:
                    raise VeloError(f"velo-sim offers no card within {CARDS_TIMEOUT_S:.0f} s")
                time.sleep(0.01)

    def _look(self) -> None:
        """Do all run that should?"""
        if self.simulator and self.simulator.poll() is not None:
            log = (self.folder / "velo-sim.log").read_text(errors="replace").strip()
            lines = "\n".join(log.splitlines()[-helpers.STDERR_LINES :])
            raise VeloError(f"velo-sim ended with exit code {self.simulator.returncode}:\n{lines}")
        for each in self.guests:
            if each.process.poll() is not None:
                raise guest.gone(each)

    def _boot(self) -> None:
        """Until every guest says that it is ready."""
        count = len(self.guests)
        limit_s = BOOT_FAULTS_TIMEOUT_S if planning.faults(self.args) else BOOT_TIMEOUT_S
        say(f"booting {count} guest{'s' if count > 1 else ''}")
        begun = time.monotonic()
        while len(self.boot_s) < count:
            waiting = [each for each in self.guests if each.plan.name not in self.boot_s]
            late = f"{waiting[0].plan.name} is not ready within {limit_s:.0f} s"
            last = "".join(waiting[0].plan.said()[-1:]) or "nothing"
            late += f"; its kernel last said: {last}"
            for each, word, _ in self._words(begun + limit_s, late):
                if word == "ready":
                    self.boot_s[each.plan.name] = round(time.monotonic() - begun, 2)
        say(f"ready after {max(self.boot_s.values()):.1f} s")

    def _words(
        self, deadline: float, late: str, others: Sequence[int | socket.socket] = ()
    ) -> Iterator[tuple[Guest, str, str]]:
        """What guests report, and then, or after a moment, back to the caller."""
        by_port = {each.ports["report"]: each for each in self.guests}
        ready, _, _ = select.select([*by_port, *others], [], [], LOOK_INTERVAL_S)
        if time.monotonic() > deadline:
            raise VeloError(late)
        for port in ready:
            if port not in by_port:
                continue
            each = by_port[port]
            got = port.recv(CHUNK)
            if not got:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    each.process.wait(helpers.STOP_GRACE_S)
                self._look()
                raise VeloError(f"guest {each.plan.name} says nothing any more")
            *lines, rest = (self.reports.get(each.plan.node, b"") + got).split(b"\n")
            self.reports[each.plan.node] = rest
            for line in [*lines, rest] if len(rest) > REPORT_MAX else lines:
                word, said = _understood(each, line)
                yield each, word, said
        if not ready:
            self._look()

    def _job(self) -> int:
        """Until the program ends; its output comes as it is written."""
        first = self.guests[0]
        outputs = {
            first.ports["out"]: sys.stdout.buffer,
            first.ports["err"]: sys.stderr.buffer,
        }
        deadline = time.monotonic() + self.args.timeout
        code = None
        while code is None:
            late = f"the program did not end within {self.args.timeout:g} s"
            for _, word, said in self._words(deadline, late, list(outputs)):
                if word == "end":
                    code = int(said)
            for port, target in outputs.items():
                _copy(port, target)
        return self._beside(code, deadline)

    def _beside(self, code: int, deadline: float) -> int:
        """Until the programs beside the guests end; the first exit code that is not 0."""
        for node in self.planned.beside:
            file = planning.exit_code_file(self.folder, node)
            while not file.exists():
                self._look()
                if time.monotonic() > deadline:
                    raise VeloError(
                        f"the program on node {node} did not end within {self.args.timeout:g} s"
                    )
                time.sleep(0.01)
            code = code or int(file.read_text())
        return code

    def _console(self) -> int:
        """A shell on the first guest, until it ends."""
        say("this is a shell on velo0; 'exit' ends the guests")
        port = self.guests[0].ports["console"]
        typed = sys.stdin.fileno()
        listening: list[int | socket.socket] = [typed, port]
        with _raw(typed):
            while True:
                for _, word, said in self._words(float("inf"), "", listening):
                    if word == "end":
                        _copy(port, sys.stdout.buffer)
                        return int(said)
                _copy(port, sys.stdout.buffer)
                if typed in listening and select.select([typed], [], [], 0)[0]:
                    keys = os.read(typed, CHUNK)
                    # The end of a file that is read in place of a terminal ends the shell.
                    port.sendall(keys or b"\x04")
                    if not keys:
                        listening.remove(typed)

    def _check(self) -> None:
        """Until every guest has looked for what its kernel has not told by itself."""
        say("looking for what the kernels still know of faults")
        begun = time.monotonic()
        waiting = {each.plan.name for each in self.guests}
        for each in self.guests:
            each.ports["report"].sendall(b"check\n")
        while waiting:
            late = f"{min(waiting)} has not checked itself within {CHECK_TIMEOUT_S:.0f} s"
            for each, word, _ in self._words(begun + CHECK_TIMEOUT_S, late):
                if word == "checked":
                    waiting.discard(each.plan.name)

    def _complaint(self) -> str:
        """What the guests' kernels say of faults."""
        return "\n".join(
            f"{each.name}: {line}" for each in self.planned.guests for line in each.complaints()
        )

    def _write_result(self, path: Path, code: int, complaint: str) -> None:
        result = {
            "type": "vm",
            "topology": self.planned.topology,
            "cards": bool(self.planned.simulator),
            "iommu": self.args.iommu,
            "processors": self.args.processors,
            "kernel": image.release_of(self.images.kernel),
            "boot_s": self.boot_s,
            "run_s": round(time.monotonic() - self.begun, 2),
            "exit_code": code,
            "complaint": complaint,
        }
        with writing(path):
            path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _understood(each: Guest, line: bytes) -> tuple[str, str]:
    """A guest's report as its first word and the rest; any job of the guest may have written it."""
    word, _, said = line.decode(errors="replace").partition(" ")
    if word == "failed":
        raise VeloError(f"guest {each.plan.name}: {said}")
    if word not in ("ready", "end", "checked") or (word == "end" and not EXIT_CODE.fullmatch(said)):
        raise VeloError(f"guest {each.plan.name} reports what nobody understands: {line[:80]!r}")
    return word, said


def _copy(port: socket.socket, target: BinaryIO) -> None:
    """All that a port has."""
    with contextlib.suppress(BlockingIOError):
        while got := port.recv(CHUNK, socket.MSG_DONTWAIT):
            target.write(got)
    target.flush()


def _follow() -> None:
    """In the child: the end, if we are killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@contextlib.contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Each key goes to the guest, Ctrl-C too."""
    if not os.isatty(terminal):
        yield
        return
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
