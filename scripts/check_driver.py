#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the driver as a reviewer of Linux would, against the kernels of Debian's archives.

  check_driver.py [--kernels SUITE...] [--machines amd64 arm64 arm64-64k] [--only TOOL...]

For each kernel (those of bookworm, trixie and forky: the oldest and the newest long-term one, and
the newest release) and each machine it builds velo.ko with all warnings of the kernel's W=1, and
has sparse and smatch read it; for amd64 clang, too. The kernel with pages of 64 KiB is that of the
release that runs here alone; where `velo vm --large-pages` has not built it yet, that is done. Then
checkpatch --strict and kernel-doc of the newest kernel read the sources. Any word of theirs is a
failure. What each said is in build/driver-check.

Kernel headers, the newest kernel's scripts, and its release's sparse are unpacked into the cache of
`velo vm`, and nothing is installed. smatch is in no archive: it is taken from PATH, or from
$SMATCH. A tool that is missing is named, and what it would have checked is not.

Exit code: 0 if all that ran had nothing to say, 1 if not, 2 for wrong arguments, 77 if there are
no headers to be had.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from velo.errors import VeloError  # noqa: E402
from vm import built_kernel, image, packages  # noqa: E402

DRIVER = ROOT / "driver"
OUT = ROOT / "build" / "driver-check"
KERNELS = ("bookworm", "trixie", "forky")
LARGE_PAGES = "arm64-64k"
MACHINES = {"amd64": "", "arm64": "aarch64-linux-gnu-", LARGE_PAGES: "aarch64-linux-gnu-"}
"""And what the names of their compiler begin with."""
TOOLS = ("gcc", "sparse", "smatch", "clang", "checkpatch", "kernel-doc")
CLANG_LEAST = 15
"""Older ones do not compile Linux 7."""
LIMIT_S = 580
TOLD = re.compile(r"(?:warning|error|warn):|\*\*\*|Segmentation fault", re.IGNORECASE)
# An older compiler does not know all attributes of the kernel's own headers; pahole is not needed
# here.
EXPECTED = re.compile(r"/linux-headers-.*warning:|pahole|the compiler differs from the one")
# What a kernel was configured for by a newer compiler than there may be here.
NEWER = ("CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=",)
# What it was configured for by gcc, and clang has not, or in which objtool knows gcc's code alone.
FOR_CLANG = (
    "CONFIG_CC_IS_GCC=", "CONFIG_CC_IS_CLANG=y", "CONFIG_UBSAN_BOUNDS_STRICT=",
    "CONFIG_FTRACE_MCOUNT_USE_CC=", "CONFIG_OBJTOOL=", "KCFLAGS=-Wno-unknown-warning-option",
)  # fmt: skip
# kzalloc_obj() is of Linux 7 alone; the reuse of an argument is in sizeof and typeof.
IGNORED = "ALLOC_WITH_SIZEOF,MACRO_ARG_REUSE"
# Tracepoints are written in columns of their own everywhere in the kernel.
IGNORED_IN_TRACES = f"{IGNORED},PARENTHESIS_ALIGNMENT,OPEN_ENDED_LINE"


@dataclass(frozen=True)
class Tools:
    """Commands, empty where there is none."""

    clang: str
    sparse: str
    smatch: str


class Check:
    """What was found, and what could not be looked for."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.missing: set[str] = set()

    def run(self, name: str, command: list[str], must_end_well: bool = True) -> None:
        """One tool; its output is kept."""
        log = OUT / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=LIMIT_S, check=False,
        )  # fmt: skip
        log.write_text(f"$ {shlex.join(command)}\n{done.stdout}", encoding="utf-8")
        told = [
            line
            for line in done.stdout.splitlines()
            if TOLD.search(line) and not EXPECTED.search(line)
        ]
        if must_end_well and done.returncode and not told:
            told = done.stdout.splitlines()[-10:] or [f"exit code {done.returncode}"]
        print(f"check_driver: {name}: {len(told) or 'nothing'} said", flush=True)
        if told:
            self.failed.append(name)
            print("\n".join(f"  {line}" for line in told[:20]), flush=True)


def kernel_folder(suite: str, machine: str) -> Path:
    """Headers of a suite's kernel; of the release that runs here with its updates."""
    if machine == LARGE_PAGES:
        return image.headers_folder(image.ensure_kernel(built_kernel.LARGE_PAGES))
    of = "" if suite == packages.codename() else suite
    architecture = "" if machine == "amd64" else machine
    return image.headers_folder(image.ensure_kernel(suite=of, architecture=architecture))


def scripts_folder(suite: str) -> Path:
    """The scripts of a suite's kernel source, unpacked."""
    wanted = packages.Wanted(
        f"kernel-source-{suite}", ("linux-source",), suites=(suite,), only=r"linux-source-\d"
    )
    folder = packages.ensure(wanted) / "usr" / "src"
    archive = next(folder.glob("linux-source-*.tar.xz"))
    tree = folder / archive.name.removesuffix(".tar.xz")
    with packages.locked(f"{wanted.name}-scripts"):
        if not tree.is_dir():
            partial = folder / "partial"
            partial.mkdir(exist_ok=True)
            names = [f"{tree.name}/{name}" for name in ("scripts", "tools/docs", "tools/lib")]
            subprocess.run(
                ["tar", "-C", partial, "-xf", archive, *names], check=True, timeout=LIMIT_S
            )
            (partial / tree.name).rename(tree)
    return tree


def newest_sparse(suite: str) -> str:
    """Debian's sparse of the suite: an older one does not read the newest headers."""
    wanted = packages.Wanted(
        f"sparse-{suite}", ("sparse",), suites=(suite,), only=r"(sparse|libc6)$"
    )
    folder = packages.ensure(wanted)
    return shlex.join(image.loaded(folder, "usr/bin/sparse"))


def newest_clang() -> str:
    """The newest clang of this machine, if Linux takes it."""
    found = {"clang", *(f"clang-{version}" for version in range(CLANG_LEAST, 40))}
    versions = {}
    for name in filter(shutil.which, found):
        said = subprocess.check_output([name, "--version"], text=True, timeout=LIMIT_S)
        match = re.search(r"version (\d+)", said)
        versions[int(match[1]) if match else 0] = name
    newest = max(versions, default=0)
    return versions[newest] if newest >= CLANG_LEAST else ""


def check_kernel(check: Check, suite: str, machine: str, tools: Tools, only: set[str]) -> None:
    """Compilers and checkers, with the headers of a kernel."""
    headers = kernel_folder(suite, machine)
    prefix = MACHINES[machine]
    name = f"{headers.name.removeprefix('linux-headers-')}"

    def make(tool: str, compiler: str, flags: str) -> None:
        words = [f"CC={compiler}", "W=1", *NEWER]
        if tool == "clang":
            words += FOR_CLANG
        if prefix:
            words += [f"CROSS_COMPILE={prefix}"]
        out = OUT / name / ("clang" if tool == "clang" else "gcc")
        command = ["make", "-s", "-C", str(DRIVER), f"OUT={out}", f"KDIR={headers}"]
        check.run(f"{name}-{tool}", [*command, f"KFLAGS={shlex.join(words)} {flags}"])

    compiler = f"{prefix}gcc"
    if not shutil.which(compiler):
        check.missing.add(compiler)
        return
    if "gcc" in only:
        shutil.rmtree(OUT / name / "gcc", ignore_errors=True)
        make("gcc", compiler, "")
    # The kernel's own test of its checker is missing in Debian's headers: C=2 would check nothing.
    for tool, command in (("sparse", tools.sparse), ("smatch", tools.smatch)):
        if tool in only and command:
            make(tool, compiler, f"KBUILD_CHECKSRC=2 CHECK={shlex.quote(command)}")
    if "clang" in only and tools.clang and machine == "amd64":
        shutil.rmtree(OUT / name / "clang", ignore_errors=True)
        make("clang", tools.clang, "")


def check_sources(check: Check, tree: Path, only: set[str]) -> None:
    """What reads the sources alone."""
    sources = sorted([*DRIVER.glob("*.[ch]"), *DRIVER.glob("include/uapi/linux/*.h")])
    if "checkpatch" in only:
        command = [
            "perl", str(tree / "scripts" / "checkpatch.pl"), "--no-tree", "--strict",
            "--max-line-length=100", "--terse", "--show-types", "--no-summary",
        ]  # fmt: skip
        traces = [str(path) for path in sources if path.name == "trace.h"]
        others = [str(path) for path in sources if path.name != "trace.h"]
        others += [str(DRIVER / "Kconfig")]
        for name, ignored, files in (
            ("checkpatch", IGNORED, others),
            ("checkpatch-traces", IGNORED_IN_TRACES, traces),
        ):
            check.run(name, [*command, f"--ignore={ignored}", "-f", *files])
    if "kernel-doc" in only:
        program = str(tree / "tools" / "docs" / "kernel-doc")
        check.run("kernel-doc", [sys.executable, program, "-none", "-Wall", *map(str, sources)])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="check_driver.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kernels", nargs="+", metavar="SUITE", default=list(KERNELS))
    parser.add_argument("--machines", nargs="+", choices=list(MACHINES), default=list(MACHINES))
    parser.add_argument("--only", nargs="+", choices=TOOLS, metavar="TOOL", default=list(TOOLS),
                        help=", ".join(TOOLS))  # fmt: skip
    return parser.parse_args()


def main() -> int:
    args = parse()
    only = set(args.only)
    check = Check()
    smatch = os.environ.get("SMATCH") or shutil.which("smatch") or ""
    try:
        if os.uname().machine != "x86_64":
            raise VeloError("the kernels' programs that build modules are those of x86-64")
        sparse = newest_sparse(KERNELS[-1]) if "sparse" in only else ""
        tools = Tools(newest_clang(), sparse, f"{smatch} -p=kernel" if smatch else "")
        for name in ("clang", "smatch"):
            if name in only and not getattr(tools, name):
                check.missing.add(name)
        for suite in args.kernels:
            for machine in args.machines:
                if machine == LARGE_PAGES and suite != packages.codename():
                    continue
                check_kernel(check, suite, machine, tools, only)
        if only & {"checkpatch", "kernel-doc"}:
            check_sources(check, scripts_folder(KERNELS[-1]), only)
    except VeloError as error:
        print(f"check_driver: {error}", file=sys.stderr)
        return 77
    if check.missing:
        print(f"check_driver: not checked, as they are missing: {', '.join(sorted(check.missing))}")
    print(f"check_driver: {'failed: ' + ', '.join(check.failed) if check.failed else 'clean'}")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
