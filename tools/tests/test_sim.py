# SPDX-License-Identifier: Apache-2.0
"""`velo sim`: what it starts, and what it refuses."""

import ctypes.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from velo import cli
from velo.cluster import job, ranks
from velo.errors import UsageError, VeloError
from velo.runtime import openmpi, which_mpi


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build tree with files of the right names."""
    libexec = tmp_path / "libexec" / "velo"
    for path in (libexec / "velo-sim", tmp_path / "lib" / "velo" / "libvelo-virtual.so"):
        path.parent.mkdir(parents=True)
        path.touch(mode=0o755)
    monkeypatch.setenv("VELO_LIBEXEC", str(libexec))
    found = ("/bin/mpirun", tmp_path / "components")
    monkeypatch.setattr(openmpi, "find_mpirun", lambda layer, root: found)
    monkeypatch.setattr(ranks, "find_allocators", lambda: "liballocator.so")
    return tmp_path


@pytest.fixture(autouse=True)
def first_launcher(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The MPI that fits, in place of this machine's."""
    kinds = ["ompi4"]
    monkeypatch.setattr(which_mpi, "choose", lambda *_: which_mpi.Choice(kinds[0], None, True))
    return kinds


def test_the_mpi_is_the_one_that_fits(
    tree: Path, capsys: pytest.CaptureFixture[str], first_launcher: list[str]
) -> None:
    assert made().mpi == "ompi4"
    assert capsys.readouterr().err == ""
    first_launcher[0] = "mpich"
    assert made().mpi == "mpich"
    assert "--mpi mpich" in capsys.readouterr().err
    assert made("--mpi", "impi").mpi == "impi"
    assert made("--btl").mpi == "ompi4"
    assert capsys.readouterr().err == ""


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["sim", "--print", *words]) == 0
    return capsys.readouterr().out


def made(*words: str) -> job.Job:
    return job.plan(cli.build_parser().parse_args(["sim", "-n", "2", *words, "--", "true"]))


def refused(*words: str) -> VeloError:
    args = cli.build_parser().parse_args(["sim", *words])
    with pytest.raises(VeloError) as error:
        job.plan(args)
    return error.value


def test_a_rank_on_each_node_unless_told_otherwise(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = printed(capsys, "--topology", "torus:2x2x2", "--ranks-a-node", "2", "--", "true", "-x")
    assert "mpirun -n 16 " in said
    assert "VELO_SIM_RANKS_A_NODE=2" in said
    virtual = f"{tree}/lib/velo/libvelo-virtual.so"
    assert f"VELO_NETWORK=nic,own=nic LD_PRELOAD={virtual}:liballocator.so" in said
    assert said.rstrip().endswith("velo-rank true -x")


def test_the_layer_and_the_simulators_options_are_passed_on(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = printed(
        capsys,
        "--btl",
        "--clock-mhz",
        "300",
        "--seed",
        "7",
        "--json",
        "x",
        "--model",
        "fast",
        "--",
        "true",
    )
    assert "--clock-mhz 300 --seed 7 --model fast --result x --" in said
    assert "--mca mtl_velo_sleep 0 --mca btl_velo_sleep 0" in said
    assert "--mca orte_allowed_exit_without_sync 1" in said


def test_between_nodes_there_is_velo_alone(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for layer in ("--mtl", "--btl"):
        said = printed(capsys, layer, "--", "true")
        assert said.count("--mca btl ") == 1
        assert "--mca btl self,velo " in said
        assert "--mca mtl_velo_simulated 1 --mca btl_velo_simulated 1" in said
        assert "--mca coll '^velo'" in said


def test_the_launchers_environment_says_who_shares_a_node(with_provider: Path) -> None:
    places = [(0, 3), (1, 3), (2, 3), (0, 2), (1, 2)]
    open_mpi = ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
    assert told("ompi4", open_mpi) == told("ompi5", open_mpi) == places
    hydra = ("MPI_LOCALRANKID", "MPI_LOCALNRANKS")
    assert told("mpich", hydra) == told("impi", hydra) == places
    velo = ("VELO_SIM_RANK", "VELO_SIM_RANKS", "VELO_NODE", "FI_VELO_NODE")
    assert told("impi", velo) == told("ompi4", velo)
    assert told("impi", velo)[3] == (3, 5, 1, 1)


def told(mpi: str, names: tuple[str, ...]) -> list[tuple[int, ...]]:
    """What the rank script tells each of five ranks, three on a node."""
    script = ranks.rank_script(made("--mpi", mpi, "--ranks-a-node", "3"), Path("preloaded"))
    words = ["sh", "-c", script.replace("LD_PRELOAD=", "PRELOAD="), ranks.RANK_NAME, "env"]
    names_of = {"mpich": ("PMI_RANK", "PMI_SIZE"), "impi": ("PMI_RANK", "PMI_SIZE")}
    open_mpi = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
    rank_name, size_name = names_of.get(mpi, open_mpi)
    found = []
    for rank in range(5):
        env = {"PATH": os.environ["PATH"], rank_name: str(rank), size_name: "5"}
        said = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
        values = dict(line.split("=", 1) for line in said.splitlines())
        found.append(tuple(int(values[name]) for name in names))
    return found


@pytest.fixture
def with_provider(tree: Path) -> Path:
    """The same with the provider that reaches simulated nodes."""
    provider = tree / "lib" / "velo" / "libfabric" / "libvelo-fi.so"
    provider.parent.mkdir()
    provider.touch()
    return tree


@pytest.fixture
def mpich(tmp_path: Path) -> Path:
    """The folder of an MPI whose launcher says that it is MPICH's."""
    launcher = tmp_path / "mpi" / "bin" / "mpiexec.hydra"
    launcher.parent.mkdir(parents=True)
    launcher.write_text("#!/bin/sh\necho HYDRA build details:\necho '    Version:   5.0.2'\n")
    launcher.chmod(0o755)
    return tmp_path / "mpi"


def test_another_mpi_goes_by_the_provider(
    with_provider: Path, mpich: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = printed(capsys, "--mpi", "mpich", "--mpi-root", str(mpich), "-n", "2", "--", "true")
    assert "-- env FI_PROVIDER=velo MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 PATH=" in said
    assert f" {mpich}/bin/mpiexec.hydra -n 2 sh -c " in said
    assert f"FI_PROVIDER_PATH={with_provider}/lib/velo/libfabric FI_PROVIDER=velo " in said
    assert "VELO_SIM_RANK=$PMI_RANK" in said


def test_without_the_provider_another_mpi_is_refused(
    tree: Path, mpich: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sim", "--print", "--mpi", "mpich", "--mpi-root", str(mpich), "--", "true"]
    assert cli.main(words) == 1
    said = capsys.readouterr().err
    assert (
        "built without libfabric's headers; run 'make sim' (needs Debian's libfabric-dev)" in said
    )


def test_an_mpi_that_is_not_there_is_named(
    with_provider: Path, mpich: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sim", "--print", "--mpi-root", str(mpich), "--mpi", "impi", "--", "true"]
    assert cli.main(words) == 1
    assert "there is no launcher of Intel MPI below" in capsys.readouterr().err


def test_options_of_another_mpi_are_refused() -> None:
    assert "for --mpi ompi4 alone" in str(refused("--mpi", "mpich", "--btl", "--", "true"))
    assert "for MPI programs" in str(refused("--mpi", "mpich", "--plain", "--", "true"))
    assert "no folder /none/bin" in str(refused("--mpi-root", "/none", "--", "true"))


def test_what_is_to_be_seen_is_passed_on(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "libexec" / "velo" / "velo-sim-wave").touch(mode=0o755)
    words = ["--record", "r", "--wave", "w.vcd", "--wave-from-us", "12.5"]
    words += ["--wave-to-us", "1000000"]
    said = printed(capsys, "--topology", "ring:4", *words, "--wave-nodes", "0,2", "--", "true")
    assert said.startswith(f"{tree}/libexec/velo/velo-sim-wave --topology-file ")
    assert "/ring:4 --area /dev/shm/velo-sim." in said
    window = "--wave-from-us 12.5 --wave-to-us 1000000 --wave-nodes 0,2"
    assert f"--record r --wave w.vcd {window} --" in said


def test_a_waveform_needs_its_simulator_and_a_window(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    window = ["--wave-from-us", "1", "--wave-to-us", "2"]
    assert cli.main(["sim", "--print", "--wave", "w.vcd", *window, "--", "true"]) == 1
    assert "cmake --build build --target velo-sim-wave" in capsys.readouterr().err
    (tree / "libexec" / "velo" / "velo-sim-wave").touch(mode=0o755)
    assert cli.main(["sim", "--print", "--wave", "w.vcd", *window[:2], "--", "true"]) == 2
    assert "needs --wave-from-us and --wave-to-us" in capsys.readouterr().err
    assert cli.main(["sim", "--print", *window, "--", "true"]) == 2
    assert "go with --wave FILE.vcd" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["sim", "--wave-from-us", "-1", "--", "true"])


def test_a_plain_program_is_started_as_it_is(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = printed(capsys, "--plain", "--", "true")
    virtual = f"{tree}/lib/velo/libvelo-virtual.so"
    assert said.rstrip().endswith(f"-- env VELO_NETWORK=nic,own=nic LD_PRELOAD={virtual} true")


def test_a_plain_program_finds_the_provider(
    with_provider: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = printed(capsys, "--plain", "--", "true")
    assert f" FI_PROVIDER_PATH={with_provider}/lib/velo/libfabric FI_PROVIDER=velo " in said


def test_a_program_over_boards_is_started_once_and_is_of_the_cluster_from_its_start(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = printed(capsys, "--dimmnet", "3", "--", "true")
    assert " --boards 3 " in said
    environment = "VELO_DIMMNET=sim VELO_SIM_RANK=0 VELO_SIM_RANKS=1 VELO_SIM_REPEATABLE=1"
    virtual = f"{tree}/lib/velo/libvelo-virtual.so"
    assert said.rstrip().endswith(f"-- env {environment} LD_PRELOAD={virtual} true")


def test_boards_that_make_no_sense_are_refused() -> None:
    assert "give 1 to 16 boards" in str(refused("--dimmnet", "17", "--", "true"))
    assert "leave -n out" in str(refused("--dimmnet", "2", "-n", "2", "--", "true"))
    assert "have 100 MHz" in str(refused("--dimmnet", "2", "--clock-mhz", "200", "--", "true"))


def test_what_makes_no_sense_is_refused_before_anything_starts() -> None:
    assert "9 ranks do not fit on 2 nodes" in str(refused("-n", "9", "--", "true"))
    many = str(refused("--ranks-a-node", "257", "--", "true"))
    assert "a node of a cluster of 2 has 256 contexts" in many
    assert "which program?" in str(refused("--topology", "pair"))
    assert "one program" in str(refused("--topology", "pair", "--", "true", ":", "-n", "1", "true"))
    assert "topology 'cube:3'" in str(refused("--topology", "cube:3", "--", "true"))
    assert "is not there" in str(refused("--", "no-such-program"))
    assert isinstance(refused("--topology", "ring", "--", "true"), UsageError)


def test_the_ranks_allocator_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: f"lib{name}.so.2")
    assert ranks.find_allocators() == "libstdc++.so.6:libjemalloc.so.2"
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    with pytest.raises(VeloError, match="apt-get install libjemalloc2"):
        ranks.find_allocators()


def test_a_static_program_is_refused(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    assert compiler
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    program = tmp_path / "static"
    subprocess.run([compiler, "-static", source, "-o", program], check=True)
    with pytest.raises(VeloError, match="linked statically"):
        job.check_dynamic(program)
    job.check_dynamic(Path(compiler))
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    job.check_dynamic(script)  # What a script runs is dynamic, or fails.
