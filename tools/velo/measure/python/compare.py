# SPDX-License-Identifier: Apache-2.0
"""Run the program over each queue, and set the results side by side."""

import json
import os
import shutil
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from velo import helpers, tree, units
from velo.display import Console, Table, paint
from velo.errors import VeloError
from velo.measure.mpi.builds import INSTALL_TIMEOUT_S, pins
from velo.measure.python.channels import CHANNELS

PROGRAM = "velo.measure.python.program"
TIME_MS, TIME_QUICK_MS = 120, 40
OURS = "velo.Queue"
RUN_TIMEOUT_S = 120.0
# Of the others: the package of the Python index, and the module in it.
PACKAGES = {"pyzmq ipc": ("pyzmq", "zmq"), "faster-fifo": ("faster-fifo", "faster_fifo")}


def environment() -> dict[str, str]:
    """Where the program finds the command's modules, the binding and the others."""
    folders = [tree.PYTHON_FOLDER]
    if tree.CHECKOUT:
        folders += [tree.CHECKOUT / "bindings" / "python", tree.measured("python"), *_peers()]
    before = os.environ.get("PYTHONPATH", "").split(":")
    return os.environ | {"PYTHONPATH": ":".join(filter(None, [*map(str, folders), *before]))}


def missing(stack: str) -> str | None:
    """Why a queue cannot be measured here; installs it if it can be."""
    package, module = PACKAGES.get(stack, ("", "velo._velo" if stack == OURS else ""))
    try:
        if package and tree.CHECKOUT:
            _install(package)
        if module:
            argv = [sys.executable, "-c", f"import {module}"]
            helpers.output(argv, INSTALL_TIMEOUT_S, env=environment())
    except VeloError as error:
        return " ".join(str(error).split()[-12:])
    return None


@dataclass
class Queues:
    """What the program said, by queue, mode and size."""

    values: dict[tuple[str, str, int], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def measure(self, stack: str, cpus: Sequence[int], quick: bool) -> None:
        """Run the program once over one queue."""
        time_ms = TIME_QUICK_MS if quick else TIME_MS
        argv = [sys.executable, "-m", PROGRAM, stack, ",".join(map(str, cpus)), str(time_ms)]
        for text in helpers.output(argv, RUN_TIMEOUT_S, env=environment()).splitlines():
            line = json.loads(text)
            self.values[stack, str(line["mode"]), int(line["size_bytes"])].append(line["value"])

    def medians(self, stack: str, mode: str) -> dict[int, float]:
        """Of all rounds, by size."""
        return {
            size: statistics.median(values)
            for (whose, kind, size), values in self.values.items()
            if (whose, kind) == (stack, mode)
        }

    def show(self, console: Console) -> None:
        """A table for latency and one for rate; in brackets how many times as good velo is."""
        stacks = [s for s in CHANNELS if self.medians(s, "latency")]
        if not stacks:
            return
        sizes = sorted(self.medians(stacks[0], "latency"))
        for mode, title in (
            ("latency", "Python, half a round trip of a bytes object"),
            ("rate", "Python, bytes objects one way"),
        ):
            headings = [f">{units.size(size)}" for size in sizes]
            table = Table(f"<{title}", *headings)
            ours = self.medians(OURS, mode)
            for stack in stacks:
                mine = self.medians(stack, mode)
                table.add_row(stack, *(_cell(mode, mine[s], ours.get(s)) for s in sizes))
            console.print(table)
        idle = Table("<Python, a process that waits", ">of a processor")
        for stack in stacks:
            idle.add_row(stack, f"{100 * self.medians(stack, 'idle')[0]:.2f} %")
        console.print(idle)


def _cell(mode: str, value: float, ours: float | None) -> str:
    text = units.time_ns(value * 1e9) if mode == "latency" else f"{value / 1e3:,.1f} k/s"
    if ours is None:
        return text
    ratio = value / ours if mode == "latency" else ours / value
    return f"{text} {paint(f'({ratio:.1f})', 'green' if ratio >= 1 else 'red')}"


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
