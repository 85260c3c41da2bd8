# SPDX-License-Identifier: Apache-2.0
"""One guest: its QEMU, the folders that it shares with this machine, and what it is told.

A guest's settings go in as an archive on its second disk; guest/init reads it. Words come back by
ports (virtio-serial), each a socket of ours: `report` has the guest's state, `out` and `err` the
output of its job, `console` a shell. The kernel's own messages go to a file.
"""

import contextlib
import io
import json
import re
import shlex
import signal
import socket
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from velo import helpers
from velo.errors import VeloError
from vm.image import ARM64, Images, loaded

ADDRESS = "10.118.0"
# A kernel's words for what must not happen.
COMPLAINT = re.compile(
    r"\b(BUG:|WARNING:|Oops|Kernel panic|KASAN|UBSAN|DMA-API:|kmemleak|ODEBUG|\w+ corruption|"
    r"INFO: (task .* blocked|trying to register|lockdep)|EXPECTATION FAILED|velo: fault:|"
    r"resource: Trying to free)"
)
PORTS = ("report", "out", "err", "console")
# Where the card is.
SLOT = "cardslot"
# QEMU gives up a card for good that has not answered for so long, by itself after 5 s. A load waits
# behind stores, and a simulated card that is overrun takes none for 65,535 cycles at a time.
CARD_TIMEOUT_MS = 600_000
# Folders of a guest's own, over which none of this machine's can lie.
OWN_FOLDERS = {
    "bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr", "var"
}  # fmt: skip


@dataclass(frozen=True)
class Share:
    """A folder of this machine that a guest sees."""

    tag: str
    folder: Path
    writable: bool = False

    @property
    def inside(self) -> Path:
        """Where it is in the guest: at the same path, as far as the guest has no such folder."""
        return inside(self.folder)


def doubled(path: Path) -> str:
    """A path within an option of QEMU, in which a comma ends a value unless there are two."""
    return str(path).replace(",", ",,")


def inside(path: Path) -> Path:
    """The path in the guest of something in a shared folder."""
    first = path.parts[1] if len(path.parts) > 1 else ""
    return Path("/host") / path.relative_to("/") if first in OWN_FOLDERS | {""} else path


@dataclass(frozen=True)
class Plan:
    """A guest before it is started."""

    node: int
    folder: Path
    """Of the run: sockets and logs."""
    memory_mib: int
    files: Mapping[str, str]
    """What the guest finds in /run/velo."""
    shares: Sequence[Share] = ()
    card: Path | None = None
    """The socket of its card in the simulated cluster."""
    iommu: bool = False
    processors: int = 1
    faults: str = ""
    """What its kernel looks for, see plan.FAULTS."""
    architecture: str = ""
    """By Debian's name; empty: that of this machine."""
    others: Sequence[int] = ()
    """Nodes of the guests that are joined to this one's network card; the first guest has them."""
    joins: Path | None = None
    """The socket by which it is joined to the first guest's."""
    kernel_words: Sequence[str] = ()

    @property
    def name(self) -> str:
        return guest_name(self.node)

    @property
    def log(self) -> Path:
        """What its kernel says."""
        return self.folder / f"{self.name}.log"

    def said(self) -> list[str]:
        """The lines of its kernel."""
        with contextlib.suppress(OSError):
            return self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return []

    def complaints(self) -> list[str]:
        """Those that tell of a fault."""
        return [line for line in self.said() if COMPLAINT.search(line)][: helpers.STDERR_LINES]

    def network(self) -> list[str]:
        """A hub in the first guest's QEMU, and a cable from each other one to it."""
        words = ["-netdev", "hubport,id=net,hubid=0"]
        for node in self.others:
            path = net_socket(self.folder, node)
            words += [
                "-netdev",
                f"stream,id=to{node},server=on,addr.type=unix,addr.path={doubled(path)}",
            ]
            words += ["-netdev", f"hubport,id=port{node},hubid=0,netdev=to{node}"]
        if self.joins:
            words = ["-netdev", "stream,id=net,server=off,addr.type=unix,reconnect-ms=200,"
                     f"addr.path={doubled(self.joins)}"]  # fmt: skip
        mac = f"52:54:00:76:6c:{self.node:02x}"
        # With MSI and an IOMMU, Linux 6.1 takes two locks in both orders when it finds this
        # device. Lockdep tells that, and then looks at no driver any more.
        vectors = ",vectors=0" if self.faults else ""
        return [*words, "-device", f"virtio-net-pci,netdev=net,mac={mac},romfile={vectors}"]

    def command(
        self, images: Images, ports: Mapping[str, int], shares: Sequence[Path]
    ) -> list[str]:
        """QEMU with its arguments; ports are open sockets, shares those of virtiofsd."""
        words = [
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-run-with", "exit-with-parent=on", "-name", self.name,
            *self._machine(), "-accel", "tcg",
            "-smp", str(self.processors), "-m", f"{self.memory_mib}M",
            # Shared, so that card and virtiofsd reach it.
            "-object", f"memory-backend-memfd,id=memory,size={self.memory_mib}M,share=on",
            "-kernel", images.kernel, "-initrd", images.initrd,
            "-append", shlex.join(self._kernel_words()),
            "-serial", f"file:{self.log}",
            "-drive", f"file={doubled(images.root)},format=raw,if=none,id=root,readonly=on",
            "-device", "virtio-blk-pci,drive=root",
            "-drive", f"file={doubled(self._archive())},format=raw,if=none,id=settings,readonly=on",
            "-device", "virtio-blk-pci,drive=settings",
            "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
        ]  # fmt: skip
        for name, number in ports.items():
            kind = "virtconsole" if name == "console" else f"virtserialport,name={name}"
            words += ["-chardev", f"socket,id={name},fd={number}", "-device",
                      f"{kind},chardev={name}"]  # fmt: skip
        for share, path in zip(self.shares, shares, strict=True):
            words += ["-chardev", f"socket,id={share.tag},path={doubled(path)}", "-device",
                      f"vhost-user-fs-pci,chardev={share.tag},tag={share.tag}"]  # fmt: skip
        words += self.network()
        if self.iommu:
            words += ["-device", "intel-iommu,caching-mode=on"]
        if self.card:
            # Behind a port, as cards are: it hears of a card's errors, and resets its slot. A
            # faster one would have to say that its link is up, which QEMU's does not.
            words += ["-device", f"pcie-root-port,id={SLOT},chassis=1,x-speed=5,x-width=4"]
            device = {
                "driver": "vfio-user-pci", "bus": SLOT, "x-msg-timeout": CARD_TIMEOUT_MS,
                "socket": {"type": "unix", "path": str(self.card)},
            }  # fmt: skip
            words += ["-device", json.dumps(device)]
        data = str(images.qemu / "usr" / "share")
        data_words = [word for name in ("qemu", "seabios") for word in ("-L", f"{data}/{name}")]
        program = f"usr/bin/qemu-system-{'aarch64' if self.architecture else 'x86_64'}"
        return loaded(images.qemu, program, *data_words, *[str(word) for word in words])

    def _machine(self) -> list[str]:
        """A machine, its processor, and a hole for the card's window."""
        if self.architecture == ARM64:
            # Pointer authentication as QEMU imitates it, not as processors do it, which is slow.
            return [
                "-machine", "virt,memory-backend=memory,gic-version=3,highmem-mmio-size=1T",
                "-cpu", "max,pauth-impdef=on",
            ]  # fmt: skip
        return [
            "-machine", "q35,memory-backend=memory", "-cpu", "max,phys-bits=46",
            "-global", "q35-pcihost.pci-hole64-size=1T",
        ]  # fmt: skip

    def _kernel_words(self) -> list[str]:
        # A kernel that stumbled does not go on: its guest ends, and so the run.
        console = "ttyAMA0" if self.architecture == ARM64 else "ttyS0"
        words = [f"console={console}", "loglevel=6", "panic=-1", "oops=panic"]
        words += ["random.trust_cpu=on"]
        # virtiofsd writes a file's bytes into pages of the guest, and QEMU does not see it. If such
        # a page held code before, QEMU would go on with its translation of that code. So the guest
        # clears each page that it takes, which QEMU sees. Debian's kernels do that by themselves.
        words += ["init_on_alloc=1"]
        # A guest that waits for a processor here sees its own clocks jump, and nothing is wrong.
        words += ["no_timer_check", "nowatchdog", "rcupdate.rcu_cpu_stall_suppress=1"]
        if self.iommu:
            words += ["intel_iommu=on", "iommu.strict=1"]
        if self.faults == "debug":
            # All faults of a run, not the first alone.
            words += ["kasan_multi_shot"]
        if self.faults == "races":
            # KCSAN watches about one access in five, for so long that the guest's other processor
            # can get to the same place. The driver alone is compiled for that, so it can be often.
            words += ["kcsan.skip_watch=5", "kcsan.udelay_task=500"]
        return [*words, *self.kernel_words]

    def _archive(self) -> Path:
        path = self.folder / f"{self.name}.tar"
        shares = "".join(
            f"{share.tag} {'rw' if share.writable else 'ro'} {share.inside}\n"
            for share in self.shares
        )
        with tarfile.open(path, "w") as archive:
            for name, text in {**self.files, "shares": shares}.items():
                member = tarfile.TarInfo(name)
                content = text.encode()
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return path


def guest_name(node: int) -> str:
    """The host name of the guest with a node's card."""
    return f"velo{node}"


def guest_address(node: int) -> str:
    """Its address in the guests' own network."""
    return f"{ADDRESS}.{node + 1}"


def net_socket(folder: Path, node: int) -> Path:
    """Where a guest's cable to the hub ends."""
    return folder / f"net{node}"


@dataclass
class Guest:
    """A guest that runs."""

    plan: Plan
    process: subprocess.Popen[str]
    ports: dict[str, socket.socket] = field(default_factory=dict)


@contextlib.contextmanager
def started(plan: Plan, images: Images, with_console: bool) -> Iterator[Guest]:
    """A guest that is gone when the block is left, with all that serves it."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(_served(plan, share, images)) for share in plan.shares]
        ours, theirs = {}, {}
        for name in PORTS:
            if name != "console" or with_console:
                pair = socket.socketpair()
                ours[name], theirs[name] = (stack.enter_context(end) for end in pair)
        numbers = {name: end.fileno() for name, end in theirs.items()}
        errors = stack.enter_context((plan.folder / f"{plan.name}.qemu").open("w"))
        process = stack.enter_context(
            helpers.running(
                plan.command(images, numbers, sockets), pass_fds=tuple(numbers.values()),
                stdout=errors, stderr=errors,
            )
        )  # fmt: skip
        for end in theirs.values():
            end.close()
        yield Guest(plan, process, ours)


@contextlib.contextmanager
def _served(plan: Plan, share: Share, images: Images) -> Iterator[Path]:
    """The socket of a process that serves a folder to one guest; it ends with the guest."""
    path = plan.folder / f"{plan.name}.{share.tag}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        words = ["--shared-dir", str(share.folder), "--fd", str(listening.fileno()),
                 "--sandbox", "none", "--log-level", "error"]  # fmt: skip
        words += [] if share.writable else ["--readonly"]
        errors = (plan.folder / f"{path.name}.virtiofsd").open("w")
        server = helpers.running(
            loaded(images.qemu, "usr/libexec/virtiofsd", *words),
            pass_fds=(listening.fileno(),), stdout=errors, stderr=errors,
        )  # fmt: skip
        with errors, server:
            listening.close()
            yield path


def gone(guest: Guest) -> VeloError:
    """What to say of a guest that ended by itself."""
    code = guest.process.returncode
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    qemu = (guest.plan.folder / f"{guest.plan.name}.qemu").read_text(errors="replace").strip()
    kernel = guest.plan.complaints() or guest.plan.said()[-helpers.STDERR_LINES :]
    said = "\n".join(part for part in (qemu, *kernel) if part)
    return VeloError(f"guest {guest.plan.name} ended {how}; its last words:\n{said}")


def environment(values: Mapping[str, str]) -> str:
    """Variables as a shell reads them."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
