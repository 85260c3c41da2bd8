# SPDX-License-Identifier: Apache-2.0
"""Which MPI over which transport, how each is started, and whether it runs here."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from velo import helpers, tree
from velo.errors import UsageError, VeloError
from velo.measure.mpi import builds
from velo.measure.mpi.builds import Build
from velo.runtime import openmpi

# Ranks end in order when their launcher is asked to; that takes it longer than velo's own programs.
STOP_GRACE_S = 6.0
TRIAL_TIMEOUT_S = 30.0

UCX_ENV = {"UCX_TLS": "sm,self"}
# Without these two, pml ucx refuses to work without an InfiniBand device.
PML_UCX = ("--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any")
OPEN_MPI = ("--bind-to", "none", "--oversubscribe")
OPEN_MPI_YIELD = ("--mca", "mpi_yield_when_idle", "1")


@dataclass(frozen=True)
class Stack:
    """An MPI over a transport."""

    word: str
    """Its name on the command line."""
    label: str
    """Its name in records, where {version} is the MPI's."""
    build: Build
    options: tuple[str, ...] = ()
    """Of its launcher."""
    env: Mapping[str, str] = field(default_factory=dict)
    many: tuple[str, ...] = ()
    """Options for more ranks than CPUs: its best known setting for those."""
    many_env: Mapping[str, str] = field(default_factory=dict)
    velo: tuple[str, ...] = ()
    """For velo's own: what tells `velo run` by which part of velo."""
    find: Callable[[], Path] | None = None
    """For velo's own: finds that part, or says how to get it."""

    @property
    def name(self) -> str:
        return self.label.format(version=self.build.version)

    @property
    def is_debian(self) -> bool:
        """Do Debian's own MPI programs, NetPIPE and HPCC, run over it?"""
        return not self.build.wheels

    @property
    def config(self) -> str:
        """The configuration in words, for the report."""
        env = " ".join(f"{k}={v}" for k, v in self.env.items())
        launch = " ".join(("velo run", *self.velo)) if self.velo else self.build.mpirun
        text = " ".join(filter(None, (env, launch, *self.options)))
        many = " ".join((*(f"{k}={v}" for k, v in self.many_env.items()), *self.many))
        return f"{text}; with more ranks than CPUs also {many}" if many else text

    def argv(self, ranks: int, cpus: Sequence[int], program: Sequence[str | Path]) -> list[str]:
        """The command that runs a program on the CPUs given, round robin."""
        pinned = [str(tree.find("velo-pin")), ",".join(map(str, cpus)), *map(str, program)]
        many = self.many if ranks > len(cpus) else ()
        if self.velo:
            start = [sys.executable, "-m", "velo", "run", "-n", str(ranks), *self.velo]
        else:
            start = [self.build.launcher, "-n", str(ranks)]
        return [*start, *self.options, *many, *pinned]

    def environment(self, ranks: int, cpus: Sequence[int]) -> dict[str, str]:
        """Everything that the command needs set."""
        many = self.many_env if ranks > len(cpus) else {}
        env: dict[str, str] = {**os.environ, **self.build.environment(), **self.env, **many}
        if self.velo:
            tools = str(tree.PYTHON_FOLDER)
            env["PYTHONPATH"] = os.pathsep.join(filter(None, (tools, env.get("PYTHONPATH", ""))))
        return env

    def output(self, ranks: int, cpus: Sequence[int], program: Sequence[str | Path],
               timeout_s: float, cwd: Path | None = None) -> str:  # fmt: skip
        """What a program prints; it must succeed within the time given."""
        return helpers.output(
            self.argv(ranks, cpus, program),
            timeout_s,
            grace_s=STOP_GRACE_S,
            env=self.environment(ranks, cpus),
            cwd=cwd,
        )

    def find_velo(self) -> None:
        """Complain, if it needs a part of velo that was not built."""
        if self.find:
            self.find()

    def missing(self, cpus: Sequence[int]) -> str | None:
        """Why it cannot be measured here; None after a trial run that ended well."""
        try:
            self.build.prepare()
            trial = ("latency", "--sizes", "8", "--batches", "1")
            self.output(2, cpus, [self.build.program, *trial], TRIAL_TIMEOUT_S)
        except VeloError as error:
            return str(error)
        return None


MTL = Stack(
    "mtl",
    "velo mtl",
    builds.SYSTEM_OPEN_MPI,
    OPEN_MPI,
    velo=("--mtl",),
    find=partial(tree.find_loaded, "openmpi/*/mca_mtl_velo.so"),
)
BTL = replace(
    MTL,
    word="btl",
    label="velo btl",
    velo=("--btl",),
    find=partial(tree.find_loaded, "openmpi/*/mca_btl_velo.so"),
)
VADER = Stack(
    "vader",
    "ompi-{version} vader",
    builds.SYSTEM_OPEN_MPI,
    (*OPEN_MPI, "--mca", "pml", "ob1", "--mca", "btl", "self,vader"),
    many=OPEN_MPI_YIELD,
)
# Where the system's Open MPI is of version 5, and velo's components were not built for it.
PROVIDER = Stack(
    "provider",
    "velo provider",
    builds.SYSTEM_OPEN_MPI,
    OPEN_MPI,
    velo=("--mpi", "ompi5"),
    find=partial(tree.find_provider, "libvelo-fi.so"),
)
SM = replace(
    VADER,
    word="sm",
    label="ompi-{version} sm",
    options=(*OPEN_MPI, "--mca", "pml", "ob1", "--mca", "btl", "self,sm"),
)
STACKS = (
    MTL,
    BTL,
    VADER,
    Stack(
        "ompi4-ucx",
        "ompi-{version} ucx",
        builds.SYSTEM_OPEN_MPI,
        (*OPEN_MPI, *PML_UCX),
        UCX_ENV,
        many=OPEN_MPI_YIELD,
    ),
    Stack("ompi5", "ompi-{version} sm", builds.OPEN_MPI_5, OPEN_MPI, many=OPEN_MPI_YIELD),
    Stack(
        "ompi5-ucx",
        "ompi-{version} ucx",
        builds.OPEN_MPI_5,
        (*OPEN_MPI, *PML_UCX, "-x", "UCX_TLS"),
        UCX_ENV,
        many=OPEN_MPI_YIELD,
    ),
    # It yields in every wait already.
    Stack("mpich", "mpich-{version}", builds.MPICH),
    # On one machine by UCX, too: three quarters of its own way's time at 8 bytes, 1.3 at 1 KiB.
    Stack("mpich-ucx", "mpich-{version} ucx", builds.MPICH, env={"MPIR_CVAR_NOLOCAL": "1"}),
    Stack(
        "impi",
        "impi-{version}",
        builds.INTEL_MPI,
        many_env={"I_MPI_THREAD_YIELD": "2"},
    ),
)


def side_by_side(with_btl: bool = False) -> tuple[Stack, Stack]:
    """velo and Open MPI's own transport, with the Open MPI that this system has."""
    if builds.SYSTEM_OPEN_MPI.version.startswith("4."):
        return (BTL if with_btl else MTL), VADER
    if openmpi.fitting(builds.SYSTEM_OPEN_MPI.version):
        return (BTL if with_btl else MTL), SM
    if with_btl:
        raise UsageError(
            f"--btl needs velo's components, which were not built for this system's Open MPI "
            f"{builds.SYSTEM_OPEN_MPI.version}"
        )
    return PROVIDER, SM
