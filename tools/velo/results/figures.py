# SPDX-License-Identifier: Apache-2.0
"""Finds the records that pages and tables are about."""

from collections.abc import Callable, Iterable, Sequence

from velo.results.records import FAR, METRICS, NEAR, VELO, WITHOUT_LIMIT, Record

# Fewer batches than this say nothing.
BATCHES_MIN = 3
MTL, BTL, PROVIDER = "velo mtl", "velo btl", "velo provider"
OURS = (VELO, MTL, BTL, PROVIDER)
# A sample of these is a whole run of a program, not a batch.
WHOLE_RUNS = ("hpcc", "netpipe")
# Modes without MPI that rows here need: RandomAccess, and the bare pipelined copy.
BESIDE_MPI = ("gups", "limit")
LATENCY = "mpi latency"
POSTED = 10_000


class Figures:
    """Finds velo's records of one class that rest on enough batches."""

    def __init__(self, records: Iterable[Record], hop: str) -> None:
        self._records = [
            r for r in records if r.stack == VELO and r.hop == hop and r.samples >= BATCHES_MIN
        ]

    def find(self, mode: str, size_bytes: int | None = None, senders: int = 1) -> Record | None:
        """The newest record that fits, of one pair and one thread; None stands for any size."""
        fitting = (
            r
            for r in reversed(self._records)
            if (r.mode, r.senders, r.pairs, r.threads) == (mode, senders, 1, 1)
            and size_bytes in (None, r.size_bytes)
        )
        return next(fitting, None)

    def best_bare(self, metric: str, size_bytes: int) -> Record | None:
        """The bare message of that size in the way that was the fastest."""
        bare = [
            r
            for r in self._records
            if (r.mode, r.metric, r.size_bytes) == ("limit", metric, size_bytes)
            and r.limit_name.startswith("message")
        ]
        best = min if METRICS[metric].lower_is_better else max
        return best(bare, key=lambda r: r.ratio, default=None)


class MpiFigures:
    """Finds records of one class that rest on enough batches."""

    def __init__(self, records: Iterable[Record], hop: str | None) -> None:
        """`hop` None takes both classes, the one of more batches last."""
        self._records = [
            r
            for r in sorted(records, key=lambda r: r.samples if hop is None else 0)
            if hop in (None, r.hop) and r.samples >= (1 if r.mode in WHOLE_RUNS else BATCHES_MIN)
        ]

    def find(self, stack: str, mode: str, size_bytes: int = 8, **wanted: object) -> Record | None:
        """The newest record of a stack that fits; `wanted` are further fields of it."""
        fitting = (
            r
            for r in reversed(self._records)
            if (r.stack, r.mode, r.size_bytes, r.pairs) == (stack, mode, size_bytes, 1)
            and all(getattr(r, name) == value for name, value in wanted.items())
        )
        return next(fitting, None)

    def peers(self, mode: str) -> list[str]:
        """Every other stack that has records of a mode."""
        return sorted({r.stack for r in self._records if r.mode == mode and r.stack not in OURS})

    def stack(self, fits: Callable[[str], bool], mode: str) -> str | None:
        """A peer by what its name looks like."""
        return next((stack for stack in self.peers(mode) if fits(stack)), None)

    def sizes(self, stack: str, mode: str) -> list[Record]:
        """A stack's records of a mode by size, the newest of each."""
        newest = {r.size_bytes: r for r in self._records if (r.stack, r.mode) == (stack, mode)}
        return [newest[size] for size in sorted(newest)]


def standing(record: Record) -> float:
    """What two stacks are compared by: the ratio to the limit where there is one."""
    return record.value if record.metric in WITHOUT_LIMIT else record.ratio


def has_records(records: Iterable[Record]) -> bool:
    """Was MPI measured at all?"""
    return any(r.mode.startswith("mpi ") or r.mode in WHOLE_RUNS for r in records)


def main_class(records: Sequence[Record]) -> str:
    """The class to show: near, unless the cores hardly ever were. The targets are set for near."""
    ours = [r for r in records if r.stack == VELO] or records
    batches = {hop: sum(r.samples for r in ours if r.hop == hop) for hop in (NEAR, FAR)}
    return NEAR if batches[NEAR] * 20 >= batches[FAR] else FAR
