# SPDX-License-Identifier: Apache-2.0
"""Ways past the simulated hardware end a run, with a sentence, if they go from node to node; ranks
of one node may take them.

refused.py VELO WAYS UNTOLD
"""

import os
import re
import subprocess
import sys
from pathlib import Path

# The sentence for each way; None: the run goes on. MPI itself refuses "shared".
WAYS = {
    "none": None,
    "map": "maps memory that rank . on node. has mapped, too: /dev/shm/velo-sim-ways",
    "map_to_read": None,
    "map_one_way": "maps memory that rank . on node. has mapped, too: /dev/shm/velo-sim-ways",
    "attach": "maps memory that rank . on node. has mapped, too: /SYSV",
    "reach": r"rank 1 on node1 reaches by process_vm_readv\(\) into the memory of rank 0 on node0",
    "file": "opens the file /tmp/velo-sim-ways.* together with ranks of other nodes",
    "shared": "asks for memory that it would share with ranks of other nodes",
    "dynamic": r"makes a dynamic window together with ranks of other nodes; Open MPI 4\.1\..",
}
# Of Open MPI, which can do it from then on.
DYNAMIC_FROM = (4, 1, 5)


def run(*words: str) -> tuple[int, str]:
    env = {name: value for name, value in os.environ.items() if name != "OMPI_MCA_osc"}
    done = subprocess.run(
        words, env=env, timeout=120, check=False, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    # Ranks that were ended could not take away what they shared.
    for path in re.findall(r"/(?:dev/shm|tmp)/velo-sim-ways\.\d+", done.stdout):
        Path(path).unlink(missing_ok=True)
    return done.returncode, done.stdout


def release() -> tuple[int, ...]:
    _, said = run("mpirun.openmpi", "--version")
    return tuple(int(number) for number in re.findall(r"\d+", said)[:3])


velo, ways, untold = sys.argv[1:]
failed = []
if release() >= DYNAMIC_FROM:
    WAYS["dynamic"] = None
for way, sentence in WAYS.items():
    code, said = run(velo, "sim", "-n", "2", "--ranks-a-node", "2", "--", ways, way)
    if code != 0:
        failed.append((way, "on one node", code, said))
    code, said = run(velo, "sim", "-n", "2", "--", ways, way)
    if (code == 0) != (sentence is None) or (sentence and not re.search(sentence, said)):
        failed.append((way, "on two nodes", code, said))
code, said = run(velo, "sim", "-n", "2", "--", untold)
if code == 0 or "has an MPI that has not asked libpmix where its ranks are" not in said:
    failed.append(("untold", "on two nodes", code, said))
for fail in failed:
    print(*fail)
sys.exit(1 if failed else 0)
