# SPDX-License-Identifier: Apache-2.0
"""Failures that the user is told about in one sentence, and the exit code that each one means."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_VERIFY = 3
EXIT_ABSENT = 77
"""As Automake's tests have it: left out, nothing is wrong."""
EXIT_UNUSED = 125
"""As env and timeout have it for failures of their own: programs rarely end with it."""
EXIT_INTERRUPTED = 130


class VeloError(Exception):
    """Something failed; the message says what happened and what to do."""

    exit_code = EXIT_FAILED


class UsageError(VeloError):
    """The command line asks for something that makes no sense."""

    exit_code = EXIT_USAGE


class AbsentError(VeloError):
    """What is asked for needs something that this machine lacks, or a machine that is less busy."""

    exit_code = EXIT_ABSENT


class LateError(VeloError):
    """A program did not end in the time that it had."""


class UnusedError(VeloError):
    """A job went well, without velo."""

    exit_code = EXIT_UNUSED


class VerifyError(VeloError):
    """A payload was not what its sender wrote."""

    exit_code = EXIT_VERIFY


@contextlib.contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Names the file where it cannot be written."""
    try:
        yield
    except OSError as error:
        raise VeloError(f"cannot write {path}: {error.strerror}") from error


@contextlib.contextmanager
def making(folder: Path) -> Iterator[None]:
    """Makes a new folder, and takes it away again if what is done in it fails."""
    with writing(folder):
        folder.mkdir()
    try:
        yield
    except BaseException:
        # Cost: only those that fail here need it.
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
        raise
