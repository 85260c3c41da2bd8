# SPDX-License-Identifier: Apache-2.0
"""Numbers as people write them: 52.1 ns, 4 KiB, 41.2 M/s; and the way back for sizes and lists."""

import re

from velo.errors import UsageError

_SIZE = r"(\d+)\s*([kKmM]?)(?:i?[bB])?"
_SIZE_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20}
SIZE_MAX_BYTES = 16 << 20
COUNT_MAX = 4096
TIME_MAX_US = 1e9


def _scaled(value: float, steps: list[tuple[float, str]]) -> str:
    """The value in the largest unit not above it, with three significant digits."""
    factor, unit = next(((f, u) for f, u in reversed(steps) if abs(value) >= f * 0.9995), steps[0])
    number = value / factor
    digits = 0 if abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2
    return f"{number:.{digits}f} {unit}"


def time_ns(value: float) -> str:
    """A time in ns: `52.1 ns`, `1.37 µs`."""
    return _scaled(value, [(1, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")])


def rate(value: float) -> str:
    """A message rate per second: `41.2 M/s`."""
    return _scaled(value, [(1, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")])


def gups(value: float) -> str:
    """Updates per second, in billions as is usual: `0.0573 GUP/s`."""
    return f"{value / 1e9:.3g} GUP/s"


def bandwidth(value: float) -> str:
    """A bandwidth in bytes per second, decimal: `12.3 GB/s`."""
    return _scaled(value, [(1, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")])


def size(size_bytes: int) -> str:
    """A message size: `8 B`, `4 KiB`, and `4097 B` where rounding would hide the off-by-one."""
    for factor, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes} B"


def short(value: float) -> str:
    """A count in at most five characters: `0`, `512`, `25.9M`."""
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * 0.9995:
            number = value / factor
            return f"{number:.{0 if number >= 99.95 else 1}f}{unit}"
    return f"{value:.0f}"


def parse_size(text: str) -> int:
    """`64`, `4k`, `4KiB`, `1M` in bytes."""
    match = re.fullmatch(_SIZE, text.strip())
    if not match:
        raise UsageError(f"'{text}' is not a size; write bytes, or use k or M, such as 64,1k,4096")
    size_bytes = int(match[1]) * _SIZE_FACTORS[match[2].lower()]
    if size_bytes > SIZE_MAX_BYTES:
        raise UsageError(f"size '{text}' is above {size(SIZE_MAX_BYTES)}")
    return size_bytes


def parse_sizes(text: str) -> list[int]:
    """A comma-separated list of sizes, sorted, each once."""
    return sorted({parse_size(part) for part in _parts(text, "sizes")})


def parse_counts(text: str) -> list[int]:
    """A comma-separated list of counts from 1 to COUNT_MAX, in the order given."""
    return [parse_count(part) for part in _parts(text, "counts")]


def parse_count(text: str) -> int:
    """A whole number from 1 to COUNT_MAX."""
    if not re.fullmatch(r"\s*\d+\s*", text) or not 1 <= int(text) <= COUNT_MAX:
        raise UsageError(f"'{text}' is not a whole number from 1 to {COUNT_MAX}")
    return int(text)


def parse_us(text: str) -> float:
    """A virtual time in microseconds."""
    if not re.fullmatch(r"\s*\d+(\.\d*)?\s*", text) or float(text) > TIME_MAX_US:
        raise UsageError(f"'{text}' is not a time in microseconds, such as 12.5")
    return float(text)


def parse_cpus(text: str) -> list[int]:
    """A CPU list as taskset writes it: `0,1` or `0-3`."""
    cpus: list[int] = []
    for part in _parts(text, "CPUs"):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last <= COUNT_MAX:
            raise UsageError(f"'{part}' is not a CPU or a range of CPUs; write 0,1 or 0-3")
        cpus += [cpu for cpu in range(first, last + 1) if cpu not in cpus]
    return cpus


def _parts(text: str, what: str) -> list[str]:
    parts = text.split(",")
    if not all(part.strip() for part in parts):
        raise UsageError(f"'{text}' is not a comma-separated list of {what}")
    return parts
