# SPDX-License-Identifier: Apache-2.0
"""Jobs of MPIs that reach velo through libfabric: their launchers, and what those are told."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from velo import tree
from velo.errors import VeloError
from velo.runtime.launch import Launch
from velo.runtime.mpirun import (
    BOUND,
    OPEN_MPI_OPTIONS,
    PLACING,
    UNBOUND,
    Arity,
    cores,
    find_job_program,
    new_domain,
    ranks_are_here,
    split,
)
from velo.runtime.openmpi import allow_root, launchers, parameters, version_text

PROVIDER = "libvelo-fi.so"
HYDRA_HOSTS = {"f", "host", "hostfile", "hostlist", "hosts", "machine", "machinefile"}
HYDRA_PLACING = HYDRA_HOSTS | {"bind-to", "map-by", "perhost", "ppn"}
HYDRA_OPTIONS = Arity(
    one=frozenset(HYDRA_PLACING) | {
        "configfile", "envlist", "errfile-pattern", "genvlist", "iface", "launcher",
        "launcher-exec", "localhost", "membind", "n", "np", "outfile-pattern", "path", "prefix",
        "profile", "rmk", "s", "topolib", "wdir",
    },
    two=frozenset({"env", "genv"}),
    hosts=frozenset(HYDRA_HOSTS),
)  # fmt: skip


class Mpi(NamedTuple):
    """One MPI that uses libfabric."""

    name: str
    launchers: Sequence[str]
    """What its launcher may be called."""
    version: re.Pattern[str]
    """What it says of itself, and of no other MPI; the group is its version."""
    options: Arity
    placing: frozenset[str]
    """Those of its launcher's options that say where ranks go."""
    parameters: Mapping[str, str]
    """Open MPI's parameters that choose libfabric and its provider."""
    env: Mapping[str, str]
    """The environment that chooses them."""
    bound: Sequence[str]
    """Options that bind each rank to a core of its own."""
    bound_env: Mapping[str, str]
    """The environment that does; a variable that the user has set stays."""
    unbound: Sequence[str]
    """Options for more ranks than cores."""
    unbound_env: Mapping[str, str]
    """The environment for more ranks than cores."""
    rank_depth: int
    """How many generations its ranks are below the launcher."""
    rank_names: tuple[str, str]
    """What its launcher calls a rank's number and the number of ranks, in their environment."""
    source: str
    """A package of Python's index that has it."""
    preload: str = ""
    """A library that ranks with a core each load first."""


MPIS = {
    "ompi5": Mpi(
        name="Open MPI 5",
        launchers=("mpirun", "mpiexec", "mpirun.openmpi"),
        version=re.compile(r"\(Open MPI\) ((?:[5-9]|\d\d)\.[\d.]+)"),
        options=OPEN_MPI_OPTIONS,
        placing=frozenset(PLACING),
        parameters={"pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": "velo"},
        env={},
        bound=BOUND,
        bound_env={},
        unbound=UNBOUND["ompi5"],
        unbound_env={},
        rank_depth=1,
        rank_names=("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        source="openmpi",
    ),
    "mpich": Mpi(
        name="MPICH",
        launchers=("mpiexec.hydra", "mpiexec", "mpirun", "mpiexec.mpich"),
        version=re.compile(r"HYDRA build details:\s+Version:\s+(\S+)"),
        options=HYDRA_OPTIONS,
        placing=frozenset(HYDRA_PLACING),
        parameters={},
        # Without the last one it keeps what is inside a node to itself.
        env={"FI_PROVIDER": "velo", "MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"},
        # With the option for it a rank that spawns others is refused.
        bound=(),
        bound_env={"HYDRA_BINDING": "core"},
        unbound=(),
        unbound_env={},
        rank_depth=2,
        rank_names=("PMI_RANK", "PMI_SIZE"),
        source="mpich",
        preload="libvelo-yield.so",
    ),
    "impi": Mpi(
        name="Intel MPI",
        launchers=("mpiexec.hydra", "mpiexec"),
        version=re.compile(r"Intel\(R\) MPI Library.*?Version (\S+)"),
        options=HYDRA_OPTIONS,
        placing=frozenset(HYDRA_PLACING),
        parameters={},
        env={"FI_PROVIDER": "velo", "I_MPI_FABRICS": "ofi"},
        bound=(),  # It does so by itself.
        bound_env={},
        unbound=(),
        unbound_env={"I_MPI_PIN": "off"},
        rank_depth=2,
        rank_names=("PMI_RANK", "PMI_SIZE"),
        source="impi-rt",
    ),
}


def plan(kind: str, root: Path | None, ranks: int, arguments: Sequence[str]) -> Launch:
    """The launcher's command for a job."""
    mpi = MPIS[kind]
    job = split(arguments, mpi.options)
    find_job_program(job)
    launcher = find_launcher(mpi, root)
    domain = new_domain()
    env = {"VELO_DOMAIN": domain, "FI_PROVIDER_PATH": provider_path(tree.find_provider(PROVIDER))}
    env |= environment(mpi, root)
    argv = [launcher, "-n", str(ranks), *parameters(mpi.parameters, job.parameters)]
    if mpi.placing.isdisjoint(job.names):
        has_cores = job.ranks(ranks) <= cores()
        argv += mpi.bound if has_cores else mpi.unbound
        env |= _bound_env(mpi) if has_cores else mpi.unbound_env
    argv += [*job.options, *job.program]
    must_use = ranks_are_here(job) and not job.parameters & {"pml", "mtl"}
    return Launch(argv, env, domain, must_use, mpi.rank_depth, why_unused(mpi))


def environment(mpi: Mpi, root: Path | None) -> dict[str, str]:
    """What the launcher and its ranks are told; of that, what is below `root` is found first."""
    env = dict(mpi.env)
    env |= allow_root() if mpi.options is OPEN_MPI_OPTIONS else {}
    return env | (_found_first(root) if root else {})


def why_unused(mpi: Mpi) -> str:
    """What is wrong if a job goes well and no rank opens a port."""
    return (
        f"the program is no MPI program, it is built for another MPI than {mpi.name}, or this "
        f"{mpi.name} is built without libfabric, as Debian's MPICH is"
    )


def lacks_libfabric(launcher: str) -> bool:
    """Does an MPICH say that it was built for UCX alone?"""
    devices = re.findall(r"--with-device=(ch\d:\w+)", version_text(launcher))
    return bool(devices) and "ch4:ofi" not in devices


def _bound_env(mpi: Mpi) -> dict[str, str]:
    """The environment of ranks with a core each."""
    own = {name: value for name, value in mpi.bound_env.items() if name not in os.environ}
    return own | _preload(mpi)


def _preload(mpi: Mpi) -> dict[str, str]:
    """What ranks load first; a setting of the user's, an empty one too, stays."""
    if not mpi.preload or "LD_PRELOAD" in os.environ:
        return {}
    return {"LD_PRELOAD": str(tree.find_loaded(mpi.preload).resolve())}


def provider_path(provider: Path) -> str:
    """Where libfabric looks for providers: in the folder of this one first."""
    folder = str(provider.parent.resolve())
    given = os.environ.get("FI_PROVIDER_PATH")
    return f"{folder}:{given}" if given else folder


def _found_first(root: Path) -> dict[str, str]:
    """A job's programs and libraries come from this installation."""
    env = {"PATH": f"{root / 'bin'}:{os.environ.get('PATH', os.defpath)}"}
    if (root / "lib").is_dir():
        given = os.environ.get("LD_LIBRARY_PATH")
        env["LD_LIBRARY_PATH"] = f"{root / 'lib'}:{given}" if given else str(root / "lib")
    return env


def find_launcher(mpi: Mpi, root: Path | None) -> str:
    """The first launcher that is of this MPI."""
    seen = []
    for path in launchers(root, mpi.launchers):
        if mpi.version.search(version_text(path)):
            return path
        seen.append(path)
    where = f"below {root}" if root else "in PATH"
    others = f" ({', '.join(seen)}: of another MPI)" if seen else ""
    raise VeloError(
        f"there is no launcher of {mpi.name} {where}{others}; name the folder that has its "
        f"bin/{mpi.launchers[0]} with --mpi-root; 'pip install {mpi.source}' is one way to get it"
    )
