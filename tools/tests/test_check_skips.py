# SPDX-License-Identifier: Apache-2.0
"""scripts/check_skips.py: which skips are expected, and which parts of the tests must have run."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "scripts" / "check_skips.py"

LIST = """
[[skip]]
tests = 'rma\\.loop\\..*'
says = "shares memory"
runs = ["full"]

[[skip]]
tests = 'hosts\\..*'
says = "not permitted"
runs = ["full"]
when = ["no program: %s"]

[[part]]
tests = 'mtl\\..*'
runs = ["full"]
unless = ["no file: %s"]
"""
HERE, GONE = "sh", "there-is-no-such-program"

Check = Callable[..., tuple[int, str]]
FINE = ("mtl.a", "rma.loop.b!it shares memory")


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """check(run, case...): a case is a name, and what it said if it was skipped, after a `!`."""

    def call(run: str, *cases: str, program: str = HERE, file: str = "/etc") -> tuple[int, str]:
        path, listed = tmp_path / f"{run}.xml", tmp_path / "skips.toml"
        listed.write_text(LIST % (program, file))
        elements = ""
        for case in cases:
            name, skipped, said = case.partition("!")
            inside = f'<skipped message="77"/><system-out>{said}</system-out>' if skipped else ""
            elements += f'<testcase name="{name}" classname="{name}">{inside}</testcase>'
        path.write_text(f"<testsuite>{elements}</testsuite>")
        command = [sys.executable, CHECK, "--list", listed, path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return call


def test_what_is_listed_may_be_skipped(check: Check) -> None:
    assert check("full", *FINE) == (0, "check_skips: 1 tests ran, 1 were skipped\n")


@pytest.mark.parametrize(
    ("cases", "told"),
    [
        ((*FINE, "copies.x!for a reason"), "copies.x was skipped: for a reason"),
        (("mtl.a", "rma.loop.b!another reason"), "rma.loop.b was skipped: another reason"),
        ((*FINE, "hosts.c!not permitted"), "hosts.c was skipped; on this machine it should run"),
        (("rma.loop.b!it shares memory",), "no test of 'mtl\\..*' has run"),
        (("mtl.a!broken", "rma.loop.b!it shares memory"), "no test of 'mtl\\..*' has run"),
        (("mtl.a", "rma.loop.b"), "nothing of 'rma\\.loop\\..*' is skipped any more"),
        ((), "nothing has run"),
    ],
)
def test_any_other_skip_fails(check: Check, cases: tuple[str, ...], told: str) -> None:
    status, said = check("full", *cases)
    assert status == 1 and told in said


def test_conditions_are_found_out_here(check: Check) -> None:
    skipped = (*FINE, "hosts.c!not permitted")
    assert check("full", *skipped, program=GONE)[0] == 0
    assert check("other", *skipped, program=GONE)[0] == 1  # It is about another run.
    assert check("full", "rma.loop.b!it shares memory", file="/no/such/*")[0] == 0


def test_a_file_of_pytest_is_read(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\ndef test_a(): ...\n\ndef test_b(): pytest.skip('no card')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--junit-xml", "pytest.xml", "test_it.py"]
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    command = [sys.executable, CHECK, tmp_path / "pytest.xml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pytest: test_it.test_b was skipped: no card" in done.stderr


def test_a_list_with_a_mistake_is_refused(tmp_path: Path) -> None:
    junit = tmp_path / "full.xml"
    junit.write_text('<testsuite><testcase name="a"/></testsuite>')
    for text, told in (
        ("[[skip]]\ntests = 'a'\nsays = 'b'\nwhen = ['full moon']", "full moon"),
        ("[[skip]]\ntests = 'a'", "says"),
        ("[[skips]]\ntests = 'a'", "no kind 'skips'"),
    ):
        listed = tmp_path / "skips.toml"
        listed.write_text(text)
        command = [sys.executable, CHECK, "--list", listed, junit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and told in done.stderr


def test_the_projects_list_is_in_order(tmp_path: Path) -> None:
    """Also: each run that it names is a step of the Makefile or of the night."""
    entries = tomllib.loads((ROOT / "tests" / "skips.toml").read_text())
    steps = re.findall(r'\$\(step\) "([^"]+)".*\{junit\}', (ROOT / "Makefile").read_text())
    by_day = {name.replace(" ", "-").replace(",", "") for name in steps}  # As kept.py names files.
    nightly = (ROOT / "scripts" / "nightly.py").read_text()
    at_night = set(re.findall(r'^    "([a-z-]+)": .*CTEST', nightly, re.M))
    named = {run for entry in entries["skip"] + entries["part"] for run in entry.get("runs", [])}
    assert len(by_day) == 7 and named <= by_day | at_night, named - by_day - at_night
    assert by_day <= named | {"tests-of-the-tools"}
    junit = tmp_path / "none.xml"
    junit.write_text('<testsuite><testcase name="a"/></testsuite>')
    subprocess.run([sys.executable, CHECK, junit], check=True, stdout=subprocess.DEVNULL)


def test_a_command_is_run_first_and_must_end_well(tmp_path: Path) -> None:
    junit = tmp_path / "other.xml"
    script = 'echo "<testsuite><testcase name=\\"a\\"/></testsuite>" >"$0"; exit $1'
    for status in (0, 5):
        command = [sys.executable, CHECK, junit, "--", "sh", "-c", script, junit, str(status)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert ("1 tests ran" in done.stdout) == (status == 0)
