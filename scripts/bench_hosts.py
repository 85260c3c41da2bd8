#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure MPI between two hosts, which are namespaces joined by veth (tests/machines).

    sudo .venv/bin/python scripts/bench_hosts.py [--rounds 7] [--json build/bench-hosts.json]

In each round, one after the other: velo's MTL over libfabric's tcp, Open MPI's own tcp, and
libfabric's fi_pingpong over the provider that velo takes. One rank on each host, each on a core of
its own. A ratio is the median of the rounds' ratios, with the least and the greatest. Rates are of
windows of 64 messages, as osu_mbw_mr has them; fi_pingpong has none.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "machines"))
from machines import Machines, become_root  # noqa: E402

BUILD = ROOT / "build"
PERF = BUILD / "libexec" / "velo" / "velo-mpi-perf"
PROVIDER = "tcp;ofi_rxm"
LIMIT_S = 120
MIB = 1 << 20
# Figure: how velo-mpi-perf measures it, and its unit in the program's.
FIGURES = {
    "half round trip, 8 B, us": (("latency", "--sizes", "8", "--batches", "30"), 1e-3),
    "half round trip, 1 MiB, us": (("latency", "--sizes", str(MIB), "--batches", "10"), 1e-3),
    "rate, 8 B, messages/s": (("rate", "--sizes", "8", "--batches", "10"), 1),
    "rate, 1 MiB, messages/s": (
        ("rate", "--sizes", str(MIB), "--batches", "5", "--windows", "1"), 1,
    ),
}  # fmt: skip
PINGPONG = {"half round trip, 8 B, us": (8, 2000), "half round trip, 1 MiB, us": (MIB, 100)}


def mpi(machines: Machines, layer: list[str], figure: str) -> float:
    """One run of velo-mpi-perf."""
    mode, scale = FIGURES[figure]
    pinned = f'exec taskset -c $OMPI_COMM_WORLD_RANK {PERF} "$@" --no-limit --time-ms 3000'
    hosts = ",".join(f"{name}:1" for name in machines.names)
    argv = [sys.executable, "-m", "velo", "run", "-n", "2", *layer, "--host", hosts,
            "--bind-to", "none", "sh", "-c", pinned, "sh", *mode]  # fmt: skip
    env = {
        "OMPI_MCA_plm_rsh_agent": str(machines.agent),
        "VELO_LIBEXEC": str(PERF.parent),
        "PYTHONPATH": str(ROOT / "tools"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    said = machines.run(0, argv, LIMIT_S, env).stdout
    lines = (json.loads(line) for line in said.splitlines() if line.startswith("{"))
    values = [line["value"] for line in lines if line.get("type") == "sample"]
    if not values:
        raise SystemExit(said)
    return statistics.median(values) * scale


def fabric(machines: Machines, figure: str) -> float | None:
    """One run of fi_pingpong."""
    if figure not in PINGPONG:
        return None
    size, iterations = PINGPONG[figure]
    words = ["fi_pingpong", "-e", "rdm", "-p", PROVIDER, "-S", str(size), "-I", str(iterations)]
    server = machines.start(1, ["taskset", "-c", "1", *words], stdout=subprocess.DEVNULL)
    try:
        for _ in range(50):  # Until it listens.
            done = machines.run(0, ["taskset", "-c", "0", *words, machines.addresses[1]], LIMIT_S)
            if done.returncode == 0:
                break
    finally:
        server.kill()
        server.wait()
    last = done.stdout.strip().splitlines()[-1].split()
    if not re.fullmatch(r"[\d.]+", last[-2]):
        raise SystemExit(done.stdout)
    return float(last[-2])


WAYS: dict[str, Callable[[Machines, str], float | None]] = {
    "velo": lambda machines, figure: mpi(machines, [], figure),
    "Open MPI's tcp": lambda machines, figure: mpi(
        machines, ["--btl", "--no-coll", "--mca", "btl", "self,tcp"], figure
    ),
    "libfabric alone": fabric,
}


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    become_root()
    os.environ.pop("VELO_NETWORK", None)
    found: dict[str, dict[str, list[float]]] = {name: {} for name in FIGURES}
    with Machines(2) as machines:
        for _ in range(args.rounds):
            for figure in FIGURES:
                for way, measure in WAYS.items():
                    value = measure(machines, figure)
                    if value is not None:
                        found[figure].setdefault(way, []).append(value)
    for figure, ways in found.items():
        for way, values in ways.items():
            text = f"{figure:28} {way:16} {statistics.median(values):12.4g}"
            if way != "velo":
                ratios = [a / b for a, b in zip(ways["velo"], values, strict=True)]
                text += f"   velo / it: {statistics.median(ratios):.2f}"
                text += f" ({min(ratios):.2f} to {max(ratios):.2f})"
            print(text)
    if args.json:
        args.json.write_text(json.dumps({"rounds": args.rounds, "figures": found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
