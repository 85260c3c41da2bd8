# SPDX-License-Identifier: Apache-2.0
"""What becomes of a measuring program that does not behave."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from velo import helpers, tree
from velo.errors import LateError, VeloError, VerifyError

TOOLS = Path(__file__).resolve().parents[1]


def run(scenario: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    monkeypatch.setenv("FAKE_SCENARIO", scenario)
    return list(helpers.stream([tree.find("velo-perf"), "latency"]))


def test_the_lines_of_a_good_run_arrive(fake_perf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    types = [line["type"] for line in run("good", monkeypatch)]
    assert types == ["meta", "plan", *["sample"] * 4, "end"]


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        ("error", "velo-perf: cannot open a port: no space in /dev/shm; free some"),
        ("crash", r"velo-perf was ended by SIGSEGV:\nvelo-perf: about to fall over"),
        ("truncated", "wrote a line that is not a JSON object: .*mode.*lat"),
        ("garbage", "wrote a line that is not a JSON object: 'Hello.'"),
        ("no end", "stopped without its 'end' line"),
    ],
)
def test_a_run_that_goes_wrong_is_an_error_that_says_how(
    fake_perf: Path, monkeypatch: pytest.MonkeyPatch, scenario: str, message: str
) -> None:
    with pytest.raises(VeloError, match=message) as caught:
        run(scenario, monkeypatch)
    assert caught.value.exit_code == 1


def test_a_damaged_payload_has_its_own_exit_code(
    fake_perf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(VerifyError, match="payload arrived damaged: message 7") as caught:
        run("verify", monkeypatch)
    assert caught.value.exit_code == 3


def test_a_program_that_was_not_built_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELO_LIBEXEC", str(tmp_path))
    with pytest.raises(VeloError, match=r"velo-perf is not in .*; run 'make build'"):
        tree.find("velo-perf")


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return False


def gone_within(pids: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def test_leaving_early_ends_the_program_and_what_it_forked(
    fake_perf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SCENARIO", "hang")
    pids: list[int] = []
    with contextlib.closing(helpers.stream([tree.find("velo-perf"), "latency"])) as lines:
        for line in lines:
            if line["type"] == "sample-pids":
                pids = line["pids"]
                break
    assert len(pids) == 2
    assert gone_within(pids, 5)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_stops_everything_and_exits_with_its_code(
    fake_perf: Path, tmp_path: Path, signum: signal.Signals, code: int
) -> None:
    pids_file = tmp_path / "pids"
    env = os.environ | {"FAKE_SCENARIO": "hang", "PYTHONPATH": str(TOOLS)}
    argv = [sys.executable, "-m", "velo", "perf", "latency", "--json", str(tmp_path / "x.json")]
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as velo:
        pids = _descendants_when(velo.pid, 3)
        pids_file.write_text(str(pids))
        velo.send_signal(signum)
        assert velo.wait(10) == code
    assert gone_within(pids, 5)
    assert not (tmp_path / "x.json").exists()


def _descendants_when(root: int, count: int) -> list[int]:
    """Pids below a process, once there are at least `count`; velo-perf's own sleep is the last."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found, queue = [], [root]
        while queue:
            children = Path(f"/proc/{queue.pop()}/task").glob("*/children")
            with contextlib.suppress(OSError):
                below = [int(pid) for file in children for pid in file.read_text().split()]
                found += below
                queue += below
        if len(found) >= count - 1:
            return found
        time.sleep(0.02)
    raise AssertionError("velo-perf did not start")


def test_output_of_a_program_that_takes_too_long_is_an_error() -> None:
    with pytest.raises(VeloError, match="sleep did not end within"):
        helpers.output(["sleep", "10"], 0.1)


def test_output_of_a_program_that_fails_shows_its_last_words() -> None:
    with pytest.raises(VeloError, match=r"sh failed with exit code 7:\noops"):
        helpers.output(["sh", "-c", "echo oops >&2; exit 7"], 5)


def side_by_side(
    *programs: str, at_once: int = 2, timeout_s: float = 20
) -> list[tuple[int, str | VeloError]]:
    argvs = [[sys.executable, "-c", program] for program in programs]
    return list(helpers.outputs(argvs, at_once, timeout_s))


def test_programs_side_by_side_are_told_apart() -> None:
    found = dict(side_by_side("print(1)", "print(2)", "import sys; sys.exit('no')", at_once=3))
    assert (found[0], found[1]) == ("1\n", "2\n")
    assert isinstance(found[2], VeloError) and "failed with exit code 1:\nno" in str(found[2])


# Counts those that have begun and not ended. The first two wait for each other, so that no program
# ends before both have counted.
COUNTING = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
def mark(what):
    (folder / f"{what}-{os.getpid()}").touch()
def marks(what):
    return len(list(folder.glob(f"{what}-*")))
mark("begun")
while marks("begun") < 2: time.sleep(0.01)
print(marks("begun") - marks("ended"))
mark("counted")
while marks("counted") < 2: time.sleep(0.01)
time.sleep(0.2)  # A program too many would be counted meanwhile.
mark("ended")
"""


def test_only_so_many_programs_run_at_a_time(tmp_path: Path) -> None:
    argvs = [[sys.executable, "-c", COUNTING, str(tmp_path)]] * 5
    counts = [int(str(said)) for _, said in helpers.outputs(argvs, 2, 60)]
    assert len(counts) == 5 and max(counts) == 2


def test_a_program_that_is_late_is_stopped() -> None:
    began_s = time.monotonic()
    ((_, said),) = side_by_side("import time; time.sleep(60)", timeout_s=0.5)
    assert isinstance(said, LateError) and "did not end within" in str(said)
    assert time.monotonic() - began_s < 30


def test_all_programs_end_with_the_one_who_iterates(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    slow = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    quick = f"import os, time\nwhile not os.path.exists({str(mark)!r}): time.sleep(.01)"
    calls = helpers.outputs([[sys.executable, "-c", p] for p in (slow, quick)], 2, 60)
    assert next(calls)[0] == 1
    calls.close()
    while not mark.read_text():
        time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
