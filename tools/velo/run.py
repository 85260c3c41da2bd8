# SPDX-License-Identifier: Apache-2.0
"""`velo run`: start an MPI program with Open MPI over velo."""

import argparse
import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from velo import helpers, watch
from velo.errors import EXIT_INTERRUPTED, UnusedError, UsageError, VeloError

COMPONENTS = {"mtl": "mca_mtl_velo.so", "btl": "mca_btl_velo.so"}
# mpirun's options that take values; all others take none.
TWO_VALUES = {"mca", "gmca", "omca", "pmca"}
HOSTS = {"H", "app", "default-hostfile", "host", "hostfile", "machinefile"}
# Where these are given, so is the placing of ranks.
PLACING = HOSTS | {
    "N", "bind-to", "cpu-list", "cpu-set", "map-by", "nooversubscribe", "npernode", "npersocket",
    "oversubscribe", "ppr", "rank-by", "rankfile", "rf", "slot-list", "use-hwthread-cpus",
}  # fmt: skip
ONE_VALUE = HOSTS | {
    "N", "add-host", "add-hostfile", "am", "bind-to", "c", "cpu-list", "cpu-set", "dvm", "hnp",
    "map-by", "max-restarts", "max-vm-size", "n", "np", "npernode", "npersocket", "ompi-server",
    "output-filename", "output-proctable", "path", "personality", "ppr", "prefix",
    "preload-files", "rank-by", "rankfile", "report-events", "report-pid", "report-uri", "rf",
    "slot-list", "stdin", "timeout", "tune", "wd", "wdir", "x",
}  # fmt: skip
# Where one of these is set, ranks may be on nodes that we do not see.
SCHEDULERS = ("LSB_JOBID", "OMPI_MCA_orte_default_hostfile", "PBS_NODEFILE", "PE_HOSTFILE",
              "SLURM_JOB_ID")  # fmt: skip
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
VERSION_TIMEOUT_S = 10.0
# An exit code is this much and the signal; a rank that is killed may not have had the time.
DEATH_BY_SIGNAL = 128
NO_USE = (
    "the program is no MPI program, or it is built for another MPI, and then each rank is a job of "
    "its own; build it with the mpicc of the Open MPI that velo is built for"
)


@dataclass(frozen=True)
class Split:
    """What follows our own options."""

    options: Sequence[str]
    """For mpirun, untouched."""
    names: frozenset[str]
    """Their names, without dashes."""
    program: Sequence[str]

    @property
    def parameters(self) -> set[str]:
        """The MCA parameters that the options set."""
        pairs = zip(self.options, self.options[1:], strict=False)
        return {name for option, name in pairs if option.lstrip("-") == "mca"}


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

    def __str__(self) -> str:
        words = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*words, shlex.join(self.argv)])


def command(args: argparse.Namespace) -> None:
    """`velo run`; ends with the exit code of mpirun."""
    launch = plan(args.ranks, args.layer, args.arguments)
    if args.print:
        print(launch)
        return
    sys.stdout.flush()
    sys.exit(complete(launch))


def protect(argv: Sequence[str]) -> list[str]:
    """The command line with `--` before the first word that is not ours.

    argparse would otherwise try mpirun's and the program's options as ours.
    """
    if not argv or argv[0] != "run":
        return list(argv)
    at = 1
    while at < len(argv):
        word = argv[at]
        if word in ("-n", "-np"):
            at += 2
        elif word in ("--mtl", "--btl", "--print", "--dry-run", "-h", "--help"):
            at += 1
        else:
            break
    rest = list(argv[at:])
    return [*argv[:at], *(["--", *rest] if rest and rest[0] != "--" else rest)]


def split(arguments: Sequence[str]) -> Split:
    """mpirun's options, and the program with its own."""
    words = list(arguments[1:] if arguments[:1] == ["--"] else arguments)
    names: set[str] = set()
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name = words[at].lstrip("-")
        names.add(name)
        at += 1 + (2 if name in TWO_VALUES else 1 if name in ONE_VALUE else 0)
    return Split(words[:at], frozenset(names), words[at:])


def plan(ranks: int, layer: str, arguments: Sequence[str]) -> Launch:
    """The mpirun command for a job."""
    job = split(arguments)
    _check_program(job)
    folder = component_folder(layer)
    domain = f"run-{os.getpid():x}-{time.time_ns() & 0xFFFFFFFF:x}"
    argv = [find_mpirun(folder), "-n", str(ranks), *selection(layer, folder, job.parameters)]
    argv += placement(ranks, job.names)
    argv += [*job.options, *job.program]
    return Launch(argv, environment(domain), domain, must_use(ranks, layer, job))


def must_use(ranks: int, layer: str, job: Split) -> bool:
    """Can we tell that a job which goes well has used velo?"""
    elsewhere = job.names & HOSTS or any(name in os.environ for name in SCHEDULERS)
    chosen = job.parameters & {"pml", "mtl", "btl"}
    renamed = any("velo_domain" in word.lower() or "VELO_SHM" in word for word in job.options)
    alone = layer == "btl" and ranks == 1  # Such a rank has nobody to reach.
    return not (elsewhere or chosen or renamed or alone)


def environment(domain: str) -> dict[str, str]:
    """What mpirun and its ranks are told: the domain, to components and to calls of velo.h."""
    env = {f"OMPI_MCA_{framework}_velo_domain": domain for framework in COMPONENTS}
    env["VELO_DOMAIN"] = domain
    if os.geteuid() == 0:
        # mpirun refuses to run as root without both.
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return env


def _check_program(job: Split) -> None:
    if "app" in job.names:
        return
    if not job.program:
        raise UsageError("which program? usage: velo run -n N PROGRAM ...")
    program = job.program[0]
    elsewhere = job.names & (HOSTS | {"wd", "wdir", "path", "prefix"})
    if not elsewhere:
        find_program(program)


def find_program(program: str) -> Path:
    """Where a program is."""
    path = shutil.which(program)
    if path is None:
        what = "is not executable" if Path(program).is_file() else "is not there"
        raise UsageError(f"the program {program} {what}")
    return Path(path)


def selection(layer: str, folder: Path, given: Iterable[str]) -> list[str]:
    """MCA parameters that select velo; mpirun takes each only once, so those given stand."""
    chosen = {"mca_base_component_path": f"{folder}:SYSTEM_DEFAULT:USER_DEFAULT"}
    if layer == "mtl":
        # One-sided communication goes through a BTL even where messages go through the MTL.
        chosen |= {"pml": "cm", "mtl": "velo", "btl": "self,velo"}
    else:
        chosen |= {"pml": "ob1", "btl": "self,velo,tcp"}
    return [
        word
        for name, value in chosen.items()
        if name not in given
        for word in ("--mca", name, value)
    ]


def placement(ranks: int, names: Iterable[str]) -> list[str]:
    """Where the ranks go: each on a core of its own if there are enough."""
    if not PLACING.isdisjoint(names):
        return []
    if ranks <= cores():
        return ["--map-by", "core", "--bind-to", "core"]
    return ["--oversubscribe", "--bind-to", "none"]


def cores(topology: Path = Path("/sys/devices/system/cpu")) -> int:
    """Physical cores that we may run on; all allowed CPUs where the kernel does not say."""
    found = set()
    allowed = os.sched_getaffinity(0)
    for cpu in allowed:
        folder = topology / f"cpu{cpu}" / "topology"
        try:
            ids = [(folder / name).read_text() for name in ("physical_package_id", "core_id")]
        except OSError:
            return len(allowed)
        found.add(tuple(ids))
    return len(found)


def component_folder(layer: str) -> Path:
    """The folder of our components: in the same tree as this command."""
    advice = "install libopenmpi-dev and openmpi-bin (Debian's names) and run 'make build' again"
    return helpers.find_loaded(f"openmpi/{COMPONENTS[layer]}", advice).parent.resolve()


def find_mpirun(folder: Path) -> str:
    """The mpirun that our components are for."""
    wrong = []
    for name in ("mpirun.openmpi", "mpirun"):
        path = shutil.which(name)
        if path is None:
            continue
        version = openmpi_version(path)
        built_for = (folder / "version").read_text().strip()
        if version and version.split(".")[:2] == built_for.split(".")[:2]:
            return path
        wrong.append(f"{path} is of {'Open MPI ' + version if version else 'another MPI'}")
    if wrong:
        raise VeloError(
            f"velo's components are for Open MPI {built_for}, but {', '.join(wrong)}; put the "
            "other one first in PATH, or build velo against this one"
        )
    raise VeloError("mpirun is not there; install openmpi-bin (Debian's name)")


def openmpi_version(mpirun: str) -> str | None:
    """Open MPI's version; None for another MPI."""
    try:
        said = subprocess.run(
            [mpirun, "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\(Open MPI\) (\d[\d.]*)", said)
    return match[1] if match else None


def complete(launch: Launch) -> int:
    """Run a job, take away what killed ranks leave, and see to it that it used velo."""
    ports = watch.PortWatch(segment_folder(), launch.domain)
    try:
        code = start(launch, ports)
        used = ports.look() or not launch.must_use
    finally:
        ports.close()
        remove_segments(launch.domain)
    if not used and code == 0:
        raise UnusedError(f"no rank used velo: {NO_USE}")
    if not used and code < DEATH_BY_SIGNAL:
        print(f"velo: the job failed before any rank used velo; perhaps {NO_USE}", file=sys.stderr)
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
            if got is None:
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


def _become(signals: set[signal.Signals]) -> None:
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
