# SPDX-License-Identifier: Apache-2.0
"""Samples, as a measuring program emits them, and records, as results are kept.

A **sample** is one batch with the limit measured just before and just after it. A **record** is the
summary of all samples of one kind: same stack, metric, size, pairs, threads, senders and class. A
result file is a JSON list of records; each one stands for itself and says on what machine, with
what version and by what command it was measured, so that files can be cut and joined freely.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from velo import units
from velo.errors import VeloError, writing
from velo.results import stats

VELO = "velo"
NEAR = "near"
FAR = "far"
# The mode of half round trips whose messages are built and read where they lie.
IN_PLACE = "in place"
CLASSES = (NEAR, FAR)
# What modes of queues between Python processes begin with, and the stack that is ours.
PYTHON = "python "
VELO_QUEUE = "velo.Queue"
# What modes begin with that `velo bench` shows in tables of their own: one thing beside another.
EXTOLL, BCAST, DIMMNET = "extoll ", "bcast ", "dimmnet "
BESIDE = (EXTOLL, BCAST, DIMMNET)


class RecordError(VeloError):
    """A result file, or a line of a measuring program, is not what it should be."""


@dataclass(frozen=True)
class Metric:
    """How to show a metric and which way is better."""

    label: str
    show: Callable[[float], str]
    lower_is_better: bool


METRICS = {
    "half_rtt_ns": Metric("half round trip", units.time_ns, True),
    "rate_msgs_per_s": Metric("message rate", units.rate, False),
    "bandwidth_bytes_per_s": Metric("bandwidth", units.bandwidth, False),
    "updates_per_s": Metric("RandomAccess", units.gups, False),
    "allreduce_ns": Metric("allreduce", units.time_ns, True),
    "barrier_ns": Metric("barrier", units.time_ns, True),
    "alltoall_ns": Metric("all-to-all", units.time_ns, True),
    "halo_ns": Metric("halo exchange", units.time_ns, True),
    "run_time_ns": Metric("run time", units.time_ns, True),
    "object_half_rtt_ns": Metric("half round trip of an object", units.time_ns, True),
    "objects_per_s": Metric("objects one way", units.rate, False),
    "time_ns": Metric("time", units.time_ns, True),
    "idle_share": Metric("of a processor, waiting", lambda share: f"{100 * share:.2f} %", True),
}
# What a cache line's travel is no limit of: only the class of the cores is taken from it.
WITHOUT_LIMIT = ("updates_per_s", "run_time_ns", "object_half_rtt_ns", "objects_per_s",
                 "time_ns", "idle_share")  # fmt: skip


# What velo-perf measures as limits. A ring or stream "with PAUSE" polls with one PAUSE a look.
LIMITS = {
    "pingpong": "one cache line back and forth, plain spin",
    "pingpong_pause": "one cache line back and forth, PAUSE",
    **{
        f"ring{slots}{suffix}": f"bare ring of {slots} slot{'s' * (slots > 1)}{text}"
        for slots in (64, 8, 1)
        for suffix, text in (("", ""), ("_pause", ", PAUSE"))
    },
    "stream8": "bare stream of lines, 8 bytes used",
    "stream8_pause": "bare stream of lines, 8 bytes used, PAUSE",
    "stream56": "bare stream of lines, 56 bytes used",
    "stream56_pause": "bare stream of lines, 56 bytes used, PAUSE",
    "peer_copy": "copy out of the peer's cache",
    "message": "bare message, copied in and out, PAUSE",
    "message_own": "the same, its receiver stores a word of each line again",
    "message_own_spin": "the same without PAUSE",
    "message_own_tx": "the same with PAUSE, lines asked for by the sender",
    "message_own_rx": "the same, lines asked for by the receiver",
    "message_rx": "bare message, PAUSE, lines asked for by the receiver",
    "pipelined_copy": "bare pipelined copy, in and out of a ring of 8 chunks",
    "pipelined_copy_own": "the same, its receiver stores a word of each line again",
}


def metric(name: str) -> Metric:
    """A metric by its name; one that is not known is shown as a bare number."""
    return METRICS.get(name) or Metric(name, lambda value: f"{value:.4g}", False)


@dataclass(frozen=True)
class Run:
    """What the records of one command have in common."""

    id: str = ""
    time: str = ""
    machine: str = ""
    version: str = ""
    command: str = ""
    absent: str = ""
    """Peers that could not be measured, a line each with the reason."""


@dataclass(frozen=True)
class Sample:
    """One batch and its bracketing limits; the unit of all three is in the metric's name."""

    mode: str
    metric: str
    size_bytes: int
    value: float
    limit_before: float
    limit_after: float
    hop: str | None
    """`near`, `far`, or None when the cores moved during the batch."""
    limit_name: str = ""
    pairs: int = 1
    threads: int = 1
    senders: int = 1
    processes: int = 2
    posted: int = 0
    """Receives that were posted meanwhile; 0 where that is not what is measured."""
    stack: str = VELO
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        return stats.bracket(self.limit_before, self.limit_after)

    @staticmethod
    def from_json(line: dict[str, Any], processes: int = 2) -> "Sample":
        """A sample line of a measuring program; RecordError says which part is wrong."""
        read = _Reader(line, "sample")
        before, after = read.number("limit_before"), read.number("limit_after")
        near = line.get("near")
        if near not in (True, False, None):
            raise RecordError(f"sample: near is {near!r}, expected true, false or null")
        return Sample(
            mode=read.text("mode"),
            metric=read.text("metric"),
            size_bytes=read.count("size_bytes"),
            value=read.number("value"),
            limit_before=before,
            limit_after=after,
            hop=None if near is None else NEAR if near else FAR,
            limit_name=read.text("limit_name", ""),
            pairs=read.count("pairs", 1),
            threads=read.count("threads", 1),
            senders=read.count("senders", 1),
            processes=processes,
            posted=read.count("posted", 0),
            extra=read.numbers("extra"),
        )


@dataclass(frozen=True)
class Record:
    """The summary of the samples of one kind. README of the fields: docs of `velo perf --json`."""

    metric: str
    size_bytes: int
    pairs: int
    value: float
    """Median of the batches."""
    limit: float
    """Median of the limits around them."""
    ratio: float
    """value / limit: the ratio of the medians."""
    min: float
    max: float
    q1: float = math.nan
    q3: float = math.nan
    ratio_q1: float = math.nan
    """Quartiles and median of value / limit, batch by batch."""
    ratio_median: float = math.nan
    ratio_q3: float = math.nan
    samples: int = 1
    hop: str = NEAR
    """`class` in JSON: whether the cores were near (sharing a cache) or far."""
    mode: str = ""
    limit_name: str = ""
    threads: int = 1
    senders: int = 1
    processes: int = 2
    posted: int = 0
    stack: str = VELO
    config: str = ""
    """How a peer was configured."""
    extra: dict[str, float] = field(default_factory=dict)
    """Medians of further figures of the same batches."""
    run: Run = Run()

    def show(self, value: float) -> str:
        """A value of this record with its unit."""
        return metric(self.metric).show(value)

    def show_limit(self) -> str:
        return "–" if self.metric in WITHOUT_LIMIT else self.show(self.limit)

    def show_ratio(self) -> str:
        return "–" if self.metric in WITHOUT_LIMIT else f"{self.ratio:.2f}"

    def to_json(self) -> dict[str, Any]:
        out = {k: v for k, v in asdict(self).items() if k not in ("run", "hop", "extra")}
        out = {k: _rounded(v) for k, v in out.items() if not _is_nan(v)}
        out["class"] = self.hop
        out["extra"] = {k: _rounded(v) for k, v in self.extra.items()}
        run = asdict(self.run)
        return out | {"run": run.pop("id")} | run

    @staticmethod
    def from_json(line: Any, where: str = "record") -> "Record":
        if not isinstance(line, dict):
            raise RecordError(f"{where}: expected an object, found {type(line).__name__}")
        read = _Reader(line, where)
        hop = read.text("class", NEAR)
        if hop not in CLASSES:
            raise RecordError(f"{where}: class is {hop!r}, expected 'near' or 'far'")
        optional = ("q1", "q3", "ratio_q1", "ratio_median", "ratio_q3")
        spread: dict[str, Any] = {
            **{name: read.number(name) for name in ("value", "limit", "ratio", "min", "max")},
            **{name: read.number(name, math.nan) for name in optional},
            **{name: read.count(name, 1) for name in ("pairs", "samples", "threads", "senders")},
        }
        return Record(
            metric=read.text("metric"),
            size_bytes=read.count("size_bytes"),
            **spread,
            processes=read.count("processes", 2),
            posted=read.count("posted", 0),
            hop=hop,
            mode=read.text("mode", ""),
            limit_name=read.text("limit_name", ""),
            stack=read.text("stack", VELO),
            config=read.text("config", ""),
            extra=read.numbers("extra"),
            run=Run(
                id=read.text("run", ""),
                **{f.name: read.text(f.name, "") for f in fields(Run) if f.name != "id"},
            ),
        )


def summarize(samples: Iterable[Sample], run: Run = Run()) -> list[Record]:
    """One record for each kind of sample; samples whose cores moved are left out."""
    groups: dict[tuple[Any, ...], list[Sample]] = defaultdict(list)
    for s in samples:
        if s.hop is not None:
            groups[
                s.stack, s.mode, s.metric, s.limit_name, s.size_bytes, s.pairs, s.threads,
                s.senders, s.processes, s.posted, s.hop,
            ].append(s)  # fmt: skip
    return [replace(_summary(group), run=run) for group in groups.values()]


def _summary(group: list[Sample]) -> Record:
    first = group[0]
    value = stats.spread([s.value for s in group])
    limit = stats.spread([s.limit for s in group]).median
    ratio = stats.spread([s.value / s.limit for s in group])
    names = sorted({name for s in group for name in s.extra})
    assert first.hop is not None
    return Record(
        metric=first.metric,
        size_bytes=first.size_bytes,
        pairs=first.pairs,
        value=value.median,
        limit=limit,
        ratio=value.median / limit,
        min=value.min,
        max=value.max,
        q1=value.q1,
        q3=value.q3,
        ratio_q1=ratio.q1,
        ratio_median=ratio.median,
        ratio_q3=ratio.q3,
        samples=len(group),
        hop=first.hop,
        mode=first.mode,
        limit_name=first.limit_name,
        threads=first.threads,
        senders=first.senders,
        processes=first.processes,
        posted=first.posted,
        stack=first.stack,
        extra={n: stats.spread([s.extra[n] for s in group if n in s.extra]).median for n in names},
    )


def save(path: Path, records: list[Record]) -> None:
    """Write a result file; whole or not at all, so that a full disk costs no earlier result."""
    text = json.dumps([record.to_json() for record in records], indent=1, allow_nan=False) + "\n"
    part = path.with_name(path.name + ".part")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def load(path: Path) -> list[Record]:
    """Read a result file; RecordError names the file, the record and what is wrong with it."""
    try:
        lines = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{path} is not JSON: {error}") from error
    if not isinstance(lines, list):
        raise RecordError(f"{path} holds no list of records; it should come from velo perf --json")
    return [Record.from_json(line, f"{path}, record {i}") for i, line in enumerate(lines, 1)]


class _Reader:
    """Takes typed values out of a JSON object and says what is wrong when it cannot."""

    def __init__(self, line: dict[str, Any], where: str) -> None:
        self._line = line
        self._where = where

    def _get(self, name: str, default: Any) -> Any:
        value = self._line.get(name, default)
        if value is None:
            raise RecordError(f"{self._where}: {name} is missing")
        return value

    def _fail(self, name: str, value: Any, expected: str) -> RecordError:
        return RecordError(f"{self._where}: {name} is {value!r}, expected {expected}")

    def number(self, name: str, default: float | None = None) -> float:
        value = self._get(name, default)
        if name in self._line and (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or value <= 0
        ):
            raise self._fail(name, value, "a number above 0")
        return float(value)

    def count(self, name: str, default: int | None = None) -> int:
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._fail(name, value, "a whole number, 0 or above")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        value = self._get(name, default)
        if not isinstance(value, str):
            raise self._fail(name, value, "text")
        return value

    def numbers(self, name: str) -> dict[str, float]:
        value = self._line.get(name) or {}
        if not isinstance(value, dict):
            raise self._fail(name, value, "an object of numbers")
        return {
            key: float(number)
            for key, number in value.items()
            if isinstance(number, int | float) and math.isfinite(number)
        }


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _rounded(value: Any) -> Any:
    """Six significant digits: more than was measured, fewer than a float prints."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
