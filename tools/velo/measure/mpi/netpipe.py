# SPDX-License-Identifier: Apache-2.0
"""Debian's NetPIPE, unchanged, over an MPI stack."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from velo.errors import AbsentError, VeloError
from velo.measure.mpi import builds
from velo.measure.mpi.stacks import Stack
from velo.results.records import Sample

PROGRAM = "NPopenmpi"
RUN_TIMEOUT_S = 30.0
NETPIPE_MEGABIT = 1024 * 1024
# The sizes of one run and how often each is sent; NetPIPE takes 7 trials of it and gives the best.
SCHEDULE = ((1, 12288, 1000), (16384, 196608, 100), (262144, 1048576, 25))


def find() -> None:
    """Complain, if NetPIPE or its MPI is not there."""
    launcher = builds.SYSTEM_OPEN_MPI.launcher
    for program, package in ((PROGRAM, "netpipe-openmpi"), (launcher, "openmpi-bin")):
        if not shutil.which(program):
            raise AbsentError(f"{program} is not there; install {package} (Debian's name)")


def try_out(stack: Stack, cpus: Sequence[int]) -> None:
    """Complain, if a stack is not there, or a short run over it fails."""
    try:
        stack.find_velo()
    except VeloError as error:
        raise AbsentError(f"NetPIPE cannot run over {stack.name}: {error}") from error
    try:
        _measure(stack, cpus, (8, 8, 1))
    except VeloError as error:
        raise VeloError(f"NetPIPE cannot run over {stack.name}: {error}") from error


def run(stack: Stack, cpus: Sequence[int]) -> dict[int, float]:
    """Message size -> half round trip in ns, of one run."""
    found: dict[int, float] = {}
    for part in SCHEDULE:
        found |= _measure(stack, cpus, part)
    return found


def _measure(stack: Stack, cpus: Sequence[int], part: tuple[int, int, int]) -> dict[int, float]:
    low, high, repeats = map(str, part)
    with tempfile.TemporaryDirectory(prefix="velo-netpipe-") as name:
        out = Path(name) / "np.out"
        program = [PROGRAM, "-p", "0", "-l", low, "-u", high, "-n", repeats, "-o", str(out)]
        stack.output(2, cpus, program, RUN_TIMEOUT_S)
        return parse(out.read_text(encoding="ascii", errors="replace"))


def samples(stack: Stack, values: Mapping[int, float]) -> list[Sample]:
    """What a run of NetPIPE found, by size, as samples that no limit surrounds yet."""
    return [
        Sample("netpipe", "half_rtt_ns", size, value, 1, 1, None, stack=stack.name)
        for size, value in values.items()
    ]


def parse(text: str) -> dict[int, float]:
    """NetPIPE's output file: size, Mbit/s and seconds; the seconds have too few digits."""
    found: dict[int, float] = {}
    for line in text.splitlines():
        try:
            size, rate, _ = line.split()
            size_bytes, megabits_per_s = int(size), float(rate)
        except ValueError as error:
            raise VeloError(f"NetPIPE wrote a line that is no result: {line!r}") from error
        if not (size_bytes > 0 and megabits_per_s > 0):
            raise VeloError(f"NetPIPE wrote a result that is not above zero: {line!r}")
        found[size_bytes] = size_bytes * 8 / (megabits_per_s * NETPIPE_MEGABIT) * 1e9
    if not found:
        raise VeloError("NetPIPE wrote no result")
    return found
