# SPDX-License-Identifier: Apache-2.0
"""tests/support/expect.py, which judges how a command ends and what it prints."""

import subprocess
import sys
from pathlib import Path

import pytest

EXPECT = Path(__file__).parents[2] / "tests" / "support" / "expect.py"


@pytest.mark.parametrize(
    ("wanted", "script", "status"),
    [
        (["all is.*well"], "echo all is; echo well", 0),
        (["well"], "echo all is; exit 0", 1),
        (["all is", "well"], "echo all is", 1),
        # Right words alone are not enough.
        (["well"], "echo well; exit 1", 1),
        (["well"], "echo well; kill -SEGV $$", 1),
        (["--status", "3", "refused"], "echo refused >&2; exit 3", 0),
        (["--status", "3", "refused"], "echo refused", 1),
        (["--status", "3", "refused"], "echo refused; exit 1", 1),
        (["--fails", "refused"], "echo refused; exit 9", 0),
        (["--fails", "refused"], "echo refused", 1),
        (["--fails", "refused"], "echo refused; kill -SEGV $$", 1),
        (["--lines-max", "2", "a"], "echo a; echo b", 0),
        (["--lines-max", "2", "a"], "echo a; echo b; echo c", 1),
        # A test that gave no verdict.
        (["well"], "echo skipped; exit 77", 77),
    ],
)
def test_status_and_words_are_judged(wanted: list[str], script: str, status: int) -> None:
    command = [sys.executable, EXPECT, *wanted, "--", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert ("expect: FAILED" in done.stderr) == (status == 1)
