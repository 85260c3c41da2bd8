# SPDX-License-Identifier: Apache-2.0
"""The command that the simulator starts: mpirun, and what becomes of each rank."""

import ctypes.util
import shlex
from collections.abc import Sequence
from pathlib import Path

from velo import tree
from velo.cluster.job import Job
from velo.errors import VeloError
from velo.runtime import openmpi, over_libfabric

# Velo's messages go by the simulated node of their port.
NETWORK = "VELO_NETWORK=nic,own=nic"
# The program and its processes are of the cluster from the start: so runs repeat themselves.
BOARDS = ["VELO_DIMMNET=sim", "VELO_SIM_RANK=0", "VELO_SIM_RANKS=1", "VELO_SIM_REPEATABLE=1"]
# What each rank runs first: it learns who it is from its launcher, and where it is, which MPI
# learns from sim/preload/locality.c; from then on every call of the program that matters goes to
# the simulated cluster. The launcher itself stays in real time.
RANK = """
export VELO_SIM_RANK=${rank} VELO_SIM_RANKS=${size}
export VELO_SIM_RANKS_A_NODE={ranks_a_node}
local=$((VELO_SIM_RANK % VELO_SIM_RANKS_A_NODE))
export VELO_NODE=$((VELO_SIM_RANK / VELO_SIM_RANKS_A_NODE))
export FI_VELO_NODE=$VELO_NODE
behind=$((VELO_SIM_RANKS - VELO_SIM_RANK + local))
beside=$((behind < {ranks_a_node} ? behind : {ranks_a_node}))
{places}
export {exports} LD_PRELOAD={preload}
exec "$@"
"""
# Where a rank is, in its MPI's own words.
OPEN_MPI_PLACES = """
export OMPI_COMM_WORLD_LOCAL_RANK=$local OMPI_COMM_WORLD_NODE_RANK=$local
export OMPI_COMM_WORLD_LOCAL_SIZE=$beside
""".strip()
HYDRA_PLACES = "export MPI_LOCALRANKID=$local MPI_LOCALNRANKS=$beside"
RANK_NAME = "velo-rank"
# Of Open MPI 5: no other way from node to node, as for Open MPI 4.1 below. One-sided operations go
# by the provider, too; the component for UCX would take them, and fails without UCX.
OPEN_MPI_5_WORDS = (
    *("--mca", "btl", "self,ofi", "--mca", "btl_ofi_provider_include", "velo"),
    *("--mca", "osc", "^ucx", "--mca", "coll", "^sm,xhc,acoll"),
)
# Where buffers are must not depend on what the launcher's threads allocate and how long its names
# are; see sim/preload/memory.c. In this allocator threads can have memory of their own, lengths
# have places of their own, and when memory is given back does not depend on real time.
ALLOCATOR = "jemalloc"
CPLUSPLUS = "libstdc++.so.6"
ALLOCATOR_SETTINGS = "dss:primary,narenas:256,tcache:false,dirty_decay_ms:-1,muzzy_decay_ms:-1"


def find_allocators() -> str:
    """The libraries that allocate the ranks' memory, as the dynamic loader is to load them."""
    name = ctypes.util.find_library(ALLOCATOR)
    if not name:
        raise VeloError(
            "libjemalloc, which allocates the ranks' memory, is not installed; "
            "'apt-get install libjemalloc2' (Debian's name) installs it"
        )
    # jemalloc has C++'s operators, too, and would pass by our malloc() with them.
    return f"{CPLUSPLUS}:{name}"


def program(job: Job, library: Path) -> list[str]:
    """The command that the simulator starts."""
    if job.boards:
        return ["env", *BOARDS, f"LD_PRELOAD={library}", *job.program]
    if job.ranks == 0:
        return ["env", *exports(), f"LD_PRELOAD={library}", *job.program]
    words = openmpi_launcher(job) if job.mpi == "ompi4" else libfabric_launcher(job)
    return [*words, "sh", "-c", rank_script(job, library), RANK_NAME, *job.program]


def exports(needs_provider: bool = False) -> list[str]:
    """What tells ranks, and programs that are no MPI programs, of the simulated nodes."""
    try:
        provider = tree.find_simulated_provider(over_libfabric.PROVIDER)
    except VeloError:
        if needs_provider:
            raise
        return [NETWORK]
    # Other providers would pass the simulated hardware by, and start by naps and threads.
    path = over_libfabric.provider_path(provider)
    return [NETWORK, f"FI_PROVIDER_PATH={path}", "FI_PROVIDER=velo"]


def rank_script(job: Job, library: Path) -> str:
    """What `sh` does for a rank before it becomes the program."""
    rank, size = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
    if job.mpi != "ompi4":
        rank, size = over_libfabric.MPIS[job.mpi].rank_names
    return RANK.format(
        rank=rank,
        size=size,
        ranks_a_node=job.ranks_a_node,
        places=OPEN_MPI_PLACES if rank.startswith("OMPI") else HYDRA_PLACES,
        exports=shlex.join(exports(job.mpi != "ompi4")),
        preload=shlex.quote(f"{library}:{find_allocators()}"),
    )


def libfabric_launcher(job: Job) -> list[str]:
    """The launcher of an MPI that reaches velo through libfabric."""
    mpi = over_libfabric.MPIS[job.mpi]
    env = {**over_libfabric.environment(mpi, job.root), **mpi.unbound_env}
    words = [
        "env",
        *(f"{name}={value}" for name, value in env.items()),
        over_libfabric.find_launcher(mpi, job.root),
        "-n",
        str(job.ranks),
        *openmpi.parameters(mpi.parameters, ()),
        *mpi.unbound,
    ]
    return [*words, *OPEN_MPI_5_WORDS] if job.mpi == "ompi5" else words


def openmpi_launcher(job: Job) -> list[str]:
    """Open MPI 4.1's mpirun, with velo's components."""
    mpirun, folder = openmpi.find_mpirun(job.layer, job.root)
    words = [
        mpirun,
        "-n",
        str(job.ranks),
        "--oversubscribe",
        "--bind-to",
        "none",
    ]
    words += openmpi.selection(job.layer, folder, {"btl"})
    # Any other way from node to node would pass the simulated hardware by.
    words += ["--mca", "btl", "self,velo"]
    # Memory that ranks share takes no virtual time and passes the hardware by; and who waits for a
    # line of it does not call the simulator, whose time would then stand still.
    words += openmpi.NO_COLLECTIVES
    # When MPI learns of a rank of another node must not depend on real time: so at once, of all.
    words += ["--mca", "mpi_add_procs_cutoff", str(job.ranks + 1)]
    for layer in openmpi.COMPONENTS:
        words += ["--mca", f"{layer}_velo_simulated", "1"]
    # A rank that waits polls: sleeping is for processors that are shared, and virtual ones are
    # not. In both layers, since the BTL carries one-sided operations beside the MTL.
    for layer in openmpi.COMPONENTS:
        words += ["--mca", f"{layer}_velo_sleep", "0"]
    # How many polls there were before time began is by chance: it must not matter which it is.
    words += ["--mca", "btl_velo_serve_polls", "1"]
    # A rank gives up telling mpirun that it ends after two seconds, which are real ones: where many
    # share a processor that would fail a job that has gone well.
    return [*words, "--mca", "orte_allowed_exit_without_sync", "1"]


def ranks_command(command: Sequence[str]) -> list[str]:
    """What each rank runs, of the command that the simulator starts."""
    words = list(command)
    return words[words.index(RANK_NAME) + 1 :] if RANK_NAME in words else words
