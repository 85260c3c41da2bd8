# SPDX-License-Identifier: Apache-2.0
"""Run a job to its end, and take away what killed ranks leave."""

import contextlib
import ctypes
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from velo import helpers
from velo.errors import EXIT_INTERRUPTED, UnusedError, VeloError
from velo.runtime import watch
from velo.runtime.hosts import Hosts

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# An exit code is this much and the signal; a rank that is killed may not have had the time.
DEATH_BY_SIGNAL = 128
# A shell makes one for each job.
NEW_SECRET = "$(od -An -v -tx1 -N32 /dev/urandom | tr -d ' \\n')"
NO_USE = (
    "the program is no MPI program, or it is built for another MPI, and then each rank is a job of "
    "its own; build it with the mpicc of the Open MPI that velo is built for"
)


@dataclass(frozen=True)
class Launch:
    """A command and what is added to its environment."""

    argv: Sequence[str]
    env: Mapping[str, str]
    domain: str
    must_use: bool
    """A rank opens a port in the domain, or the job is not what was wanted."""
    rank_depth: int = 1
    """How many generations the ranks are below the process that is started."""
    why_unused: str = NO_USE
    """What is wrong if no rank opens one."""
    hosts: Hosts | None = None
    """The other hosts that ranks are on, if any are."""
    secrets: Sequence[str] = ()
    """Names in `env` of which nobody is to see the values."""

    def __str__(self) -> str:
        words = [
            f"{name}={NEW_SECRET if name in self.secrets else shlex.quote(value)}"
            for name, value in self.env.items()
        ]
        return " ".join([*words, shlex.join(self.argv)])


def complete(launch: Launch) -> int:
    """Run a job, take away what killed ranks leave, and see to it that it used velo."""
    if launch.hosts:
        launch.hosts.check()
    ports = watch.PortWatch(segment_folder(), launch.domain)
    code = DEATH_BY_SIGNAL
    try:
        code = start(launch, ports)
        used = ports.look() or not launch.must_use
    finally:
        ports.close()
        remove_segments(launch.domain)
        if launch.hosts and code != 0:
            launch.hosts.clean(launch.domain)
    if not used and code == 0:
        raise UnusedError(f"no rank used velo: {launch.why_unused}")
    if not used and code < DEATH_BY_SIGNAL:
        print(
            f"velo: the job failed before any rank used velo; perhaps {launch.why_unused}",
            file=sys.stderr,
        )
    return code


def start(launch: Launch, ports: watch.PortWatch) -> int:
    """Run to the end; the exit code, 128 + n for a death by signal n."""
    # Signals are taken one by one: whether a signal came from the terminal, and so has reached
    # mpirun too, can be told only that way. A second one would make mpirun leave its ranks behind.
    signals = {*FORWARDED, signal.SIGCHLD}
    old = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        process = subprocess.Popen(
            launch.argv,
            env={**os.environ, **launch.env},
            preexec_fn=lambda: _become(old),
        )
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
        raise VeloError(f"cannot start {launch.argv[0]}: {error.strerror}") from error
    interrupted = False
    ranks = watch.RankWatch(process.pid, launch.rank_depth)
    try:
        while process.poll() is None:
            got = signal.sigtimedwait(signals, watch.LOOK_INTERVAL_S)
            # Python makes up a signal where a wait was interrupted and is over: we were stopped and
            # continued.
            if got is None or got.si_signo not in signals:
                ports.look()
                if trouble := ranks.look():
                    end(process, ranks)
                    raise VeloError(f"{trouble}; the job was ended")
                continue
            if got.si_signo == signal.SIGCHLD:
                continue
            interrupted |= got.si_signo == signal.SIGINT
            if got.si_code <= 0:  # From kill(), to us alone.
                process.send_signal(got.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    if interrupted:
        return EXIT_INTERRUPTED
    return process.returncode if process.returncode >= 0 else DEATH_BY_SIGNAL - process.returncode


def end(process: subprocess.Popen[bytes], ranks: watch.RankWatch) -> None:
    """End a job whose launcher hangs."""
    ranks.kill()
    process.terminate()
    try:
        process.wait(helpers.STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _become(signals: set[int | signal.Signals]) -> None:
    """In the child: our signals, and the end if we are killed: nobody would pass any on."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, signals)


def segment_folder() -> Path:
    """Where ports have their segments."""
    return Path(os.environ.get("VELO_SHM_DIR") or "/dev/shm")


def remove_segments(domain: str) -> None:
    """Take away what ranks left that were killed."""
    # The port's segment, and those that its other units add ("+rma").
    for path in segment_folder().glob(f"velo.{domain}[.+]*"):
        with contextlib.suppress(OSError):
            path.unlink()
