# SPDX-License-Identifier: Apache-2.0
"""The mpirun command of a job: which options are mpirun's, where ranks go, how velo is selected."""

import contextlib
import itertools
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from velo import tree
from velo.errors import UsageError, VeloError
from velo.runtime import hosts
from velo.runtime.launch import Launch
from velo.runtime.openmpi import (
    COMPONENTS,
    NO_COLLECTIVES,
    by_poll,
    environment,
    find_mpirun,
    find_program,
    parameters,
    quiet,
    selection,
)


class Arity(NamedTuple):
    """A launcher's options that take values; all others take none."""

    one: frozenset[str]
    two: frozenset[str]
    hosts: frozenset[str]
    """Of those, which may put ranks on other nodes."""


HOSTS = {"H", "app", "default-hostfile", "host", "hostfile", "machinefile"}
# How many ranks a program has.
RANKS = {"c", "n", "np"}
# Where these are given, so is the placing of ranks.
PLACING = HOSTS | {
    "N", "bind-to", "cpu-list", "cpu-set", "map-by", "nooversubscribe", "npernode", "npersocket",
    "oversubscribe", "ppr", "rank-by", "rankfile", "rf", "slot-list", "use-hwthread-cpus",
}  # fmt: skip
OPEN_MPI_OPTIONS = Arity(one=frozenset(HOSTS | {
    "N", "add-host", "add-hostfile", "am", "bind-to", "c", "cpu-list", "cpu-set", "dvm", "hnp",
    "launch-agent", "map-by", "max-restarts", "max-vm-size", "n", "np", "npernode", "npersocket",
    "ompi-server", "output-filename", "output-proctable", "path", "personality", "ppr", "prefix",
    "preload-files", "rank-by", "rankfile", "report-events", "report-pid", "report-uri", "rf",
    "slot-list", "stdin", "timeout", "tune", "wd", "wdir", "x",
}), two=frozenset({"mca", "gmca", "omca", "pmca", "pmixmca", "prtemca"}),
    hosts=frozenset(HOSTS))  # fmt: skip
# A core for each rank; more ranks than cores.
BOUND = ("--map-by", "core", "--bind-to", "core")
UNBOUND = {
    "ompi4": ("--oversubscribe", "--bind-to", "none"),
    "ompi5": ("--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"),
}
# Where one of these is set, ranks may be on nodes that we do not see.
SCHEDULERS = ("LSB_JOBID", "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
              "PBS_NODEFILE", "PE_HOSTFILE", "SLURM_JOB_ID")  # fmt: skip
# The secret of a job's ports on several hosts, or a file with it.
SECRETS = ("VELO_OFI_SECRET", "VELO_OFI_SECRET_FILE")
SECRET_BYTES = 32
# Receive buffers of libfabric's ofi_rxm: by default it takes 70 MB for each of a rank's ports.
BUFFERS = ("FI_OFI_RXM_MSG_RX_SIZE", "64")
# The card of a host, whose driver has made this; $VELO_CARD names another one.
CARD = "/dev/velo0"
BY_CARD = "card"
TRANSPORTS = {BY_CARD, "ofi"}
# What this command is told; ranks need no such thing.
STAYS_HERE = {"VELO_LIBEXEC"}
# mpirun and its daemons notice after this that a host is gone: by themselves, after eight minutes.
HOST_LOST = {
    "oob_tcp_keepalive_time": "5",
    "oob_tcp_keepalive_intvl": "2",
    "oob_tcp_keepalive_probes": "3",
}
# Of 4.1: dynamic windows over several hosts go by messages (adapters/openmpi/common/windows.c), and
# Debian's settings leave that component out.
ONE_SIDED = {"osc": "^ucx"}


class Split(NamedTuple):
    """What follows our own options."""

    options: Sequence[str]
    """For mpirun, untouched."""
    names: frozenset[str]
    """Their names, without dashes."""
    program: Sequence[str]
    """The program with its arguments; where a job has several programs, what follows them, too."""
    on_hosts: bool
    """Ranks may be on other nodes."""
    others: Sequence["Split"] = ()
    """The job's other programs, each with the options before it."""

    @property
    def all_options(self) -> Sequence[str]:
        """The options of all programs."""
        return [*self.options, *(word for other in self.others for word in other.options)]

    def ranks(self, first: int) -> int:
        """The ranks of all programs, of which the first one has so many."""
        return first + sum(_ranks_of(other.options) for other in self.others)

    @property
    def parameters(self) -> set[str]:
        """The MCA parameters that the options set."""
        pairs = zip(self.options, self.options[1:], strict=False)
        return {name for option, name in pairs if option.lstrip("-") in hosts.PARAMETERS}


def split(arguments: Sequence[str], options: Arity = OPEN_MPI_OPTIONS) -> Split:
    """The launcher's options, and the program with its own."""
    words = list(arguments[1:] if arguments[:1] == ["--"] else arguments)
    first, *others = [_split_one(part, options) for part in _parts(words)]
    names = first.names.union(*(other.names for other in others))
    program = words[len(first.options) :]
    return Split(first.options, names, program, not options.hosts.isdisjoint(names), others)


def _split_one(words: list[str], options: Arity) -> Split:
    """The same of one program."""
    names: set[str] = set()
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name = words[at].lstrip("-")
        names.add(name)
        at += 1 + (2 if name in options.two else 1 if name in options.one else 0)
    return Split(words[:at], frozenset(names), words[at:], on_hosts=False)


def _parts(words: list[str]) -> Iterator[list[str]]:
    """A launcher's words program by program. It takes a colon behind the last one for nothing."""
    at = 0
    for end in [at for at, word in enumerate(words) if word == ":"]:
        yield words[at:end]
        at = end + 1
    if at == 0 or words[at:]:
        yield words[at:]


def _ranks_of(options: Sequence[str]) -> int:
    """The ranks that options give a program; as many as there are cores where they do not say."""
    for word, value in itertools.pairwise(options):
        if word.lstrip("-") in RANKS and value.isdecimal():
            return int(value)
    return cores()


def plan(
    ranks: int,
    layer: str,
    arguments: Sequence[str],
    collectives: bool = True,
    root: Path | None = None,
    kind: str = "ompi4",
) -> Launch:
    """The mpirun command for a job; `root` has another Open MPI of that kind than PATH."""
    job = split(arguments)
    find_job_program(job)
    mpirun, folder = find_mpirun(layer, root, kind)
    meeting = meeting_domain(job)
    domain = meeting or new_domain()
    argv = [mpirun, "-n", str(ranks)]
    is_here = ranks_are_here(job)
    argv += selection(layer, folder, job.parameters, kind, is_here=is_here)
    if not collectives and "coll" not in job.parameters:
        argv += NO_COLLECTIVES
    argv += placement(job.ranks(ranks), job.names, kind)
    env = environment(domain)
    env |= quiet(mpirun) if kind == "ompi5" else by_poll()
    hidden: list[str] = []
    others = hosts.find(job.all_options, kind=kind)
    if others:
        files = [folder / COMPONENTS[layer]]
        if layer == "mtl":
            files += network_files()
            hidden = cross_hosts(env)
        others = others._replace(files=files)
        argv += [*across_hosts(job, kind), *exports(env, job.all_options)]
    argv += [*job.options, *job.program]
    must = must_use(job)
    return Launch(
        argv, env, domain, must, hosts=others, secrets=hidden, is_shared=meeting is not None
    )


def across_hosts(job: Split, kind: str) -> list[str]:
    """What mpirun is told of jobs on several hosts."""
    chosen = HOST_LOST | (ONE_SIDED if kind == "ompi4" else {})
    given = job.parameters | {name for name in ONE_SIDED if f"OMPI_MCA_{name}" in os.environ}
    return parameters(chosen, given)


def has_components(root: Path | None) -> bool:
    """Do our components serve the Open MPI 5 that is there?"""
    try:
        find_mpirun("mtl", root, "ompi5")
    except VeloError:
        return False
    return True


def card() -> Path:
    """The device of this host's card, which need not be there."""
    return Path(os.environ.get("VELO_CARD") or CARD)


def network() -> str:
    """The map of nodes of ranks on several hosts: by cards, if this host has one."""
    return os.environ.get("VELO_NETWORK") or (BY_CARD if card().exists() else "ofi")


def network_files() -> list[Path]:
    """What the network between hosts needs on each of them, as far as velo knows it."""
    name = network()
    files = [card()] if name == BY_CARD else []
    if name in TRANSPORTS and not os.environ.get("VELO_TRANSPORT_PATH"):
        files.append(tree.find_loaded(f"libvelo-{name}.so"))
    return files


def cross_hosts(env: dict[str, str]) -> list[str]:
    """Add what ranks on several hosts need; the names of those values that are secret."""
    env["VELO_NETWORK"] = network()
    if env["VELO_NETWORK"] == BY_CARD:
        return []
    env[BUFFERS[0]] = os.environ.get(*BUFFERS)
    if any(os.environ.get(name) for name in SECRETS):
        return []
    # Cost: slow to import, and only jobs on several hosts need it.
    import secrets

    env[SECRETS[0]] = secrets.token_hex(SECRET_BYTES)
    return [SECRETS[0]]


def exports(env: Iterable[str], options: Sequence[str]) -> list[str]:
    """Options by which mpirun hands our variables on. By their names alone: `ps` shows options."""
    given = {
        value.partition("=")[0]
        for word, value in itertools.pairwise(options)
        if word.lstrip("-") == "x"
    }
    all_names = [*env, *os.environ]
    ours = {name for name in all_names if name.startswith("VELO_") or name == BUFFERS[0]}
    names = ours - STAYS_HERE - given
    return [word for name in sorted(names) for word in ("-x", name)]


def new_domain() -> str:
    """A domain for one job."""
    return f"run-{os.getpid():x}-{time.time_ns() & 0xFFFFFFFF:x}"


def meeting_domain(job: Split) -> str | None:
    """The domain of all jobs of this user and host that name one ompi-server: they may connect."""
    for word, server in itertools.pairwise(job.all_options):
        if word.lstrip("-") == "ompi-server" and ranks_are_here(job):
            where = Path(server.removeprefix("file:"))
            with contextlib.suppress(OSError):
                server = where.read_text(errors="replace")
            return f"server-{os.geteuid():x}-{zlib.crc32(server.encode()):x}"
    return None


def ranks_are_here(job: Split) -> bool:
    """Are all ranks on this node, in the domain that we chose?"""
    elsewhere = job.on_hosts or any(name in os.environ for name in SCHEDULERS)
    renamed = any("velo_domain" in word.lower() or "VELO_SHM" in word for word in job.all_options)
    return not (elsewhere or renamed)


def must_use(job: Split) -> bool:
    """Can we tell that a job which goes well has used velo?"""
    chosen = job.parameters & {"pml", "mtl", "btl"}
    return ranks_are_here(job) and not chosen


def find_job_program(job: Split) -> None:
    """Complain, if the program is to be here and is not."""
    if "app" in job.names:
        return
    for one in (job, *job.others):
        if not one.program or one.program[0] == ":":
            raise UsageError("which program? usage: velo run -n N PROGRAM ...")
    if job.on_hosts or job.names & {"wd", "wdir", "path", "prefix"}:
        return
    for one in (job, *job.others):
        _find_one(one)


def _find_one(job: Split) -> None:
    program = job.program[0]
    try:
        find_program(program)
    except UsageError as error:
        option = job.options[-1] if job.options else ""
        if option.lstrip("-") in job.names:
            raise UsageError(
                f"{error}; it stands behind {option}, no option of mpirun's that takes a value"
            ) from error
        raise


def placement(ranks: int, names: Iterable[str], kind: str = "ompi4") -> list[str]:
    """Where the ranks go: each on a core of its own if there are enough."""
    if not PLACING.isdisjoint(names):
        return []
    if ranks <= cores():
        return list(BOUND)
    return list(UNBOUND[kind])


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
