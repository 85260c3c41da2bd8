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
from velo.runtime import openmpi


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build tree with files of the right names."""
    libexec = tmp_path / "libexec" / "velo"
    for path in (libexec / "velo-sim", tmp_path / "lib" / "velo" / "libvelo-virtual.so"):
        path.parent.mkdir(parents=True)
        path.touch(mode=0o755)
    monkeypatch.setenv("VELO_LIBEXEC", str(libexec))
    monkeypatch.setattr(openmpi, "component_folder", lambda layer: tmp_path / "components")
    monkeypatch.setattr(openmpi, "find_mpirun", lambda folder: "/bin/mpirun")
    monkeypatch.setattr(ranks, "find_allocators", lambda: "liballocator.so")
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["sim", "--print", *words]) == 0
    return capsys.readouterr().out


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
        capsys, "--btl", "--clock-mhz", "300", "--seed", "7", "--json", "x", "--", "true"
    )
    assert "--clock-mhz 300 --seed 7 --result x --" in said
    assert "--mca mtl_velo_sleep 0 --mca btl_velo_sleep 0" in said
    assert "--mca orte_allowed_exit_without_sync 1" in said


def test_between_nodes_there_is_velo_alone(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for layer in ("--mtl", "--btl"):
        said = printed(capsys, layer, "--", "true")
        assert said.count("--mca btl ") == 1
        assert "--mca btl self,velo " in said
        assert "--mca mtl_velo_simulated 1 --mca btl_velo_simulated 1" in said
        assert "--mca coll '^velo'" in said


def test_the_launchers_environment_says_who_shares_a_node() -> None:
    script = ranks.RANK.format(ranks_a_node=3, network="VELO_NETWORK=", preload="") + "\n"
    names = ("LOCAL_RANK", "LOCAL_SIZE", "NODE_RANK")
    words = ["sh", "-c", script, ranks.RANK_NAME, "env"]
    found = []
    for rank in range(5):
        env = {"PATH": os.environ["PATH"], "OMPI_COMM_WORLD_RANK": str(rank)}
        env["OMPI_COMM_WORLD_SIZE"] = "5"
        said = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
        values = dict(line.split("=", 1) for line in said.splitlines())
        found.append(tuple(int(values[f"OMPI_COMM_WORLD_{name}"]) for name in names))
    assert found == [(0, 3, 0), (1, 3, 1), (2, 3, 2), (0, 2, 0), (1, 2, 1)]


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
    assert "a node has 256 contexts" in str(refused("--ranks-a-node", "257", "--", "true"))
    assert "which program?" in str(refused("--topology", "pair"))
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
