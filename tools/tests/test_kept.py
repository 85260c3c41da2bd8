# SPDX-License-Identifier: Apache-2.0
"""Results of checks that are kept by content (scripts/kept.py): never for inputs that changed."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "kept.py"


class Checkout:
    """A small Git checkout with kept.py in it, a cache and a PATH of its own."""

    def __init__(self, folder: Path):
        self.root = folder / "checkout"
        self.cache = folder / "cache"
        self.tools = folder / "tools"
        for name in ("scripts", "lib", "docs"):
            (self.root / name).mkdir(parents=True)
        self.tools.mkdir()
        shutil.copy2(SCRIPT, self.root / "scripts")
        self.write("lib/a.c", "int a;\n")
        self.write("docs/page.md", "A page.\n")
        self.write(".gitignore", "/build/\n/.venv/\n")
        self.tool("cc", "cc 1.0")
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *command], cwd=self.root, check=True)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def tool(self, name: str, version: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\necho '{version}'\n", encoding="utf-8")
        path.chmod(0o755)

    def call(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        keep = {key: value for key, value in os.environ.items() if not key.startswith("VELO_")}
        keep.pop("FRESH", None)
        path = f"{self.tools}:{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, "scripts/kept.py", *words],
            cwd=self.root,
            env=keep | {"XDG_CACHE_HOME": str(self.cache), "PATH": path} | env,
            capture_output=True,
            text=True,
            check=False,
        )

    def step(self, script: str = "true", *options: str, **env: str) -> bool:
        """Run a step; was its command run?"""
        mark = self.root / "build" / "mark"
        mark.unlink(missing_ok=True)
        mark.parent.mkdir(exist_ok=True)
        command = ["sh", "-c", f"touch build/mark; {script}"]
        self.last = self.call("step", "a step", *options, "--", *command, **env)
        return mark.exists()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_what_has_passed_is_not_run_again(checkout: Checkout) -> None:
    assert checkout.step()
    assert not checkout.step()
    assert "kept: a step: passed on " in checkout.last.stdout
    assert checkout.last.returncode == 0


def test_a_checkout_beside_another_one_finds_what_it_has_kept(
    checkout: Checkout, tmp_path: Path
) -> None:
    assert checkout.step()
    other = tmp_path / "other"
    shutil.copytree(checkout.root, other)
    checkout.root = other
    assert not checkout.step()


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.write("lib/a.c", "int b;\n"),
        lambda c: c.write("lib/new.c", "int n;\n"),
        lambda c: c.write("scripts/kept.py", SCRIPT.read_text(encoding="utf-8") + "\n"),
        lambda c: (c.root / "lib/a.c").chmod(0o755),
        lambda c: (c.root / "lib/a.c").unlink(),
        lambda c: (c.root / "lib/a.c").rename(c.root / "lib/b.c"),
        lambda c: c.tool("cc", "cc 1.1"),
        lambda c: c.tool("spin", "another spin"),
        lambda c: c.write(".venv/lib/python3/site-packages/tool-2.dist-info/METADATA", ""),
    ],
    ids=[
        "source",
        "new-file",
        "script",
        "mode",
        "removed",
        "renamed",
        "tool",
        "new-tool",
        "package",
    ],
)
def test_any_changed_input_makes_it_run_again(checkout: Checkout, change) -> None:
    assert checkout.step()
    assert not checkout.step()
    change(checkout)
    assert checkout.step()


def test_another_command_or_environment_is_another_check(checkout: Checkout) -> None:
    assert checkout.step()
    assert checkout.step("true; true")
    assert checkout.step(VELO_TEST_SEED="2")
    assert not checkout.step(VELO_TEST_SEED="2")
    assert checkout.step(CFLAGS="-O0")


def test_what_failed_is_run_again_and_its_exit_code_is_the_steps(checkout: Checkout) -> None:
    assert checkout.step("exit 7")
    assert checkout.last.returncode == 7
    assert checkout.step("exit 7")


def test_fresh_runs_everything_and_keeps_it_for_later(checkout: Checkout) -> None:
    assert checkout.step(FRESH="1")
    assert checkout.step(FRESH="1")
    assert not checkout.step()


def test_fresh_since_a_time_ignores_what_is_older(checkout: Checkout) -> None:
    now = int(time.time())
    assert checkout.step()
    assert not checkout.step(FRESH=str(now - 3600))
    assert checkout.step(FRESH=str(now + 3600))


def test_a_page_is_no_input_where_pages_are_left_out(checkout: Checkout) -> None:
    assert checkout.step("true", "--without", "pages")
    checkout.write("docs/page.md", "Another page.\n")
    assert not checkout.step("true", "--without", "pages")
    checkout.write("lib/a.c", "int b;\n")
    assert checkout.step("true", "--without", "pages")


def test_a_step_that_opens_what_it_leaves_out_is_not_kept(checkout: Checkout) -> None:
    assert checkout.step("cat docs/page.md", "--without", "pages")
    assert "docs/page.md was opened" in checkout.last.stderr
    assert checkout.last.returncode == 0
    assert checkout.step("cat docs/page.md", "--without", "pages")


def test_a_file_that_changes_meanwhile_is_noticed(checkout: Checkout) -> None:
    before = (checkout.root / "lib/a.c").read_text(encoding="utf-8")
    assert checkout.step("echo 'int c;' >lib/a.c")
    checkout.write("lib/a.c", before)
    assert checkout.step("echo 'int c;' >lib/a.c")  # Kept for neither text.
    assert checkout.step("echo 'int c;' >lib/a.c")
    assert not checkout.step("echo 'int c;' >lib/a.c")


def test_a_set_that_there_is_not_is_an_error(checkout: Checkout) -> None:
    assert not checkout.step("true", "--without", "nonsense")
    assert checkout.last.returncode == 2
    assert "pages" in checkout.last.stderr


def test_without_git_nothing_is_kept(checkout: Checkout) -> None:
    shutil.rmtree(checkout.root / ".git")
    assert checkout.step(GIT_CEILING_DIRECTORIES=str(checkout.root.parent))
    assert checkout.step(GIT_CEILING_DIRECTORIES=str(checkout.root.parent))


def test_a_cache_that_cannot_be_written_costs_only_the_result(checkout: Checkout) -> None:
    checkout.cache.write_text("no folder", encoding="utf-8")
    assert checkout.step()
    assert checkout.last.returncode == 0
    assert checkout.step()


def test_a_build_that_fails_ends_the_step(checkout: Checkout) -> None:
    checkout.write("scripts/build", "#!/bin/sh\nexit 5\n")
    (checkout.root / "scripts/build").chmod(0o755)
    assert not checkout.step("true", "--build", "release")
    assert checkout.last.returncode == 5


def printed_by(checkout: Checkout, script: str) -> str:
    """What a script prints that imports kept."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=checkout.root / "scripts",
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_table_has_what_ran_was_kept_skipped_and_failed(checkout: Checkout) -> None:
    junit = '<testsuite tests="9" failures="0" disabled="0" skipped="2"/>'
    checkout.call("begin", "test")
    script = ["sh", "-c", f"echo '{junit}' >$0", "{junit}"]
    checkout.call("step", "a suite", "--", *script)
    checkout.call("begin", "check")
    checkout.call("step", "a suite", "--", *script)
    printed_by(
        checkout,
        "import kept; [kept.record('proofs', *r) for r in (('one','run',3), ('two','failed',4))]",
    )
    whole = checkout.call("table").stdout.splitlines()
    rows = [line.split() for line in checkout.call("table", "check").stdout.splitlines()]
    assert ["a", "suite", "-", "7", "2", "-", "0"] in rows
    assert ["proofs", "1", "-", "-", "1", "4"] in rows
    assert whole[1].split()[:6] == ["a", "suite", "7", "7", "4", "-"]
    assert whole[-1] == "checks: 15 passed, 1 failed, 4 skipped"
    kept = [json.loads(path.read_text()) for path in (checkout.cache / "velo" / "kept").iterdir()]
    assert [stamp["name"] for stamp in kept] == ["a suite"]


def test_a_row_has_the_time_in_which_some_check_of_its_group_ran(checkout: Checkout) -> None:
    """Not what lies between two of them, and once what two side by side took."""
    table = printed_by(
        checkout,
        "import kept; print(kept.table({'group': 'proofs', 'outcome': 'run', 'end': end,"
        " 'seconds': seconds} for end, seconds in ((1012, 2), (14, 4), (12, 2), (13, 3))))",
    )
    assert table.splitlines()[1].split() == ["proofs", "4", "-", "-", "-", "6"]


def packages(checkout: Checkout, *lists: str) -> str:
    return printed_by(checkout, f"import kept; print(*kept.packages({lists!r}))").strip()


def test_a_check_counts_the_packages_that_its_lists_name(checkout: Checkout) -> None:
    site = ".venv/lib/python3/site-packages"
    checkout.write("scripts/packages/some.txt", "# A comment.\nThe-Prover==2.0\nmissing==1\n")
    checkout.write(f"{site}/the_prover-2.0.dist-info/METADATA", "")
    checkout.write(f"{site}/other-1.0.dist-info/METADATA", "")
    before = packages(checkout, "some.txt")
    assert before == "missing: none the_prover-2.0.dist-info"
    assert packages(checkout) == "other-1.0.dist-info the_prover-2.0.dist-info"
    checkout.write(f"{site}/another-1.0.dist-info/METADATA", "")
    assert packages(checkout, "some.txt") == before
    shutil.rmtree(checkout.root / site / "the_prover-2.0.dist-info")
    checkout.write(f"{site}/the_prover-2.1.dist-info/METADATA", "")
    assert packages(checkout, "some.txt") == "missing: none the_prover-2.1.dist-info"


def test_what_is_installed_is_an_input_of_the_steps_whose_tests_install() -> None:
    """Else those steps open what is not known to be among their inputs, and are never kept."""
    root = SCRIPT.parents[1]
    rules = (root / "scripts" / "cmake" / "install.cmake").read_text(encoding="utf-8")
    folders = re.findall(r"install\(DIRECTORY \$\{PROJECT_SOURCE_DIR\}/(\S+)", rules)
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    host = re.search(r"^host := --without (\S+)$", makefile, re.M)
    assert "sim/hosts" in folders and host
    installed = [
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    found = subprocess.run(
        [sys.executable, "-c", "import json, sys, kept; names, sets = json.load(sys.stdin); "
         "json.dump(kept.without(names, sets), sys.stdout)"],
        input=json.dumps([installed, host[1].split(",")]), capture_output=True, text=True,
        check=True, cwd=SCRIPT.parent, env=os.environ | {"PYTHONPATH": str(SCRIPT.parent)},
    )  # fmt: skip
    assert sorted(json.loads(found.stdout)) == sorted(installed)
