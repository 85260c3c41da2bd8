# SPDX-License-Identifier: Apache-2.0
"""`velo run` with a stand-in for mpirun."""

import fcntl
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from velo.cli import main
from velo.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_UNUSED,
    EXIT_USAGE,
    UsageError,
    VeloError,
)
from velo.runtime import asking, loader, mpirun, openmpi, watch

TOOLS = Path(__file__).parents[1]
MPIRUN = r"""#!/bin/sh
case "$1" in --version) echo "mpirun (Open MPI) ${FAKE_VERSION:-4.1.4}"; exit;; esac
printf '%s\n' "$@"
echo "domain $OMPI_MCA_mtl_velo_domain"
if [ -z "$FAKE_UNUSED" ]; then
    touch "$VELO_SHM_DIR/velo.$OMPI_MCA_mtl_velo_domain.0.1"
    touch "$VELO_SHM_DIR/velo.$OMPI_MCA_mtl_velo_domain+rma.0.1"
fi
[ -z "$FAKE_WAIT" ] || { trap 'echo stopped; exit 7' INT TERM; sleep 30 >/dev/null 2>&1 & wait; }
eval "$FAKE_JOB"
exit ${FAKE_CODE:-0}
"""


def put_components(tree: Path, version: str) -> Path:
    """Components for an Open MPI, as the build makes them."""
    folder = tree / "lib" / "velo" / "openmpi" / version
    folder.mkdir(parents=True)
    for name in openmpi.COMPONENTS.values():
        (folder / name).touch()
    return folder


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with components, an mpirun that prints its arguments, and a folder for segments."""
    put_components(tmp_path, "4.1.4")
    commands = tmp_path / "bin"
    commands.mkdir()
    mpirun = commands / "mpirun.openmpi"
    mpirun.write_text(MPIRUN)
    mpirun.chmod(0o755)
    (commands / "mpirun").symlink_to(mpirun)
    (tmp_path / "shm").mkdir()
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("VELO_LIBEXEC", str(tmp_path / "libexec" / "velo"))
    monkeypatch.setenv("VELO_SHM_DIR", str(tmp_path / "shm"))
    asking.ask.cache_clear()
    return tmp_path


def said(capfd: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    with pytest.raises(SystemExit) as end:
        main(["run", *argv])
    assert end.value.code == 0
    return capfd.readouterr().out.splitlines()


def follow(found: Sequence[str], *wanted: str) -> bool:
    """Do the words wanted follow each other?"""
    n = len(wanted)
    return any(tuple(found[i : i + n]) == wanted for i in range(len(found)))


def test_the_matching_layer_is_the_default(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = said(capfd, "-n", "1", "true")
    assert follow(found, "-n", "1")
    assert follow(found, "--mca", "pml", "cm")
    assert follow(found, "--mca", "mtl", "velo")
    path = f"{tree}/lib/velo/openmpi/4.1.4:SYSTEM_DEFAULT:USER_DEFAULT"
    assert follow(found, "--mca", "mca_base_component_path", path)


def test_a_job_of_open_mpi_starts_without_what_is_slow_to_load(tree: Path) -> None:
    program = "import sys; from velo.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    words = [sys.executable, "-c", program, "run", "-n", "1", "--print", "true"]
    loaded = subprocess.run(words, cwd=TOOLS, capture_output=True, text=True, check=True)
    slow = {
        "ast",
        "dataclasses",
        "inspect",
        "textwrap",
        "velo.helpers",
        "velo.runtime.over_libfabric",
    }
    assert "velo.runtime.mpirun" in loaded.stdout.split()
    assert not slow.intersection(loaded.stdout.split())


def test_programs_that_are_asked_answer_at_once(tmp_path: Path) -> None:
    """Each waits for the other."""
    asking.ask.cache_clear()
    script = 'touch "$1"; until [ -e "$2" ]; do sleep 0.01; done; echo "$1"'
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    questions = [asking.ask("sh", "-c", script, "sh", *way) for way in (paths, paths[::-1])]
    assert [question.answer() for question in questions] == [f"{path}\n" for path in paths]
    assert asking.ask("sh", "-c", script, "sh", *paths) is questions[0]


def test_a_job_asks_both_its_program_and_its_launcher_before_it_waits(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    at_first: list[str] = []
    monkeypatch.setattr(
        asking.Question, "__init__", lambda self, argv: asked.append(Path(argv[-1]).name)
    )
    monkeypatch.setattr(
        asking.Question,
        "answer",
        lambda _self: at_first.extend(asked) or "mpirun (Open MPI) 4.1.4",
    )
    assert main(["run", "-n", "1", "--print", "true"]) == EXIT_OK
    assert at_first[:2] == ["true", "--version"]


@pytest.mark.parametrize(
    "words", ["exec sleep 60", "echo half; exec sleep 60", "exec no-such-program"]
)
def test_a_program_that_does_not_answer_in_time_has_said_nothing(
    monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr(asking, "TIMEOUT_S", 0.2)
    assert asking.Question(("sh", "-c", words)).answer() == ""


def test_a_program_that_cannot_be_started_says_nothing() -> None:
    assert asking.Question(("/no/such/program",)).answer() == ""


# A watch's end takes the kernel some 20 ms: it must not come behind the job.
WATCHED = """
i=0
while ls -l /proc/$PPID/fd | grep -q inotify; do
    i=$((i + 1)); [ $i -lt 500 ] || exit 9; sleep 0.02
done
"""


def test_the_watch_for_ports_ends_when_one_opens(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_JOB", WATCHED)
    monkeypatch.setattr(watch, "LOOK_INTERVAL_S", 3600.0)
    with pytest.raises(SystemExit) as end:
        main(["run", "-n", "1", "true"])
    assert end.value.code == 0


def test_the_byte_transfer_layer_keeps_tcp_for_other_nodes(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = said(capfd, "-n", "1", "--btl", "true")
    assert follow(found, "--mca", "pml", "ob1")
    assert follow(found, "--mca", "btl", "self,velo,tcp")


def test_a_parameter_that_is_given_is_not_given_twice(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = said(capfd, "-n", "1", "--btl", "--mca", "btl", "self,tcp", "true")
    assert found.count("btl") == 1
    assert follow(found, "--mca", "btl", "self,tcp", "true")


def test_collectives_are_left_to_others_if_told_so(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert "coll" not in said(capfd, "-n", "1", "true")
    found = said(capfd, "-n", "1", "--btl", "--no-coll", "true", "--no-coll")
    assert follow(found, "--mca", "coll", "^velo")
    assert found.index("^velo") < found.index("true")
    found = said(capfd, "-n", "1", "--no-coll", "--mca", "coll", "basic,libnbc", "true")
    assert found.count("coll") == 1


def test_what_follows_is_handed_on_untouched(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = said(capfd, "-np", "1", "-x", "A=b c", "--mca", "x", "y", "true", "-n", "--btl", "--")
    assert follow(found, "-x", "A=b c", "--mca", "x", "y", "true", "-n", "--btl", "--")


def test_ranks_get_a_core_each_while_there_are_enough() -> None:
    assert mpirun.placement(mpirun.cores(), []) == ["--map-by", "core", "--bind-to", "core"]
    assert mpirun.placement(mpirun.cores() + 1, []) == ["--oversubscribe", "--bind-to", "none"]
    assert mpirun.placement(1, ["bind-to"]) == []


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ("prog a", 2),
        ("prog -n 5 a :", 2),
        ("prog : -n 3 prog", 5),
        ("-x A prog a : --np 3 prog : -x B -c 4 prog -n 9", 9),
    ],
)
def test_ranks_of_all_programs_of_a_job_are_counted(words: str, ranks: int) -> None:
    assert mpirun.split(words.split()).ranks(2) == ranks
    assert mpirun.split(["prog", ":", "prog"]).ranks(2) == 2 + mpirun.cores()


def test_several_programs_that_outnumber_the_cores_share_them(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    more = ["true", "b", ":", "-n", str(mpirun.cores()), "true", "c"]
    found = said(capfd, "-n", "1", *more)
    assert follow(found, "--oversubscribe", "--bind-to", "none", *more)
    found = said(capfd, "-n", "1", "true", ":", "--bind-to", "hwthread", "true")
    assert not follow(found, "--bind-to", "none")
    assert not follow(found, "--bind-to", "core")


def test_cores_are_counted_without_their_siblings(tmp_path: Path) -> None:
    for cpu in os.sched_getaffinity(0):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text("0\n")
        (folder / "core_id").write_text("5\n")
    assert mpirun.cores(tmp_path) == 1
    assert mpirun.cores(tmp_path / "nowhere") == len(os.sched_getaffinity(0))


def test_the_exit_code_is_mpiruns_and_segments_are_gone(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tree / "shm" / "velo.other.0.1"
    other.touch()
    monkeypatch.setenv("FAKE_CODE", "41")
    with pytest.raises(SystemExit) as end:
        main(["run", "-n", "2", "true"])
    assert end.value.code == 41
    assert list((tree / "shm").iterdir()) == [other]


def test_a_signal_that_nobody_sent_is_not_passed_on(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python makes one up where a wait of a stopped process is over when it is continued."""
    wait = signal.sigtimedwait
    made_up = [SimpleNamespace(si_signo=-1234567, si_code=-1)]
    monkeypatch.setattr(
        signal, "sigtimedwait", lambda *args: made_up.pop() if made_up else wait(*args)
    )
    monkeypatch.setenv("FAKE_JOB", "sleep 0.2")
    with pytest.raises(SystemExit) as end:
        main(["run", "-n", "1", "true"])
    assert end.value.code == 0


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, EXIT_INTERRUPTED), (signal.SIGTERM, 7), (signal.SIGHUP, 129)]
)
def test_a_signal_reaches_mpirun_and_nothing_is_left(
    tree: Path, monkeypatch: pytest.MonkeyPatch, sent: signal.Signals, code: int
) -> None:
    monkeypatch.setenv("FAKE_WAIT", "1")
    monkeypatch.setenv("PYTHONPATH", str(TOOLS))
    argv = [sys.executable, "-m", "velo", "run", "-n", "1", "true"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as job:
        deadline = time.monotonic() + 10
        while len(list((tree / "shm").iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)  # The stand-in sets its trap after the files.
        job.send_signal(sent)
        said, _ = job.communicate(timeout=10)
    assert job.returncode == code, said
    assert not list((tree / "shm").iterdir())


# The first process of a terminal's session, as a user's shell: it outlives the job.
SHELL = 'trap : INT; "$@"; echo "ended with $?"; read -r line'


def test_ctrl_c_at_a_terminal_ends_a_job_and_leaves_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The terminal interrupts velo run, mpirun and the ranks, all at once."""
    monkeypatch.setenv("FAKE_WAIT", "1")
    monkeypatch.setenv("PYTHONPATH", str(TOOLS))
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["sh", "-c", SHELL, "sh", sys.executable, "-m", "velo", "run", "-n", "1", "true"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
    ) as shell:
        os.close(theirs)
        deadline = time.monotonic() + 10
        while len(list((tree / "shm").iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)  # The stand-in sets its trap after the files.
        os.write(ours, b"\x03")
        said = b""
        while b"ended with" not in said and select.select([ours], [], [], 15)[0]:
            said += os.read(ours, 4096)
        words = ["ps", "-o", "pid=,stat=,args=", "-g", str(shell.pid)]
        left = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        os.close(ours)  # A hang-up ends the shell.
    assert f"ended with {EXIT_INTERRUPTED}" in said.decode()
    assert said.count(b"stopped") == 1  # mpirun was interrupted once.
    assert [line.split()[2] for line in left.splitlines() if " Z" not in line] == ["sh"]
    assert not list((tree / "shm").iterdir())


# It notes what it gets, and that it does not end for it; a rank of its own ignores all.
DEAF = r"""
import os, signal, sys, time
note = lambda signum, frame: open(sys.argv[1], "a").write(f"{signum} ")
for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(signum, note if sys.argv[2] == "mpirun" else signal.SIG_IGN)
if sys.argv[2] == "mpirun":
    if os.fork() == 0:
        os.setpgid(0, 0)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-1], "rank"])
else:
    os.fork()
    open(sys.argv[1] + ".pids", "a").write(f"{os.getpid()}\n")
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize("by", ["timeout", "our group twice", "us alone"])
def test_a_job_that_does_not_end_at_a_signal_is_killed_whole(
    tree: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    script, notes = tree / "deaf.py", tree / "notes"
    script.write_text(DEAF)
    monkeypatch.setenv("FAKE_JOB", f"exec {sys.executable} {script} {notes} mpirun")
    monkeypatch.setenv("PYTHONPATH", str(TOOLS))
    code = (
        "from velo.runtime import supervise; supervise.END_GRACE_S = 1; "
        "from velo.cli import main; main()"
    )
    argv = [sys.executable, "-c", code, "run", "-n", "1", "true"]
    if by == "timeout":
        argv = ["timeout", "600", *argv]  # A signal that it gets it gives to its group, too.
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          process_group=0) as job:  # fmt: skip
        pids = Path(f"{notes}.pids")
        deadline = time.monotonic() + 20
        while not (pids.exists() and len(pids.read_text().split()) == 2):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        if by == "our group twice":
            os.killpg(job.pid, signal.SIGTERM)
            os.killpg(job.pid, signal.SIGTERM)
        else:
            job.send_signal(signal.SIGTERM)
        _, err = job.communicate(timeout=20)
    assert "did not end within 1 s of a signal" in err
    assert notes.read_text().split() == [str(int(signal.SIGTERM))]
    started = [int(pid) for pid in pids.read_text().split()]
    assert not [pid for pid in started if (found := watch.stat(pid)) and found.state != "Z"]
    assert not list((tree / "shm").iterdir())


def test_what_mpirun_leaves_behind_at_a_signal_is_ended(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tree / "pid"
    job = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(7))\n"
        "if os.fork() == 0:\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    os.setsid()\n"
        f"    open({str(pid_file)!r}, 'w').write(f'{{os.getpid()}}\\n')\n"
        "time.sleep(60)\n"
    )
    (tree / "job.py").write_text(job)
    monkeypatch.setenv("FAKE_JOB", f"exec {sys.executable} {tree}/job.py")
    monkeypatch.setenv("PYTHONPATH", str(TOOLS))
    argv = [sys.executable, "-m", "velo", "run", "-n", "1", "true"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 20
        while not (pid_file.exists() and pid_file.read_text().endswith("\n")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=20) == 7
    found = watch.stat(int(pid_file.read_text()))
    assert found is None or found.state == "Z"


def test_print_shows_the_command_and_runs_nothing(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "-n", "2", "--print", "true", "a b"]) == 0
    said = capfd.readouterr().out
    assert f"{tree}/bin/mpirun -n 2" in said
    assert said.endswith("true 'a b'\n")
    assert not list((tree / "shm").iterdir())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("-n 2", "which program? usage: velo run -n N PROGRAM ..."),
        ("-n 2 no-such-program", "the program no-such-program is not there"),
        ("-n 2 --mca a b no-such-program", "the program no-such-program is not there"),
        ("-n 2 {tree}/text", "the program {tree}/text is not executable; chmod +x makes it so"),
        ("-n 2 {tree}/shm", "the program {tree}/shm is a folder"),
        (
            "-n 2 --tag-output 3 true",
            "the program 3 is not there; it stands behind --tag-output, no option of mpirun's that "
            "takes a value",
        ),
        ("-n 2 true : -n 1 no-such-program", "the program no-such-program is not there"),
        ("-n 2 : -n 1 true", "which program?"),
        ("-n 2 true : -n 1", "which program?"),
        ("true", "the following arguments are required: -n"),
        ("-n 0 true", "argument -n/-np: '0' is not a whole number from 1 to 4096"),
        ("-n two true", "argument -n/-np: 'two' is not a whole number from 1 to 4096"),
        ("-n 2 --mtl --btl true", "argument --btl: not allowed with argument --mtl"),
    ],
)
def test_a_command_that_cannot_be_says_what_is_wrong(
    tree: Path, capfd: pytest.CaptureFixture[str], words: str, text: str
) -> None:
    (tree / "text").touch(0o644)
    try:
        code = main(["run", *words.format(tree=tree).split()])
    except SystemExit as end:  # argparse's way.
        code = end.code
    assert code == EXIT_USAGE
    assert text.format(tree=tree) in capfd.readouterr().err
    assert not list((tree / "shm").iterdir())


def test_an_mpirun_that_cannot_be_started_is_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tree / "bin" / "mpirun.openmpi").write_text(MPIRUN.replace("#!/bin/sh", "#!/no/such/shell"))
    program = str(tree / "bin" / "mpirun.openmpi")
    monkeypatch.setattr(mpirun, "find_mpirun", lambda *_: (program, tree))
    assert main(["run", "-n", "2", "--mpi", "ompi4", "true"]) == EXIT_FAILED
    found = capfd.readouterr().err
    assert f"cannot start {tree}/bin/mpirun.openmpi: No such file or directory" in found


def test_missing_components_say_what_to_install(tree: Path) -> None:
    (tree / "lib" / "velo" / "openmpi" / "4.1.4" / "mca_btl_velo.so").unlink()
    with pytest.raises(VeloError, match="libopenmpi-dev"):
        mpirun.plan(2, "btl", ["true"])
    mpirun.plan(2, "mtl", ["true"])


def test_components_that_open_mpi_5_cannot_load_are_not_to_be_installed(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "lib" / "velo" / "openmpi" / "4.1.4" / "mca_btl_velo.so").unlink()
    monkeypatch.setenv("FAKE_VERSION", "5.0.7")
    with pytest.raises(VeloError, match=r"is of 5\.0\.7: .* take velo's libfabric provider"):
        mpirun.plan(2, "btl", ["true"])


def test_a_missing_mpirun_says_what_to_install(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tree))
    with pytest.raises(VeloError, match="openmpi-bin"):
        openmpi.find_mpirun("mtl")


@pytest.mark.parametrize(
    ("version", "kind", "text"),
    [
        ("4.0.3", "ompi4", r"for Open MPI 4\.1\.4, but .*/bin/mpirun is of Open MPI 4\.0\.3"),
        ("5.0.1", "ompi5", r"for Open MPI 4\.1\.4, not for --mpi ompi5; .* internal headers"),
    ],
)
def test_another_version_of_mpirun_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch, version: str, kind: str, text: str
) -> None:
    monkeypatch.setenv("FAKE_VERSION", version)
    with pytest.raises(VeloError, match=text):
        openmpi.find_mpirun("mtl", kind=kind)


def test_of_several_components_those_that_fit_the_mpirun_are_taken(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("4.1.10", "5.0.7", "5.0.9"):
        put_components(tree, version)
    base = tree / "lib" / "velo" / "openmpi"
    for version, fitting in (("4.1.4", "4.1.4"), ("4.1.6", "4.1.10"), ("5.0.7", "5.0.7"),
                             ("5.0.11", "5.0.9")):  # fmt: skip
        monkeypatch.setenv("FAKE_VERSION", version)
        asking.ask.cache_clear()
        kind = openmpi.kind_of_version(version)
        assert openmpi.find_mpirun("mtl", kind=kind) == (f"{tree}/bin/mpirun", base / fitting)
    assert openmpi.fitting("4.0.7") is None
    (base / "5.0.9" / openmpi.COMPONENTS["btl"]).unlink()
    assert openmpi.fitting("5.0.9", "btl") == base / "5.0.7"


def test_the_program_is_the_first_word_that_is_no_option() -> None:
    job = mpirun.split(["--", "--mca", "a", "b", "-x", "C", "--tag-output", "prog", "-x"])
    assert job.program == ["prog", "-x"]
    assert job.parameters == {"a"}
    with pytest.raises(UsageError):
        mpirun.find_job_program(mpirun.split(["--tag-output"]))


def test_jobs_that_name_one_server_share_a_domain_and_leave_it_to_each_other(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_JOB", "touch $VELO_SHM_DIR/velo.$OMPI_MCA_mtl_velo_domain.0.$$")
    (tree / "uri").write_text("server at some place")
    (tree / "same").write_text("server at some place")
    (tree / "other").write_text("server at another place")
    domains = []
    for name in ("uri", "same", "other"):
        found = said(capfd, "-n", "1", "--ompi-server", f"file:{tree}/{name}", "true")
        domains.append(next(line for line in found if line.startswith("domain ")))
    assert domains[0] == domains[1] != domains[2]
    # The files of another job stay, whose names alone do not tell whether it lives.
    assert len(list((tree / "shm").iterdir())) == 2 * 2 + 3
    # Not where ranks may be on hosts that number their ports alike.
    found = said(capfd, "-n", "1", "--ompi-server", "x", "--mca", "mtl_velo_domain", "a", "true")
    assert not any(line.startswith("domain server") for line in found)


# --- a job that does not use velo --------------------------------------------------------------


@pytest.fixture
def unused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No rank opens a port."""
    monkeypatch.setenv("FAKE_UNUSED", "1")
    return tree


def test_a_job_that_goes_well_without_velo_fails(
    unused: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # Another job's ports do not count.
    here = "$VELO_SHM_DIR/velo"
    monkeypatch.setenv("FAKE_JOB", f"touch {here}.other.0.1 {here}.${{VELO_DOMAIN}}a.0.1")
    assert main(["run", "-n", "2", "true"]) == EXIT_UNUSED
    assert "no rank used velo: the program is no MPI program" in capfd.readouterr().err


def test_a_job_that_fails_without_velo_keeps_its_exit_code(
    unused: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_CODE", "41")
    with pytest.raises(SystemExit) as end:
        main(["run", "-n", "2", "true"])
    assert end.value.code == 41
    assert "failed before any rank used velo" in capfd.readouterr().err


def test_a_job_that_is_killed_early_is_not_said_to_use_another_mpi(
    unused: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_CODE", "137")
    with pytest.raises(SystemExit) as end:
        main(["run", "-n", "2", "true"])
    assert end.value.code == 137
    assert "used velo" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "2", "--btl", "--mca", "btl", "self,tcp"],
        ["-n", "2", "--mca", "mtl_velo_domain", "mine"],
        ["-n", "2", "-x", "VELO_SHM_DIR=/elsewhere"],
    ],
)
def test_nothing_is_said_where_it_cannot_be_known(
    unused: Path, capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    found = said(capfd, *words, "true")
    assert "true" in found


def test_a_scheduler_may_have_put_the_ranks_elsewhere(
    unused: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert "true" in said(capfd, "-n", "2", "true")


# --- mpirun that hangs -------------------------------------------------------------------------

PYTHON = f"exec {sys.executable} -c"
# A dead child that nobody collects.
ZOMBIE = "import os, time; os.fork() or os._exit(1); time.sleep({s})"
HANG_LIMIT_S = 20


@pytest.fixture
def quick_looks(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_INTERVAL_S", 0.02)


@pytest.mark.usefixtures("quick_looks")
@pytest.mark.parametrize(
    ("job", "why"),
    [
        (ZOMBIE.format(s=HANG_LIMIT_S), "is dead and mpirun does not notice"),
        # As Open MPI's does in PMIx_server_finalize().
        (
            "import threading; lock = threading.Lock(); lock.acquire(); "
            f"lock.acquire(timeout={HANG_LIMIT_S})",
            "the ranks are gone and mpirun does not end",
        ),
    ],
)
def test_a_job_is_ended_whose_mpirun_hangs_when_ranks_are_dead(
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    job: str,
    why: str,
) -> None:
    monkeypatch.setenv("FAKE_JOB", f"{PYTHON} '{job}'")
    assert main(["run", "-n", "2", "true"]) == EXIT_FAILED
    assert f"{why}; the job was ended" in capfd.readouterr().err
    assert not list((tree / "shm").iterdir())


def test_a_hang_is_noticed_while_others_make_files_all_the_time(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each name wakes us, more often than it is time to look; none of them is a port of the job."""
    monkeypatch.setenv("FAKE_UNUSED", "1")
    monkeypatch.setattr(watch, "LOOK_INTERVAL_S", 0.2)
    other = 'while :; do : >"$VELO_SHM_DIR/other"; rm "$VELO_SHM_DIR/other"; done'
    hang = f"{sys.executable} -c '{ZOMBIE.format(s=HANG_LIMIT_S)}'"
    monkeypatch.setenv("FAKE_JOB", f"({other}) & exec {hang}")
    assert main(["run", "-n", "2", "true"]) == EXIT_FAILED
    assert "is dead and mpirun does not notice; the job was ended" in capfd.readouterr().err


@pytest.mark.usefixtures("quick_looks")
def test_a_hanging_mpirun_is_killed_with_the_ranks_that_live(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids, survived = tree / "pids", tree / "survived"
    job = (
        "import os, signal, time\n"
        "os.fork() or os._exit(1)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "rank = os.fork()\n"
        "if rank == 0:\n"
        "    os.setpgid(0, 0)\n"
        "    os.fork()\n"  # What a rank has started goes with it.
        f"    open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        f"time.sleep({HANG_LIMIT_S})\n"
        f"open({str(survived)!r}, 'w')\n"
    )
    script = tree / "job.py"
    script.write_text(job)
    monkeypatch.setenv("FAKE_JOB", f"exec {sys.executable} {script}")
    assert main(["run", "-n", "2", "true"]) == EXIT_FAILED
    assert not survived.exists()
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == 2
    deadline = time.monotonic() + 10
    while any((found := watch.stat(pid)) and found.state != "Z" for pid in started):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.usefixtures("quick_looks")
@pytest.mark.parametrize(
    "job",
    [
        "sleep 1",
        # It waits for somebody's output, not for a lock.
        "exec sleep 1",
        # A rank need not collect its own children.
        f"{sys.executable} -c '{ZOMBIE.format(s=1)}'; :",
    ],
)
def test_a_job_that_takes_its_time_is_left_alone(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], job: str
) -> None:
    monkeypatch.setenv("FAKE_JOB", job)
    said(capfd, "-n", "2", "true")


@pytest.mark.usefixtures("quick_looks")
def test_a_stopped_mpirun_is_waited_for(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = (
        "import os, signal, time; me = os.getpid(); os.fork() or os._exit(1); "
        "os.fork() or (time.sleep(1), os.kill(me, signal.SIGCONT), os._exit(0)); "
        "os.kill(me, signal.SIGSTOP); os._exit(7)"
    )
    monkeypatch.setenv("FAKE_JOB", f"{PYTHON} '{job}'")
    with pytest.raises(SystemExit) as end:
        main(["run", "-n", "2", "true"])
    assert end.value.code == 7


def test_dead_ranks_are_looked_for_below_a_simulator() -> None:
    argv = ["sh", "-c", f"{sys.executable} -c '{ZOMBIE.format(s=HANG_LIMIT_S)}'; :"]
    with subprocess.Popen(argv, process_group=0) as simulator:
        ranks = watch.RankWatch(simulator.pid, depth=2)
        too_near = watch.RankWatch(simulator.pid, depth=1)
        deadline = time.monotonic() + HANG_LIMIT_S
        while not ranks.look() and time.monotonic() < deadline:
            assert not too_near.look()
            time.sleep(0.01)
        os.killpg(simulator.pid, signal.SIGKILL)
    assert time.monotonic() < deadline


def test_the_mpirun_of_open_mpi_4_waits_by_poll(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Else it may not hear a process that a rank has spawned."""
    monkeypatch.delenv("EVENT_NOEPOLL", raising=False)
    main(["run", "-n", "1", "--print", "true"])
    assert "EVENT_NOEPOLL=1 " in capfd.readouterr().out
    monkeypatch.setenv("EVENT_NOEPOLL", "as the user wants it")
    main(["run", "-n", "1", "--print", "true"])
    assert "EVENT_NOEPOLL" not in capfd.readouterr().out


@pytest.fixture
def tree_5(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same for Open MPI 5.0, with a PMIx beside which its own components are."""
    shutil.rmtree(tree / "lib" / "velo" / "openmpi")
    put_components(tree, "5.0.7")
    monkeypatch.setenv("FAKE_VERSION", "5.0.9")
    monkeypatch.delenv("PMIX_MCA_mca_base_component_path", raising=False)
    (tree / "lib" / "pmix").mkdir()
    (tree / "lib" / "libpmix.so.2").touch()
    pmix = {"libpmix.so.2": f"{tree}/lib/libpmix.so.2"}
    monkeypatch.setattr(loader, "libraries", lambda path: pmix if "mpirun" in path else {})
    return tree


def test_open_mpi_5_gets_components_that_were_built_for_its_series(
    tree_5: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    main(["run", "-n", "1", "--print", "true"])
    shown, why = capfd.readouterr()
    assert "velo: --mpi ompi5: over velo's matching layer" in why
    assert f"PMIX_MCA_mca_base_component_path={tree_5}/lib/pmix " in shown
    assert "EVENT_NOEPOLL" not in shown
    path = f"{tree_5}/lib/velo/openmpi/5.0.7:SYSTEM_DEFAULT:USER_DEFAULT"
    found = said(capfd, "-n", "1", "true")
    assert follow(found, "--omca", "mca_base_component_path", path)
    assert follow(found, "--mca", "pml", "cm", "--mca", "mtl", "velo")
    assert follow(found, "--map-by", "core", "--bind-to", "core")
    found = said(capfd, "-n", "4096", "--mpi", "ompi5", "true")
    assert follow(found, "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none")
    found = said(capfd, "-n", "1", "--omca", "mca_base_component_path", "x", "true")
    assert found.count("mca_base_component_path") == 1


def test_a_layer_that_is_named_is_that_of_the_components(
    tree_5: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert follow(said(capfd, "-n", "1", "--btl", "true"), "--mca", "btl", "self,velo")
    assert follow(said(capfd, "-n", "1", "--no-coll", "true"), "--mca", "coll", "^velo")


def test_components_are_not_handed_to_another_open_mpi_5(
    tree_5: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE_VERSION", "5.1.0")
    assert main(["run", "-n", "1", "--mtl", "true"]) == EXIT_FAILED
    assert "for Open MPI 5.0.7, but" in capfd.readouterr().err
    (tree_5 / "lib" / "libfabric").mkdir()
    (tree_5 / "lib" / "libfabric" / "libvelo-fi.so").touch()
    main(["run", "-n", "1", "--print", "true"])
    shown, why = capfd.readouterr()
    assert "--mpi ompi5: over velo's libfabric provider" in why
    assert "--mca mtl ofi" in shown
    assert "mca_base_component_path" not in shown


def test_components_of_open_mpi_5_are_not_for_4(
    tree_5: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "-n", "1", "--mpi", "ompi4", "true"]) == EXIT_FAILED
    assert "are for Open MPI 5.0.7, not for --mpi ompi4" in capfd.readouterr().err


def test_ranks_of_open_mpi_5_on_other_hosts_get_a_network(
    tree_5: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree_5 / "lib" / "velo" / "libvelo-ofi.so").touch()
    monkeypatch.setenv("PRTE_MCA_plm_ssh_agent", "true")
    main(["run", "-n", "2", "--print", "--host", "203.0.113.1", "true"])
    shown, why = capfd.readouterr()
    assert "over velo's matching layer" in why
    assert "VELO_NETWORK=ofi" in shown
    assert "-x VELO_OFI_SECRET" in shown
    assert "--mca oob_tcp_keepalive_time 5" in shown
    assert "--mca osc" not in shown  # It has no osc/pt2pt to fall back to.


def test_open_mpi_5_reaches_hosts_by_a_command_of_its_own(
    tree_5: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree_5 / "lib" / "velo" / "libvelo-ofi.so").touch()
    (tree_5 / "libexec" / "velo").mkdir(parents=True)
    asked = tree_5 / "libexec" / "velo" / "velo-info"
    asked.write_text("#!/bin/sh\necho 1.0.0\n")
    asked.chmod(0o755)
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", "false")  # Of 4.1.
    line = ["run", "-n", "2", "--host", "far", "true"]
    for words in (["--prtemca", "plm_ssh_agent"], ["--mca", "plm_rsh_agent"]):
        assert main([*line[:3], *words, "echo by", *line[3:]]) == EXIT_FAILED
        assert "host far has velo by far sh -c" in capfd.readouterr().err
    monkeypatch.setenv("PRTE_MCA_plm_ssh_agent", "echo set")
    assert main(line) == EXIT_FAILED
    assert "host far has velo set far sh -c" in capfd.readouterr().err
