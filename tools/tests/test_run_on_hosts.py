# SPDX-License-Identifier: Apache-2.0
"""`velo run --host`: what mpirun and the hosts are told. tests/mpi runs real jobs."""

import itertools
import os
import re
import socket
from pathlib import Path

import pytest

from velo.cli import main
from velo.errors import UsageError, VeloError
from velo.runtime import hosts, mpirun, openmpi

MPIRUN = """#!/bin/sh
case "$1" in --version) echo "mpirun (Open MPI) 4.1.4"; exit;; esac
printf '%s\\n' "$@"
env | grep -E '^(VELO|FI)_' | sed 's/^/env /'
[ -z "$FAKE_LEFT" ] || touch "$VELO_SHM_DIR/velo.$VELO_DOMAIN.0.1"
exit ${FAKE_CODE:-0}
"""
# Hosts that are not as they should be have names that say so.
AGENT = """#!/bin/sh
echo "$@" >>"$FAKE_LOG"
case "$1" in
gone) echo "ssh: connect to host gone: No route to host" >&2; exit 255;;
bare) echo /there/velo-info; exit 127;;
old) echo 0.9.0; exit;;
esac
shift
exec sh -c "$*"
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with components, programs that say what they are told, and an agent."""
    folder = tmp_path / "lib" / "velo" / "openmpi" / "4.1.4"
    folder.mkdir(parents=True)
    for name in openmpi.COMPONENTS.values():
        (folder / name).touch()
    for name in ("ofi", "card"):
        (folder.parents[1] / f"libvelo-{name}.so").touch()
    programs = {
        "bin/mpirun": MPIRUN,
        "bin/agent": AGENT,
        "libexec/velo/velo-info": "#!/bin/sh\necho 1.0.0",
        "libexec/velo/velo-clean": '#!/bin/sh\necho "cleans $*"',
    }
    for name, text in programs.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    (tmp_path / "shm").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("VELO_LIBEXEC", str(tmp_path / "libexec" / "velo"))
    monkeypatch.setenv("VELO_SHM_DIR", str(tmp_path / "shm"))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", "agent")
    for name in (*hosts.FILE_VARIABLES, *hosts.COUNT_VARIABLES, "VELO_NETWORK", "VELO_OFI_SECRET"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def asked(tree: Path) -> list[str]:
    """What the agent was called with."""
    log = tree / "log"
    return log.read_text().splitlines() if log.exists() else []


def said(capfd: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> list[str]:
    with pytest.raises(SystemExit) as end:
        main(["run", *argv])
    assert end.value.code == code
    return capfd.readouterr().out.splitlines()


def exported(words: list[str]) -> list[str]:
    """The names that mpirun is to hand on."""
    return [value for word, value in itertools.pairwise(words) if word == "-x"]


def test_ranks_on_hosts_get_a_network_and_a_secret(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        said(capfd, "-n", "4", "--host", "localhost:2,far:2", "true") for _ in range(2)
    )
    secrets = {line for line in [*first, *second] if line.startswith("env VELO_OFI_SECRET=")}
    assert len(secrets) == 2
    assert all(len(line.partition("=")[2]) == 2 * 32 for line in secrets)
    assert "env VELO_NETWORK=ofi" in first
    assert exported(first) == [
        "FI_OFI_RXM_MSG_RX_SIZE", "VELO_DOMAIN", "VELO_NETWORK", "VELO_OFI_SECRET", "VELO_SHM_DIR",
    ]  # fmt: skip
    assert "env FI_OFI_RXM_MSG_RX_SIZE=64" in first
    # A value on a command line would be shown by ps.
    values = {line.partition("=")[2] for line in secrets}
    assert not any(value in word for word in first if word[:4] != "env " for value in values)
    assert [line.split()[0] for line in asked(tree)] == ["far", "far"]


def test_the_transport_sets_what_velo_run_sets() -> None:
    """libfabric's receive buffers: the transport where it can, velo run for its ranks."""
    source = Path(__file__).parents[2] / "transports" / "ofi" / "fabric.c"
    found = re.findall(r'setenv\("(FI_\w+)", "(\d+)", 0\)', source.read_text())
    assert found == [mpirun.BUFFERS]


def test_ranks_on_hosts_with_cards_get_those(
    tree: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    card = tree / "card"
    card.touch()
    monkeypatch.setenv("VELO_CARD", str(card))
    found = said(capfd, "-n", "2", "--host", "localhost,far", "true")
    assert "env VELO_NETWORK=card" in found
    assert exported(found) == ["VELO_CARD", "VELO_DOMAIN", "VELO_NETWORK", "VELO_SHM_DIR"]
    assert {str(card), f"{tree}/lib/velo/libvelo-card.so"} <= set(asked(tree)[0].split())
    monkeypatch.setenv("VELO_NETWORK", "ofi")
    assert "env VELO_NETWORK=ofi" in said(capfd, "-n", "2", "--host", "localhost,far", "true")


def test_ranks_that_are_all_here_get_neither(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for host in ("localhost", "localhost:2", socket.gethostname(), "127.0.0.1"):
        found = said(capfd, "-n", "2", "--host", host, "--mca", "mtl", "x", "true")
        assert not any("VELO_NETWORK" in word or "SECRET" in word for word in found)
    assert not asked(tree)


def test_the_byte_transfer_layer_needs_neither(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = said(capfd, "-n", "2", "--btl", "--host", "far", "true")
    assert exported(found) == ["VELO_DOMAIN", "VELO_SHM_DIR"]
    assert len(asked(tree)) == 1


def test_what_the_user_sets_stands(
    tree: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELO_NETWORK", "/etc/map.toml")
    monkeypatch.setenv("VELO_OFI_SECRET", "sixteen letters!")
    monkeypatch.setenv("VELO_SPIN_NS", "0")
    monkeypatch.setenv("FI_OFI_RXM_MSG_RX_SIZE", "512")
    found = said(
        capfd, "-n", "2", "-x", "VELO_SPIN_NS=1", "--mca", "oob_tcp_keepalive_time", "60",
        "--host", "far", "true",
    )  # fmt: skip
    assert "env VELO_NETWORK=/etc/map.toml" in found
    assert "env VELO_OFI_SECRET=sixteen letters!" in found
    assert "env FI_OFI_RXM_MSG_RX_SIZE=512" in found
    assert exported(found).count("VELO_SPIN_NS") == 0
    assert "VELO_SPIN_NS=1" in exported(found)
    assert found.count("oob_tcp_keepalive_time") == 1
    assert "oob_tcp_keepalive_probes" in found


def test_one_sided_calls_may_go_by_messages(
    tree: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("-n", "2", "--host", "far", "true")
    found = said(capfd, *line)
    assert found[found.index("osc") + 1] == "^ucx"
    monkeypatch.setenv("OMPI_MCA_osc", "rdma")
    assert "osc" not in said(capfd, *line)


def test_each_host_is_asked_for_the_transport(
    tree: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = tree / "lib" / "velo" / "libvelo-ofi.so"
    said(capfd, "-n", "2", "--host", "far", "true")
    assert str(plugin) in asked(tree)[0].split()
    said(capfd, "-n", "2", "--btl", "--host", "far", "true")
    assert str(plugin) not in asked(tree)[-1]
    monkeypatch.setenv("VELO_TRANSPORT_PATH", "/elsewhere")
    said(capfd, "-n", "2", "--host", "far", "true")
    assert str(plugin) not in asked(tree)[-1]
    monkeypatch.delenv("VELO_TRANSPORT_PATH")
    plugin.unlink()
    with pytest.raises(VeloError, match=r"libvelo-ofi.so is not below .*libssl-dev"):
        main_raises("run", "-n", "2", "--host", "far", "true")
    main(["run", "-n", "2", "--print", "true"])  # Ranks of one host need none.


def test_print_shows_no_secret(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["run", "-n", "2", "--print", "--host", "far", "true"])
    line = capfd.readouterr().out
    assert "VELO_NETWORK=ofi" in line
    assert not re.search("[0-9a-f]{64}", line)
    assert not asked(tree)
    script = tree / "line"
    script.write_text(f"{line}\n")
    found = os.popen(f"sh {script}").read().splitlines()
    secret = next(word for word in found if word.startswith("env VELO_OFI_SECRET="))
    assert len(secret.partition("=")[2]) == 2 * 32


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("gone", "host gone is not reached by agent: ssh: connect to host gone: No route to host"),
        ("bare", "host bare has no /there/velo-info; install velo in the same folder"),
        ("old", "host old has velo 0.9.0, this one 1.0.0"),
    ],
)
def test_a_host_that_cannot_take_part_is_named(tree: Path, host: str, sentence: str) -> None:
    with pytest.raises(VeloError, match=sentence):
        main_raises("run", "-n", "2", "--host", f"far,{host}", "true")


def main_raises(*argv: str) -> None:
    """As main(), with the error as it is."""
    from velo.cli import build_parser
    from velo.runtime import run

    args = build_parser().parse_args(run.protect(argv))
    args.run(args)


def test_a_file_that_is_not_there_is_named(tree: Path) -> None:
    found = hosts.Hosts(["far"], ["agent"], [tree / "no-such-component"])
    with pytest.raises(VeloError, match=r"host far has no .*/no-such-component; install"):
        found.check()


def test_what_dead_ranks_leave_on_hosts_is_taken_away(
    tree: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CODE", "7")
    found = said(capfd, "-n", "2", "--host", "far,farther", "true", code=7)
    domain = next(line.partition("=")[2] for line in found if line.startswith("env VELO_DOMAIN="))
    cleaned = [line for line in asked(tree) if f"velo-clean --domain {domain}" in line]
    assert sorted(line.split()[0] for line in cleaned) == ["far", "farther"]
    assert all(f"VELO_SHM_DIR={tree}/shm" in line for line in cleaned)


def test_a_job_whose_ranks_were_killed_did_not_go_well_whatever_mpirun_ends_with(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of Open MPI 5 ends with 0 if it loses a host."""
    monkeypatch.setenv("FAKE_LEFT", "1")
    with pytest.raises(VeloError, match="ranks of this host were killed"):
        main_raises("run", "-n", "2", "--host", "far", "true")
    assert not list((tree / "shm").iterdir())
    assert "velo-clean" in asked(tree)[-1]


def test_hosts_are_found_where_they_are_named(tree: Path) -> None:
    file = tree / "hosts"
    file.write_text("# ours\nfar slots=2\nme@farther:4\n\n^left_out\nfar\n")

    def names(*options: str, **env: str) -> list[str] | None:
        found = hosts.find(options, {"OMPI_MCA_plm_rsh_agent": "agent", **env})
        return None if found is None else list(found.names)

    assert names("--host", "a:2,b") == ["a", "b"]
    assert names("-H", "a", "-host", "b") == ["a", "b"]
    assert names("--hostfile", str(file)) == ["far", "farther"]
    assert names("-machinefile", str(file)) == ["far", "farther"]
    assert names("--host", "+n0") is None
    assert names("--bind-to", "none") is None
    # What a scheduler starts need not be reached by ssh.
    assert names(PBS_NODEFILE=str(file)) == []
    assert names(SLURM_JOB_NUM_NODES="2") == []
    assert names(SLURM_JOB_NUM_NODES="1") is None
    with pytest.raises(UsageError, match="cannot read the hostfile"):
        names("--hostfile", str(tree / "none"))


def test_the_agent_is_open_mpis(tree: Path) -> None:
    assert hosts.agent([], {"OMPI_MCA_plm_rsh_agent": "agent -q"}) == ["agent", "-q"]
    assert hosts.agent(["--mca", "plm_rsh_agent", "nowhere : agent -v"], {}) == ["agent", "-v"]
    with pytest.raises(VeloError, match="there is no nowhere nor else"):
        hosts.agent(["--mca", "plm_rsh_agent", "nowhere : else"], {})
