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
    """The lines of the table by their names."""
    return dict(lines(tmp_path, *options))


def lines(tmp_path: Path, *options: str) -> list[tuple[str, str]]:
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
    return [(row[0], row[1].strip()) for row in rows if len(row) == 2]


def fake_open_mpi(folder: Path, version: str, headers: str = "", libraries: bool = False,
                  layers: bool = True) -> Path:  # fmt: skip
    """An Open MPI that says where it is, with headers, perhaps of another release."""
    internal = folder / "include" / "openmpi"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    info = folder / "bin" / "ompi_info"
    info.write_text(
        f"""#!/bin/sh
case "$1" in --version) echo "Open MPI v{version}"; exit ;; esac
echo "path:incdir:{folder}/include"
echo "path:libdir:{folder}/lib"
"""
    )
    info.chmod(0o755)
    if headers != "none":
        (internal / "ompi" / "mca" / "mtl").mkdir(parents=True)
        (internal / "ompi" / "mca" / "mtl" / "mtl.h").touch()
        names = ("MAJOR", "MINOR", "RELEASE")
        numbers = zip(names, (headers or version).split("."), strict=True)
        (internal / "opal_config.h").write_text(
            "".join(f"#define OMPI_{name}_VERSION {number}\n" for name, number in numbers)
            + ("#define OMPI_PROC_ENDPOINT_TAG_MTL 1\n" if layers else "")
        )
    for name in ("mpi", "open-rte", "open-pal", "pmix") if libraries else ():
        (folder / "lib" / f"lib{name}.so").touch()
    (folder / "include" / "pmix.h").parent.mkdir(exist_ok=True)
    (folder / "include" / "pmix.h").touch()
    return folder


def test_a_part_that_is_left_out_says_what_to_install(tmp_path: Path) -> None:
    found = parts(tmp_path)
    assert found["library, velo command"] == "built"
    assert "apt-get install libfabric-dev pkg-config" in found["provider for libfabric"]
    assert "libssl-dev" in found["other machines, by libfabric"]
    assert found["simulated hardware"].startswith("not built: make sim")


def test_each_open_mpi_has_a_line_that_says_what_becomes_of_it(tmp_path: Path) -> None:
    four = fake_open_mpi(tmp_path / "four", "4.1.99", libraries=True)
    five = fake_open_mpi(tmp_path / "five", "5.0.99", libraries=True)
    again = fake_open_mpi(tmp_path / "again", "5.0.99", libraries=True)
    old = fake_open_mpi(tmp_path / "old", "3.1.6")
    bare = fake_open_mpi(tmp_path / "bare", "5.0.98", headers="none")
    other = fake_open_mpi(tmp_path / "other", "5.0.97", headers="5.0.96")
    empty = fake_open_mpi(tmp_path / "empty", "4.1.98")
    flat = fake_open_mpi(tmp_path / "flat", "5.0.95", libraries=True, layers=False)
    named = [flat, four, five, again, old, bare, other, empty, tmp_path / "nowhere"]
    found = lines(tmp_path, f"-DVELO_OPENMPI={';'.join(map(str, named))}")
    said = [text for name, text in found if name == "components for Open MPI"]
    for text in (
        f"built for 4.1.99 in {four}",
        f"built for 5.0.99 in {five}",
        f"not built for 3.1.6 in {old}: they are for 4.1 and 5.0",
    ):
        assert text in said
    for place, text in (
        (f"5.0.98 in {bare}", "configure --with-devel-headers"),
        (f"5.0.97 in {other}", f"the headers in {other}/include are of 5.0.96"),
        (f"5.0.95 in {flat}", "without any matching layer"),
        (f"4.1.98 in {empty}", f"libmpi.so is not in {empty}/lib"),
        (f"{tmp_path}/nowhere", "name the folder above bin"),
    ):
        assert [line for line in said if place in line and line.startswith("not built")
                and text in line], place  # fmt: skip
    assert not [line for line in said if str(again) in line]


def test_an_open_mpi_that_is_gone_takes_its_components_along(tmp_path: Path) -> None:
    five = fake_open_mpi(tmp_path / "five", "5.0.99", libraries=True)
    stale = tmp_path / "build" / "lib" / "velo" / "openmpi" / "5.0.1"
    stale.mkdir(parents=True)
    (stale.parent / "mca_mtl_velo.so").touch()
    parts(tmp_path, f"-DVELO_OPENMPI={five}")
    assert not stale.exists()
    assert not (stale.parent / "mca_mtl_velo.so").exists()


@pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler")
def test_a_compiler_that_comes_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            if "++" not in program.name and not (bare / program.name).is_symlink():
                (bare / program.name).symlink_to(program)
    with monkeypatch.context() as without:
        without.setenv("PATH", str(bare))
        found = parts(tmp_path, "-DVELO_BUILD_EXAMPLES=ON")
        assert "apt-get install g++" in found["examples in C++"]
    assert "examples in C++" not in parts(tmp_path, "-DVELO_BUILD_EXAMPLES=ON")
