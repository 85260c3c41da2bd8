# SPDX-License-Identifier: Apache-2.0
"""The table of parts that a build ends with: what is left out, why, and what to do."""

import shutil
import subprocess
from pathlib import Path

import pytest

from velo import tree

pytestmark = pytest.mark.skipif(
    not (tree.CHECKOUT and shutil.which("cmake") and shutil.which("ninja")),
    reason="needs a checkout, CMake and Ninja",
)


def parts(tmp_path: Path, *options: str) -> dict[str, str]:
    """Configure without pkg-config, so without libfabric, and read the table."""
    assert tree.CHECKOUT
    build = tmp_path / "build"
    off = [f"-DVELO_BUILD_{name}=OFF" for name in ("TESTS", "EXAMPLES", "MAN", "PYTHON")]
    subprocess.run(
        ["cmake", "-S", tree.CHECKOUT, "-B", build, "-G", "Ninja",
         "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON", *off, *options],
        check=True, capture_output=True,
    )  # fmt: skip
    shown = subprocess.run(
        [tree.CHECKOUT / "scripts" / "parts", build], check=True, capture_output=True, text=True
    ).stdout
    assert "To get a part that is missing" in shown
    rows = [line.strip().split("  ", 1) for line in shown.splitlines() if line.count("  ") > 1]
    return {row[0]: row[1].strip() for row in rows if len(row) == 2}


def fake_open_mpi(folder: Path, version: str) -> Path:
    """Headers of a release, and no libraries."""
    (folder / "ompi" / "mca" / "mtl").mkdir(parents=True)
    (folder / "ompi" / "mca" / "mtl" / "mtl.h").touch()
    names = ("MAJOR", "MINOR", "RELEASE")
    numbers = zip(names, version.split("."), strict=True)
    (folder / "opal_config.h").write_text(
        "".join(f"#define OMPI_{name}_VERSION {number}\n" for name, number in numbers)
    )
    return folder


def test_a_part_that_is_left_out_says_what_to_install(tmp_path: Path) -> None:
    found = parts(tmp_path)
    assert found["library, velo command"] == "built"
    assert "apt-get install libfabric-dev pkg-config" in found["provider for libfabric"]
    assert "libssl-dev" in found["other machines, by libfabric"]
    assert found["simulated hardware"].startswith("not built: make sim")


@pytest.mark.parametrize("version", ["3.1.6", "6.0.0"])
def test_an_open_mpi_that_there_are_no_components_for_is_named(
    tmp_path: Path, version: str
) -> None:
    headers = fake_open_mpi(tmp_path / "headers", version)
    text = parts(tmp_path, f"-DVELO_OPENMPI_INCLUDE_DIR={headers}")["components for Open MPI"]
    assert text == f"not built: they are for 4.1 and 5.0, and Open MPI here is {version}"


@pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler")
def test_a_compiler_that_comes_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            if "++" not in program.name and not (bare / program.name).exists():
                (bare / program.name).symlink_to(program)
    with monkeypatch.context() as without:
        without.setenv("PATH", str(bare))
        found = parts(tmp_path, "-DVELO_BUILD_EXAMPLES=ON")
        assert "apt-get install g++" in found["examples in C++"]
    assert "examples in C++" not in parts(tmp_path, "-DVELO_BUILD_EXAMPLES=ON")
