# SPDX-License-Identifier: Apache-2.0
"""Run one test of a program that uses the library on two simulated nodes.

plain.py SIMULATOR LIBRARY PROGRAM TEST
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from velo import routing

simulator, library, program, test = sys.argv[1:]
with tempfile.NamedTemporaryFile("w", suffix=".topology", delete=False) as topology:
    topology.write(routing.to_text(routing.build("full", "2")))
argv = [simulator, "--topology-file", topology.name, "--session", f"test-{os.getpid()}", "--"]
code = os.spawnv(os.P_WAIT, simulator, [*argv, "env", f"LD_PRELOAD={library}", program, test])
Path(topology.name).unlink()
sys.exit(code)
