# SPDX-License-Identifier: Apache-2.0
"""For every pytest file of a block: build a module with Verilator, run cocotb tests on it."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cocotb_tools.runner import get_runner

ROOT = Path(__file__).resolve().parents[1]


def _files(block: str) -> tuple[list[Path], list[Path]]:
    """Sources and include folders of a block, as scripts/rtl lists them."""
    listing = subprocess.run(
        [ROOT / "scripts" / "rtl", "files", block], check=True, capture_output=True, text=True
    ).stdout.split()
    sources = [ROOT / line for line in listing if not line.startswith("+")]
    includes = [ROOT / line.removeprefix("+incdir+") for line in listing if line.startswith("+")]
    return sources, includes


@pytest.fixture
def simulate(request: pytest.FixtureRequest) -> Callable[..., None]:
    """simulate(top, parameters): run the @cocotb.test functions of the calling file on a module."""

    def run(top: str, parameters: Mapping[str, int | str] | None = None) -> None:
        block = request.path.parents[1].name
        sources, includes = _files(block)
        name = "-".join([top, *(f"{key}{value}" for key, value in (parameters or {}).items())])
        folder = ROOT / "build" / "rtl" / "test" / block / re.sub(r"\W", "-", name)
        runner = get_runner("verilator")
        runner.build(
            sources=[ROOT / "rtl" / "verilator.vlt", *sources],
            includes=includes,
            hdl_toplevel=top,
            parameters=dict(parameters or {}),
            # One file a model: small ones compile in a quarter of the time.
            build_args=["--assert", "-Wno-fatal", "-Wno-MULTITOP", "--output-split", "0"],
            build_dir=folder,
            always=True,
            log_file=folder.with_suffix(".log"),
        )
        runner.test(
            hdl_toplevel=top,
            test_module=request.path.stem,
            test_dir=request.path.parent,
            build_dir=folder,
            results_xml=str(folder / "results.xml"),
            extra_env={
                "PYTHONPATH": os.pathsep.join([str(request.path.parent), str(ROOT / "rtl")])
            },
        )

    return run
