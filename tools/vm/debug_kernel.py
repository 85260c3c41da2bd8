# SPDX-License-Identifier: Apache-2.0
"""The kernel of `velo vm --debug`, which looks for faults of the driver while it runs.

It is built once, from Debian's source of the release that runs here, by debug.config. Its folder in
the cache has the form of the folder of Debian's kernel: boot, modules, headers.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from velo import helpers
from velo.errors import VeloError
from vm import packages
from vm.progress import say

NAME = "debug-kernel"
SOURCE = packages.Wanted("kernel-source", ("linux-source",), only=r"linux-source-\d")
CONFIG = Path(__file__).with_name("debug.config")
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
# Of a built tree, what `make M=folder` reads.
KEPT = (
    "Makefile", ".config", "Module.symvers", "arch/x86/Makefile", "arch/x86/include", "include",
    "scripts", "tools/objtool/objtool",
)  # fmt: skip


def ensure() -> Path:
    """The kernel's folder; built where the cache lacks it."""
    folder = packages.cache_folder() / NAME
    stamp = folder / ".velo-debug-kernel"
    described = f"{SOURCE.described()} {KEPT}".encode()
    wanted = hashlib.sha256(described + CONFIG.read_bytes()).hexdigest()
    with packages.locked(NAME):
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return folder
        _check_tools()
        with _partial(folder) as partial:
            source = _unpack(partial)
            _configure(source)
            _build(source)
            _install(source, partial)
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


def _check_tools() -> None:
    missing = {package for program, package in PROGRAMS.items() if not shutil.which(program)}
    for header, package in HEADERS.items():
        found = shutil.which("gcc") and subprocess.run(
            ["gcc", "-E", "-"], input=f"#include <{header}>\n", text=True, capture_output=True,
            timeout=CONFIGURE_TIMEOUT_S, check=False,
        )  # fmt: skip
        if not found or found.returncode:
            missing.add(package)
    if missing:
        raise VeloError(
            "the debug kernel is built here, which needs more than this machine has: "
            f"'apt-get install {' '.join(sorted(missing))}' installs it"
        )


def _unpack(partial: Path) -> Path:
    """The kernel's source. Its package is kept as it came, not unpacked."""
    folder = packages.ensure(SOURCE)
    archive = next((folder / "usr" / "src").glob("linux-source-*.tar.xz"))
    say("unpacking the kernel's source")
    helpers.output(["tar", "-xJf", archive, "-C", partial], UNPACK_TIMEOUT_S)
    shutil.rmtree(folder, ignore_errors=True)
    return next(partial.glob("linux-source-*"))


def _configure(source: Path) -> None:
    """By our own file alone, all of whose lines must hold: a kernel without one would pass more."""
    helpers.output(
        ["make", "-s", "-C", source, f"KCONFIG_ALLCONFIG={CONFIG}", "allnoconfig"],
        CONFIGURE_TIMEOUT_S,
    )
    chosen = set((source / ".config").read_text(encoding="utf-8").splitlines())
    asked = CONFIG.read_text(encoding="utf-8").splitlines()
    lost = [line for line in asked if line.startswith("CONFIG_") and line not in chosen]
    if lost:
        raise VeloError(f"the kernel of {source.name} takes no {', '.join(lost)} of {CONFIG}")


def _build(source: Path) -> None:
    processors = len(os.sched_getaffinity(0))
    log = packages.cache_folder() / f"{NAME}.log"
    say(f"building the debug kernel, once: some minutes of {processors} processors")
    with (
        log.open("w", encoding="utf-8") as output,
        helpers.running(
            ["make", "-C", source, f"-j{processors}", "bzImage", "modules"],
            stdout=output, stderr=output,
        ) as make,
    ):  # fmt: skip
        begun = time.monotonic()
        while make.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                make.wait(PROGRESS_INTERVAL_S)
            after_s = time.monotonic() - begun
            if after_s > BUILD_TIMEOUT_S:
                raise VeloError(f"the debug kernel is not built after {after_s:.0f} s; see {log}")
            said = log.read_text(encoding="utf-8", errors="replace")
            say(f"the debug kernel: {said.count(' CC ')} files compiled in {after_s:.0f} s")
    if make.returncode:
        lines = "\n".join(said.splitlines()[-helpers.STDERR_LINES :])
        raise VeloError(f"the debug kernel cannot be built; {log} ends with:\n{lines}")
    log.unlink()


def _install(source: Path, partial: Path) -> None:
    """Moves what is needed to where Debian's packages have it; the rest goes."""
    make: list[str | Path] = ["make", "-s", "-C", source]
    release = helpers.output([*make, "kernelrelease"], CONFIGURE_TIMEOUT_S).strip()
    install = [f"INSTALL_MOD_PATH={partial / 'usr'}", "DEPMOD=true", "modules_install"]
    helpers.output([*make, *install], CONFIGURE_TIMEOUT_S)
    (partial / "boot").mkdir()
    (source / "arch/x86/boot/bzImage").rename(partial / "boot" / f"vmlinuz-{release}")
    headers = partial / "usr" / "src" / f"linux-headers-{release}"
    for name in KEPT:
        target = headers / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (source / name).rename(target)
    shutil.rmtree(source)
