# SPDX-License-Identifier: Apache-2.0
"""What a run of `velo vm` consists of: guests, what each is told, the simulator's command."""

import argparse
import os
import re
import shlex
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from velo import tree
from velo.cluster import description, routing
from velo.errors import UsageError
from velo.runtime import openmpi
from vm import built_kernel, guest
from vm.built_kernel import Kernel
from vm.guest import Plan, Share
from vm.image import ARM64, GUESTS_MAX, HOME

MEMORY_LEAST_MIB = 256
MEMORY_MIB = 512
# Of a kernel that looks for faults. It keeps books: an eighth of the debug kernel's memory tells
# what the rest may be used for.
MEMORY_FAULTS_MIB = 1024
# What looks for faults of the driver: an option, and the kernel.
FAULTS = {"debug": built_kernel.DEBUG, "races": built_kernel.RACES}
PROCESSORS_MAX = 8
# Of a card.
LINKS = 3
# The beginning of an object file of 64 bits: what names its byte order, its kind, its machine.
ELF_START = struct.Struct("<16sHH")
ELF_RELOCATABLE = 1
ELF_MACHINES = {"x86-64": 62, "AArch64": 183}
SILENCE_MS = "600000"
# What this command is told; guests need no such thing.
STAYS_HERE = {"VELO_LIBEXEC", "VELO_VM_CACHE", "VELO_SHM_DIR", "VELO_NODE"}
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Run:
    """Guests and simulator before they are started."""

    guests: Sequence[Plan]
    simulator: Sequence[str]
    """Its command; none if the guests have no cards."""
    topology: str
    beside: Sequence[int] = ()
    """Nodes whose programs run on this machine; each leaves its exit code in a file."""


def system(args: argparse.Namespace) -> tuple[Kernel | None, str, str]:
    """The guests' kernel if it is built here, its suite else, and the machine."""
    if args.large_pages and not args.arm64:
        raise UsageError("--large-pages is for AArch64 machines; give --arm64, too")
    if args.debug and args.races:
        raise UsageError("--debug and --races are two kernels; leave one out")
    if args.arm64 and (faults(args) or args.iommu):
        raise UsageError("--arm64 has neither --debug, --races nor --iommu; leave these out")
    if not re.fullmatch(r"[a-z-]*", args.kernel):
        raise UsageError(f"--kernel {args.kernel}: give the name of a suite, such as trixie")
    for name in (*FAULTS, "large_pages"):
        if args.kernel and getattr(args, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} has a kernel of its own; leave it or --kernel out")
    built = built_kernel.LARGE_PAGES if args.large_pages else FAULTS.get(faults(args))
    return built, args.kernel, architecture(args)


def faults(args: argparse.Namespace) -> str:
    """What the guests' kernel looks for: an option of those that say so; empty: for nothing."""
    return next((name for name in FAULTS if getattr(args, name)), "")


def architecture(args: argparse.Namespace) -> str:
    """Of the guests, by Debian's name; empty: that of this machine."""
    return ARM64 if args.arm64 else ""


def make(args: argparse.Namespace, folder: Path) -> Run:
    """The run that the command line asks for; its files lie in the folder."""
    words = list(args.arguments[1:] if args.arguments[:1] == ["--"] else args.arguments)
    _check(args, words)
    beside = range(args.nodes, args.nodes + len(args.beside))
    needed = beside.stop
    topology = args.topology or ("pair" if needed <= 2 else f"ring:{needed}")
    network = description.line(topology)
    _check_network(needed, topology, network)
    driver = _driver(args) if args.card else None
    shares = _shares(driver, has_mpi=bool(driver) and not args.arm64)
    here = next((str(s.inside) for s in shares if s.tag == "here"), str(HOME))
    common = {
        "environment": guest.environment(_environment(args)),
        "hosts": _hosts(args.nodes),
        "hostfile": "".join(
            f"{guest.guest_name(n)} slots={args.ranks_a_node}\n" for n in range(args.nodes)
        ),
        "here": here,
    }
    guests = []
    for node in range(args.nodes):
        files = {**common, "settings": _settings(node, driver, faults(args))}
        if driver:
            routes, links = card_files(network, node)
            files |= {"routes": routes}
            files["settings"] += f"VELO_GUEST_LINKS={links}\n"
        if node == 0:
            files |= {"shell": _terminal()} if args.shell else {"job": _job(args, words, here)}
        guests.append(
            Plan(
                node=node,
                folder=folder,
                memory_mib=args.memory or (MEMORY_FAULTS_MIB if faults(args) else MEMORY_MIB),
                files=files,
                shares=shares,
                card=card_socket(folder, node) if driver else None,
                iommu=args.iommu,
                processors=args.processors,
                faults=faults(args),
                architecture=architecture(args),
                others=range(1, args.nodes) if node == 0 else (),
                joins=guest.net_socket(folder, node) if node else None,
            )
        )
    simulator = _simulator(args, network, folder) if driver else ()
    return Run(guests, simulator, topology, beside)


def _check(args: argparse.Namespace, words: Sequence[str]) -> None:
    system(args)
    if args.shell and words:
        raise UsageError("--shell starts no program; leave out what is behind --")
    if not args.shell and not words:
        raise UsageError("which program? write it, with its arguments, behind --; or give --shell")
    if not 1 <= args.nodes <= GUESTS_MAX:
        raise UsageError(f"--nodes {args.nodes}: give 1 to {GUESTS_MAX} guests")
    if not 1 <= args.processors <= PROCESSORS_MAX:
        raise UsageError(f"--processors {args.processors}: give a guest 1 to {PROCESSORS_MAX}")
    if args.memory is not None and args.memory < MEMORY_LEAST_MIB:
        raise UsageError(f"--memory: a guest needs at least {MEMORY_LEAST_MIB} MiB")
    if args.kernel and args.card and not args.driver:
        raise UsageError(
            f"--kernel {args.kernel} wants a driver for it, by --driver: make -C driver "
            f"KDIR=$(velo vm --kernel {args.kernel} --headers) OUT=FOLDER"
        )
    if args.arm64:
        _check_arm64(args)
    if args.beside and not args.card:
        raise UsageError("--beside needs the cards' network; leave --no-card out")
    if args.plain and args.ranks_a_node != 1:
        raise UsageError("--ranks-a-node is for MPI programs; leave it or --plain out")


def _check_arm64(args: argparse.Namespace) -> None:
    if not (args.plain or args.shell):
        raise UsageError("--arm64 runs programs that were built for it: give --plain or --shell")
    if args.card and not args.driver:
        words = "--arm64 --large-pages" if args.large_pages else "--arm64"
        raise UsageError(
            f"{words} wants a driver for it, by --driver: make -C driver "
            f"KDIR=$(velo vm {words} --headers) KFLAGS=CROSS_COMPILE=aarch64-linux-gnu- OUT=FOLDER"
        )


def _check_network(nodes: int, topology: str, network: routing.Network) -> None:
    if nodes > network.nodes:
        raise UsageError(
            f"{nodes} guests and programs beside them do not fit on the {network.nodes} nodes of "
            f"'{topology}'; give a larger --topology"
        )
    if network.links_used() > LINKS:
        raise UsageError(
            f"topology '{topology}' has nodes with {network.links_used()} links, a card has {LINKS}"
        )


def card_socket(folder: Path, node: int) -> Path:
    """Where the simulator serves a node's card."""
    return folder / f"card{node}"


def card_files(network: routing.Network, node: int) -> tuple[str, int]:
    """What the driver is told: its routes as lines, and the mask of its links."""
    routes = "".join(
        f"{destination} {hop}\n" for destination, hop in enumerate(network.routes[node])
    )
    links = sum(1 << link for at, link in network.cables if at == node)
    return routes, links


def _driver(args: argparse.Namespace) -> Path:
    if args.driver:
        path = Path(args.driver).absolute()
        if not path.is_file():
            raise UsageError(f"--driver: there is no file {path}")
        _check_module(path, "AArch64" if args.arm64 else "x86-64")
        return path
    return tree.find_driver(faults(args))


def _check_module(path: Path, machine: str) -> None:
    """Is the file a kernel module for the guests' machine? Else guests would boot in vain."""
    with path.open("rb") as file:
        start = file.read(ELF_START.size)
    if len(start) < ELF_START.size or not start.startswith(b"\x7fELF"):
        raise UsageError(f"--driver: {path} is no kernel module")
    _, kind, number = ELF_START.unpack(start)
    if kind != ELF_RELOCATABLE or number != ELF_MACHINES[machine]:
        raise UsageError(f"--driver: {path} is no kernel module for {machine}")


def _shares(driver: Path | None, has_mpi: bool) -> list[Share]:
    """velo's own tree, to read, and the current folder, to write."""
    components = openmpi.component_folder("mtl").parents[3] if has_mpi else None
    shares: list[Share] = []
    for name, folder in (("tree", tree.CHECKOUT), ("library", components),
                         ("driver", driver.parent if driver else None)):  # fmt: skip
        if folder and not any(folder.is_relative_to(share.folder) for share in shares):
            shares.append(Share(name, folder))
    here = Path.cwd()
    if here != Path("/"):
        shares.append(Share("here", here, writable=True))
    return shares


def _environment(args: argparse.Namespace) -> dict[str, str]:
    """Of jobs and shells: mpirun alone then runs a program on all guests, over velo."""
    env = {name: value for name, value in os.environ.items() if name.startswith("VELO_")}
    env = {name: value for name, value in env.items() if name not in STAYS_HERE}
    # A guest's user is root.
    env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    chosen = {
        "orte_default_hostfile": "/run/velo/hostfile",
        "plm_rsh_agent": "/usr/lib/velo/agent",
        "oob_tcp_if_include": "eth0",
        "btl_tcp_if_include": "eth0",
        "hwloc_base_binding_policy": "none",
    }
    if args.card and not args.arm64:
        env |= openmpi.environment("vm")
        folder = guest.inside(openmpi.component_folder("mtl"))
        words = openmpi.selection("mtl", folder, ())
        chosen |= {name: value for option, name, value in zip(*[iter(words)] * 3, strict=True)}
        env.setdefault("VELO_NETWORK", "card")
        # A guest that waits for a processor here is silent, and lives.
        env.setdefault("VELO_CARD_TIMEOUT_MS", SILENCE_MS)
    else:
        chosen |= {"pml": "ob1", "btl": "self,vader,tcp"}
    env |= {f"OMPI_MCA_{name}": value for name, value in chosen.items()}
    own = [guest.inside(tree.CHECKOUT / "build" / "bin")] if tree.CHECKOUT else []
    env["PATH"] = ":".join([*map(str, own), GUEST_PATH])
    env["HOME"] = str(HOME)
    return env


def _settings(node: int, driver: Path | None, looks_for: str) -> str:
    values = {
        "VELO_GUEST_NAME": guest.guest_name(node),
        "VELO_GUEST_NODE": str(node),
        "VELO_GUEST_ADDRESS": f"{guest.guest_address(node)}/24",
    }
    if driver:
        values["VELO_GUEST_DRIVER"] = str(guest.inside(driver))
    if looks_for:
        values["VELO_GUEST_FAULTS"] = looks_for
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def _hosts(nodes: int) -> str:
    names = [f"{guest.guest_address(node)} {guest.guest_name(node)}\n" for node in range(nodes)]
    return "".join(["127.0.0.1 localhost\n", *names])


def _terminal() -> str:
    """What makes the guest's console like the terminal here."""
    size = shutil.get_terminal_size()
    term = shlex.quote(os.environ.get("TERM", "vt220"))
    return f"export TERM={term}\nstty rows {size.lines} columns {size.columns}\n"


def _job(args: argparse.Namespace, words: Sequence[str], here: str) -> str:
    """The program's command line in the first guest, as a shell's script."""
    program = Path(words[0])
    # A path means the same file inside, a bare name one of the guest's own programs.
    first = str(guest.inside(program.absolute())) if "/" in words[0] else words[0]
    command = [first, *words[1:]]
    if not args.plain:
        ranks = str(args.nodes * args.ranks_a_node)
        command = ["mpirun", "-n", ranks, "--oversubscribe", *command]
    return f". /run/velo/environment\ncd {shlex.quote(here)}\nexec {shlex.join(command)}\n"


def _simulator(args: argparse.Namespace, network: routing.Network, folder: Path) -> list[str]:
    file = folder / "topology"
    file.write_text(routing.to_text(network), encoding="utf-8")
    words = [str(tree.find("velo-sim")), "--topology-file", str(file)]
    # One guest alone: the other node of the pair has a card, too, that nobody plugs in.
    for node in range(args.nodes if args.topology or args.beside else network.nodes):
        words += ["--card", f"{node}={card_socket(folder, node)}"]
    return [*words, "--", "sh", "-c", _beside(args, folder)] if args.beside else words


def exit_code_file(folder: Path, node: int) -> Path:
    """Where a program beside the guests leaves its exit code."""
    return folder / f"beside{node}"


def _beside(args: argparse.Namespace, folder: Path) -> str:
    """What the simulator starts: the programs beside the guests. It ends with the guests."""
    env = {name: value for name, value in _environment(args).items() if name.startswith("VELO_")}
    script = guest.environment(env)
    for node, command in enumerate(args.beside, start=args.nodes):
        file = shlex.quote(str(exit_code_file(folder, node)))
        # Renamed, so that whoever sees the file sees all of it.
        script += (
            f"(VELO_NODE={node} sh -c {shlex.quote(command)} 2>&1; "
            f"echo $? >{file}.new; mv {file}.new {file}) </dev/null &\n"
        )
    return f"{script}wait\nexec sleep infinity\n"
