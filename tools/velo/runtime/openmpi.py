# SPDX-License-Identifier: Apache-2.0
"""The Open MPI of this machine: its mpirun, our components, and how it is told to use them."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from velo import tree
from velo.errors import UsageError, VeloError

COMPONENTS = {"mtl": "mca_mtl_velo.so", "btl": "mca_btl_velo.so"}
# Open MPI takes coll/velo from the folder of the others by itself, above its own.
NO_COLLECTIVES = ("--mca", "coll", "^velo")
VERSION_TIMEOUT_S = 10.0


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


def selection(layer: str, folder: Path, given: Iterable[str]) -> list[str]:
    """MCA parameters that select velo; mpirun takes each only once, so those given stand."""
    chosen = {"mca_base_component_path": f"{folder}:SYSTEM_DEFAULT:USER_DEFAULT"}
    if layer == "mtl":
        # One-sided communication goes through a BTL even where messages go through the MTL.
        chosen |= {"pml": "cm", "mtl": "velo", "btl": "self,velo"}
    else:
        chosen |= {"pml": "ob1", "btl": "self,velo,tcp"}
    return parameters(chosen, given)


def parameters(chosen: Mapping[str, str], given: Iterable[str]) -> list[str]:
    """MCA parameters as options, but for those that the user gives."""
    return [
        word
        for name, value in chosen.items()
        if name not in given
        for word in ("--mca", name, value)
    ]


def component_folder(layer: str) -> Path:
    """The folder of our components: in the same tree as this command."""
    try:
        return tree.find_loaded(f"openmpi/{COMPONENTS[layer]}").parent.resolve()
    except VeloError as error:
        path = shutil.which("mpirun")
        version = openmpi_version(path) if path else None
        if not version or version.startswith("4."):
            raise
        raise VeloError(
            f"{COMPONENTS[layer]} is for Open MPI 4.1, and {path} is of {version}: 'velo run' and "
            "'velo sim' without --mtl and --btl take velo's libfabric provider"
        ) from error


def find_mpirun(folder: Path, root: Path | None = None) -> str:
    """The mpirun that our components are for: below `root`, or in PATH."""
    wrong = []
    for name in ("mpirun.openmpi", "mpirun"):
        path = shutil.which(name, path=str(root / "bin") if root else None)
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
