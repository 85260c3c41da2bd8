# SPDX-License-Identifier: Apache-2.0
"""Where the files of this command are: in a checkout and its build folder, or installed.

An installed tree may be moved: everything is found relative to this file and to $VELO_LIBEXEC,
which the launcher sets. A wheel has the programs beside this file, and no launcher.
"""

import os
import sys
from pathlib import Path
from typing import Any

from velo.errors import VeloError

PYTHON_FOLDER = Path(__file__).resolve().parents[1]
"""What PYTHONPATH has to hold for `python -m velo`."""


def _checkout() -> Path | None:
    folder = PYTHON_FOLDER.parent
    return folder if (folder / "CMakePresets.json").is_file() else None


CHECKOUT = _checkout()
"""None: this is an installed tree."""
IN_WHEEL = Path(__file__).with_name("libexec")
"""The folder of the programs if pip has installed the command."""
# Where a file comes from: the target of make that builds it, and the Debian package that has it.
SIMULATOR = ("make sim", "velo-sim")
TOOLS = ("make build", "velo-tools")
OPEN_MPI = ("make build", "openmpi-velo")
LIBFABRIC = ("make build", "libfabric-velo")
BETWEEN_MACHINES = ("make build", "velo-ofi")
NEEDS = {
    OPEN_MPI: " (needs Debian's libopenmpi-dev and openmpi-bin)",
    LIBFABRIC: " (needs Debian's libfabric-dev)",
    BETWEEN_MACHINES: " (needs Debian's libfabric-dev and libssl-dev)",
}
ORIGINS = {
    "velo-sim": SIMULATOR,
    "velo-mpi-perf": SIMULATOR,
    "velo-api-perf": SIMULATOR,
    "velo-replay": SIMULATOR,
    "libvelo-virtual.so": SIMULATOR,
    "libvelo-yield.so": LIBFABRIC,
    "libvelo-nic.so": SIMULATOR,
    "libvelo-card.so": SIMULATOR,
    "libvelo-ofi.so": BETWEEN_MACHINES,
}
LOADED = ("lib*/velo", "lib*/*/velo")
# Modules that pages and plots need, and the package that brings each.
PAGE_MODULES = {
    "jinja2": "jinja2",
    "markupsafe": "jinja2",
    "matplotlib": "matplotlib",
    "numpy": "numpy",
}


class Packages:
    """Adds Python's folders of packages when the first module is loaded that needs them: the
    launcher starts Python without, which most commands need not (2 to 4 ms of a start)."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, _target: Any = None) -> Any:
        """Asked for each module that is found nowhere else; see importlib.abc.MetaPathFinder."""
        if name not in PAGE_MODULES or cls not in sys.meta_path:
            return None
        sys.meta_path.remove(cls)
        # Cost: the very ones that we are here to save.
        import site
        from importlib.machinery import PathFinder

        site.main()
        return PathFinder.find_spec(name, path)


def has(package: str) -> bool:
    """Is a package there that not every installation has? By its folder, as `velo/cluster`."""
    return (PYTHON_FOLDER / package / "__init__.py").is_file()


def find(name: str) -> Path:
    """The path of one of the programs that the command runs."""
    folder = _libexec()
    path = folder / name
    if not os.access(path, os.X_OK):
        raise VeloError(f"{name} is not in {folder}; {_advice(ORIGINS.get(name, TOOLS))}")
    return path


def list_loaded(pattern: str) -> list[Path]:
    """Libraries that programs load, by a pattern below a library folder's velo/."""
    prefix = _libexec().parents[1]
    return [path for folder in LOADED for path in sorted(prefix.glob(f"{folder}/{pattern}"))
            if path.is_file()]  # fmt: skip


def find_loaded(name: str) -> Path:
    """The first of those."""
    found = list_loaded(name)
    if not found:
        raise VeloError(missing_component(Path(name).name))
    return found[0]


def missing_component(base: str) -> str:
    """What to tell a user of a library that is not there."""
    return f"{base} is not below {_libexec().parents[1]}; {_advice(ORIGINS.get(base, OPEN_MPI))}"


def find_driver(kernel: str = "") -> Path:
    """The card's driver for the guests of `velo vm`; it is not installed.

    kernel: the option that names the guests' kernel, such as debug; empty: Debian's kernel.
    """
    folder, words, options = "driver", "", "--headers"
    if kernel:
        folder, options = f"driver-{kernel}", f"--{kernel} --headers"
        kunit = " VELO_KUNIT=y" if kernel == "debug" else ""
        words = f"{kunit} OUT={CHECKOUT}/build/{folder}"
    path = CHECKOUT / "build" / folder / "velo.ko" if CHECKOUT else None
    if path and path.is_file():
        return path
    where = CHECKOUT or "a checkout"
    raise VeloError(
        f"there is no driver for the guests' kernel: 'make -C driver KDIR=$(velo vm {options})"
        f"{words}' in {where} builds it; --driver names another"
    )


def find_simulated_provider(name: str) -> Path:
    """A provider of libfabric that reaches simulated nodes: among what programs load."""
    path = f"libfabric/{name}"
    try:
        return find_loaded(path)
    except VeloError as error:
        raise VeloError(
            f"the simulator here has no {path}, by which libfabric reaches simulated nodes: it was "
            f"built without libfabric's headers; {_advice(SIMULATOR, NEEDS[LIBFABRIC])}"
        ) from error


def find_provider(name: str) -> Path:
    """A provider of libfabric: beside libfabric's own ones."""
    prefix = _libexec().parents[1]
    for pattern in ("lib*/libfabric", "lib*/*/libfabric"):
        for folder in sorted(prefix.glob(pattern)):
            # Below velo/ is the one for simulated nodes.
            if folder.parent.name != "velo" and (folder / name).is_file():
                return folder / name
    raise VeloError(f"{name} is not below {prefix}; {_advice(LIBFABRIC)}")


def hosts() -> Path:
    """The folder of the profiles of hosts (velo/cluster/profiles.py)."""
    return CHECKOUT / "sim" / "hosts" if CHECKOUT else PYTHON_FOLDER / "hosts"


def measured(name: str) -> Path:
    """A file of measured values that `make` leaves in the build folder, and an installation has."""
    return (CHECKOUT / "build" if CHECKOUT else PYTHON_FOLDER) / name


def output(name: str) -> Path:
    """Where a page goes that nobody named a file for: into the build folder if that is in the
    checkout where the user stands, as all else that is made there, otherwise where the user is."""
    here = Path.cwd()
    in_checkout = CHECKOUT is not None and here.resolve().is_relative_to(CHECKOUT)
    return CHECKOUT / "build" / name if CHECKOUT and in_checkout else here / name


def missing_package(command: str, module: str) -> str:
    """What to tell a user of a command that needs a Python package which is not there."""
    how = (
        f"'make setup' in {CHECKOUT} installs it"
        if CHECKOUT
        else "'pip install velo[report]' installs all that pages need"
        if IN_WHEEL.is_dir()
        else "'apt-get install python3-jinja2 python3-matplotlib' (Debian) or 'pip install jinja2 "
        "matplotlib' installs all that pages need"
    )
    needed = PAGE_MODULES[module]
    return f"velo {command} needs the Python package {needed}, which is not installed; {how}"


def _libexec() -> Path:
    preset = os.environ.get("VELO_LIBEXEC")
    if preset:
        return Path(preset)
    if CHECKOUT:
        return CHECKOUT / "build" / "libexec" / "velo"
    if IN_WHEEL.is_dir():
        return IN_WHEEL
    raise VeloError("VELO_LIBEXEC is not set; start velo by its launcher, bin/velo")


def _advice(origin: tuple[str, str], needs: str = "") -> str:
    target, package = origin
    needs = needs or NEEDS.get(origin, "")
    if CHECKOUT:
        return f"run '{target}'{needs}, or set VELO_LIBEXEC"
    return f"install the package {package}, or run '{target}'{needs} and install again"
