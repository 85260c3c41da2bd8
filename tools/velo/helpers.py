# SPDX-License-Identifier: Apache-2.0
"""Start the C programs behind the `velo` command, read what they say, and stop them for sure."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from velo.errors import EXIT_VERIFY, LateError, VeloError, VerifyError

STOP_GRACE_S = 2.0
# How often several programs are asked whether one has ended.
POLL_S = 0.02
# Lines of a program's last words that are worth showing.
STDERR_LINES = 12


def stop(process: subprocess.Popen[Any], grace_s: float = STOP_GRACE_S) -> None:
    """End a program and every process it forked.

    The program is asked first: it ends its own processes in order and removes their segments.
    """
    try:
        process.terminate()
        deadline = time.monotonic() + grace_s
        while _signal_group(process, 0) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:  # Also when a second Ctrl-C cuts the wait short.
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[Any], signum: int) -> bool:
    """Signal the program's process group; False if nothing is left of it."""
    process.poll()  # A leader that ended but was not collected would keep its group alive.
    try:
        os.killpg(process.pid, signum)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def running(
    argv: Sequence[str | Path], grace_s: float = STOP_GRACE_S, **popen: Any
) -> Iterator[subprocess.Popen[str]]:
    """A program in a process group of its own, which is gone when the block is left."""
    try:
        process = subprocess.Popen(
            [str(arg) for arg in argv],
            stdin=popen.pop("stdin", subprocess.DEVNULL),
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0,
            **popen,
        )
    except OSError as error:
        raise VeloError(f"cannot start {argv[0]}: {error.strerror}") from error
    try:
        yield process
    finally:
        stop(process, grace_s)
        if process.stdout:
            process.stdout.close()


def stream(
    argv: Sequence[str | Path], has_end: bool = True
) -> Generator[dict[str, Any], None, None]:
    """The JSON lines of a program, as they come; its end is checked.

    A line of type `error`, an exit code other than 0, a line that is not a JSON object, or (unless
    the program has none) an end without a line of type `end` becomes a VeloError that says so. The
    program and what it forked are stopped when the caller stops iterating.
    """
    name = Path(argv[0]).name
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr,
        running(argv, stdout=subprocess.PIPE, stderr=stderr) as process,
    ):
        assert process.stdout
        ended = False
        bad_line = ""
        error: dict[str, Any] | None = None
        for text in process.stdout:
            line = _parse(text)
            if line is None:
                bad_line = bad_line or text.strip()
            elif line.get("type") == "error":
                error = error or line
            elif not bad_line and not error:
                ended = line.get("type") == "end"
                yield line
        code = process.wait()
        said = str(error.get("message", error)) if error else ""
        if code == EXIT_VERIFY or (error and error.get("kind") == "verify"):
            raise VerifyError(f"{name}: a payload arrived damaged: {said or _tail(stderr)}")
        if error:
            raise VeloError(f"{name}: {said}")
        if code != 0:
            raise VeloError(f"{name} {_how_it_ended(code)}{_because(stderr)}")
        if bad_line:
            raise VeloError(f"{name} wrote a line that is not a JSON object: {bad_line[:200]!r}")
        if has_end and not ended:
            raise VeloError(f"{name} stopped without its 'end' line; its results are not whole")


def output(argv: Sequence[str | Path], timeout_s: float | None, **popen: Any) -> str:
    """What a program prints; it must succeed, within the time if one is given."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr,
        running(argv, stdout=subprocess.PIPE, stderr=stderr, **popen) as process,
    ):
        try:
            text, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise LateError(f"{argv[0]} did not end within {timeout_s:.0f} s") from error
        if process.returncode != 0:
            raise VeloError(f"{argv[0]} {_how_it_ended(process.returncode)}{_because(stderr)}")
        return text


def outputs(
    argvs: Sequence[Sequence[str | Path]], at_once: int, timeout_s: float
) -> Generator[tuple[int, str | VeloError], None, None]:
    """What programs print that run side by side, `at_once` of them, begun in their order.

    Yields the number of each as it ends, with what it printed, or with the error that output()
    raises for it. All that still run are stopped when the caller stops iterating.
    """
    waiting = list(enumerate(argvs))[::-1]
    running_now: dict[int, _Running] = {}
    with contextlib.ExitStack() as stack:
        while waiting or running_now:
            while waiting and len(running_now) < at_once:
                number, argv = waiting.pop()
                running_now[number] = stack.enter_context(_started(argv, timeout_s))
            ended = [number for number, program in running_now.items() if program.is_over()]
            for number in ended:
                yield number, running_now.pop(number).outcome()
            if not ended:
                time.sleep(POLL_S)


class _Running:
    """One of several programs, whose output goes to files, so that nobody has to read along."""

    def __init__(
        self,
        name: str | Path,
        process: subprocess.Popen[str],
        stdout: Any,
        stderr: Any,
        timeout_s: float,
    ) -> None:
        self._name, self._process, self._stdout, self._stderr = name, process, stdout, stderr
        self._timeout_s = timeout_s
        self._deadline_s = time.monotonic() + timeout_s

    def is_over(self) -> bool:
        return self._process.poll() is not None or time.monotonic() > self._deadline_s

    def outcome(self) -> str | VeloError:
        """Of a program that is over; one that is late is stopped."""
        name, code = self._name, self._process.poll()
        if code is None:
            stop(self._process)
            return LateError(f"{name} did not end within {self._timeout_s:.0f} s")
        if code != 0:
            return VeloError(f"{name} {_how_it_ended(code)}{_because(self._stderr)}")
        self._stdout.seek(0)
        return str(self._stdout.read())


@contextlib.contextmanager
def _started(argv: Sequence[str | Path], timeout_s: float) -> Iterator[_Running]:
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr,
        running(argv, stdout=stdout, stderr=stderr) as process,
    ):
        yield _Running(argv[0], process, stdout, stderr, timeout_s)


def _parse(text: str) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"failed with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _tail(stderr: Any) -> str:
    stderr.seek(0)
    return "\n".join(stderr.read().strip().splitlines()[-STDERR_LINES:])


def _because(stderr: Any) -> str:
    tail = _tail(stderr)
    return f":\n{tail}" if tail else " and said nothing on stderr"
