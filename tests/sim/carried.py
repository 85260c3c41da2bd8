# SPDX-License-Identifier: Apache-2.0
"""The links between two nodes carry all that a program moves from one to the other, in every way of
MPI; and MPI knows which ranks share a node.

carried.py VELO LAYER PROGRAM KIND...
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

NODES, RANKS_A_NODE = 2, 2
# sim/record.h: kind, node; words of payload.
RECORD, LINK = struct.Struct("<BB14xq16x"), 2
# Not even a put without an answer is without overhead; more than this is no overhead.
TIMES_MAX = 8


def carried_bytes(recording: Path) -> Counter[int]:
    """Payload that left each node by its links."""
    head, _, records = recording.read_bytes().partition(b"\n")
    word_bytes = json.loads(head)["word_bytes"]
    carried: Counter[int] = Counter()
    for kind, node, words in RECORD.iter_unpack(records):
        if kind == LINK:
            carried[node] += words * word_bytes
    return carried


velo, layer, program, *kinds = sys.argv[1:]
failed = []
with tempfile.TemporaryDirectory() as folder:
    recording = Path(folder) / "run.rec"
    for kind in kinds:
        argv = [velo, "sim", "--topology", f"full:{NODES}", "--ranks-a-node", str(RANKS_A_NODE)]
        argv += [f"--{layer}", "--record", str(recording), "--", program, kind]
        # By messages: operations on such a window never end in Open MPI 4.1.4.
        env = os.environ | ({"OMPI_MCA_osc": "pt2pt"} if "dynamic" in kind else {})
        said = subprocess.run(
            argv, env=env, check=True, timeout=120, stdout=subprocess.PIPE, text=True
        )
        moved = int(said.stdout.split("moved ")[1].split()[0])
        carried = carried_bytes(recording)
        print(f"{kind}: from each node {moved} bytes; carried: {dict(carried)}")
        if not all(moved <= carried[node] <= TIMES_MAX * moved for node in range(NODES)):
            failed.append(kind)
if failed:
    sys.exit(f"not what was moved: {failed}")
