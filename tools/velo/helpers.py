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
