# SPDX-License-Identifier: Apache-2.0
"""What a result needs to say about where it was measured, in one line."""

import os
import platform
import secrets
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

from velo.results.records import Run


def describe() -> str:
    """Processor, CPUs, system and kernel of this machine."""
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        system = platform.system()
    cpus = f"{len(os.sched_getaffinity(0))} CPUs"
    return f"{_cpu_model()}, {cpus}, {system}, Linux {platform.release()}"


def new_run(version: str = "") -> Run:
    """What the records of the running command have in common."""
    return Run(
        id=secrets.token_hex(4),
        time=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=describe(),
        version=version,
        command=shlex.join(["velo", *sys.argv[1:]]),
    )


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.machine()
