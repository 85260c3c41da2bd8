# SPDX-License-Identifier: Apache-2.0
"""Results that look like measured ones, always the same, for the tests of what shows them."""

import random

from velo.results.records import FAR, NEAR, Record, Run, Sample, summarize

SIZES = (1, 8, 16, 24, 32, 56, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
RUN = Run(
    id="0123abcd",
    time="2026-01-02 03:04 UTC",
    machine="Some Processor, 2 CPUs, Some Linux",
    version="1.0.0 abi 1",
    command="velo perf suite --json run.json",
)
BATCHES = 9


def samples() -> list[Sample]:
    """Batches of velo and of one peer, near and far."""
    noise = random.Random(1)
    out: list[Sample] = []

    def add(stack: str, mode: str, metric: str, limit_name: str, size_bytes: int, value: float,
            limit: float, senders: int = 1, processes: int = 2) -> None:  # fmt: skip
        for batch in range(BATCHES):
            far = 4.0 if batch % 3 == 2 else 1.0
            scale = far if metric == "half_rtt_ns" else 1 / far
            out.append(
                Sample(
                    mode=mode,
                    metric=metric,
                    size_bytes=size_bytes,
                    value=value * scale * noise.uniform(0.97, 1.06),
                    limit_before=limit * scale * noise.uniform(0.97, 1.03),
                    limit_after=limit * scale * noise.uniform(0.97, 1.03),
                    hop=FAR if far > 1 else NEAR,
                    limit_name=limit_name,
                    processes=processes,
                    senders=senders,
                    stack=stack,
                    extra={"ring_pause_ns": 46.0 * scale} if mode == "latency" else {},
                )
            )

    for stack, slower in (("velo", 1.0), ("ucx-1.13 am", 1.9)):
        for size in SIZES:
            lines = 1 + size // 64
            add(stack, "latency", "half_rtt_ns", "pingpong", size,
                slower * (46 + 1.4 * lines + 0.02 * size), 43)  # fmt: skip
            add(stack, "rate", "rate_msgs_per_s", "stream", size,
                190e6 / slower / (1 + 0.3 * lines), 330e6)  # fmt: skip
            add(stack, "bandwidth", "bandwidth_bytes_per_s", "peer_copy", size,
                33e9 * size / (size + 300) / slower, 49e9)  # fmt: skip
    for senders, value in ((1, 48.0), (64, 52.0), (512, 61.0)):
        add("velo", "senders", "half_rtt_ns", "pingpong", 8, value, 43, senders=senders)
    add("velo", "in place", "half_rtt_ns", "pingpong", 8, 50.0, 43)
    add("velo", "ring", "rate_msgs_per_s", "futex_ring", 8, 420e3, 610e3, processes=8)
    return out


def result() -> list[Record]:
    """The records of those batches."""
    return summarize(samples(), RUN)
