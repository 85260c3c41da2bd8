# SPDX-License-Identifier: Apache-2.0
"""What guests boot: a kernel, and an image that all of them share and none writes.

The image is an ext4 file system made of unpacked packages, without mounting anything; the kernel's
modules are in it. A small archive in memory (initrd) mounts it. Both are made once. Kernels that
are built here have no modules, and an initrd of their own.
"""

import hashlib
import lzma
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from velo import helpers
from velo.errors import VeloError
from vm import packages
from vm.built_kernel import Kernel
from vm.built_kernel import ensure as ensure_built
from vm.progress import say

TOOL_TIMEOUT_S = 120
GUEST_FILES = Path(__file__).with_name("guest")
# Debian's own QEMU has vfio-user devices from 10.1 on.
QEMU = packages.Wanted(
    "qemu", ("qemu-system-x86", "virtiofsd"), suites=("trixie", "trixie-backports")
)
ARM64 = "arm64"
"""The one other machine that guests can be."""
QEMU_ARM64 = replace(QEMU, name="qemu-arm64", packages=("qemu-system-arm", "virtiofsd"))
KERNEL = packages.Wanted(
    "kernel",
    ("linux-image-cloud-amd64", "linux-headers-cloud-amd64"),
    only="linux-(image|headers|kbuild|compiler)-",
)
KERNEL_ARM64_PACKAGES = ("linux-image-cloud-arm64", "linux-headers-cloud-arm64")
# Newer releases have modules in a package of their own.
KERNEL_OF_ANOTHER = "linux-(image|headers|kbuild|compiler|modules|binary)-"
# What these releases' programs that build modules are linked with.
LIBRARIES = packages.Wanted("libraries", ("libc6", "libelf1t64", "libzstd1", "zlib1g"))
WRAPPED = ".elf"
# What jobs need, and what people at a shell look for.
ROOT = packages.Wanted(
    "root",
    (
        "base-files", "bash", "busybox-static", "coreutils", "dash", "dropbear-bin", "ethtool",
        "findutils", "gawk", "grep", "gzip", "hostname", "hpcc", "iproute2", "kmod", "less",
        "libc-bin", "libcmocka0", "libfabric1", "mount", "nano", "ncurses-base", "ncurses-bin",
        "netpipe-openmpi", "openmpi-bin", "pciutils", "procps", "python3-minimal", "sed", "strace",
        "tar", "util-linux",
    ),
)  # fmt: skip
# Modules that the image is mounted with, and what the guest's first minute needs.
FIRST_MODULES = (
    "virtio_pci", "virtio_blk", "overlay", "virtio_net", "virtio_console", "virtio-rng", "virtiofs",
)  # fmt: skip
SPARE_MB = 16
HOME = Path("/var/lib/velo")
"""Of a guest's only user: not /root, over which a folder of this machine may lie."""
GUESTS_MAX = 16
PASSWD = f"root:x:0:0:root:{HOME}:/bin/bash\nnobody:x:65534:65534::/nonexistent:/bin/false\n"
GROUP = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"


@dataclass(frozen=True)
class Images:
    """Files that a guest boots from, and the programs that run it."""

    kernel: Path
    initrd: Path
    root: Path
    qemu: Path
    """The folder with QEMU's packages."""


def ensure(built: Kernel | None = None, suite: str = "", architecture: str = "") -> Images:
    """All that guests need, with the kernel of a suite; made where the cache lacks it."""
    if os.uname().machine != "x86_64":
        raise VeloError(f"guests are x86-64 machines; on {os.uname().machine} there are none yet")
    cache = packages.cache_folder()
    qemu = packages.ensure(QEMU_ARM64 if architecture else QEMU)
    kernel = ensure_kernel(suite=suite, architecture=architecture)
    release = kernel_release(kernel)
    of = _of(suite, architecture)
    bare = cache / f"initrd-bare{_of(architecture)}"
    images = Images(_boot_file(kernel), cache / f"initrd{of}", cache / f"root{of}.ext4", qemu)
    stamp = cache / f"image{of}.sha256"
    with packages.locked("image"):
        wanted = _fingerprint(release)
        made = stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted
        if not (made and images.root.is_file() and images.initrd.is_file()):
            stamp.unlink(missing_ok=True)
            root = packages.ensure(_root(architecture))
            _make(root, kernel, images)
            _write_initrd(root, (), bare)
            stamp.write_text(wanted, encoding="utf-8")
    if built:
        images = replace(images, kernel=_boot_file(ensure_built(built)), initrd=bare)
    return images


def _of(*words: str) -> str:
    """What the names of files in the cache end with."""
    return "".join(f"-{word}" for word in words if word)


def _root(architecture: str) -> packages.Wanted:
    if not architecture:
        return ROOT
    return replace(ROOT, name=f"root-{architecture}", architecture=architecture)


def ensure_kernel(built: Kernel | None = None, suite: str = "", architecture: str = "") -> Path:
    """The folder of the kernel's packages; modules can be built against what is in it."""
    if built:
        return ensure_built(built)
    made_of = replace(KERNEL, name=f"kernel{_of(suite, architecture)}", architecture=architecture)
    if architecture:
        made_of = replace(made_of, packages=KERNEL_ARM64_PACKAGES, only=KERNEL_OF_ANOTHER)
    if suite:
        made_of = replace(made_of, suites=(suite,), only=KERNEL_OF_ANOTHER)
    kernel = packages.ensure(made_of)
    headers = headers_folder(kernel)
    ours = ensure_kernel(suite=suite) if architecture else None
    # What the packages say by full paths is true of this folder then. A build that reads the file
    # meanwhile finds all of it.
    makefile = headers / "Makefile"
    with packages.locked("kernel-headers"):
        text = makefile.read_text(encoding="utf-8")
        wanted = re.sub(r"(?<=[ =])/usr/src/", f"{kernel}/usr/src/", text)
        if wanted != text:
            partial = makefile.with_name("Makefile.partial")
            partial.write_text(wanted, encoding="utf-8")
            partial.replace(makefile)
        if ours:
            _take_programs(headers, headers_folder(ours))
        elif suite:
            _wrap_programs(kernel, suite)
        _take_compiler(headers / ".kernelvariables")
    return kernel


def _wrap_programs(kernel: Path, suite: str) -> None:
    """The programs that build modules run with the libraries of their own release."""
    wanted = replace(LIBRARIES, name=f"libraries-{suite}", suites=(suite,))
    folder = packages.ensure(wanted)
    for path in kernel.glob("usr/lib/linux-kbuild-*/**/*"):
        if path.suffix == WRAPPED or path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        program = path.with_name(path.name + WRAPPED)
        path.rename(program)
        command = loaded(folder, str(program))
        # Some find the one for a kind of machine beside themselves.
        command[command.index("--argv0") + 1] = str(path)
        path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        path.chmod(0o755)


def _take_compiler(variables: Path) -> None:
    """Debian's headers name the compiler of their own release; where it is not, gcc."""
    text = variables.read_text(encoding="utf-8") if variables.is_file() else ""
    named = re.search(r"gcc-\d+", text)
    if named and not shutil.which(named[0]):
        variables.write_text(text.replace(named[0], "gcc"), encoding="utf-8")


def _take_programs(headers: Path, ours: Path) -> None:
    """The programs that build modules, as this machine runs them, in place of the other one's."""
    for name in ("scripts", "tools"):
        target = os.path.relpath((ours / name).resolve(), headers)
        if str((headers / name).readlink()) != target:
            (headers / name).unlink()
            (headers / name).symlink_to(target)


def kernel_release(kernel: Path) -> str:
    """What uname -r says in the guest."""
    return release_of(_boot_file(kernel))


def release_of(boot_file: Path) -> str:
    """The same, of a kernel's file."""
    name = boot_file.name
    return boot_file.parent.name if name == "vmlinuz" else name.removeprefix("vmlinuz-")


def _boot_file(kernel: Path) -> Path:
    # Newer releases have it beside the modules.
    for pattern in ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"):
        for path in kernel.glob(pattern):
            return path
    raise VeloError(f"{kernel} has no kernel; remove that folder, and it is made again")


def headers_folder(kernel: Path) -> Path:
    """What make builds a module for the guests' kernel with: make -C this M=folder."""
    return kernel / "usr" / "src" / f"linux-headers-{kernel_release(kernel)}"


def loaded(folder: Path, program: str, *words: str) -> list[str]:
    """The command of an unpacked program, which runs with the libraries that came with it."""
    if not (folder / program).is_file():
        raise VeloError(f"{folder} lacks {program}; remove that folder, and it is made again")
    libraries = ":".join(str(folder / "usr/lib" / name) for name in ("x86_64-linux-gnu", ""))
    # Below lib64 is a link by its full path: to this machine's.
    loader = folder / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    name = Path(program).name
    return [
        str(loader), "--library-path", libraries, "--argv0", name, str(folder / program), *words
    ]  # fmt: skip


def _fingerprint(release: str) -> str:
    """Changes with all that the image is made of."""
    hashed = hashlib.sha256(f"{ROOT.described()} {release}".encode())
    for path in (Path(__file__), *sorted(GUEST_FILES.iterdir())):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


def _make(root: Path, kernel: Path, images: Images) -> None:
    say("making the guests' image")
    release = kernel_release(kernel)
    modules = root / "usr" / "lib" / "modules"
    shutil.rmtree(modules, ignore_errors=True)
    shutil.copytree(kernel / "usr/lib/modules" / release, modules / release, symlinks=True)
    for name in ("build", "source"):
        (modules / release / name).unlink(missing_ok=True)
    # Programs of the image that are run here are this machine's.
    programs = packages.ensure(ROOT)
    depmod = loaded(programs, "usr/bin/kmod", "-b", str(root), release)
    depmod[depmod.index("kmod")] = "depmod"
    helpers.output(depmod, TOOL_TIMEOUT_S)
    _furnish(root, programs)
    _write_initrd(root, _load_order(modules / release), images.initrd)
    partial = images.root.with_name(images.root.name + ".partial")
    size_bytes = int(helpers.output(["du", "-s", "--block-size=1", root], 60).split()[0])
    partial.unlink(missing_ok=True)
    helpers.output(
        ["/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-E",
         "root_owner=0:0", "-d", root, partial, f"{size_bytes * 9 // 8 // 2**20 + SPARE_MB}M"],
        TOOL_TIMEOUT_S,
    )  # fmt: skip
    partial.rename(images.root)


def _furnish(root: Path, programs: Path) -> None:
    """What the packages' scripts would have done, as far as guests need it, and our own files."""
    for name in ("dev", "proc", "sys", "run", "tmp", "root", "etc/velo", "usr/lib/velo"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / HOME.relative_to("/") / ".ssh").mkdir(parents=True, exist_ok=True)
    for path in GUEST_FILES.iterdir():
        target = root / (
            "etc/profile" if path.name == "profile.in" else f"usr/lib/velo/{path.name}"
        )
        shutil.copy(path, target)
        target.chmod(0o755)  # In an installed tree no file of ours is executable.
    (root / "etc" / "passwd").write_text(PASSWD, encoding="utf-8")
    (root / "etc" / "group").write_text(GROUP, encoding="utf-8")
    (root / "etc" / "shells").write_text("/bin/sh\n/bin/bash\n", encoding="utf-8")
    _link_alternatives(root)
    _make_keys(root, programs)


def _make_keys(root: Path, programs: Path) -> None:
    """Of a network that only the guests are on; whoever can read the image is its owner."""
    keys = {}
    for name in ("host_key", "user_key"):
        key = root / "etc" / "velo" / name
        key.unlink(missing_ok=True)
        words = ["-t", "ed25519", "-f", str(key)]
        said = helpers.output(loaded(programs, "usr/bin/dropbearkey", *words), TOOL_TIMEOUT_S)
        line = next(line for line in said.splitlines() if line.startswith("ssh-"))
        keys[name] = " ".join(line.split()[:2])
    folder = root / HOME.relative_to("/") / ".ssh"
    folder.chmod(0o700)
    (folder / "authorized_keys").write_text(keys["user_key"] + "\n", encoding="utf-8")
    known = "".join(f"velo{node} {keys['host_key']}\n" for node in range(GUESTS_MAX))
    (folder / "known_hosts").write_text(known, encoding="utf-8")


def _link_alternatives(root: Path) -> None:
    """Names that packages share with others, of which the guest has one each."""
    links = {
        "usr/bin/mpirun": "mpirun.openmpi",
        "usr/local/bin/ssh": "/usr/lib/velo/ssh",
        "usr/bin/awk": "gawk",
    }
    for folder in (root / "usr/lib").glob("*-linux-gnu"):
        links[f"usr/lib/{folder.name}/libblas.so.3"] = "blas/libblas.so.3"
    for name, target in links.items():
        path = root / name
        if not path.is_symlink():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)


def _write_initrd(root: Path, order: Sequence[Path], initrd: Path) -> None:
    folder = initrd.with_name("initrd.partial")
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("bin", "dev", "proc", "lower", "upper", "root", "modules"):
        (folder / name).mkdir(parents=True)
    shutil.copy(root / "usr" / "bin" / "busybox", folder / "bin" / "busybox")
    script = (GUEST_FILES / "first-init.in").read_text(encoding="utf-8")
    (folder / "init").write_text(f"#!/bin/busybox sh\n{script}", encoding="utf-8")
    (folder / "init").chmod(0o755)
    for path in order:
        _copy_module(path, folder / "modules")
    names = "".join(f"{path.name.removesuffix('.xz')}\n" for path in order)
    (folder / "modules" / "order").write_text(names, encoding="utf-8")
    archive = 'find . | "$1" cpio -o -H newc -R 0:0 2>/dev/null | "$1" gzip -1'
    busybox = packages.ensure(ROOT) / "usr" / "bin" / "busybox"
    helpers.output(["sh", "-c", f'{archive} >"$0"', initrd, busybox], TOOL_TIMEOUT_S, cwd=folder)
    shutil.rmtree(folder)


def _copy_module(path: Path, folder: Path) -> None:
    """As busybox loads it."""
    if path.suffix == ".xz":
        (folder / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
    else:
        shutil.copy(path, folder)


def _load_order(modules: Path) -> Sequence[Path]:
    """The first modules and those that they need, each behind what it needs."""
    needs: dict[str, list[str]] = {}
    paths: dict[str, str] = {}
    for line in (modules / "modules.dep").read_text(encoding="utf-8").splitlines():
        path, _, others = line.partition(":")
        name = Path(path).name.partition(".")[0].replace("-", "_")
        paths[name] = path
        needs[path] = others.split()
    order: list[str] = []
    for first in FIRST_MODULES:
        # Absent: built into the kernel.
        path = paths.get(first.replace("-", "_"), "")
        # modules.dep names the nearest first.
        chain = [*reversed(needs.get(path, [])), path]
        order += [each for each in chain if each and each not in order]
    return [modules / path for path in order]
