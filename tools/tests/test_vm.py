# SPDX-License-Identifier: Apache-2.0
"""`velo vm` with fakes in place of QEMU and the simulator: what it starts, refuses and leaves."""

import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
from itertools import pairwise
from pathlib import Path

import pytest

from velo import arguments, cli, tree
from velo.cluster import description
from velo.errors import VeloError
from velo.runtime import openmpi
from vm import built_kernel, guest, image, packages, plan, session

FAKE = Path(__file__).with_name("fake_machine.py")
TOOLS = FAKE.parents[1]


def make_module(path: Path, machine: str = "x86-64") -> Path:
    """What looks like a kernel module."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    path.write_bytes(plan.ELF_START.pack(ident, plan.ELF_RELOCATABLE, plan.ELF_MACHINES[machine]))
    return path


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with driver, components and simulator, images, and a folder to stand in."""
    checkout = tmp_path / "tree"
    make_module(checkout / "build" / "driver" / "velo.ko")
    libexec = checkout / "build" / "libexec" / "velo"
    libexec.mkdir(parents=True)
    simulator = libexec / "velo-sim"
    simulator.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} velo-sim "$@"\n')
    simulator.chmod(0o755)
    monkeypatch.setenv("VELO_LIBEXEC", str(libexec))
    monkeypatch.setattr(tree, "CHECKOUT", checkout)
    components = checkout / "build" / "lib" / "velo" / "openmpi"
    monkeypatch.setattr(openmpi, "component_folder", lambda layer: components)
    made = image.Images(*(tmp_path / name for name in ("vmlinuz-6.9-x", "initrd", "root", "qemu")))
    monkeypatch.setattr(image, "ensure", lambda built=None, suite="", architecture="": made)

    def fake(folder: Path, program: str, *words: str) -> list[str]:
        kind = "qemu" if "qemu" in program else "virtiofsd"
        return [sys.executable, str(FAKE), kind, *words]

    monkeypatch.setattr(guest, "loaded", fake)
    monkeypatch.setenv("FAKE_GUEST", "good")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    for name in ("t", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def made(folder: Path, *words: str) -> plan.Run:
    return plan.make(cli.build_parser().parse_args(["vm", *words]), folder)


def refusal(folder: Path, *words: str) -> str:
    with pytest.raises(VeloError) as error:
        made(folder, *words)
    return str(error.value)


def option(words: list[str], name: str) -> list[str]:
    return [value for key, value in pairwise(words) if key == name]


def test_a_guest_alone_needs_no_other_node_than_cards(house: Path) -> None:
    """A node without a card has a model of its own, which not every build has."""
    run = made(house, "--nodes", "1", "--", "true")
    assert len(run.guests) == 1
    assert option(list(run.simulator), "--card") == [f"{n}={house}/card{n}" for n in range(2)]


def test_each_guest_has_the_card_of_its_node(house: Path) -> None:
    run = made(house, "--nodes", "3", "--iommu", "--", "true")
    assert run.topology == "ring:3"
    assert option(list(run.simulator), "--card") == [f"{n}={house}/card{n}" for n in range(3)]
    for node, each in enumerate(run.guests):
        words = each.command(image.ensure(), {"report": 5}, [house / "a", house / "b"])
        devices = option(words, "-device")
        card = json.loads(next(device for device in devices if device.startswith("{")))
        assert card["driver"] == "vfio-user-pci"
        assert card["socket"]["path"] == f"{house}/card{node}"
        assert any(each.startswith(f"pcie-root-port,id={card['bus']},") for each in devices)
        assert "intel-iommu,caching-mode=on" in devices
        assert "iommu.strict=1" in option(words, "-append")[0]
        memory = next(o for o in option(words, "-object") if o.startswith("memory-backend-memfd"))
        assert memory.endswith(",share=on")
        # The hub is in the first guest; it has a port for each other one.
        cables = [each for each in option(words, "-netdev") if each.startswith("stream")]
        assert len(cables) == (2 if node == 0 else 1)


@pytest.mark.parametrize("topology", ["ring:4", "mesh:4"])
def test_the_driver_is_told_what_the_cluster_knows(house: Path, topology: str) -> None:
    network = description.line(topology)
    run = made(house, "--nodes", "4", "--topology", topology, "--", "true")
    for node, each in enumerate(run.guests):
        routes = [line.split() for line in each.files["routes"].splitlines()]
        assert [int(way) for _, way in routes] == network.routes[node]
        assert [int(target) for target, _ in routes] == [0, 1, 2, 3]
        links = {link for at, link in network.cables if at == node}
        assert f"VELO_GUEST_LINKS={sum(1 << link for link in links)}\n" in each.files["settings"]
        assert f"VELO_GUEST_NODE={node}\n" in each.files["settings"]


def test_the_job_is_mpirun_over_the_cards(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELO_TRACE", "a b")
    monkeypatch.setenv("VELO_VM_CACHE", "/elsewhere")
    files = made(house, "--ranks-a-node", "2", "--", "./x", "-a", "b c").guests[0].files
    here = Path.cwd()
    assert files["job"].endswith(f"exec mpirun -n 4 --oversubscribe {here}/x -a 'b c'\n")
    assert f"cd {here}\n" in files["job"]
    assert files["hostfile"] == "velo0 slots=2\nvelo1 slots=2\n"
    assert "10.118.0.2 velo1\n" in files["hosts"]
    env = files["environment"]
    assert "export VELO_TRACE='a b'\n" in env
    assert "VELO_VM_CACHE" not in env
    for line in (
        "OMPI_MCA_pml=cm",
        "OMPI_MCA_mtl=velo",
        "VELO_NETWORK=card",
        "VELO_CARD_TIMEOUT_MS=600000",
    ):
        assert f"export {line}\n" in env
    others = made(house, "--", "x").guests[1].files
    assert "job" not in others
    assert others["environment"] == env


def test_programs_beside_have_nodes_without_cards(house: Path) -> None:
    run = made(house, "--beside", "a 'b c'", "--beside", "d", "--", "x")
    assert run.topology == "ring:4"
    words = list(run.simulator)
    assert option(words, "--card") == [f"{n}={house}/card{n}" for n in range(2)]
    assert words[-4:-1] == ["--", "sh", "-c"]
    for node, command in ((2, "'a '\"'\"'b c'\"'\"''"), (3, "d")):
        assert f"(VELO_NODE={node} sh -c {command} 2>&1; " in words[-1]
    # They and the guests are to find each other.
    for line in ("export VELO_DOMAIN=vm\n", "export VELO_NETWORK=card\n"):
        assert line in words[-1]
        assert line in run.guests[0].files["environment"]
    assert "PATH=" not in words[-1]


def test_without_cards_there_is_no_simulator_and_no_velo(house: Path) -> None:
    run = made(house, "--no-card", "--", "x")
    assert not run.simulator
    assert "routes" not in run.guests[0].files
    assert "OMPI_MCA_pml=ob1" in run.guests[0].files["environment"]


def test_a_name_is_the_guests_program_and_a_path_ours(house: Path) -> None:
    assert "exec hpcc\n" in made(house, "--plain", "--", "hpcc").guests[0].files["job"]
    path = "exec /host/usr/x\n"
    assert path in made(house, "--plain", "--", "/usr/x").guests[0].files["job"]


@pytest.mark.parametrize(
    ("outside", "seen"),
    [("/work/x", "/work/x"), ("/root", "/root"), ("/usr/local", "/host/usr/local"),
     ("/var/tmp/x", "/host/var/tmp/x"), ("/", "/host")],
)  # fmt: skip
def test_no_share_covers_what_a_guest_needs(outside: str, seen: str) -> None:
    assert guest.inside(Path(outside)) == Path(seen)


def test_the_settings_are_an_archive_of_whole_sectors(house: Path) -> None:
    each = made(house, "--", "x").guests[0]
    words = each.command(image.ensure(), {}, [house / "a", house / "b"])
    drive = next(each for each in option(words, "-drive") if "id=settings" in each)
    path = Path(drive.partition("=")[2].partition(",")[0])
    assert path.stat().st_size % 512 == 0
    with tarfile.open(path) as archive:
        shares = archive.extractfile("shares")
        assert shares
        assert shares.read().decode() == f"tree ro {house}/tree\nhere rw {house}/here\n"


def test_a_comma_in_a_folder_ends_no_option(house: Path) -> None:
    folder = house / "t" / "a,b c"
    folder.mkdir()
    first, second = made(folder, "--nodes", "2", "--", "x").guests
    images = image.Images(*(house / name for name in ("k", "i", "root,4", "q")))
    words = [
        *first.command(images, {}, [folder / "one", folder / "two"]),
        *second.command(images, {}, [folder / "one", folder / "two"]),
    ]
    values = [word for word in words if "a,b c" in word or "a,,b c" in word or "root,,4" in word]
    # The log's name is no option's value, and that of the card is JSON.
    whole = [value for value in values if value.startswith(("file:", "{"))]
    split = [value for value in values if value not in whole]
    assert len(whole) == 4
    assert len(split) == 2 + 2 + 4 + 2  # images, settings, shares, network
    assert all(",," in value for value in split)
    assert not any(",," in value for value in whole)


@pytest.mark.parametrize("looks_for", plan.FAULTS)
def test_a_guest_that_looks_for_faults_has_its_own_driver_and_more_memory(
    house: Path, looks_for: str
) -> None:
    driver = make_module(house / "tree" / "build" / f"driver-{looks_for}" / "velo.ko")
    each = made(house, f"--{looks_for}", "--processors", "2", "--", "x").guests[0]
    assert f"VELO_GUEST_DRIVER={driver}\n" in each.files["settings"]
    assert f"VELO_GUEST_FAULTS={looks_for}\n" in each.files["settings"]
    words = each.command(image.ensure(), {}, [house / "a", house / "b"])
    assert option(words, "-m") == ["1024M"]
    assert option(words, "-smp") == ["2"]
    plain = made(house, "--", "x").guests[0]
    assert "VELO_GUEST_FAULTS" not in plain.files["settings"]
    assert option(plain.command(image.ensure(), {}, [house / "a", house / "b"]), "-m") == ["512M"]


def test_an_aarch64_guest_is_another_machine_with_the_same_card(house: Path) -> None:
    driver = make_module(house / "tree" / "build" / "driver-arm64" / "velo.ko", "AArch64")
    each = made(house, "--arm64", "--driver", str(driver), "--plain", "--", "x").guests[0]
    assert f"VELO_GUEST_DRIVER={driver}\n" in each.files["settings"]
    # This tree's MPI is of this machine.
    assert "OMPI_MCA_mtl" not in each.files["environment"]
    words = each.command(image.ensure(), {}, [house / "a", house / "b"])
    assert any(word.startswith("virt,") and "highmem-mmio-size=1T" in word for word in words)
    assert "console=ttyAMA0" in option(words, "-append")[0]
    assert " init_on_alloc=1" in option(words, "-append")[0]
    assert any("vfio-user-pci" in device for device in option(words, "-device"))
    assert not any("q35" in word for word in words)


@pytest.mark.parametrize(
    "line",
    [
        "BUG: KASAN: use-after-free in velo_release+0x1",
        "BUG: KCSAN: data-race in velo_give [velo] / velo_take [velo]",
        "WARNING: possible circular locking dependency detected",
        "BUG: sleeping function called from invalid context at mm/x.c:1",
        "DMA-API: velo 0000:00:05.0: device driver has pending DMA allocations",
        "INFO: trying to register non-static key.",
        "list_del corruption. prev->next should be x",
        "    # routes_are_replaced: EXPECTATION FAILED at parse_kunit.c:80",
        "velo: fault: leak at the end: unreferenced object 0xff (size 64):",
    ],
)
def test_words_of_a_fault_are_known(house: Path, line: str) -> None:
    each = made(house, "--", "x").guests[0]
    each.log.write_text(f"[    1.0] velo 0000:00:05.0: velo0: 256 contexts\n[    2.0] {line}\n")
    assert each.complaints() == [f"[    2.0] {line}"]


def test_what_makes_no_sense_is_refused(house: Path) -> None:
    assert "which program?" in refusal(house)
    assert "leave out what is behind --" in refusal(house, "--shell", "--", "x")
    assert "larger --topology" in refusal(house, "--nodes", "5", "--topology", "ring:4", "--", "x")
    assert "a card has 3" in refusal(house, "--topology", "torus:2x2x2", "--", "x")
    assert "give 1 to 16" in refusal(house, "--nodes", "17", "--topology", "ring:17", "--", "x")
    assert "leave --no-card out" in refusal(house, "--no-card", "--beside", "a", "--", "x")
    beside = ("--topology", "pair", "--beside", "a")
    assert "larger --topology" in refusal(house, *beside, "--", "x")
    assert "at least 256 MiB" in refusal(house, "--memory", "64", "--", "x")
    assert "no file /none/velo.ko" in refusal(house, "--driver", "/none/velo.ko", "--", "x")
    assert refusal(house, "--driver", __file__, "--", "x").endswith("is no kernel module")
    other = str(make_module(house / "other.ko", "AArch64"))
    assert "is no kernel module for x86-64" in refusal(house, "--driver", other, "--", "x")
    assert "name of a suite" in refusal(house, "--kernel", "../x", "--", "x")
    for name in plan.FAULTS:
        own = ("--kernel", "forky", f"--{name}")
        assert "leave it or --kernel out" in refusal(house, *own, "--", "x")
    # Also where nothing is started.
    for pair, said in (
        (("--debug", "--races"), "two kernels"),
        (("--debug", "--arm64"), "leave these out"),
        (("--races", "--kernel", "trixie"), "leave it or --kernel out"),
    ):
        with pytest.raises(VeloError, match=said):
            plan.system(cli.build_parser().parse_args(["vm", *pair, "--headers"]))
    assert "--kernel forky --headers) OUT=" in refusal(house, "--kernel", "forky", "--", "x")
    arm64 = ("--arm64", "--driver", str(house / "tree" / "build" / "driver" / "velo.ko"))
    assert "give --plain or --shell" in refusal(house, *arm64, "--", "x")
    for name in ("iommu", *plan.FAULTS):
        assert "leave these out" in refusal(house, *arm64, "--plain", f"--{name}", "--", "x")
    assert "--arm64 --headers) " in refusal(house, "--arm64", "--plain", "--", "x")
    large = ("--arm64", "--large-pages")
    assert "--large-pages --headers) " in refusal(house, *large, "--plain", "--", "x")
    assert "leave it or --kernel out" in refusal(house, *large, "--kernel", "forky", "--", "x")
    with pytest.raises(VeloError, match="give --arm64, too"):
        plan.system(cli.build_parser().parse_args(["vm", "--large-pages", "--headers"]))
    assert "give a guest 1 to 8" in refusal(house, "--processors", "9", "--", "x")
    (house / "tree" / "build" / "driver" / "velo.ko").unlink()
    assert "make -C driver KDIR=$(velo vm --headers)'" in refusal(house, "--", "x")
    assert "$(velo vm --debug --headers) VELO_KUNIT=y OUT=" in refusal(house, "--debug", "--", "x")
    assert "$(velo vm --races --headers) OUT=" in refusal(house, "--races", "--", "x")


def ran(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        cli.main(["vm", *words])
    assert isinstance(end.value.code, int)
    return end.value.code


def left(house: Path) -> list[str]:
    """Processes of this test that still run, and files."""
    running = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(bytes(house / "t")) for word in words):
            running.append(b" ".join(words).decode())
    return running + [str(path) for path in (house / "t").iterdir()]


def test_output_and_exit_code_come_back(
    house: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert ran("--json", "r.json", "--keep", "kept", "--", "x") == 7
    said = capfdbinary.readouterr()
    assert said.out == b"to out\n"
    assert b"to err\n" in said.err
    assert b"velo vm: booting 2 guests\n" in said.err
    result = json.loads(Path("r.json").read_text())
    assert result["exit_code"] == 7
    assert result["boot_s"].keys() == {"velo0", "velo1"}
    assert "version of a fake" in Path("kept/velo1.log").read_text()
    assert not left(house)


@pytest.mark.parametrize(
    ("does", "beside", "code"), [("well", 5, 5), ("good", 5, 7), ("well", 0, 0)]
)
def test_a_program_beside_is_waited_for(
    house: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    does: str,
    beside: int,
    code: int,
) -> None:
    monkeypatch.setenv("FAKE_GUEST", does)
    command = f"sleep 0.3; echo on $VELO_NODE in $VELO_DOMAIN; exit {beside}"
    assert ran("--beside", command, "--", "x") == code
    assert sorted(capfdbinary.readouterr().out.splitlines()) == [b"on 2 in vm", b"to out"]
    assert not left(house)


def test_a_program_beside_that_hangs_is_told_of(
    house: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["vm", "--timeout", "0.5", "--beside", "sleep 60", "--", "x"]) == 1
    assert "the program on node 2 did not end within 0.5 s" in capsys.readouterr().err
    assert not left(house)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("refuses", "guest velo0: the card cannot be set up: no such thing"),
        ("dies", "ended with exit code 3; its last words:\nqemu says why\n[ 0.2] Kernel panic"),
        ("warns", "a guest's kernel complained:\nvelo0: [ 0.2] WARNING: CPU: 0"),
        ("hangs", "the program did not end within 0.5 s"),
    ],
)  # fmt: skip
def test_a_guest_that_fails_is_told_of(
    house: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    does: str,
    said: str,
) -> None:
    monkeypatch.setenv("FAKE_GUEST", does)
    assert cli.main(["vm", "--timeout", "0.5", "--", "x"]) == 1
    assert said in capsys.readouterr().err
    assert not left(house)


@pytest.mark.parametrize("words", ["end x", "end", "end -1", "end 1234", "velo", "", "x" * 9000])
def test_a_report_that_nobody_understands_is_told_of(
    house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    monkeypatch.setenv("FAKE_GUEST", "babbles")
    monkeypatch.setenv("FAKE_WORDS", words)
    assert cli.main(["vm", "--timeout", "10", "--", "x"]) == 1
    assert "velo0 reports what nobody understands" in capsys.readouterr().err
    assert not left(house)


def test_debug_guests_are_asked_for_faults_when_the_job_has_ended(
    house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = str(make_module(house / "velo.ko"))
    assert ran("--debug", "--driver", driver, "--", "x") == 7
    monkeypatch.setenv("FAKE_GUEST", "leaks")
    assert cli.main(["vm", "--debug", "--driver", driver, "--", "x"]) == 1
    said = capsys.readouterr().err
    assert "a guest's kernel complained:\nvelo0: [ 0.9] velo: fault: leak at the end" in said
    monkeypatch.setattr(session, "CHECK_TIMEOUT_S", 0.5)
    monkeypatch.setenv("FAKE_GUEST", "ends")
    assert cli.main(["vm", "--debug", "--driver", driver, "--", "x"]) == 1
    assert "velo0 has not checked itself within 0 s" in capsys.readouterr().err
    assert not left(house)


def test_a_guest_that_never_boots_is_told_of(
    house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "BOOT_TIMEOUT_S", 0.0)
    assert cli.main(["vm", "--", "x"]) == 1
    assert "is not ready within 0 s; its kernel last said: " in capsys.readouterr().err
    assert not left(house)


def test_a_simulator_that_ends_is_told_of(
    house: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_SIMULATOR", "dies")
    assert cli.main(["vm", "--", "x"]) == 1
    assert "velo-sim ended with exit code 1:\nvelo-sim: no model fits" in capsys.readouterr().err
    assert not left(house)


def test_printed_commands_are_shells(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["vm", "--print", "--", "x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert shlex.split(lines[0])[0].endswith("velo-sim")
    assert "velo1" in shlex.split(lines[2])
    assert not left(house)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing(house: Path, signum: int) -> None:
    program = (
        f"import sys; sys.path[:0] = [{str(TOOLS)!r}, {str(FAKE.parent)!r}]; import test_vm; "
        f"test_vm.stand_in({str(house)!r}); from velo import cli; "
        "sys.exit(cli.main(['vm', '--', 'x']))"
    )
    env = {**os.environ, "FAKE_GUEST": "hangs"}
    process = subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"to out\n"
    assert left(house)
    process.send_signal(signum)
    assert process.wait(20) == 128 + signum
    assert not left(house)


def stand_in(folder: str) -> None:
    """The fixture's settings in another process."""
    house = Path(folder)
    checkout = house / "tree"
    tree.CHECKOUT = checkout
    openmpi.component_folder = lambda layer: checkout / "build" / "lib" / "velo" / "openmpi"
    paths = (house / name for name in ("vmlinuz-6.9-x", "initrd", "root", "qemu"))
    images = image.Images(*paths)
    image.ensure = lambda built=None, suite="", architecture="": images
    guest.loaded = lambda folder, program, *words: [
        sys.executable, str(FAKE), "qemu" if "qemu" in program else "virtiofsd", *words
    ]  # fmt: skip


def test_folders_of_killed_commands_are_removed(house: Path) -> None:
    """Whose command lives is told by its lock: a process id may be one of another namespace."""
    killed, young, living = (house / "t" / f"{session.FOLDER_PREFIX}{name}" for name in "kyl")
    for path in (killed, young, living):
        path.mkdir()
    for path in (killed, living):
        os.utime(path, (1, 1))
    holds = (
        f"import fcntl, os, time; fcntl.flock(os.open({str(living)!r}, os.O_RDONLY), fcntl.LOCK_EX)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"{holds}; print(flush=True); time.sleep(60)"],
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout
        holder.stdout.readline()
        assert cli.main(["vm", "--print", "--", "x"]) == 0
        assert [path.exists() for path in (killed, young, living)] == [False, True, True]
        holder.kill()
    assert cli.main(["vm", "--print", "--", "x"]) == 0
    assert not living.exists()


def test_a_run_holds_its_folder(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(planned: plan.Run, images: image.Images) -> None:
        folder = planned.guests[0].folder
        os.utime(folder, (1, 1))
        session._remove_leftovers()
        assert folder.exists()

    monkeypatch.setattr(session, "_show", look)
    assert cli.main(["vm", "--print", "--", "x"]) == 0
    assert not left(house)


APT = """#!{python}
import os, shutil, sys
from pathlib import Path
words = [word for word in sys.argv[1:] if not word.startswith("-o")]
with open({log!r}, "a") as log:
    print(*words, file=log)
if words[0] == "indextargets":
    print("http://mirror.invalid/debian/\\tbookworm")
    print("http://mirror.invalid/other/\\tnodistro")
elif "--print-uris" in words:
    for name in ("good", "tool-x"):
        file, sha256 = name + "_1_all.deb", os.environ["SHA_" + name[:4]]
        print(f"'http://x/{{file}}' {{file}} 100 SHA256:{{sha256}}")
elif "download" in words:
    for path in Path({source!r}).glob("*.deb"):
        shutil.copy(path, ".")
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt-get that has two packages; returns the file in which it logs its calls."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("good", "tool-x"):
        content = tmp_path / name
        (content / "DEBIAN").mkdir(parents=True)
        (content / "DEBIAN" / "control").write_text(
            f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: x\n"
        )
        (content / "lib").mkdir()
        (content / "lib" / name).write_text(f"file of {name}\n")
        (content / "lib" / f"su-{name}").touch()
        (content / "lib" / f"su-{name}").chmod(0o6755)
        (content / "usr" / "share" / "doc" / name).mkdir(parents=True)
        (content / "usr" / "share" / "doc" / name / "copyright").touch()
        deb = source / f"{name}_1_all.deb"
        subprocess.run(["dpkg-deb", "-b", content, deb], check=True)
        monkeypatch.setenv(f"SHA_{name[:4]}", hashlib.sha256(deb.read_bytes()).hexdigest())
    log = tmp_path / "apt.log"
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(APT.format(python=sys.executable, log=str(log), source=str(source)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("VELO_VM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "codename", lambda: "bookworm")
    return log


WANTED = packages.Wanted("things", ("good",), suites=("next", "next-more"))


def test_packages_are_fetched_once_and_unpacked(apt: Path) -> None:
    folder = packages.ensure(WANTED)
    assert (folder / "usr" / "lib" / "su-good").stat().st_mode & 0o7777 == 0o755
    # Below lib, which is a link.
    assert (folder / "usr" / "lib" / "good").read_text() == "file of good\n"
    assert (folder / "lib").is_symlink()
    assert not (folder / "usr" / "share" / "doc").exists()
    sources = packages.cache_folder() / "apt" / "things" / "sources.list"
    assert (
        sources.read_text().splitlines()[1].endswith("http://mirror.invalid/debian/ next-more main")
    )
    calls = apt.read_text()
    assert "--target-release=next-more" in calls
    assert packages.ensure(WANTED) == folder
    assert apt.read_text() == calls


def test_unpacking_again_needs_no_network_and_checks_hashes(apt: Path) -> None:
    folder = packages.ensure(WANTED)
    calls = apt.read_text()
    (folder / ".velo-packages").unlink()
    packages.ensure(WANTED)
    assert apt.read_text() == calls
    (folder / ".velo-packages").unlink()
    archive = packages.cache_folder() / "packages" / "good_1_all.deb"
    archive.write_bytes(archive.read_bytes() + b"more")
    packages.ensure(WANTED)
    assert apt.read_text() != calls


def test_a_package_that_is_not_what_the_index_says_is_refused(
    apt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHA_tool", "0" * 64)
    with pytest.raises(VeloError, match="not those that apt's index names"):
        packages.ensure(WANTED)
    assert not (packages.cache_folder() / "things").exists()


def test_only_the_wanted_packages_are_kept(apt: Path) -> None:
    folder = packages.ensure(packages.Wanted("one", ("tool-x",), only="tool"))
    assert (folder / "lib" / "tool-x").exists()
    assert not (folder / "lib" / "good").exists()


def test_a_release_that_apt_does_not_know_is_named(
    apt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "codename", lambda: "sid")
    with pytest.raises(VeloError, match="no source for sid"):
        packages.ensure(WANTED)


def test_modules_are_loaded_behind_what_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules.dep").write_text("a/x.ko: b/y.ko c/z-w.ko\nb/y.ko: c/z-w.ko\nc/z-w.ko:\n")
    monkeypatch.setattr(image, "FIRST_MODULES", ("built-in", "z-w", "x"))
    order = [str(path.relative_to(tmp_path)) for path in image._load_order(tmp_path)]
    assert order == ["c/z-w.ko", "b/y.ko", "a/x.ko"]


def test_a_build_that_reads_the_headers_finds_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELO_VM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "ensure", lambda wanted: tmp_path)
    makefile = tmp_path / "usr/src/linux-headers-6.9-x/Makefile"
    makefile.parent.mkdir(parents=True)
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "vmlinuz-6.9-x").touch()
    # As those of Linux 6.1, and of 7.2, have it.
    text = "KBUILD_OUTPUT=/usr/src/x\ninclude /usr/src/linux-headers-6.9-common/Makefile\n"
    makefile.write_text(text)
    variables = makefile.with_name(".kernelvariables")
    variables.write_text("CC = $(CROSS_COMPILE)gcc-999\n")
    with makefile.open() as build:
        assert image.ensure_kernel() == tmp_path
        assert build.read() == text
    said = text.replace("/usr/src", f"{tmp_path}/usr/src")
    assert variables.read_text() == "CC = $(CROSS_COMPILE)gcc\n"
    assert makefile.read_text() == said
    before = makefile.stat()
    image.ensure_kernel()
    assert makefile.stat() == before
    assert makefile.read_text() == said


def test_usage_errors_end_with_2(house: Path) -> None:
    assert cli.main(["vm"]) == 2
    assert cli.main(["vm", "--nodes", "9", "--topology", "pair", "--", "x"]) == 2


def test_limits_of_the_runs_in_tests_are_taken() -> None:
    tests = (TOOLS.parent / "tests" / "vm" / "CMakeLists.txt").read_text(encoding="utf-8")
    limits = re.findall(r"--timeout (\d+)", tests)
    assert "10800" in limits
    for limit in limits:
        assert arguments.seconds(limit) == float(limit)


# Stands in for all of make that builds a kernel: configures, compiles one file, installs.
MAKE = """#!{python}
import os, sys, time
from pathlib import Path
source = Path(sys.argv[sys.argv.index("-C") + 1])
assert ("ARCH=arm64" in sys.argv) == ("{image}" == "arch/arm64/boot/Image")
if "allnoconfig" in sys.argv:
    asked = next(word for word in sys.argv if word.startswith("KCONFIG_ALLCONFIG="))
    lines = Path(asked.partition("=")[2]).read_text().splitlines()
    kept = [line for line in lines if os.environ.get("LOST", "none") not in line]
    (source / ".config").write_text("\\n".join(kept))
elif Path("{image}").name in sys.argv:
    print("  CC      init/main.o", flush=True)
    if os.environ.get("COMPILES") == "no":
        print("init/main.c:1: error: no", flush=True)
        sys.exit(2)
    if os.environ.get("COMPILES") == "long":
        time.sleep(60)
    for name in {kept!r}:
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    image = source / "{image}"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.write_text("an image")
elif "kernelrelease" in sys.argv:
    print("6.1.9-velo-own")
"""

# For tar: decompresses its input.
XZ = """#!{python}
import lzma, sys
sys.stdout.buffer.write(lzma.decompress(sys.stdin.buffer.read()))
"""


def put_make(programs: Path, kernel: built_kernel.Kernel) -> None:
    """What builds that kernel."""
    kept = [name for name in kernel.kept if name != ".config"]
    text = MAKE.format(python=sys.executable, kept=kept, image=kernel.image)
    (programs / "make").write_text(text)


@pytest.fixture
def kernel_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of a kernel's source, and programs that build it; returns the folder of these."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in built_kernel.LARGE_PAGES.programs:  # This machine need not have them.
        path = programs / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (programs / "xz").write_text(XZ.format(python=sys.executable))
    put_make(programs, built_kernel.DEBUG)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("VELO_VM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(built_kernel, "PROGRESS_INTERVAL_S", 0.1)

    def ensure(wanted: packages.Wanted) -> Path:
        folder = packages.cache_folder() / wanted.name
        (folder / "usr" / "src").mkdir(parents=True)
        (tmp_path / "linux-source-6.1").mkdir(exist_ok=True)
        archive = folder / "usr" / "src" / "linux-source-6.1.tar.xz"
        with tarfile.open(archive, "w:xz") as made:
            made.add(tmp_path / "linux-source-6.1", "linux-source-6.1")
        return folder

    monkeypatch.setattr(packages, "ensure", ensure)
    return programs


@pytest.mark.parametrize(
    ("kernel", "has"),
    [
        (built_kernel.DEBUG, "CONFIG_KASAN=y"),
        (built_kernel.RACES, "CONFIG_KCSAN=y"),
        (built_kernel.LARGE_PAGES, "CONFIG_ARM64_64K_PAGES=y"),
    ],
)
def test_a_kernel_is_built_once(
    kernel_source: Path,
    capsys: pytest.CaptureFixture[str],
    kernel: built_kernel.Kernel,
    has: str,
) -> None:
    put_make(kernel_source, kernel)
    folder = built_kernel.ensure(kernel)
    assert (folder / "boot" / "vmlinuz-6.1.9-velo-own").read_text() == "an image"
    assert "1 files compiled" in capsys.readouterr().err
    headers = image.headers_folder(folder)
    assert has in (headers / ".config").read_text()
    assert (headers / "Module.symvers").exists()
    # Headers of another machine say which.
    machine = headers / "GNUmakefile"
    assert machine.exists() == (kernel is built_kernel.LARGE_PAGES)
    (kernel_source / "make").unlink()
    assert built_kernel.ensure(kernel) == folder
    assert {path.name for path in folder.parent.iterdir()} == {
        f".{kernel.name}.lock", ".kernel-source-archive.lock", kernel.name
    }  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("COMPILES", "no", "init/main.c:1: error: no"),
        ("LOST", "CONFIG_KASAN_STACK", "takes no CONFIG_KASAN_STACK=y of "),
    ],
)
def test_a_debug_kernel_that_cannot_be_built_leaves_no_half_one(
    kernel_source: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(VeloError, match=said):
        built_kernel.ensure(built_kernel.DEBUG)
    assert not list(packages.cache_folder().glob("debug-kernel.partial"))
    assert not (packages.cache_folder() / "debug-kernel").exists()


def test_an_interrupt_leaves_no_half_debug_kernel(
    kernel_source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(text: str) -> None:
        if "files compiled" in text:
            raise KeyboardInterrupt

    monkeypatch.setenv("COMPILES", "long")
    monkeypatch.setattr(built_kernel, "say", interrupt)
    with pytest.raises(KeyboardInterrupt):
        built_kernel.ensure(built_kernel.DEBUG)
    assert not list(packages.cache_folder().glob("debug-kernel.partial"))


@pytest.mark.parametrize(
    ("kernel", "missing"),
    [
        (built_kernel.DEBUG, "bc flex libelf-dev"),
        (built_kernel.LARGE_PAGES, "bc flex gcc-aarch64-linux-gnu libelf-dev"),
    ],
)
def test_missing_tools_of_a_kernel_are_named(
    kernel_source: Path, monkeypatch: pytest.MonkeyPatch, kernel: built_kernel.Kernel, missing: str
) -> None:
    absent = ("flex", "bc", "aarch64-linux-gnu-gcc")
    monkeypatch.setattr(built_kernel.shutil, "which", lambda name: None if name in absent else name)
    (kernel_source / "gcc").write_text("#!/bin/sh\nexit 1\n")  # It finds no header.
    with pytest.raises(VeloError, match=f"{kernel.name} is built here.*apt-get install {missing}'"):
        built_kernel.ensure(kernel)
