# SPDX-License-Identifier: Apache-2.0
"""Other stacks that users would pick, each with a driver that runs one measurement of it.

A peer is a dataclass with the methods of `Peer`; `velo bench` needs no more than one in PEERS.
"""

import contextlib
import functools
import os
import re
import shlex
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from velo import helpers
from velo.errors import VeloError
from velo.measure.limits import BANDWIDTH, LATENCY, RATE

METRIC = {
    LATENCY: "half_rtt_ns",
    RATE: "rate_msgs_per_s",
    BANDWIDTH: "bandwidth_bytes_per_s",
}
RUN_TIMEOUT_S = 20.0
LISTEN_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Case:
    """One thing to measure."""

    mode: str
    size_bytes: int


class Peer(Protocol):
    """What a driver offers."""

    @property
    def stack(self) -> str:
        """Its name in records, with the version: `ucx-1.13 am`."""

    @property
    def config(self) -> str:
        """The configuration that is used, for the report."""

    @property
    def cases(self) -> Sequence[Case]:
        """What it can measure."""

    def missing(self) -> str | None:
        """Why it cannot run here and what to do about it; None if it can."""

    def measure(self, case: Case, cpus: Sequence[int]) -> float:
        """One run, pinned to the two CPUs; the value in the unit of METRIC[case.mode]."""


@dataclass(frozen=True)
class UcxTest:
    """A pair of tests of ucx_perftest."""

    name: str
    latency: str
    streaming: str | None
    options: tuple[str, ...] = ()
    short_max_bytes: int | None = None
    """Longest message of the layout `short`; longer ones are copied (`bcopy`). None: no layouts."""


UCX_DEVICE = ("-x", "posix", "-d", "memory")
UCX_TESTS = (
    # FIFO_ELEM_SIZE 128 leaves 100 bytes for an active message, 8 of them its header.
    UcxTest("am", "am_lat", "am_bw", UCX_DEVICE, short_max_bytes=92),
    UcxTest("put", "put_lat", None, UCX_DEVICE, short_max_bytes=1 << 20),
    UcxTest("tag", "tag_lat", "tag_bw"),
)
UCX_ENV = {
    "UCX_TLS": "sm,self",
    # Provisional: not the default of 64, because the few runs compared, on a busy machine, favoured
    # larger FIFOs for message rate. To be compared again on a quiet one, 4096 too.
    "UCX_POSIX_FIFO_SIZE": "1024",
    "UCX_SYSV_FIFO_SIZE": "1024",
}
# Short tests, many in one run: the median of a few milliseconds each survives a core that moves or
# is taken away, which the average of one long test does not.
UCX_TESTS_PER_RUN = 7
UCX_WARM_UP_ITERATIONS = 2_000


@dataclass(frozen=True)
class Ucx:
    """UCX's own ucx_perftest: two processes on one machine that meet over a loopback socket.

    Its latency is half a round trip: it divides by two and gives the median of the last 2,048 round
    trips. Its message rate is that of a whole test, at the sender. `put` writes into the peer's
    memory and tells nobody, so its latency is a bound rather than a rival's; streaming puts
    overwrite each other before anyone has read them, so they are not measured.

    Otherwise UCX's defaults. Also tried, a few runs each on a busy machine, with no difference that
    stood out of the noise: System V memory, FIFO elements of 64 to 192 bytes, 1 to 64 messages a
    poll, other release factors, other progress modes, a window of 64 outstanding sends.
    """

    test: UcxTest

    @property
    def stack(self) -> str:
        return f"ucx-{ucx_version() or '?'} {self.test.name}"

    @property
    def config(self) -> str:
        env = " ".join(f"{name}={value}" for name, value in UCX_ENV.items())
        layout = "" if self.test.short_max_bytes is None else " -D short, above its limit bcopy"
        options = " ".join(("", *self.test.options))
        tests = ", ".join(filter(None, (self.test.latency, self.test.streaming)))
        return f"{env} ucx_perftest -t {tests}{options}{layout}"

    @property
    def cases(self) -> Sequence[Case]:
        latency = [Case(LATENCY, size) for size in (8, 64, 256, 1024, 4096, 8192)]
        if self.test.streaming is None:
            return latency
        return [
            *latency,
            *(Case(RATE, size) for size in (8, 32, 64, 256, 1024)),
            *(Case(BANDWIDTH, size) for size in (256, 1024, 4096, 8192)),
        ]

    def missing(self) -> str | None:
        for program in ("ucx_perftest", "taskset"):
            if not shutil.which(program):
                return f"{program} is not installed; run 'make bench', or apt-get install ucx-utils"
        return None

    def measure(self, case: Case, cpus: Sequence[int]) -> float:
        port = _free_tcp_port()
        line = shlex.join(self._options(case))
        with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".batch") as batch:
            batch.writelines(f"test{i} {line}\n" for i in range(UCX_TESTS_PER_RUN))
            batch.flush()
            command = ["ucx_perftest", *_without_mpi(), "-v", "-p", str(port), "-b", batch.name]
            env = os.environ | UCX_ENV | {"UCX_WARN_UNUSED_ENV_VARS": "n"}
            server = ["taskset", "-c", str(cpus[0]), *command]
            client = ["taskset", "-c", str(cpus[1]), *command, "127.0.0.1"]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            with helpers.running(server, env=env, **quiet) as process:
                _wait_until_listening(port, process)
                rows = parse_ucx(helpers.output(client, RUN_TIMEOUT_S, env=env))
        if case.mode == LATENCY:
            return statistics.median(row.median_us for row in rows) * 1e3
        msgs_per_s = statistics.median(row.msgs_per_s for row in rows)
        return msgs_per_s * (case.size_bytes if case.mode == BANDWIDTH else 1)

    def _options(self, case: Case) -> list[str]:
        test = self.test
        name = test.latency if case.mode == LATENCY else test.streaming
        assert name is not None
        iterations = 3_000 if case.mode == LATENCY else 20_000 if case.size_bytes <= 256 else 5_000
        options = ["-t", name, "-s", str(case.size_bytes), *test.options]
        options += ["-n", str(iterations), "-w", str(UCX_WARM_UP_ITERATIONS)]
        if test.short_max_bytes is not None:
            options += ["-D", "short" if case.size_bytes <= test.short_max_bytes else "bcopy"]
        return options


PEERS: tuple[Peer, ...] = tuple(Ucx(test) for test in UCX_TESTS)


@dataclass(frozen=True)
class UcxRow:
    """The result of one test of ucx_perftest."""

    median_us: float
    msgs_per_s: float


def parse_ucx(text: str) -> list[UcxRow]:
    """Read the CSV that ucx_perftest -v prints: a heading, then a row for each test.

    The columns are found by their names, because versions differ in which there are.
    """
    heading: list[str] = []
    rows: list[UcxRow] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if "iterations" in cells:
            heading = cells
        elif heading and len(cells) == len(heading):
            rows.append(_ucx_row(dict(zip(heading, cells, strict=True))))
    if not rows:
        raise VeloError(f"ucx_perftest printed no result: {text.strip()[-200:]!r}")
    return rows


def _ucx_row(cells: dict[str, str]) -> UcxRow:
    median = next((v for k, v in cells.items() if re.match(r"50(\.0)?_percentile_lat", k)), "")
    try:
        row = UcxRow(float(median), float(cells.get("overall_mr", "")))
    except ValueError as error:
        raise VeloError(f"ucx_perftest printed a result that is no number: {cells}") from error
    if not (row.median_us > 0 and row.msgs_per_s > 0):
        raise VeloError(f"ucx_perftest printed a result that is not above zero: {cells}")
    return row


def ucx_version() -> str | None:
    """Release of the installed UCX, such as 1.13; None without it."""
    if not shutil.which("ucx_info"):
        return None
    text = helpers.output(["ucx_info", "-v"], RUN_TIMEOUT_S)
    found = re.search(r"[Vv]ersion:?\s+(\d+\.\d+)", text)
    return found[1] if found else None


@functools.cache
def _without_mpi() -> tuple[str, ...]:
    """Two processes over a socket, also where it is built with MPI and would wait for mpirun."""
    found = subprocess.run(["ucx_perftest", "-h"], capture_output=True, text=True, check=False)
    return ("-P", "0") if re.search(r"^\s+-P <0\|1>", found.stdout, re.MULTILINE) else ()


def _free_tcp_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_listening(port: int, process: subprocess.Popen[str]) -> None:
    """Wait for the server's socket. Connecting to try would take its only accept()."""
    local = f":{port:04X} "
    deadline = time.monotonic() + LISTEN_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()
            # Columns: entry, local address, remote address, state; 0A is LISTEN.
            if any(local in line and line.split()[3] == "0A" for line in lines):
                return
        time.sleep(0.005)
    raise VeloError("the ucx_perftest server did not start listening")
