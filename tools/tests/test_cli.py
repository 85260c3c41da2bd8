# SPDX-License-Identifier: Apache-2.0
"""The command as a whole: bare, its version, and what it says of packages that are missing."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from velo import cli, errors, tree
from velo.cli import COMMANDS, main
from velo.report import report


def test_bare_it_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^    {command} ", text, re.MULTILINE)


def test_the_groups_have_all_commands_and_an_example_that_is_understood(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    parser = cli.build_parser()
    for group in cli.GROUPS:
        [line] = re.findall(rf"^{group.title}, as in: (.*)", text, re.MULTILINE)
        for part in line.split(" && "):
            words = cli.run.protect(part.split()[1:])
            parsed = parser.parse_args(words).command
            assert parsed in map(cli.name_of, group.modules)
    named = re.findall(r"^    ([\w-]+) ", text, re.MULTILINE)
    [choices] = [a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    assert sorted(named) == sorted(choices)
    assert all(len(line) <= 100 for line in text.splitlines())


def test_the_version_is_that_of_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "velo-info"
    program.write_text("#!/bin/sh\n[ $# = 1 ] && [ $1 = --version ] && echo 7.8.9 abi 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("VELO_LIBEXEC", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == "velo 7.8.9 abi 3\n"
    monkeypatch.setenv("VELO_LIBEXEC", str(tmp_path / "nothing"))
    assert main(["--version"]) == 1
    assert "velo-info is not in" in capsys.readouterr().err


def test_each_exit_code_means_one_thing() -> None:
    told = re.findall(r"(?:^|[:;]\s)(\d+) ", cli.EPILOG)
    ours = [str(code) for name, code in vars(errors).items() if name.startswith("EXIT_")]
    simulator = (Path(__file__).parents[2] / "sim" / "main.cc").read_text()
    [stuck] = re.findall(r"kExitJobError = (\d+)", simulator)
    assert sorted(told) == sorted([*ours, stuck])
    assert len(set(told)) == len(told) == 8


@pytest.mark.parametrize("checkout", [None, Path("/a/checkout")])
def test_a_missing_package_is_named_with_how_to_get_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    checkout: Path | None,
) -> None:
    def fails(_: object) -> None:
        raise ModuleNotFoundError("No module named 'markupsafe'", name="markupsafe")

    monkeypatch.setattr(tree, "CHECKOUT", checkout)
    monkeypatch.setattr(report, "run", fails)
    assert main(["report", str(tmp_path / "x.json")]) == 1
    said = capsys.readouterr().err
    assert "velo report needs the Python package jinja2, which is not installed" in said
    assert ("make setup" if checkout else "apt-get install python3-jinja2") in said


def test_examples_are_command_lines_that_are_understood() -> None:
    parser = cli.build_parser()
    for line, _ in cli.EXAMPLES:
        words = cli.run.protect(line.split()[1:])
        assert parser.parse_args(words).command == words[0]


def test_a_folder_of_the_users_is_not_taken_for_the_command(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    text = (root / "scripts" / "cmake" / "velo.in").read_text(encoding="utf-8")
    text = text.replace("@velo_python@", sys.executable)
    text = text.replace("@velo_package_dir@", str(root / "tools"))
    launcher = tmp_path / "velo-launcher"
    launcher.write_text(text.replace("@velo_libexec_dir@", "libexec/velo"), encoding="utf-8")
    launcher.chmod(0o755)
    for name in ("velo", "papers", "json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not this one')\n")
    done = subprocess.run(
        [launcher, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "velo COMMAND --help" in done.stdout


def test_what_is_installed_does_without_the_folders_of_a_checkout(tmp_path: Path) -> None:
    package = Path(cli.__file__).parent
    shutil.copytree(package, tmp_path / "velo", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import importlib, pkgutil, sys, velo; from velo import cli; "
        "[importlib.import_module(m.name) for m in pkgutil.walk_packages(velo.__path__, 'velo.') "
        "if not m.name.endswith('__main__')]; print(*cli.COMMANDS)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == set(COMMANDS) - {"bench", "vm", "predict", "paper"}


def test_without_the_simulator_its_commands_say_how_to_get_them(tmp_path: Path) -> None:
    package = Path(cli.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "cluster")
    shutil.copytree(package, tmp_path / "velo", ignore=ignored)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "velo", *words]
        env = os.environ | {"PYTHONPATH": str(tmp_path), "VELO_LIBEXEC": str(tmp_path)}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    assert "Simulate" not in run("--help").stdout
    for command in ("sim", "trace"):
        done = run(command, "--help")
        assert done.returncode == 1
        assert re.search("velo-sim is not in .*install the package velo-sim", done.stderr)
