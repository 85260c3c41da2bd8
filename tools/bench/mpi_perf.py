# SPDX-License-Identifier: Apache-2.0
"""Runs of velo-mpi-perf: what is measured of each MPI, and what it says."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from velo.errors import VeloError
from velo.measure.mpi.stacks import Stack
from velo.results.records import Sample

RUN_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Program:
    """One mode of velo-mpi-perf with its options."""

    mode: str
    ranks: int
    time_ms: int
    """Begin no batch later; starting and ending a job takes another second."""
    options: tuple[str, ...] = ()
    what: str = ""
    """What sets it apart from others of its mode."""

    @property
    def title(self) -> str:
        return f"{self.mode} {self.what}, {self.ranks} ranks".replace(" ,", ",")


SHORT = ",".join(map(str, (0, *(1 << k for k in range(15)))))
LONG = ",".join(str(1 << k) for k in range(15, 23))
PROGRAMS = (
    Program("latency", 2, 800, ("--sizes", SHORT, "--batches", "60"), "to 16 KiB"),
    Program("latency", 2, 1000, ("--sizes", LONG, "--batches", "20"), "above"),
    Program("written", 2, 600, ("--batches", "15")),
    Program("rate", 2, 600, ("--batches", "60")),
    Program("matching", 2, 800, ("--batches", "10")),
    Program("allreduce", 2, 300, ("--batches", "40")),
    Program("allreduce", 8, 800, ("--batches", "30")),
    Program("barrier", 2, 300, ("--batches", "40")),
    Program("barrier", 8, 800, ("--batches", "30")),
    Program("gups", 2, 800, ("--batches", "5")),
)


@dataclass(frozen=True)
class Result:
    """What one run found."""

    samples: list[Sample]
    dropped: int


def run(stack: Stack, program: Program, cpus: Sequence[int], quick: bool = False) -> Result:
    """Run a program over a stack; VeloError says what went wrong."""
    time_ms = program.time_ms // 3 if quick else program.time_ms
    argv: list[str | Path] = [stack.build.program, program.mode, *program.options]
    argv += ["--time-ms", str(time_ms)]
    return parse(stack.output(program.ranks, cpus, argv, RUN_TIMEOUT_S), stack.name)


def parse(text: str, stack: str) -> Result:
    """Read what velo-mpi-perf prints: a JSON object a line, `end` the last."""
    samples: list[Sample] = []
    processes = 2
    dropped: int | None = None
    for line in text.splitlines():
        found = _object(line)
        match found.get("type"):
            case "meta":
                processes = int(found.get("processes", 2))
            case "sample":
                samples.append(replace(Sample.from_json(found, processes), stack=stack))
            case "end":
                dropped = int(found.get("dropped", 0))
    if dropped is None:
        raise VeloError(f"velo-mpi-perf stopped without its 'end' line: {text.strip()[-200:]!r}")
    return Result(samples, dropped)


def _object(line: str) -> dict[str, Any]:
    """A line as an object; launchers may print lines of their own between ours."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
