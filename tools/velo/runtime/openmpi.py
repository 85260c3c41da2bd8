# SPDX-License-Identifier: Apache-2.0
"""The Open MPI of this machine: its mpirun, our components, and how it is told to use them."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from velo import tree
from velo.errors import UsageError, VeloError

COMPONENTS = {"mtl": "mca_mtl_velo.so", "btl": "mca_btl_velo.so"}
# Open MPI takes coll/velo from the folder of the others by itself, above its own.
NO_COLLECTIVES = ("--mca", "coll", "^velo")
VERSION_TIMEOUT_S = 10.0
COMPONENT_PATH = "mca_base_component_path"


def environment(domain: str) -> dict[str, str]:
    """What mpirun and its ranks are told: the domain, to components and to calls of velo.h."""
    env = {f"OMPI_MCA_{framework}_velo_domain": domain for framework in COMPONENTS}
    env["VELO_DOMAIN"] = domain
    return env | allow_root()


def allow_root() -> dict[str, str]:
    """mpirun refuses to run as root without both."""
    if os.geteuid() != 0:
        return {}
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def _why_no_program(path: Path) -> str:
    if path.is_dir():
        return "is a folder"
    return "is not executable; chmod +x makes it so" if path.is_file() else "is not there"


def find_program(program: str) -> Path:
    """Where a program is."""
    path = shutil.which(program)
    if path is None:
        raise UsageError(f"the program {program} {_why_no_program(Path(program))}")
    return Path(path)


def selection(
    layer: str, folder: Path, given: Iterable[str], kind: str = "ompi4", *, is_here: bool = False
) -> list[str]:
    """MCA parameters that select velo; mpirun takes each only once, so those given stand."""
    where = {COMPONENT_PATH: f"{folder}:SYSTEM_DEFAULT:USER_DEFAULT"}
    chosen = {} if kind == "ompi5" else where
    if layer == "mtl":
        # One-sided communication goes through a BTL even where messages go through the MTL.
        chosen |= {"pml": "cm", "mtl": "velo", "btl": "self,velo"}
    else:
        # Open MPI 5's tcp complains where this node has no network.
        tcp = "" if kind == "ompi5" and is_here else ",tcp"
        chosen |= {"pml": "ob1", "btl": f"self,velo{tcp}"}
    # The runtime of Open MPI 5 has parameters of that name, too, and is not to look there.
    own = parameters(where, given, "--omca") if kind == "ompi5" else []
    return [*own, *parameters(chosen, given)]


def parameters(chosen: Mapping[str, str], given: Iterable[str], option: str = "--mca") -> list[str]:
    """MCA parameters as options, but for those that the user gives."""
    return [
        word
        for name, value in chosen.items()
        if name not in given
        for word in (option, name, value)
    ]


def quiet(mpirun: str) -> dict[str, str]:
    """What keeps PMIx from our components: Open MPI 5's mpirun hands it their folder, and it
    complains of each file there. It gets its own folder, beside its library."""
    name = f"PMIX_MCA_{COMPONENT_PATH}"
    if name in os.environ:
        return {}
    try:
        listed = subprocess.run(
            ["ldd", mpirun],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_TIMEOUT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        listed = ""
    found = re.search(r"libpmix\.so\S* => (\S+)", listed)
    folder = Path(found[1]).resolve().parent / "pmix" if found else None
    return {name: str(folder) if folder and folder.is_dir() else ""}


def built_for(folder: Path) -> str:
    """The Open MPI that components are for."""
    return (folder / "version").read_text().strip()


def kind_of_version(version: str) -> str:
    """Our name for all releases that are alike to a user."""
    return "ompi5" if int(version.split(".")[0]) >= 5 else "ompi4"


def kind_built_for() -> str:
    """Whose components are in the tree of this command; where there are none, those of 4.1 miss."""
    try:
        return kind_of_version(built_for(_find_components("mtl")))
    except (VeloError, OSError):
        return "ompi4"


def _is_alike(version: str | None, other: str) -> bool:
    """Releases that share two numbers load each other's components."""
    return version is not None and version.split(".")[:2] == other.split(".")[:2]


def _find_components(layer: str) -> Path:
    return tree.find_loaded(f"openmpi/{COMPONENTS[layer]}").parent.resolve()


def component_folder(layer: str, kind: str = "ompi4") -> Path:
    """The folder of our components for an Open MPI: in the same tree as this command."""
    try:
        folder = _find_components(layer)
    except VeloError as error:
        path = shutil.which("mpirun")
        found = openmpi_version(path) if path else None
        if kind != "ompi4" or not found or found.startswith("4."):
            raise
        raise VeloError(
            f"{COMPONENTS[layer]} is not here, and {path} is of {found}: 'velo run' and 'velo sim' "
            "without --mtl and --btl take velo's libfabric provider"
        ) from error
    version = built_for(folder)
    if kind_of_version(version) != kind:
        raise VeloError(
            f"velo's components are for Open MPI {version}, not for --mpi {kind}; build velo where "
            f"libopenmpi-dev is of that one, or take --mpi {kind_of_version(version)}"
        )
    return folder


def _mpiruns(root: Path | None, kind: str) -> Iterator[str]:
    """Those that may be the one. Of Open MPI 5 only the first in PATH: it is what a user calls."""
    if kind == "ompi4":
        for name in ("mpirun.openmpi", "mpirun"):
            if path := shutil.which(name, path=str(root / "bin") if root else None):
                yield path
        return
    for folder in [str(root / "bin")] if root else os.get_exec_path():
        for name in ("mpirun", "mpiexec", "mpirun.openmpi"):
            path = shutil.which(name, path=folder)
            version = openmpi_version(path) if path else None
            if path and version and kind_of_version(version) == kind:
                yield path
                return


def find_mpirun(folder: Path, root: Path | None = None, kind: str = "ompi4") -> str:
    """The mpirun that our components are for: below `root`, or in PATH."""
    wrong = []
    for path in _mpiruns(root, kind):
        version = openmpi_version(path)
        if _is_alike(version, built_for(folder)):
            return path
        wrong.append(f"{path} is of {'Open MPI ' + version if version else 'another MPI'}")
    if wrong:
        raise VeloError(
            f"velo's components are for Open MPI {built_for(folder)}, but {', '.join(wrong)}; put "
            "the other one first in PATH, or build velo against this one"
        )
    where = f"in {root / 'bin'}" if root else "there"
    raise VeloError(f"mpirun is not {where}; install openmpi-bin (Debian's name)")


def version_text(launcher: str) -> str:
    """What a launcher says of itself; nothing, if it cannot be asked."""
    try:
        return subprocess.run(
            [launcher, "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def openmpi_version(mpirun: str) -> str | None:
    """Open MPI's version; None for another MPI."""
    match = re.search(r"\(Open MPI\) (\d[\d.]*)", version_text(mpirun))
    return match[1] if match else None
