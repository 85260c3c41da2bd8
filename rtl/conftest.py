# SPDX-License-Identifier: Apache-2.0
"""For every pytest file of a block: build a module with Verilator, run cocotb tests on it."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

import pytest
from cocotb_tools.runner import get_runner

ROOT = Path(__file__).resolve().parents[1]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Nothing here depends on the machine: what scripts/rtl-setup brings is there, and a test that
    is skipped has failed."""
    report = yield
    if report.skipped:
        report.outcome = "failed"
    return report


def _files(block: str) -> tuple[list[Path], list[Path]]:
    """Sources and include folders of a block, as scripts/rtl lists them."""
    listing = subprocess.run(
        [ROOT / "scripts" / "rtl", "files", block], check=True, capture_output=True, text=True
    ).stdout.split()
    sources = [ROOT / line for line in listing if not line.startswith("+")]
    includes = [ROOT / line.removeprefix("+incdir+") for line in listing if line.startswith("+")]
    return sources, includes


def _package(window: str) -> Path:
    """The generated package with other widths of the window: n,t,source."""
    package = ROOT / "build" / "rtl" / f"window-{window.replace(',', '-')}" / "velo_pkg.sv"
    generator = ROOT / "tools" / "generators" / "specgen.py"
    options = ["--format", "sv", "--window", window, "-o", package]
    subprocess.run([sys.executable, generator, ROOT / "spec" / "velo.toml", *options], check=True)
    return package


def _tests_run(results: Path) -> int:
    """How many tests a simulation has run. Those that a filter or `skip` left out do not count."""
    cases = Xml.parse(results).iter("testcase")
    return sum(case.find("skipped") is None for case in cases)


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Callable[..., None]:
    """simulate(top, parameters, window, beside): run the @cocotb.test functions of the calling file
    on a module, with the window's widths as specgen's --window takes them; tests see VELO_WINDOW.
    `beside`: sources that are not the block's, from the root of the tree."""

    def run(
        top: str,
        parameters: Mapping[str, int | str] | None = None,
        window: str | None = None,
        beside: Sequence[str] = (),
    ) -> None:
        block = request.path.parents[1].name
        sources, includes = _files(block)
        sources += [ROOT / name for name in beside]
        if window:
            sources = [_package(window) if one.name == "velo_pkg.sv" else one for one in sources]
        name = "-".join([top, *(f"{key}{value}" for key, value in (parameters or {}).items())])
        name += f"-{window}" if window else ""
        # Two files of a block may test one module, side by side.
        folder = ROOT / "build" / "rtl" / "test" / block / request.path.stem
        folder /= re.sub(r"\W", "-", name)
        runner = get_runner("verilator")
        runner.build(
            sources=[ROOT / "rtl" / "verilator.vlt", *sources],
            includes=includes,
            hdl_toplevel=top,
            parameters=dict(parameters or {}),
            # One file a model: small ones compile in a quarter of the time. Not optimized: cocotb
            # takes most of the time of a run, and a whole node compiles in a fifth of the time.
            build_args=[
                *("--assert", "-Wno-fatal", "-Wno-MULTITOP"),
                *("--output-split", "0", "-CFLAGS", "-O0"),
            ],
            build_dir=folder,
            always=True,
            log_file=folder.with_suffix(".log"),
        )
        results = runner.test(
            hdl_toplevel=top,
            test_module=request.path.stem,
            test_dir=request.path.parent,
            build_dir=folder,
            results_xml=str(folder / "results.xml"),
            extra_env={
                "PYTHONPATH": os.pathsep.join([str(request.path.parent), str(ROOT / "rtl")]),
                **({"VELO_WINDOW": window} if window else {}),
            },
        )
        # The runner is content if none has failed: also if COCOTB_TEST_FILTER matches none.
        assert _tests_run(results), f"no test was run on {top}"

    return run
