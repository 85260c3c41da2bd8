# SPDX-License-Identifier: Apache-2.0
"""Run one test of a program that uses the library on simulated nodes, two unless it says more.

plain.py SIMULATOR LIBRARY PROGRAM TEST [nodes=N|RULE|NAME=VALUE|--OPTION=VALUE]...

RULE is one more of the map of nodes, OPTION one of the simulator. NAME, in capitals, is set in the
environment: VELO_NETWORK in place of the map that leads to the nodes' devices, LD_PRELOAD empty
where the program is to live in real time.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from velo.cluster import routing
from velo.cluster.ranks import BOARDS, NETWORK

simulator, library, program, test, *extra = sys.argv[1:]
nodes = next((one[len("nodes=") :] for one in extra if one.startswith("nodes=")), "2")
settings = [one for one in extra if one[0].isupper()]
rules = [one for one in extra if not one.startswith(("--", "nodes=")) and one not in settings]
options = [one for one in extra if one.startswith("--")]
network = ",".join([NETWORK, *rules])
# A file without a name, for the simulator that takes our place: whoever ends us ends it.
topology = os.memfd_create("topology", 0)
os.write(topology, routing.to_text(routing.build("full", nodes)).encode())
argv = [simulator, "--topology-file", f"/proc/self/fd/{topology}", *options]
# With boards of DIMMnet-2 the program is of the cluster from its start.
boards = BOARDS if any(one.startswith("--boards") for one in options) else []
settings = [*boards, network, f"LD_PRELOAD={library}", *settings]
os.execv(simulator, [*argv, "--", "env", *settings, program, test])
