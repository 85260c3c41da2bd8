# SPDX-License-Identifier: Apache-2.0
"""Which MPI a job is for: by the program's libraries, and by the launchers that are there."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from velo.runtime import mpirun, openmpi, over_libfabric

OPEN_MPI = frozenset({"ompi4", "ompi5"})
MPICH_ABI = frozenset({"mpich", "impi"})
# As ldd lists them. Open MPI 4 and 5 have one number, and so have MPICH and Intel MPI.
LIBRARIES = ((re.compile(r"\blibmpi\.so\.40\b"), OPEN_MPI),
             (re.compile(r"\blibmpi(ch)?\.so\.12\b"), MPICH_ABI))  # fmt: skip
LAUNCHERS = ("mpirun", "mpirun.openmpi", "mpiexec", "mpiexec.hydra", "mpiexec.mpich")
MATCHING_LAYER = "velo's matching layer"
WAYS = {
    "ompi4": MATCHING_LAYER,
    "ompi5": "velo's libfabric provider",
    "mpich": "velo's libfabric provider",
    "impi": "velo's libfabric provider",
}
LDD_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Choice:
    """An MPI, and why that one."""

    kind: str
    launcher: str
    """None was found: empty."""
    by_program: bool
    """Do the program's libraries say so? Otherwise the launcher alone does."""
    native: bool = False
    """Is it an Open MPI 5 that loads velo's components?"""

    def __str__(self) -> str:
        way = MATCHING_LAYER if self.native else WAYS[self.kind]
        why = "the program's MPI" if self.by_program else "the first launcher in PATH"
        return f"--mpi {self.kind}: over {way}, by {self.launcher} ({why})"


def choose(arguments: Sequence[str], root: Path | None) -> Choice:
    """What fits a program with its launcher's options before it."""
    family = family_of(find(arguments))
    for path in _launchers(root):
        kind = kind_of(path)
        if kind and (family is None or kind in family):
            return Choice(kind, path, family is not None)
    # What follows from it says what is missing.
    return Choice("mpich" if family == MPICH_ABI else "ompi4", "", family is not None)


def find(arguments: Sequence[str]) -> str | None:
    """The program, whichever launcher the options before it are for."""
    for options in (mpirun.OPEN_MPI_OPTIONS, over_libfabric.HYDRA_OPTIONS):
        program = mpirun.split(arguments, options).program
        if program and (path := shutil.which(program[0])):
            return path
    return None


def family_of(program: str | None) -> frozenset[str] | None:
    """The MPIs that a program's libraries leave; None for one that loads none, such as a script."""
    if not program:
        return None
    try:
        listed = subprocess.run(
            ["ldd", program],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LDD_TIMEOUT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next((family for library, family in LIBRARIES if library.search(listed)), None)


def kind_of(launcher: str) -> str | None:
    """Whose launcher that is; None: of no MPI that velo knows."""
    if version := openmpi.openmpi_version(launcher):
        return openmpi.kind_of_version(version)
    text = openmpi.version_text(launcher)
    return next((k for k in MPICH_ABI if over_libfabric.MPIS[k].version.search(text)), None)


def _launchers(root: Path | None) -> Iterator[str]:
    for folder in [str(root / "bin")] if root else os.get_exec_path():
        for name in LAUNCHERS:
            if path := shutil.which(name, path=folder):
                yield path
