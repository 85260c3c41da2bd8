# SPDX-License-Identifier: Apache-2.0
"""MPI results that look like measured ones and meet every target, for tests of what judges them."""

from collections.abc import Callable
from dataclasses import replace

from velo.results.records import Record, Run

SIZES = (0, *(1 << k for k in range(23)))
# Stack -> half round trip of 8 bytes, bytes a ns above, and messages a second.
STACKS = {
    "velo mtl": (62.0, 120.0, 60e6),
    "velo btl": (110.0, 40.0, 30e6),
    "ompi-4.1 vader": (121.0, 12.0, 21e6),
    "ompi-4.1 ucx": (127.0, 12.0, 19e6),
    "ompi-5.0 sm": (116.0, 12.0, 17e6),
    "ompi-5.0 ucx": (90.0, 12.0, 23e6),
    "mpich-5.0": (1007.0, 11.0, 1.6e6),
    "impi-2021.19": (152.0, 45.0, 8e6),
}
FAR = ("velo mtl", "velo btl", "ompi-4.1 vader", "ompi-5.0 ucx", "impi-2021.19")
DEBIAN = ("velo mtl", "velo btl", "ompi-4.1 vader", "ompi-4.1 ucx")
HPCC_GUPS = {"velo mtl": 0.12, "velo btl": 0.08, "ompi-4.1 vader": 0.057, "ompi-4.1 ucx": 0.07}
RUN = Run(id="0123abcd", machine="Some Processor", absent="mpich-9: it is not there")


def record(
    stack: str, mode: str, metric: str, value: float, size: int = 8, **more: object
) -> Record:
    """One record near, of enough batches."""
    limit = 43.0 if metric.endswith("_ns") else 330e6
    base = Record(metric, size, 1, value, limit, value / limit, value, value, mode=mode,
                  stack=stack, samples=9, limit_name="pingpong", run=RUN)  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


def result() -> list[Record]:
    """All stacks, near, and far what rows about far cores need."""
    out = [record("velo", "gups", "updates_per_s", 0.17e9, processes=2)]
    out += [
        record("velo", "limit", "half_rtt_ns", value, size, limit_name=name)
        for name, faster in (("pipelined_copy", 1.0), ("peer_copy", 10.0))
        for size in (16 << 10, 64 << 10, 1 << 20, 4 << 20)
        for value in ((50 + size / 115) / faster,)
    ]
    for stack, (latency, speed, rate) in STACKS.items():
        ours = stack.startswith("velo")
        out += [
            record(stack, "mpi latency", "half_rtt_ns", latency + size / speed, size)
            for size in SIZES
        ]
        out += [
            record(stack, "mpi latency", "half_rtt_ns", 4 * latency + 2 * size / speed, size,
                   hop="far", limit=200.0)
            for size in SIZES
            if stack in FAR
        ]  # fmt: skip
        out.append(record(stack, "mpi rate", "rate_msgs_per_s", rate))
        out.append(record(stack, "mpi rate", "rate_msgs_per_s", rate / 4, hop="far"))
        out.append(record(stack, "mpi gups", "updates_per_s", 1e9 * latency / 2000))
        for posted in (1, 10_000):
            slower = 1.0 if posted == 1 or ours else 300.0
            value = latency * slower
            out.append(record(stack, "mpi matching", "half_rtt_ns", value, posted=posted))
        for ranks in (2, 8):
            value = latency * 3 if ranks == 2 else 20e3 + (0 if ours else 100 * latency)
            value *= 0.6 if ours else 1.0
            out.append(record(stack, "mpi allreduce", "allreduce_ns", value, processes=ranks))
            out.append(record(stack, "mpi barrier", "barrier_ns", value, 0, processes=ranks))
        for mode, metric, size in (("mpi allreduce", "allreduce_ns", 8),
                                   ("mpi barrier", "barrier_ns", 0)):  # fmt: skip
            value = latency * (7 if ours else 12)
            out.append(record(stack, mode, metric, value, size, processes=2, hop="far"))
    for stack in DEBIAN:
        for ranks in (2, 4, 8):
            gups = HPCC_GUPS[stack] * 1e9 * 2 / ranks
            time = (0.5e9 if stack == "velo mtl" else 0.6e9) * ranks
            out.append(record(stack, "hpcc", "updates_per_s", gups, processes=ranks, samples=1))
            out.append(record(stack, "hpcc", "run_time_ns", time, processes=ranks, samples=1))
        out += [
            replace(r, mode="netpipe", samples=1)
            for r in out
            if (r.stack, r.mode, r.hop) == (stack, "mpi latency", "near")
            and 0 < r.size_bytes <= 1 << 20
        ]
    return out


def changed(records: list[Record], fits: Callable[[Record], bool], factor: float) -> list[Record]:
    """The same with the values of some of them multiplied."""
    return [
        replace(r, value=r.value * factor, ratio=r.ratio * factor) if fits(r) else r
        for r in records
    ]
