# SPDX-License-Identifier: Apache-2.0
"""Kernels that Debian does not have: two that look for faults of the driver, one with large pages.

Each is built once, from Debian's source of the release that runs here, by files of kernels/.
What comes of it has the form of the folder of Debian's kernel: boot, modules, headers.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from velo import helpers
from velo.errors import VeloError
from vm import packages
from vm.progress import say

SOURCE = packages.Wanted("kernel-source", ("linux-source",), only=r"linux-source-\d")
# What a kernel is built with, and the package of Debian that has it.
PROGRAMS = {
    "gcc": "gcc", "ld": "binutils", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc",
    "perl": "perl", "xz": "xz-utils",
}  # fmt: skip
HEADERS = {"libelf.h": "libelf-dev"}
UNPACK_TIMEOUT_S = 600
CONFIGURE_TIMEOUT_S = 300
BUILD_TIMEOUT_S = 7200
PROGRESS_INTERVAL_S = 20.0


@dataclass(frozen=True)
class Kernel:
    """A kernel that is built here."""

    name: str
    """Of its folder in the cache."""
    configs: Sequence[str]
    """Files of kernels/, together the whole configuration."""
    image: str
    """In the built tree, what boots."""
    kept: Sequence[str]
    """Of the built tree, what `make M=folder` reads."""
    machine: str = ""
    """The kernel's name for it; none: that of this machine."""
    compiler: str = ""
    """What the names of its compiler begin with."""
    variables: Sequence[str] = ()
    """What make is told beside these."""

    @property
    def config(self) -> str:
        """The whole configuration."""
        folder = Path(__file__).with_name("kernels")
        return "".join((folder / name).read_text(encoding="utf-8") for name in self.configs)

    @property
    def choices(self) -> Sequence[str]:
        """Its lines that choose something."""
        lines = self.config.splitlines()
        return [line for line in lines if line.startswith(("CONFIG_", "# CONFIG_"))]

    @property
    def target(self) -> str:
        """What make is asked for, beside the modules."""
        return Path(self.image).name

    @property
    def words(self) -> Sequence[str]:
        """What each make is told."""
        machine = (f"ARCH={self.machine}", f"CROSS_COMPILE={self.compiler}") if self.machine else ()
        return (*machine, *self.variables)

    @property
    def programs(self) -> dict[str, str]:
        """What it is built with, and the package of Debian that has it."""
        if not self.compiler:
            return PROGRAMS
        of = self.compiler.removesuffix("-")
        crossing = {f"{self.compiler}gcc": f"gcc-{of}", f"{self.compiler}ld": f"binutils-{of}"}
        return PROGRAMS | crossing


X86_IMAGE = "arch/x86/boot/bzImage"
X86_KEPT = (
    "Makefile", ".config", "Module.symvers", "arch/x86/Makefile", "arch/x86/include", "include",
    "scripts", "tools/objtool/objtool",
)  # fmt: skip
DEBUG = Kernel(
    name="debug-kernel",
    configs=("guest.config", "x86.config", "debug.config"),
    image=X86_IMAGE,
    kept=X86_KEPT,
)
RACES = Kernel(
    name="races-kernel",
    configs=("guest.config", "x86.config", "races.config"),
    image=X86_IMAGE,
    kept=X86_KEPT,
    # The kernel itself is compiled without KCSAN. A module's build is not told so, and has KCSAN.
    variables=("KCSAN_SANITIZE=n",),
)
LARGE_PAGES = Kernel(
    name="kernel-arm64-64k",
    configs=("guest.config", "arm64-64k.config"),
    image="arch/arm64/boot/Image",
    kept=(
        "Makefile", ".config", "Module.symvers", "arch/arm64/Makefile", "arch/arm64/include",
        "include", "scripts",
    ),
    machine="arm64",
    compiler="aarch64-linux-gnu-",
)  # fmt: skip


def ensure(kernel: Kernel) -> Path:
    """The kernel's folder; built where the cache lacks it."""
    folder = packages.cache_folder() / kernel.name
    stamp = folder / f".velo-{kernel.name}"
    # The stamp tells nothing of the files' order and comments: a build for these alone takes long.
    described = f"{SOURCE.described()} {kernel.kept} {kernel.words} {sorted(kernel.choices)}"
    wanted = hashlib.sha256(described.encode()).hexdigest()
    with packages.locked(kernel.name):
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return folder
        _check_tools(kernel)
        with _partial(folder) as partial:
            source = _unpack(partial)
            _configure(kernel, source)
            _build(kernel, source)
            _install(kernel, source, partial)
            (partial / stamp.name).write_text(wanted, encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            partial.rename(folder)
    return folder


@contextlib.contextmanager
def _partial(folder: Path) -> Iterator[Path]:
    """A folder to build in. Whatever ends the build, Ctrl-C too, it is not there afterwards."""
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_tools(kernel: Kernel) -> None:
    missing = {package for program, package in kernel.programs.items() if not shutil.which(program)}
    for header, package in HEADERS.items():
        found = shutil.which("gcc") and subprocess.run(
            ["gcc", "-E", "-"], input=f"#include <{header}>\n", text=True, capture_output=True,
            timeout=CONFIGURE_TIMEOUT_S, check=False,
        )  # fmt: skip
        if not found or found.returncode:
            missing.add(package)
    if missing:
        raise VeloError(
            f"{kernel.name} is built here, which needs more than this machine has: "
            f"'apt-get install {' '.join(sorted(missing))}' installs it"
        )


def _unpack(partial: Path) -> Path:
    """The kernel's source. Its package is kept as it came, not unpacked."""
    with packages.locked(f"{SOURCE.name}-archive"):
        folder = packages.ensure(SOURCE)
        archive = next((folder / "usr" / "src").glob("linux-source-*.tar.xz"))
        say("unpacking the kernel's source")
        helpers.output(["tar", "-xJf", archive, "-C", partial], UNPACK_TIMEOUT_S)
        shutil.rmtree(folder, ignore_errors=True)
    return next(partial.glob("linux-source-*"))


def _configure(kernel: Kernel, source: Path) -> None:
    """By our own files alone, whose lines must all hold: a kernel without one would pass more."""
    asked = source / "velo.config"
    asked.write_text(kernel.config, encoding="utf-8")
    by = f"KCONFIG_ALLCONFIG={asked}"
    helpers.output(
        ["make", "-s", "-C", source, *kernel.words, by, "allnoconfig"], CONFIGURE_TIMEOUT_S
    )
    chosen = set((source / ".config").read_text(encoding="utf-8").splitlines())
    lost = [line for line in kernel.choices if line not in chosen]
    if lost:
        raise VeloError(
            f"the kernel of {source.name} takes no {', '.join(lost)} of {', '.join(kernel.configs)}"
        )


def _build(kernel: Kernel, source: Path) -> None:
    processors = len(os.sched_getaffinity(0))
    log = packages.cache_folder() / f"{kernel.name}.log"
    say(f"building {kernel.name}, once: some minutes of {processors} processors")
    with (
        log.open("w", encoding="utf-8") as output,
        helpers.running(
            ["make", "-C", source, f"-j{processors}", *kernel.words, kernel.target, "modules"],
            stdout=output, stderr=output,
        ) as make,
    ):  # fmt: skip
        begun = time.monotonic()
        while make.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                make.wait(PROGRESS_INTERVAL_S)
            after_s = time.monotonic() - begun
            if after_s > BUILD_TIMEOUT_S:
                raise VeloError(f"{kernel.name} is not built after {after_s:.0f} s; see {log}")
            said = log.read_text(encoding="utf-8", errors="replace")
            say(f"{kernel.name}: {said.count(' CC ')} files compiled in {after_s:.0f} s")
    if make.returncode:
        lines = "\n".join(said.splitlines()[-helpers.STDERR_LINES :])
        raise VeloError(f"{kernel.name} cannot be built; {log} ends with:\n{lines}")
    log.unlink()


def _install(kernel: Kernel, source: Path, partial: Path) -> None:
    """Moves what is needed to where Debian's packages have it; the rest goes."""
    make: list[str | Path] = ["make", "-s", "-C", source, *kernel.words]
    release = helpers.output([*make, "kernelrelease"], CONFIGURE_TIMEOUT_S).strip()
    install = [f"INSTALL_MOD_PATH={partial / 'usr'}", "DEPMOD=true", "modules_install"]
    helpers.output([*make, *install], CONFIGURE_TIMEOUT_S)
    (partial / "boot").mkdir()
    (source / kernel.image).rename(partial / "boot" / f"vmlinuz-{release}")
    headers = partial / "usr" / "src" / f"linux-headers-{release}"
    for name in kernel.kept:
        target = headers / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (source / name).rename(target)
    if kernel.machine:
        # As Debian's headers of another machine do it: who builds a module need not name it.
        text = f"export ARCH := {kernel.machine}\ninclude Makefile\n"
        (headers / "GNUmakefile").write_text(text, encoding="utf-8")
    shutil.rmtree(source)
