# SPDX-License-Identifier: Apache-2.0
"""Run the program over each queue."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from velo import helpers, tree
from velo.errors import VeloError
from velo.measure.mpi.builds import INSTALL_TIMEOUT_S, pins
from velo.results.records import PYTHON, VELO_QUEUE, Sample

PROGRAM = "bench.python.program"
TIME_MS, TIME_QUICK_MS = 120, 40
RUN_TIMEOUT_S = 120.0
# What the program calls a figure -> the metric, and what its values are to be multiplied by.
METRICS = {"latency": ("object_half_rtt_ns", 1e9), "rate": ("objects_per_s", 1.0),
           "idle": ("idle_share", 1.0)}  # fmt: skip
# A process that used no time at all: records hold numbers above 0.
ABOVE_ZERO = 1e-9
# Of the others: the package of the Python index, and the module in it.
PACKAGES = {"pyzmq ipc": ("pyzmq", "zmq"), "faster-fifo": ("faster-fifo", "faster_fifo")}


def environment() -> dict[str, str]:
    """Where the program finds the command's modules, the binding and the others."""
    folders: list[str | Path] = [tree.PYTHON_FOLDER]
    if tree.CHECKOUT:
        folders += [tree.CHECKOUT / "bindings" / "python", tree.measured("python"), *_peers()]
    before = os.environ.get("PYTHONPATH", "").split(":")
    return os.environ | {"PYTHONPATH": ":".join(filter(None, [*map(str, folders), *before]))}


def missing(stack: str) -> str | None:
    """Why a queue cannot be measured here; installs it if it can be."""
    package, module = PACKAGES.get(stack, ("", "velo._velo" if stack == VELO_QUEUE else ""))
    try:
        if package and tree.CHECKOUT:
            _install(package)
        if module:
            argv = [sys.executable, "-c", f"import {module}"]
            helpers.output(argv, INSTALL_TIMEOUT_S, env=environment())
    except VeloError as error:
        return str(error).splitlines()[-1]
    return None


def run(stack: str, cpus: Sequence[int], quick: bool) -> list[Sample]:
    """Run the program once over one queue; its figures as samples that no limit surrounds yet."""
    time_ms = TIME_QUICK_MS if quick else TIME_MS
    argv = [sys.executable, "-m", PROGRAM, stack, ",".join(map(str, cpus)), str(time_ms)]
    out = []
    for text in helpers.output(argv, RUN_TIMEOUT_S, env=environment()).splitlines():
        line = json.loads(text)
        metric, factor = METRICS[line["mode"]]
        value = max(line["value"] * factor, ABOVE_ZERO)
        mode = PYTHON + line["mode"]
        out.append(Sample(mode, metric, line["size_bytes"], value, 1, 1, None, stack=stack))
    return out


def _peers() -> list[str]:
    folder = tree.measured("peers") / "python"
    return [str(folder / package) for package, _ in PACKAGES.values()]


def _install(package: str) -> None:
    """From the Python index, into a folder of its own, in the version that is pinned."""
    folder = tree.measured("peers") / "python" / package
    stamp = folder / "installed"
    wanted = f"{package}=={pins()[package]}"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           "--no-input", "--no-deps", "--target", str(folder)]  # fmt: skip
    helpers.output([*pip, wanted], INSTALL_TIMEOUT_S)
    stamp.write_text(wanted)
