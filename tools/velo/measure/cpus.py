# SPDX-License-Identifier: Apache-2.0
"""The two CPUs that a pair of processes is pinned to, and who else uses them."""

import argparse
import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from velo import units
from velo.arguments import checked
from velo.errors import UsageError


def add_cpus(parser: argparse.ArgumentParser) -> None:
    """The option that names them."""
    parser.add_argument(
        "--cpus",
        metavar="LIST",
        type=checked(units.parse_cpus),
        help="the two CPUs to pin to: 0,1 (default: the first two allowed)",
    )


def two_cpus(wanted: Sequence[int] | None) -> list[int]:
    """The CPUs that everything is pinned to."""
    allowed = sorted(os.sched_getaffinity(0))
    cpus = list(wanted or allowed[:2])
    if len(cpus) != 2 or not set(cpus) <= set(allowed):
        raise UsageError(
            f"a pair needs two CPUs out of those allowed here, {','.join(map(str, allowed))};"
            " name them with --cpus"
        )
    return cpus


class Watch:
    """How much of some CPUs others took, from its making on, while a program of ours ran there."""

    def __init__(self, cpus: Sequence[int], stat: Path = Path("/proc/stat")) -> None:
        self._cpus = cpus
        self._stat = stat
        self._begin = (time.monotonic(), self._busy_s(), self._ours_s())

    def others(self) -> float:
        """Their share of the CPUs' time; to be asked once the program has ended."""
        now = (time.monotonic(), self._busy_s(), self._ours_s())
        wall_s, busy_s, ours_s = (b - a for a, b in zip(self._begin, now, strict=True))
        room_s = wall_s * len(self._cpus)
        return min(1.0, max(0.0, busy_s - ours_s) / room_s) if room_s > 0 else 0.0

    def _busy_s(self) -> float:
        """Time in which the CPUs were not idle; another guest of the same host counts, too."""
        names = {f"cpu{cpu}" for cpu in self._cpus}
        ticks = 0
        for line in self._stat.read_text(encoding="ascii").splitlines():
            name, *fields = line.split()
            if name in names:
                # user nice system idle iowait irq softirq steal; guests are in user.
                values = [int(field) for field in fields[:8]]
                ticks += sum(values) - values[3] - values[4]
        return ticks / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _ours_s() -> float:
        """Processor time of all children that have ended."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
