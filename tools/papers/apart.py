# SPDX-License-Identifier: Apache-2.0
"""`velo sim` as a process of its own, for commands that run it many times."""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from velo import helpers
from velo.errors import VeloError


def run_apart(
    words: Sequence[str], program: Sequence[str], timeout_s: float | None = None
) -> tuple[str, dict[str, Any]]:
    """`velo sim` as a process of its own: what the program printed, and the simulator's result."""
    with tempfile.TemporaryDirectory(prefix="velo-sim-") as folder:
        result = Path(folder) / "result.json"
        argv = [sys.executable, "-m", "velo", "sim", *words, "--json", str(result)]
        said = helpers.output([*argv, "--", *program], timeout_s)
        return said, json.loads(result.read_text(encoding="utf-8"))


def no_model(error: VeloError) -> str:
    """What the simulator says where a run failed for want of a model; else the error is raised."""
    if "no model of a node" not in " ".join(str(error).split()):
        raise error
    return str(error).strip().splitlines()[-1].removeprefix("velo-sim: ")
