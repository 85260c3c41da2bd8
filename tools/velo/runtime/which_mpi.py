# SPDX-License-Identifier: Apache-2.0
"""Which MPI a job is for: by the program's libraries, and by the launchers that are there."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from velo.runtime import loader, mpirun, openmpi

OPEN_MPI = frozenset({"ompi4", "ompi5"})
MPICH_ABI = frozenset({"mpich", "impi"})
# Open MPI 4 and 5 have one number, and so have MPICH and Intel MPI. What Open MPI's own library
# loads tells 4 and 5 apart.
LIBRARIES = {
    "libopen-pal.so.40": frozenset({"ompi4"}),
    "libopen-pal.so.80": frozenset({"ompi5"}),
    "libmpi.so.40": OPEN_MPI,
    "libmpi.so.12": MPICH_ABI,
    "libmpich.so.12": MPICH_ABI,
}
LAUNCHERS = (*openmpi.LAUNCHERS, "mpiexec.hydra", "mpiexec.mpich")
NAMES = {"ompi4": "Open MPI", "ompi5": "Open MPI", "mpich": "MPICH", "impi": "Intel MPI"}
MATCHING_LAYER = "velo's matching layer"
PROVIDER = "velo's libfabric provider"


class Found(NamedTuple):
    """An MPI that is installed."""

    kind: str
    version: str
    launcher: str

    def __str__(self) -> str:
        return f"{NAMES[self.kind]} {self.version}"


class Choice(NamedTuple):
    """An MPI for a job, and why that one."""

    kind: str
    mpi: Found | None
    """None was found."""
    by_program: bool
    """Do the program's libraries say so? Otherwise the launcher alone does."""
    native: bool = False
    """Does it load velo's components?"""

    def __str__(self) -> str:
        way = MATCHING_LAYER if self.native else PROVIDER
        why = "the program's MPI" if self.by_program else "the first launcher in PATH"
        by = f", {self.mpi}, by {self.mpi.launcher}" if self.mpi else ""
        return f"--mpi {self.kind}: over {way}{by} ({why})"


def choose(arguments: Sequence[str], root: Path | None,
           among: frozenset[str] = OPEN_MPI | MPICH_ABI) -> Choice:  # fmt: skip
    """What fits a program with its launcher's options before it, if it says nothing one of some."""
    family = family_of(find(arguments))
    fits = family or among
    for mpi in found(root):
        if mpi.kind in fits:
            return Choice(mpi.kind, mpi, family is not None)
    # What follows from it says what is missing.
    kind = next((kind for kind in ("ompi4", "ompi5", "mpich") if kind in fits), "ompi4")
    return Choice(kind, None, family is not None)


def ask_ahead(arguments: Sequence[str], root: Path | None) -> None:
    """Ask the programs whose answers choose() most likely needs; it does not wait for them."""
    if program := find(arguments):
        loader.ask(program)
    if launcher := next(openmpi.launchers(root, LAUNCHERS), None):
        openmpi.ask_version(launcher)


def find(arguments: Sequence[str]) -> str | None:
    """The program, whichever launcher the options before it are for."""
    program = mpirun.split(arguments).program
    path = shutil.which(program[0]) if program else None
    if path:
        return path
    # Cost: its tables take long to make, and most programs are found by now.
    from velo.runtime import over_libfabric

    program = mpirun.split(arguments, over_libfabric.HYDRA_OPTIONS).program
    return shutil.which(program[0]) if program else None


def family_of(program: str | None) -> frozenset[str] | None:
    """The MPIs that a program's libraries leave; None for one that loads none, such as a script."""
    names = loader.libraries(program) if program else {}
    return next((family for library, family in LIBRARIES.items() if library in names), None)


def found(root: Path | None) -> Iterator[Found]:
    """Every MPI that velo knows: below `root`, or in PATH, in its order."""
    for launcher in openmpi.launchers(root, LAUNCHERS):
        if mpi := identify(launcher):
            yield mpi


def identify(launcher: str) -> Found | None:
    """Whose launcher that is; None: of no MPI that velo knows."""
    if version := openmpi.openmpi_version(launcher):
        return Found(openmpi.kind_of_version(version), version, launcher)
    # Cost: as above.
    from velo.runtime import over_libfabric

    text = openmpi.version_text(launcher)
    for kind in sorted(MPICH_ABI):
        if match := over_libfabric.MPIS[kind].version.search(text):
            return Found(kind, match[1], launcher)
    return None
