# SPDX-License-Identifier: Apache-2.0
"""`velo env` and the MPIs of `velo info`, with stand-ins for launchers."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from velo.cli import main
from velo.runtime import asking, openmpi, over_libfabric, served

VERSIONS = {
    "ompi4": "mpirun (Open MPI) 4.1.4",
    "ompi5": "mpirun (Open MPI) 5.0.7",
    "mpich": "HYDRA build details:\n  Version:  4.2.1\n  Configure options: --with-device=ch4:ofi",
    "debian": "HYDRA build details:\n  Version:  4.0.2\n  Configure options: --with-device=ch4:ucx",
    "impi": "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626",
}
SETS = ("OMPI_MCA_", "PMIX_MCA_", "FI_", "MPIR_", "I_MPI_")
Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts a launcher into a folder of its own, last in PATH, where no other MPI is."""
    asking.ask.cache_clear()
    monkeypatch.setenv("VELO_LIBEXEC", str(tmp_path / "libexec" / "velo"))
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    for name in os.environ:
        if name.startswith(SETS):
            monkeypatch.delenv(name)

    def install(kind: str, name: str = "mpirun") -> Path:
        launcher = tmp_path / kind / "bin" / name
        launcher.parent.mkdir(parents=True, exist_ok=True)
        launcher.write_text(f"#!/bin/sh\necho '{VERSIONS[kind]}'\n")
        launcher.chmod(0o755)
        if str(launcher.parent) not in os.environ["PATH"]:
            monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{launcher.parent}")
        return launcher

    return install


def components(tmp_path: Path, version: str) -> Path:
    folder = tmp_path / "lib" / "velo" / "openmpi" / version
    folder.mkdir(parents=True)
    for name in openmpi.COMPONENTS.values():
        (folder / name).touch()
    return folder


def provider(tmp_path: Path) -> Path:
    folder = tmp_path / "lib" / "libfabric"
    folder.mkdir(parents=True)
    (folder / over_libfabric.PROVIDER).touch()
    return folder


def evaluated(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    """The environment of a shell that has evaluated what `velo env` says."""
    assert main(["env", *words]) == 0
    said = capfd.readouterr().out
    env = shutil.which("env", path=os.defpath) or "env"
    shown = subprocess.run(
        ["/bin/sh", "-euc", f'eval "$1"; {env} -0', "sh", said], capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    pairs = (line.partition("=") for line in shown.split("\0") if line)
    return {name: value for name, _, value in pairs}


def test_the_first_open_mpi_gets_the_components_that_fit_it(
    tmp_path: Path, put: Put, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("ompi5")
    put("ompi4")
    components(tmp_path, "4.1.4")
    folder = components(tmp_path, "5.0.9")
    before = dict(os.environ)
    after = evaluated(capfd)
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    for name in ("_", "COLUMNS", "LINES"):  # The shell's, and pytest's.
        changed.pop(name, None)
    assert changed == {
        "OMPI_MCA_mca_base_component_path": f"{folder}:SYSTEM_DEFAULT:USER_DEFAULT",
        "PMIX_MCA_mca_base_component_path": "",
    }
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    assert {name: evaluated(capfd)[name] for name in changed} == changed
    back = evaluated(capfd, "--unset")
    assert not [name for name in back if name in changed]


def test_what_the_user_has_set_stays_and_comes_back(
    tmp_path: Path, put: Put, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("mpich", "mpiexec")
    put("ompi4")
    ours, fabric = components(tmp_path, "4.1.4"), provider(tmp_path)
    theirs = {"OMPI_MCA_mca_base_component_path": "/theirs:SYSTEM_DEFAULT",
              "FI_PROVIDER_PATH": "/their providers", "MPIR_CVAR_NOLOCAL": "0"}  # fmt: skip
    for name, value in theirs.items():
        monkeypatch.setenv(name, value)
    after = evaluated(capfd)
    assert after["OMPI_MCA_mca_base_component_path"] == f"{ours}:/theirs:SYSTEM_DEFAULT"
    assert after["FI_PROVIDER_PATH"] == f"{fabric}:/their providers"
    assert after["MPIR_CVAR_NOLOCAL"] == "0"
    assert after["MPIR_CVAR_CH4_NETMOD"] == "ofi"
    assert "FI_PROVIDER" not in after  # Every user of libfabric reads that.
    for name in (*theirs, "MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_OFI_USE_PROVIDER"):
        monkeypatch.setenv(name, after[name])
    back = evaluated(capfd, "--unset")
    assert {name: back[name] for name in theirs} == theirs
    assert "MPIR_CVAR_CH4_NETMOD" not in back


def test_a_modulefile_takes_back_what_is_set(
    tmp_path: Path, put: Put, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("ompi4")
    folder = components(tmp_path, "4.1.4")
    name = "OMPI_MCA_mca_base_component_path"
    main(["env", "--module", "load"])
    value = f"{folder}:SYSTEM_DEFAULT:USER_DEFAULT"
    assert capfd.readouterr().out == f"setenv {name} {{{value}}}\n"
    monkeypatch.setenv(name, value)
    main(["env", "--module", "unload"])
    assert capfd.readouterr().out == f"setenv {name} {{}}\n"
    monkeypatch.setenv(name, f"{folder}:/theirs")
    main(["env", "--module", "unload"])
    assert capfd.readouterr().out == f"prepend-path {name} {{{folder}}}\n"
    monkeypatch.setenv(name, "/theirs")
    main(["env", "--module", "unload"])
    assert capfd.readouterr().out == ""


def test_each_mpi_has_a_line_that_says_what_serves_it(tmp_path: Path, put: Put) -> None:
    put("debian", "mpiexec")
    put("ompi4", "mpirun")
    put("ompi4", "mpiexec")  # Of the same MPI: no line of its own.
    put("ompi5")
    put("impi", "mpiexec.hydra")
    folder = components(tmp_path, "5.0.7")
    found = {f"{each.mpi}": each for each in served.look()}
    assert list(found) == ["MPICH 4.0.2", "Open MPI 4.1.4", "Open MPI 5.0.7", "Intel MPI 2021.18.1"]
    assert len(list(served.look())) == 4
    assert "without libfabric" in found["MPICH 4.0.2"].why
    assert not found["Open MPI 4.1.4"].by
    assert "libopenmpi-dev" in found["Open MPI 4.1.4"].why
    assert "make build" in found["Open MPI 4.1.4"].why
    assert found["Open MPI 5.0.7"].components == folder
    assert not found["Intel MPI 2021.18.1"].by
    assert "libfabric-dev" in found["Intel MPI 2021.18.1"].why
    provider(tmp_path)
    assert "provider" in list(served.look())[3].by
    shutil.rmtree(folder)
    five = list(served.look())[2]
    assert "provider" in five.by
    assert "libopenmpi-dev" in five.why


def test_open_mpi_5_without_components_takes_the_provider_by_its_own_words(
    tmp_path: Path, put: Put, capfd: pytest.CaptureFixture[str]
) -> None:
    put("ompi5")
    folder = provider(tmp_path)
    main(["env", "--json"])
    assert json.loads(capfd.readouterr().out) == {
        "FI_PROVIDER_PATH": str(folder), "OMPI_MCA_mtl_ofi_provider_include": "velo",
    }  # fmt: skip


def test_where_nothing_serves_the_mpi_nothing_is_set(
    put: Put, capfd: pytest.CaptureFixture[str]
) -> None:
    put("ompi4")
    assert main(["env"]) == 0
    said = capfd.readouterr().out
    assert "export" not in said
    assert "not served: there are no components for 4.1.4" in said
