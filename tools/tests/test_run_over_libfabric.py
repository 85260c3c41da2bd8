# SPDX-License-Identifier: Apache-2.0
"""`velo run --mpi` with stand-ins for the launchers of MPIs that use libfabric."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from velo.cli import main
from velo.errors import EXIT_FAILED, EXIT_UNUSED, EXIT_USAGE
from velo.runtime import asking, loader, over_libfabric, run

VERSIONS = {
    "ompi4": "mpirun (Open MPI) 4.1.4",
    "ompi5": "mpirun (Open MPI) 5.0.11",
    "mpich": "HYDRA build details:\n    Version:                                 5.0.2",
    "impi": "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)",
}
LAUNCHER = r"""#!/bin/sh
case "$1" in --version) echo "{version}"; exit;; esac
printf '%s\n' "$@"
env | grep -E '^(FI_|VELO_DOMAIN|MPIR_CVAR|I_MPI|OMPI_ALLOW|LD_)'
[ -n "$FAKE_UNUSED" ] || touch "$VELO_SHM_DIR/velo.$VELO_DOMAIN.0.1"
exit ${{FAKE_CODE:-0}}
"""

Install = Callable[[str, str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A tree with a provider and a folder for segments; installs launchers into folders in PATH."""
    folder = tmp_path / "lib" / "libfabric"
    folder.mkdir(parents=True)
    (folder / over_libfabric.PROVIDER).touch()
    (tmp_path / "lib" / "velo").mkdir()
    (tmp_path / "lib" / "velo" / "libvelo-yield.so").touch()
    (tmp_path / "shm").mkdir()
    monkeypatch.setenv("VELO_LIBEXEC", str(tmp_path / "libexec" / "velo"))
    monkeypatch.setenv("VELO_SHM_DIR", str(tmp_path / "shm"))
    monkeypatch.delenv("FI_PROVIDER_PATH", raising=False)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    asking.ask.cache_clear()
    # What the launchers and their programs need, and no MPI of this machine's.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("env", "grep", "touch", "true"):
        (tools / name).symlink_to(shutil.which(name) or pytest.fail(f"there is no {name}"))
    paths: list[str] = []

    def put(kind: str, name: str, root: str) -> Path:
        launcher = tmp_path / root / "bin" / name
        launcher.parent.mkdir(parents=True, exist_ok=True)
        launcher.write_text(LAUNCHER.format(version=VERSIONS[kind]))
        launcher.chmod(0o755)
        if str(launcher.parent) not in paths:
            paths.append(str(launcher.parent))
        monkeypatch.setenv("PATH", ":".join([*paths, str(tools)]))
        return tmp_path / root

    return put


def said(capfd: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    with pytest.raises(SystemExit) as end:
        main(["run", *argv])
    assert end.value.code == 0
    return capfd.readouterr().out.splitlines()


def complaint(capfd: pytest.CaptureFixture[str], code: int, *argv: str) -> str:
    assert main(["run", *argv]) == code
    return capfd.readouterr().err


def follow(found: Sequence[str], *wanted: str) -> bool:
    """Do the words wanted follow each other?"""
    n = len(wanted)
    return any(tuple(found[i : i + n]) == wanted for i in range(len(found)))


def test_the_names_on_the_command_line_are_those_of_the_launchers() -> None:
    assert set(run.MPIS) == {"ompi4", *over_libfabric.MPIS}


def test_mpich_is_told_to_use_the_provider_inside_a_node_too(
    install: Install, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    install("mpich", "mpiexec.hydra", "mpich")
    found = said(capfd, "-n", "1", "--mpi", "mpich", "true", "word")
    assert follow(found, "-n", "1")
    assert follow(found, "true", "word")
    assert "FI_PROVIDER=velo" in found
    assert "MPIR_CVAR_CH4_NETMOD=ofi" in found
    assert "MPIR_CVAR_NOLOCAL=1" in found
    assert f"FI_PROVIDER_PATH={tmp_path}/lib/libfabric" in found


def test_mpich_keeps_a_core_that_a_rank_has_for_itself(
    install: Install,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    install("mpich", "mpiexec.hydra", "mpich")
    ours = f"LD_PRELOAD={tmp_path}/lib/velo/libvelo-yield.so"
    job = ("--mpi", "mpich", "true")
    main(["run", "-n", "1", "--print", *job])
    shown = capfd.readouterr().out
    assert ours in shown
    # The option -bind-to would keep it from spawning others.
    assert "HYDRA_BINDING=core" in shown
    assert "-bind-to" not in shown
    main(["run", "-n", "4096", "--print", *job])
    shown = capfd.readouterr().out
    assert "LD_PRELOAD" not in shown
    assert "HYDRA_BINDING" not in shown
    main(["run", "-n", "1", "--mpi", "mpich", "--print", "-bind-to", "none", "true"])
    shown = capfd.readouterr().out
    assert "LD_PRELOAD" not in shown
    assert "HYDRA_BINDING" not in shown
    monkeypatch.setenv("HYDRA_BINDING", "user:1,0")
    main(["run", "-n", "1", "--print", *job])
    assert "HYDRA_BINDING" not in capfd.readouterr().out
    for theirs in ("libtheirs.so", ""):
        monkeypatch.setenv("LD_PRELOAD", theirs)
        main(["run", "-n", "1", "--print", *job])
        assert "LD_PRELOAD" not in capfd.readouterr().out


def test_intel_mpi_is_told_to_use_the_provider(
    install: Install, capfd: pytest.CaptureFixture[str]
) -> None:
    install("impi", "mpiexec.hydra", "impi")
    found = said(capfd, "-n", "1", "--mpi=impi", "true")
    assert "FI_PROVIDER=velo" in found
    assert "I_MPI_FABRICS=ofi" in found
    assert "I_MPI_PIN=off" not in found
    assert "I_MPI_PIN=off" in said(capfd, "-n", "4096", "--mpi", "impi", "true")


def test_open_mpi_5_gets_its_layer_for_libfabric(
    install: Install, capfd: pytest.CaptureFixture[str]
) -> None:
    install("ompi5", "mpirun", "ompi5")
    found = said(capfd, "-n", "1", "--mpi", "ompi5", "true")
    assert follow(found, "--mca", "pml", "cm", "--mca", "mtl", "ofi")
    assert follow(found, "--mca", "mtl_ofi_provider_include", "velo")
    assert follow(found, "--map-by", "core", "--bind-to", "core")
    found = said(capfd, "-n", "4096", "--mpi", "ompi5", "true")
    assert follow(found, "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none")


def test_what_is_given_is_not_given_twice(
    install: Install, capfd: pytest.CaptureFixture[str]
) -> None:
    install("ompi5", "mpirun", "ompi5")
    words = ("--mca", "pml", "ob1", "--bind-to", "none")
    found = said(capfd, "-n", "1", "--mpi", "ompi5", *words, "true")
    assert found.count("pml") == 1
    assert found.count("--bind-to") == 1
    assert follow(found, *words, "true")


def test_options_with_two_values_are_handed_on(
    install: Install, capfd: pytest.CaptureFixture[str]
) -> None:
    install("mpich", "mpiexec", "mpich")
    words = ("-genv", "A", "b c", "-ppn", "1", "true", "-n")
    found = said(capfd, "-n", "1", "--mpi", "mpich", *words)
    assert follow(found, *words)
    assert "-bind-to" not in found


def test_the_launcher_of_another_mpi_is_passed_over(
    install: Install, capfd: pytest.CaptureFixture[str]
) -> None:
    install("ompi4", "mpirun", "first")
    install("impi", "mpiexec.hydra", "second")
    root = install("mpich", "mpiexec.hydra", "third")
    main(["run", "-n", "1", "--mpi", "mpich", "--print", "true"])
    assert f" {root}/bin/mpiexec.hydra " in capfd.readouterr().out
    text = complaint(capfd, EXIT_FAILED, "-n", "1", "--mpi", "ompi5", "true")
    assert "no launcher of Open MPI 5 in PATH" in text
    assert "of another MPI" in text
    assert "--mpi-root" in text


def test_an_installation_that_is_named_comes_first(
    install: Install, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install("mpich", "mpiexec.hydra", "first")
    root = install("mpich", "mpiexec.hydra", "second")
    (root / "lib").mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/else")
    arguments = ["-n", "1", "--mpi", "mpich", "--mpi-root", str(root)]
    assert f"LD_LIBRARY_PATH={root}/lib:/else" in said(capfd, *arguments, "true")
    text = complaint(
        capfd, EXIT_USAGE, "-n", "1", "--mpi", "mpich", "--mpi-root", "/nowhere", "true"
    )
    assert "/nowhere/bin" in text


def test_providers_of_the_user_stay(
    install: Install,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    install("mpich", "mpiexec.hydra", "mpich")
    monkeypatch.setenv("FI_PROVIDER_PATH", "/theirs")
    found = said(capfd, "-n", "1", "--mpi", "mpich", "true")
    assert f"FI_PROVIDER_PATH={tmp_path}/lib/libfabric:/theirs" in found


def test_a_job_that_used_no_velo_is_an_error(
    install: Install, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install("mpich", "mpiexec.hydra", "mpich")
    monkeypatch.setenv("FAKE_UNUSED", "1")
    text = complaint(capfd, EXIT_UNUSED, "-n", "1", "--mpi", "mpich", "true")
    assert "no rank used velo" in text
    assert "without libfabric" in text


def test_ranks_on_other_hosts_are_not_looked_for(
    install: Install, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install("mpich", "mpiexec.hydra", "mpich")
    monkeypatch.setenv("FAKE_UNUSED", "1")
    assert "-hosts" in said(capfd, "-n", "1", "--mpi", "mpich", "-hosts", "a,b", "true")


def test_components_of_open_mpi_4_are_not_for_others(
    install: Install, capfd: pytest.CaptureFixture[str]
) -> None:
    install("mpich", "mpiexec.hydra", "mpich")
    for word in ("--mtl", "--btl", "--no-coll"):
        text = complaint(capfd, EXIT_USAGE, "-n", "1", "--mpi", "mpich", word, "true")
        assert word in text
        assert "--mpi ompi4" in text


def test_a_provider_that_is_not_there_is_an_error_that_helps(
    install: Install, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    install("mpich", "mpiexec.hydra", "mpich")
    (tmp_path / "lib" / "libfabric" / over_libfabric.PROVIDER).unlink()
    text = complaint(capfd, EXIT_FAILED, "-n", "1", "--mpi", "mpich", "true")
    assert over_libfabric.PROVIDER in text
    assert "libfabric-dev" in text


def all_load(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """All programs load this library."""
    monkeypatch.setattr(loader, "libraries", lambda _: {library: f"/usr/lib/{library}"})


@pytest.mark.parametrize(
    ("library", "kind", "launcher"),
    [
        ("libmpi.so.40", "ompi5", "second"),
        ("libmpi.so.12", "mpich", "first"),
        ("libmpich.so.12", "mpich", "first"),
    ],
)
def test_the_mpi_is_that_of_the_programs_libraries(
    install: Install, capfd: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, library: str, kind: str, launcher: str,
) -> None:  # fmt: skip
    install("mpich", "mpiexec.hydra", "first")
    install("ompi5", "mpirun", "second")
    all_load(monkeypatch, library)
    main(["run", "-n", "1", "--print", "true"])
    shown, said_why = capfd.readouterr()
    assert f"{tmp_path}/{launcher}/bin/mpi" in shown
    assert said_why.count("\n") == 1
    assert f"velo: --mpi {kind}: over velo's libfabric provider" in said_why
    assert "the program's MPI" in said_why


def test_the_first_launcher_says_which_mpi_where_the_program_does_not(
    install: Install,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install("impi", "mpiexec.hydra", "first")
    install("ompi5", "mpirun", "second")
    all_load(monkeypatch, "libc.so.6")
    main(["run", "-n", "1", "--print", "true"])
    shown, said_why = capfd.readouterr()
    assert f"{tmp_path}/first/bin/mpiexec.hydra" in shown
    assert "--mpi impi" in said_why
    assert "the first launcher in PATH" in said_why
    main(["run", "-n", "1", "--mpi", "ompi5", "--print", "true"])
    shown, said_why = capfd.readouterr()
    assert f"{tmp_path}/second/bin/mpirun" in shown
    assert said_why == ""


def test_a_program_whose_mpi_has_no_launcher_is_told_which_one_to_get(
    install: Install, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install("ompi5", "mpirun", "first")
    all_load(monkeypatch, "libmpi.so.12")
    assert "no launcher of MPICH" in complaint(capfd, EXIT_FAILED, "-n", "1", "true")
