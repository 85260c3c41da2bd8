# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several test files share."""

import os
import signal
import sys
from pathlib import Path

import pytest

# In the background of a script it would be ignored, by all that tests start as well.
signal.signal(signal.SIGINT, signal.default_int_handler)

# With it, a program that forgets to flush would pass.
os.environ.pop("PYTHONUNBUFFERED", None)

FAKE = Path(__file__).with_name("fake_perf.py")
PIN = FAKE.parents[1] / "perf" / "mpi" / "pin"


@pytest.fixture
def fake_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts fake_perf.py in velo-perf's place; returns the file in which it logs its calls."""
    libexec = tmp_path / "libexec"
    libexec.mkdir()
    program = libexec / "velo-perf"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    program.chmod(0o755)
    (libexec / "velo-pin").symlink_to(PIN)
    log = tmp_path / "calls.log"
    monkeypatch.setenv("VELO_LIBEXEC", str(libexec))
    monkeypatch.setenv("FAKE_LOG", str(log))
    return log
