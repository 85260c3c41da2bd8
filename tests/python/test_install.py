# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed: whole, in a folder of its own that may be moved."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import velo
with velo.Queue() as queue:
    queue.put({"whole": True})
    print(queue.get(timeout=5), velo.__file__, velo._velo.__file__)
import velo.cli
"""


def test_the_installed_package_needs_nothing_of_the_checkout(tmp_path: Path) -> None:
    build = os.environ.get("VELO_BUILD_DIR")
    if not build:
        pytest.skip("ctest says where the build folder is")
    argv = ["cmake", "--install", build, "--component", "python", "--prefix", tmp_path / "first"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    moved = (tmp_path / "first").rename(tmp_path / "moved")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(moved)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{'whole': True}")
    assert done.stdout.count(str(moved)) == 2
    maps = subprocess.run(
        [sys.executable, "-c", "import velo\nvelo.Port\nprint(open('/proc/self/maps').read())"],
        env=os.environ | {"PYTHONPATH": str(moved)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert str(moved / "velo" / "libvelo.so") in maps
