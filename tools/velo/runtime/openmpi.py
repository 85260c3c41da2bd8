# SPDX-License-Identifier: Apache-2.0
"""The Open MPI of this machine: its mpirun, our components, and how it is told to use them."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from velo import tree
from velo.errors import UsageError, VeloError
from velo.runtime import asking, loader

COMPONENTS = {"mtl": "mca_mtl_velo.so", "btl": "mca_btl_velo.so"}
# Open MPI takes coll/velo from the folder of the others by itself, above its own.
NO_COLLECTIVES = ("--mca", "coll", "^velo")
COMPONENT_PATH = "mca_base_component_path"
LAUNCHERS = ("mpirun", "mpirun.openmpi", "mpiexec")
# With the PMIx of Open MPI 4.1 in Debian 12 (4.2.2) the socket of a process that a rank has spawned
# at times does not get into the epoll set of mpirun, which then never reads what the process sends:
# MPI_Comm_spawn() hangs. By poll() libevent names all descriptors anew in each wait.
BY_POLL = {"EVENT_NOEPOLL": "1"}


def environment(domain: str) -> dict[str, str]:
    """What mpirun and its ranks are told: the domain, to components and to calls of velo.h."""
    env = {f"OMPI_MCA_{framework}_velo_domain": domain for framework in COMPONENTS}
    env["VELO_DOMAIN"] = domain
    return env | allow_root()


def by_poll(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What makes the mpirun of Open MPI 4.1 hear spawned processes."""
    return {name: value for name, value in BY_POLL.items() if name not in env}


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


def quiet(mpirun: str, env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What keeps PMIx from our components: Open MPI 5's mpirun hands it their folder, and it
    complains of each file there. It gets its own folder, beside its library."""
    name = f"PMIX_MCA_{COMPONENT_PATH}"
    if env.get(name):
        return {}
    found = next(
        (path for name, path in loader.libraries(mpirun).items() if name.startswith("libpmix.so")),
        None,
    )
    folder = Path(found).resolve().parent / "pmix" if found else None
    return {name: str(folder) if folder and folder.is_dir() else ""}


def kind_of_version(version: str) -> str:
    """Our name for all releases that are alike to a user."""
    return "ompi5" if int(version.split(".")[0]) >= 5 else "ompi4"


def folders(layer: str = "mtl") -> dict[str, Path]:
    """Those of our components in the tree of this command, by the Open MPI that they are for; the
    newest first."""
    found = {
        path.parent.name: path.parent.resolve()
        for path in tree.list_loaded(f"openmpi/[0-9]*/{COMPONENTS[layer]}")
    }
    return dict(sorted(found.items(), key=lambda item: _numbers(item[0]), reverse=True))


def fitting(version: str, layer: str = "mtl") -> Path | None:
    """The folder of our components for an Open MPI: releases that share two numbers load each
    other's."""
    found = folders(layer)
    alike = (path for name, path in found.items() if _series(name) == _series(version))
    return found.get(version) or next(alike, None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d+", version))


def _series(version: str) -> tuple[int, ...]:
    return _numbers(version)[:2]


def component_folder(layer: str, kind: str = "ompi4") -> Path:
    """The newest of our components for an Open MPI of a kind."""
    found = folders(layer)
    folder = next((path for name, path in found.items() if kind_of_version(name) == kind), None)
    if folder:
        return folder
    if found:
        raise VeloError(
            f"velo's components are for Open MPI {' and '.join(found)}, not for --mpi {kind}; "
            f"{how_to_get(kind)}, or take --mpi {kind_of_version(next(iter(found)))}"
        )
    advice = tree.missing_component(COMPONENTS[layer])
    path = shutil.which("mpirun")
    version = openmpi_version(path) if path else None
    if kind == "ompi4" and version and not version.startswith("4."):
        advice = (
            f"{COMPONENTS[layer]} is not here, and {path} is of {version}: 'velo run' and 'velo "
            "sim' without --mtl and --btl take velo's libfabric provider"
        )
    raise VeloError(advice)


def how_to_get(kind: str) -> str:
    """What a user does to have components for another Open MPI."""
    number = "5.0" if kind == "ompi5" else "4.1"
    return (
        f"with the internal headers of one of {number} (Debian: libopenmpi-dev; from source: "
        "configure --with-devel-headers, and VELO_OPENMPI=FOLDER in the environment) 'make build' "
        "makes those"
    )


def launchers(root: Path | None, names: Sequence[str] = LAUNCHERS) -> Iterator[str]:
    """Programs that may be an Open MPI's mpirun: below `root`, or in PATH, in its order."""
    for folder in [str(root / "bin")] if root else os.get_exec_path():
        for name in names:
            if path := shutil.which(name, path=folder):
                yield path


def find_mpirun(layer: str, root: Path | None = None, kind: str = "ompi4") -> tuple[str, Path]:
    """The mpirun of an Open MPI, the first of its kind in PATH or that below `root`, as it is what
    a user calls; and the folder of the components that fit it."""
    for path in launchers(root):
        version = openmpi_version(path)
        if not version or kind_of_version(version) != kind:
            continue
        if folder := fitting(version, layer):
            return path, folder
        component_folder(layer, kind)  # There may be none at all.
        raise VeloError(
            f"velo's components are for Open MPI {' and '.join(folders(layer))}, but {path} is of "
            f"Open MPI {version}; put another one first in PATH, or build velo where this one's "
            "bin is in PATH"
        )
    component_folder(layer, kind)
    where = f"in {root / 'bin'}" if root else "in PATH"
    number = "5" if kind == "ompi5" else "4.1"
    raise VeloError(
        f"there is no mpirun of Open MPI {number} {where}; install openmpi-bin (Debian's name), or "
        "name the folder above its bin with --mpi-root"
    )


def version_text(launcher: str) -> str:
    """What a launcher says of itself; nothing, if it cannot be asked."""
    return ask_version(launcher).answer()


def ask_version(launcher: str) -> asking.Question:
    """Ask a launcher what it says of itself."""
    return asking.ask(launcher, "--version")


def openmpi_version(mpirun: str) -> str | None:
    """Open MPI's version; None for another MPI."""
    match = re.search(r"\(Open MPI\) (\d[\d.]*)", version_text(mpirun))
    return match[1] if match else None
