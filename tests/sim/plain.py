# SPDX-License-Identifier: Apache-2.0
"""Run one test of a program that uses the library on two simulated nodes.

plain.py SIMULATOR LIBRARY PROGRAM TEST [RULE]

RULE is one more of the map of nodes.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from velo.cluster import routing
from velo.cluster.ranks import NETWORK

simulator, library, program, test, *rules = sys.argv[1:]
network = ",".join([NETWORK, *rules])
# A file without a name, for the simulator that takes our place: whoever ends us ends it.
topology = os.memfd_create("topology", 0)
os.write(topology, routing.to_text(routing.build("full", "2")).encode())
argv = [simulator, "--topology-file", f"/proc/self/fd/{topology}"]
os.execv(simulator, [*argv, "--", "env", network, f"LD_PRELOAD={library}", program, test])
