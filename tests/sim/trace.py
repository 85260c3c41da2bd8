# SPDX-License-Identifier: Apache-2.0
"""A recording over RTL is replayed over the transaction-level model: the same latency.

trace.py VELO VELO_SIM CLIENTS VELO_TLM
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROUTING = Path(__file__).parents[2] / "tools" / "velo" / "cluster" / "routing.py"
# Topology, its file's words for routing.py, ranks (two a node), messages from each to each other,
# and how far the means may be apart. Unloaded the model is exact; in queues the turns of arbiters,
# which begin elsewhere, make a difference.
CASES = (
    ("full:2", ("full", "2"), ["ping_pong", "100"], 0.0),
    ("ring:4", ("ring", "4"), ["all_to_all", "8", "20"], 0.02),
)


def run(*words: str | Path) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    velo, velo_sim, clients, velo_tlm = sys.argv[1:]
    for name, words, case, apart in CASES:
        with tempfile.TemporaryDirectory(prefix="velo-sim-") as folder:
            topology = Path(folder) / name
            topology.write_text(run(sys.executable, ROUTING, *words), encoding="utf-8")
            record, trace = Path(folder) / "run.rec", Path(folder) / "run.trace"
            options = ["--topology-file", topology, "--area", f"{folder}/area", "--record", record]
            run(velo_sim, *options, "--", clients, *case)
            said = run(velo, "trace", record, "--tlm", trace)
            rtl = float(said.split(": mean ")[1].split(" cycles")[0])
            command = said.split("replay it with: velo-tlm ")[1].split()
            result = json.loads(run(velo_tlm, *command, "--json"))["results"][0]
            messages = int(said.split(" nodes: ")[1].split(" messages")[0])
            tlm = result["latency"]["mean"]["cycles"]
            print(f"{name} {' '.join(case)}: {messages} messages, mean of RTL {rtl}, model {tlm}")
            if result["messages"] != messages:
                sys.exit(f"the model delivered {result['messages']} messages")
            if abs(tlm - rtl) > apart * rtl + 0.005:
                sys.exit("too far apart")


main()
