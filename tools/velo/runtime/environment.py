# SPDX-License-Identifier: Apache-2.0
"""Every environment variable that velo reads: name, default, meaning.

The one source of these facts: `velo info --config` shows them with their values, the man pages
under ENVIRONMENT.
"""

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Variable(NamedTuple):
    """One environment variable."""

    name: str
    default: str
    """What holds while it is not set."""
    meaning: str


class Group(NamedTuple):
    """Variables that one part of velo reads."""

    title: str
    variables: tuple[Variable, ...]


GROUPS = (
    Group("Ports and messages", (
        Variable("VELO_DOMAIN", "u<uid>",
                 "domain of ports and commands that name none; only ports of one domain meet"),
        Variable("VELO_SHM_DIR", "/dev/shm",
                 "folder of the segments, of a file system in memory, at most 88 bytes; processes "
                 "that share it and a domain reach each other, also from container to container"),
        Variable("VELO_SPIN_NS", "50000",
                 "longest time that a wait polls before it sleeps, in ns, up to 10 s; 0: it sleeps "
                 "at once"),
        Variable("VELO_MESSAGE_LINES", "0",
                 "1: each message gets a cache line of its own; 0: short ones share lines"),
        Variable("VELO_COPY", "auto",
                 "how long payloads are copied: auto (as is best on this processor), lines, "
                 "string, libc"),
        Variable("VELO_COPY_BYTES", "by processor", "length from which on a copy is a long one"),
    )),
    Group("Remote memory", (
        Variable("VELO_RMA_ATTACH", "1",
                 "0: neither use cross-memory attach nor permit it to peers"),
        Variable("VELO_RMA_NODE_UPDATES", "0",
                 "1: the simulated node carries out velo_rma_fetch_compare_add()"),
    )),
    Group("Matched messages and MPI", (
        Variable("VELO_MQ_EAGER_BYTES", "by layer",
                 "longest message that is sent before it is asked for"),
        Variable("VELO_MQ_PATH", "auto",
                 "the way of long messages: auto, copy (piece by piece), get (in one copy)"),
        Variable("VELO_MQ_GET_BYTES", "1m, if measured",
                 "length from which on a long message is fetched in one copy (else from 1 MiB on, "
                 "where each receiver measures that to be faster; over hardware from 8 KiB on)"),
        Variable("VELO_MQ_UNEXPECTED_BYTES", "64m",
                 "bound of the memory for messages that nobody has asked for yet"),
        Variable("VELO_MQ_UNEXPECTED_LIMIT_BYTES", "16 times the bound",
                 "limit of that memory while a receive waits; past it, the receive fails"),
    )),
    Group("Other networks", (
        Variable("VELO_NETWORK", "shm",
                 "which peers are reached by which transport: rules, or a file of them"),
        Variable("VELO_DIMMNET", "native",
                 "boards of libdimmnet: native, or sim, which velo sim --dimmnet sets"),
        Variable("VELO_TRANSPORT_PATH", "beside libvelo.so",
                 "folder of the transports; else the folder velo beside libvelo.so"),
        Variable("VELO_FAULTS", "", "what goes wrong with transport faults, which is for tests"),
        Variable("VELO_OFI_SECRET", "",
                 "text of 16 to 128 characters that all ports on transport ofi have to share"),
        Variable("VELO_OFI_SECRET_FILE", "", "file of mode 0600 that holds it"),
        Variable("VELO_OFI_PROVIDER", "libfabric's first",
                 "provider of libfabric that transport ofi uses, such as tcp;ofi_rxm"),
        Variable("VELO_OFI_INTERFACE", "libfabric's first",
                 "domain of libfabric, such as eth0, at which a port without [hosts] listens"),
        Variable("VELO_OFI_TIMEOUT_MS", "10000",
                 "silence after which transport ofi gives a peer up, in ms, 100 to 3600000"),
        Variable("VELO_CARD", "/dev/velo0",
                 "device of the card that transports card and nic use"),
        Variable("VELO_CARD_TIMEOUT_MS", "10000",
                 "silence after which transport card gives a peer up, in ms, 100 to 3600000"),
    )),
    Group("EXTOLL's interface", (
        Variable("VELO_NODE", "by launcher, or 0", "number of this node, 0 to 255"),
        Variable("VELO_EXTOLL_WAIT_MS", "10000",
                 "longest wait for a port that is not open yet, in ms; -1: for ever"),
        Variable("VELO2_MTU", "120", "64: messages of up to 64 bytes, as older hardware had"),
        Variable("VELO2_QUEUE_SLOTS", "1024",
                 "messages of one source that a port takes in, 8 to 16384, a power of two"),
    )),
    Group("The velo command", (
        Variable("VELO_LIBEXEC", "in its own tree",
                 "folder of the programs that it runs; its launcher sets it"),
        Variable("VELO_VM_CACHE", "~/.cache/velo/vm", "folder of what velo vm fetches and builds"),
        Variable("NO_COLOR", "", "anything: no colours"),
    )),
    Group("Set by velo sim for the processes on a simulated cluster", (
        Variable("VELO_SIM", "", "file that they share with the simulator"),
        Variable("VELO_SIM_RANK", "", "rank of the process"),
        Variable("VELO_SIM_RANKS", "", "ranks of the job; virtual time waits until all have begun"),
        Variable("VELO_SIM_RANKS_A_NODE", "", "ranks that share a node"),
        Variable("VELO_SIM_REPEATABLE", "", "1: what would make runs differ is an error"),
    )),
)  # fmt: skip
VARIABLES = {variable.name: variable for group in GROUPS for variable in group.variables}


def unknown(environment: Iterable[str]) -> list[str]:
    """Variables that look like ours and that nothing reads."""
    return sorted(name for name in environment if name.startswith("VELO") and name not in VARIABLES)


def to_json(environment: Mapping[str, str] = os.environ) -> dict[str, object]:
    """Every variable with its value; null where it is not set."""
    return {
        "variables": [
            {**variable._asdict(), "value": environment.get(variable.name)}
            for variable in VARIABLES.values()
        ],
        "unknown": unknown(environment),
    }
