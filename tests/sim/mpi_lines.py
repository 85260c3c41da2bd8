# SPDX-License-Identifier: Apache-2.0
"""Run one test of tests/mpi over transport card: ranks are on two simulated nodes in turns.

mpi_lines.py SIMULATOR COMPONENTS PROGRAM RANKS TEST

The ranks live in real time.
"""

import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from velo.cluster import routing

simulator, components, program, ranks, test = sys.argv[1:]
mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
if not mpirun:
    sys.exit(77)
topology = os.memfd_create("topology", 0)
os.write(topology, routing.to_text(routing.build("full", "2")).encode())
domain = f"lines-{os.getpid():x}"
settings = [
    "VELO_NETWORK=card,own=card,spread=2",
    f"VELO_DOMAIN={domain}",
    f"OMPI_MCA_mtl_velo_domain={domain}",
    f"OMPI_MCA_mca_base_component_path={components}:SYSTEM_DEFAULT:USER_DEFAULT",
    "OMPI_ALLOW_RUN_AS_ROOT=1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
]
layers = [
    "--mca",
    "pml",
    "cm",
    "--mca",
    "mtl",
    "velo",
    "--mca",
    "btl",
    "self",
    "--mca",
    "coll",
    "^velo",
]
command = [mpirun, "-n", ranks, "--oversubscribe", "--bind-to", "none", *layers, program, test]
os.execv(
    simulator,
    [simulator, "--topology-file", f"/proc/self/fd/{topology}", "--", "env", *settings, *command],
)
