# SPDX-License-Identifier: Apache-2.0
"""Commands of velo as processes of their own, for commands that need many of them."""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from velo import helpers
from velo.errors import VeloError

VELO = (sys.executable, "-m", "velo")


def run_apart(
    words: Sequence[str], program: Sequence[str], timeout_s: float | None = None
) -> tuple[str, dict[str, Any]]:
    """`velo sim` as a process of its own: what the program printed, and the simulator's result."""
    with tempfile.TemporaryDirectory(prefix="velo-sim-") as folder:
        result = Path(folder) / "result.json"
        argv = [*VELO, "sim", *words, "--json", str(result)]
        said = helpers.output([*argv, "--", *program], timeout_s)
        return said, json.loads(result.read_text(encoding="utf-8"))


def side_by_side(
    calls: Sequence[Sequence[str]], at_once: int, timeout_s: float
) -> Iterator[tuple[int, str | VeloError]]:
    """Commands of velo, so many at once, begun in their order: the number of each as it ends, and
    what it printed or why it failed. All are stopped when the caller stops iterating."""
    argvs = [[*VELO, *call] for call in calls]
    yield from helpers.outputs(argvs, at_once, timeout_s)


def no_model(error: VeloError) -> str:
    """What the simulator says where a run failed for want of a model; else the error is raised."""
    if "no model of a node" not in " ".join(str(error).split()):
        raise error
    lines = str(error).strip().splitlines()
    # Velo's own last words may follow.
    said = next((line for line in lines if line.startswith("velo-sim: ")), lines[-1])
    return said.removeprefix("velo-sim: ")
