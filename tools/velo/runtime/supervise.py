# SPDX-License-Identifier: Apache-2.0
"""Run a job to its end, and take away what killed ranks leave."""

import contextlib
import ctypes
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from velo.errors import EXIT_INTERRUPTED, UnusedError, VeloError
from velo.runtime import watch
from velo.runtime.launch import Launch

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What mpirun has to end its ranks after a signal.
END_GRACE_S = 10.0
# An exit code is this much and the signal; a rank that is killed may not have had the time.
DEATH_BY_SIGNAL = 128
# Open MPI 5's mpirun ends with 0 if it loses a host, and has killed all ranks then.
KILLED = (
    "mpirun ended with exit code 0, but ranks of this host were killed and left their ports; most "
    "likely it has lost another host"
)


def complete(launch: Launch) -> int:
    """Run a job, take away what killed ranks leave, and see to it that it used velo."""
    if launch.hosts:
        launch.hosts.check()
    ports = watch.PortWatch(segment_folder(), launch.domain)
    code = DEATH_BY_SIGNAL
    left = False
    try:
        code = start(launch, ports)
        used = ports.look() or not launch.must_use
    finally:
        ports.close()
        left = False if launch.is_shared else remove_segments(launch.domain)
        if launch.is_shared:
            _remove_dead(launch.domain)
        if launch.hosts and (code != 0 or left):
            launch.hosts.clean(launch.domain)
    if launch.hosts and code == 0 and left:
        raise VeloError(KILLED)
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
    # A second signal would make mpirun leave its ranks behind, or hang in its handler: it gets the
    # first one, once. In a terminal's foreground it has to be in our process group, and so has got
    # what the terminal sends; elsewhere it has one of its own, since `timeout` and others signal
    # all of ours.
    apart = not _is_in_foreground()
    # Signals are taken one by one: whether one came from the terminal can be told only that way.
    signals = {*FORWARDED, signal.SIGCHLD, signal.SIGIO}
    old = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    # One that is left over at the end would kill us; what is ignored would stay so in the ranks.
    signal.signal(signal.SIGIO, lambda *_: None)
    ports.signal_names()
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    before = set(watch.children(os.getpid()))
    try:
        process = subprocess.Popen(
            launch.argv,
            env={**os.environ, **launch.env},
            preexec_fn=lambda: _become(old),
            process_group=0 if apart else None,
        )
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
        raise VeloError(f"cannot start {launch.argv[0]}: {error.strerror}") from error
    ending = 0
    give_up = math.inf
    ranks = watch.RankWatch(process.pid, launch.rank_depth)
    next_look = time.monotonic() + watch.LOOK_INTERVAL_S
    try:
        while process.poll() is None:
            got = signal.sigtimedwait(signals, max(0, next_look - time.monotonic()))
            # Python makes up a signal where a wait was interrupted and is over: we were stopped and
            # continued.
            signum = got.si_signo if got and got.si_signo in signals else 0
            if signum in FORWARDED and not ending:
                ending = signum
                give_up = time.monotonic() + END_GRACE_S
                if apart or (got and got.si_code <= 0):  # From kill(), to us alone.
                    process.send_signal(ending)
            if signum in (0, signal.SIGIO):
                ports.look()
            now = time.monotonic()
            if now >= next_look:
                next_look = now + watch.LOOK_INTERVAL_S
                if trouble := ranks.look():
                    ending = signal.SIGTERM
                    _end(process)
                    raise VeloError(f"{trouble}; the job was ended")
            if now > give_up:
                watch.end_all(process.pid)
                print(f"velo: {launch.argv[0]} did not end within {END_GRACE_S:.0f} s of a signal, "
                      "and was killed with its ranks", file=sys.stderr)  # fmt: skip
                return DEATH_BY_SIGNAL + ending
    finally:
        if ending:
            process.wait()
            # What mpirun has left behind is our child now.
            for pid in set(watch.children(os.getpid())) - before:
                watch.end_all(pid)
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    if ending == signal.SIGINT:
        return EXIT_INTERRUPTED
    return process.returncode if process.returncode >= 0 else DEATH_BY_SIGNAL - process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a job whose launcher hangs: the ranks first."""
    # Cost: slow to import.
    from velo import helpers

    for rank in watch.children(process.pid):
        watch.end_all(rank)
    process.terminate()
    try:
        process.wait(helpers.STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        watch.end_all(process.pid)


def _is_in_foreground() -> bool:
    """Does the terminal that we read from send its signals to us?"""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _become(signals: set[int | signal.Signals]) -> None:
    """In the child: our signals, and the end if we are killed: nobody would pass any on."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, signals)


def segment_folder() -> Path:
    """Where ports have their segments."""
    return Path(os.environ.get("VELO_SHM_DIR") or "/dev/shm")


def _remove_dead(domain: str) -> None:
    """Take away what dead ranks left where those of another job may live."""
    # Cost: imported where it is needed, in few jobs.
    from velo.runtime import leftovers

    with contextlib.suppress(VeloError):
        leftovers.look(domain, removes=True)


def remove_segments(domain: str) -> bool:
    """Take away what ranks left that were killed; did any leave something?"""
    # The port's segment, and those that its other units add ("+rma").
    found = list(segment_folder().glob(f"velo.{domain}[.+]*"))
    for path in found:
        with contextlib.suppress(OSError):
            path.unlink()
    return bool(found)
