# SPDX-License-Identifier: Apache-2.0
"""Every MPI that is in PATH, and which part of velo serves it, or what to do that one does."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from velo import tree
from velo.errors import VeloError
from velo.runtime import openmpi, over_libfabric, which_mpi
from velo.runtime.which_mpi import Found


class Served(NamedTuple):
    """An MPI and what serves it."""

    mpi: Found
    components: Path | None
    """The folder of velo's components for it."""
    provider: Path | None
    """velo's provider for libfabric, where no components serve it."""
    why: str
    """What is missing, and what to do."""

    @property
    def by(self) -> str:
        """In words; empty: by nothing."""
        if self.components:
            return f"{which_mpi.MATCHING_LAYER} (components for {self.components.name})"
        return which_mpi.PROVIDER if self.provider else ""

    def to_json(self) -> dict[str, str | None]:
        """For `velo info --json`."""
        return {
            "mpi": which_mpi.NAMES[self.mpi.kind],
            "kind": self.mpi.kind,
            "version": self.mpi.version,
            "launcher": self.mpi.launcher,
            "served_by": self.by or None,
            "why_not": self.why or None,
        }


def look(root: Path | None = None) -> Iterator[Served]:
    """Each MPI once, in the order of PATH."""
    seen = set()
    for mpi in which_mpi.found(root):
        # A folder has several launchers of one MPI, and links to them.
        key = (Path(mpi.launcher).resolve().parent, mpi.kind, mpi.version)
        if key not in seen:
            seen.add(key)
            yield serve(mpi)


def serve(mpi: Found) -> Served:
    """What serves an MPI."""
    advice = ""
    if mpi.kind in which_mpi.OPEN_MPI:
        if folder := openmpi.fitting(mpi.version):
            return Served(mpi, folder, None, "")
        advice = f"there are no components for {mpi.version}: {openmpi.how_to_get(mpi.kind)}"
        if mpi.kind == "ompi4":
            return Served(mpi, None, None, advice)
    elif over_libfabric.lacks_libfabric(mpi.launcher):
        advice = (
            f"it is built without libfabric, as Debian's MPICH is; 'pip install "
            f"{over_libfabric.MPIS[mpi.kind].source}' is one way to get one with it"
        )
        return Served(mpi, None, None, advice)
    try:
        return Served(mpi, None, tree.find_provider(over_libfabric.PROVIDER), advice)
    except VeloError as error:
        return Served(mpi, None, None, f"{advice}; {error}" if advice else str(error))
