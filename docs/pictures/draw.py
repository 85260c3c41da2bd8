#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of the documentation, FILE.svg beside this file.

Figures in them are read where they are kept, so that a picture has no copy of its own: pages of the
documentation, the specification, constants of the library. Without --write, fail if a picture is
another one than its source gives.
"""

# ruff: noqa: E501 (the words of a picture)

import argparse
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from picture import ROOT, Picture, find

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "scripts"))

import blocks  # noqa: E402
from draw_deps import arrows  # noqa: E402

PERFORMANCE = "docs/performance/results.md"
PAIR = r"[\d.]+; ([\d.]+ \S+) to ([\d.]+ \S+)"


def row(what: str, pair: str = PAIR) -> tuple[str, ...]:
    """The two figures of a row of the table of results."""
    return find(PERFORMANCE, rf"\| {re.escape(what)} \|[^|]*\| {pair}")


def constant(file: str, name: str) -> int:
    return int(find(file, rf"#define {name} (\d+)")[0])


# --- pictures ---------------------------------------------------------------------------------


def stack() -> Picture:
    """What stands on what, and what 8 bytes take through each."""
    velo, limit = row("Half round trip, 8 B / one-line ping-pong")
    mpi, other, whose = row("MPI half round trip, 8 B, MTL / best MPI peer", PAIR + r" \(([^)]*)\)")
    long_mpi, long_other, long_whose = row("64 KiB half round trip / Intel MPI",
                                           PAIR + r" \(([^)]*)\)")  # fmt: skip
    far = row("Far cores: worst of 8 B to 4 MiB, MTL / best MPI peer",
              r"[\d.]+; (\S+ \S+): ([\d.]+ \S+) to ([\d.]+ \S+) \(([^)]*)\)")  # fmt: skip
    guest, date = find(PERFORMANCE, r"on a (\d-core \S+ \S+ guest) \((\d{4}-\d\d-\d\d)\)")
    cycles = find("rtl/README.md", r"host port to host port, one hop, 8 bytes[^|]*\|[^|]*\|[^|]*\|"
                                   r" (\d+) \|")[0]  # fmt: skip
    p = Picture("What velo is made of, and what 8 bytes take through it", 900, 440)
    p.box(20, 30, 230, 58, "Your MPI program", "unchanged", kind="user")
    p.box(270, 30, 290, 58, "Your program", "C, C++, Rust, Python", kind="user")
    p.box(
        20,
        108,
        230,
        58,
        "Open MPI, MPICH, Intel MPI",
        "by MTL, BTL or libfabric provider",
        kind="velo",
    )
    p.box(20, 186, 540, 58, "velo: messages, remote memory, matched queues, broadcast",
          "no daemon and no system call on a message's way", kind="velo")  # fmt: skip
    p.box(20, 264, 170, 58, "Shared memory", "one machine", kind="velo")
    p.box(205, 264, 170, 58, "libfabric", "between machines", kind="velo")
    p.box(390, 264, 170, 58, "velo's network card", "SystemVerilog", kind="hard")
    p.arrow((135, 88), (135, 106))
    p.arrow((415, 88), (415, 184))
    p.arrow((135, 166), (135, 184))
    for x in (105, 290, 475):
        p.arrow((x, 244), (x, 262))
    p.text(600, 60, "8 bytes, half a round trip", "head")
    for at, (value, what) in enumerate(
        ((other, "MPI, the fastest other *"), (mpi, "MPI over velo"),
         (velo, "C over velo, shared memory"), (limit, "one cache line alone: the limit"),
         (f"{cycles} cycles", "node to node, simulated"))
    ):  # fmt: skip
        y = 92 + 48 * at + (16 if at == 4 else 0)
        p.text(690, y, value, "value end")
        p.text(702, y, what, "small")
    p.lines(20, 362,
            f"Where others are faster in the same run: 64 KiB take {long_mpi} over velo and {long_other} "
            f"with {long_whose};",
            f"{far[0]} on cores that share no cache {far[1]} and {far[2]} ({far[3]}).",
            f"Measured on a {guest} on {date}, nothing else running, two cores that share a cache; medians. "
            "MPI: two ranks of a ping-pong,",
            f"over velo's MTL for Open MPI 4.1; * {whose}, the fastest of Open MPI 4.1 and 5.0, also with UCX, "
            "MPICH and Intel MPI, in turns.",
            "The cycles are those of the simulated hardware, without the delay of a cable.")  # fmt: skip
    return p


def ring() -> Picture:
    """A ring, one of its lines, and a header word."""
    spec = tomllib.loads((ROOT / "spec/velo.toml").read_text(encoding="utf-8"))
    line, header = spec["line"]["bytes"], spec["line"]["header_bytes"]
    cell = constant("lib/core/ring.h", "CELL_BYTES")
    depth = constant("lib/core/open.c", "DEPTH_SLOTS_DEFAULT")
    cells = line // cell
    p = Picture("A connection's ring, a slot of it, and a header word", 900, 392)
    p.group(20, 16, 860, 96, "A port's segment: a file in /dev/shm that its senders map")
    at = 36.0
    for name, width in (("header", 80), ("connections", 110), ("ring 0", 150), ("ring 1", 150),
                        ("…", 60), ("what it sends over transports", 250)):  # fmt: skip
        p.box(at, 48, width, 44, name, kind="velo" if name.startswith("ring") else "")
        at += width + 6
    p.group(20, 130, 860, 96, "A ring: one sender, one receiver")
    at = 36.0
    for name, width in (("bell", 70), ("consumed", 90), ("waiting", 80), ("counters", 90),
                        (f"{depth} slots of {line} bytes", 270), ("data of longer messages", 196)):  # fmt: skip
        p.box(at, 162, width, 44, name, kind="velo" if "slots" in name else "")
        at += width + 6
    p.group(20, 244, 860, 128, f"A slot: one cache line, {cells} cells of {cell} bytes")
    for number, (name, kind) in enumerate(
        (("8 bytes", "user"), ("24 bytes", "user"), ("", "user"), ("", ""))
    ):
        x = 36 + 205 * number
        p.box(x, 276, 60, 44, "header" if name else "", kind="velo" if name else kind)
        p.box(
            x + 60, 276, 140, 44, name or ("free" if number == 3 else "the same message"), kind=kind
        )
    p.lines(36, 342,
            f"The sender stores the {header}-byte header last: from then on the message is the receiver's, whole. It "
            "carries the line's number,",
            "so that nobody has to clear what the last lap left; it is never zero. More than "
            f"{line - header} bytes lie in the data part.")  # fmt: skip
    return p


def native_message() -> Picture:
    """The life of a message in shared memory."""
    p = Picture("The life of a message in shared memory", 900, 330)
    p.group(20, 16, 260, 296, "Sender")
    p.group(320, 16, 260, 296, "Ring, in the receiver's segment")
    p.group(620, 16, 260, 296, "Receiver")
    p.box(40, 52, 220, 44, "1 Room? own count of credits", kind="velo")
    p.box(40, 116, 220, 44, "2 Copy payload into the slot", kind="velo")
    p.box(40, 180, 220, 44, "3 Store the header: published", kind="velo")
    p.box(340, 116, 220, 108, "slot", "payload, then header word", kind="user")
    p.box(640, 52, 220, 44, "0 Poll the header's place", kind="velo")
    p.box(640, 180, 220, 44, "4 Header is there: check it", kind="velo")
    p.box(640, 248, 220, 44, "5 Copy out, or read in place", kind="velo")
    p.box(340, 248, 220, 44, "consumed: a quarter at a time", kind="user")
    p.arrow((260, 138), (338, 138))
    p.arrow((260, 202), (338, 202))
    p.arrow((640, 74), (600, 74), (600, 160), (562, 160))
    p.arrow((562, 202), (638, 202))
    p.arrow((750, 224), (750, 246))
    p.arrow((640, 270), (562, 270))
    p.arrow((340, 270), (30, 270), (30, 74), (38, 74), kind="dashed")
    p.lines(50, 290, "dashed: read only when the", "count of credits runs out")
    return p


def hardware_message() -> Picture:
    """The way of a message through two nodes."""
    p = Picture("The life of a message in hardware", 900, 292)
    p.group(20, 16, 400, 180, "Node of the sender")
    p.group(480, 16, 400, 180, "Node of the receiver")
    boxes = ("host port", "HTAX", "VELO requester", "network port", "switch", "link")
    places = ((40, 52), (165, 52), (290, 52), (290, 122), (165, 122), (40, 122))
    for name, (x, y) in zip(boxes, places, strict=True):
        p.box(x, y, 115, 50, name, kind="hard")
    boxes = ("link", "switch", "network port", "VELO completer", "HTAX", "host port")
    places = ((500, 122), (625, 122), (750, 122), (750, 52), (625, 52), (500, 52))
    for name, (x, y) in zip(boxes, places, strict=True):
        p.box(x, y, 115, 50, name, kind="hard")
    for x in (155, 280):
        p.arrow((x, 77), (x + 8, 77))
    p.arrow((347, 102), (347, 120))
    p.arrow((290, 147), (282, 147))
    p.arrow((165, 147), (157, 147))
    p.arrow((97, 172), (97, 182), (430, 182), (430, 147), (498, 147))
    p.arrow((615, 147), (623, 147))
    p.arrow((740, 147), (748, 147))
    p.arrow((807, 122), (807, 104))
    p.arrow((750, 77), (742, 77))
    p.arrow((625, 77), (617, 77))
    p.text(432, 212, "cable", "small muted")
    p.box(40, 226, 115, 50, "process", "one store", kind="user")
    p.arrow((40, 251), (28, 251), (28, 77), (38, 77))
    p.box(500, 226, 150, 50, "ring in memory", "payload, then header", kind="user")
    p.arrow((500, 77), (488, 77), (488, 251), (498, 251))
    p.box(730, 226, 150, 50, "process", "polls its own memory", kind="user")
    p.arrow((730, 251), (652, 251))
    p.lines(
        175,
        246,
        "The store's address names target node, context",
        "and length; the page that it lies in is the grant.",
    )
    return p


def node() -> Picture:
    """The blocks of a node."""
    links = int(find("rtl/node/README.md", r"\bSix links of (\d+) bits")[0])
    p = Picture("A node", 900, 360)
    p.box(30, 150, 110, 60, "Host port", "or AXI4, PCIe", kind="user")
    p.box(180, 60, 70, 240, "HTAX", "crossbar", kind="hard")
    names = (("VELO", "messages"), ("RMA, ATU", "remote memory"), ("custom unit", "a slot of your own"),
             ("registers", "from spec/"))  # fmt: skip
    for at, name in enumerate(names):
        y = 40 + 72 * at
        p.box(300, y, 160, 56, *name, kind="hard" if at != 2 else "user")
        p.arrow((250, y + 28), (298, y + 28))
        if at < 3:
            p.box(510, y, 120, 56, "network port", kind="hard")
            p.arrow((460, y + 28), (508, y + 28))
            p.arrow((630, y + 28), (668, y + 28))
    p.arrow((140, 180), (178, 180))
    p.box(670, 40, 80, 200, "switch", "9 × 9", kind="hard")
    for at in range(6):
        y = 40 + 35 * at
        p.box(800, y, 70, 27, f"link {at}", kind="hard")
        p.arrow((750, y + 13), (798, y + 13))
    p.lines(510, 280, "Posted writes, reads and responses are arbitrated apart,",
            "so that none of them can hold up another for ever.",
            f"Six links of {links} bits, or three of 64 or 128.")  # fmt: skip
    p.text(
        30,
        340,
        "rtl/node has the tops; each block has a folder, with its tests, proofs and a page.",
        "small muted",
    )
    return p


def card() -> Picture:
    """A node behind PCI Express."""
    p = Picture("A card", 900, 300)
    p.group(20, 16, 230, 264, "Host")
    p.box(40, 50, 190, 50, "process", "library, transports/nic", kind="user")
    p.box(40, 130, 190, 50, "velo.ko", "grants pages, sets up rings", kind="velo")
    p.box(40, 210, 190, 50, "memory", "rings, registered memory", kind="user")
    p.group(300, 16, 580, 264, "Card")
    p.box(320, 110, 120, 70, "PCI Express", "hard block", kind="old")
    p.box(480, 110, 150, 70, "function", "rtl/pcie", kind="hard")
    p.box(670, 110, 110, 70, "node", "64 bits", kind="hard")
    for at in range(3):
        p.box(810, 90 + 42 * at, 56, 28, f"link {at}", kind="hard")
        p.arrow((780, 145), (795, 145), (795, 104 + 42 * at), (808, 104 + 42 * at))
    p.arrow((230, 75), (275, 75), (275, 135), (318, 135))
    p.arrow((230, 155), (318, 155), kind="dashed")
    p.arrow((320, 170), (275, 170), (275, 235), (232, 235))
    p.arrow((440, 145), (478, 145))
    p.arrow((630, 145), (668, 145))
    p.lines(320, 50, "Processes store messages straight into a window (BAR2): a page for each",
            "target that the driver granted. The driver is not on the way of a message.")  # fmt: skip
    p.lines(320, 226, "The card writes messages, notifications and data of puts to memory,",
            "and interrupts behind them, if somebody sleeps.")  # fmt: skip
    return p


def simulator() -> Picture:
    """Ranks and the simulator."""
    p = Picture("Ranks and the simulator", 900, 300)
    p.group(20, 16, 360, 264, "Ordinary processes, one a rank")
    for at in range(3):
        y = 48 + 74 * at
        p.box(36, y, 328, 62, kind="")
        p.box(46, y + 10, 90, 42, f"rank {at}" if at < 2 else "rank n", kind="user")
        p.box(142, y + 10, 90, 42, "libvelo", kind="velo")
        p.box(238, y + 10, 116, 42, "virtual clocks", kind="velo")
        p.arrow((364, y + 31), (428, y + 31), kind="dashed")
    p.box(430, 48, 120, 210, "shared file", "spec/sim_channel.h", kind="old")
    p.group(600, 16, 280, 264, "velo-sim")
    p.box(620, 50, 240, 50, "schedule", "who acts next, and when", kind="velo")
    p.box(620, 116, 240, 50, "host model", "store, DMA, read, poll", kind="velo")
    p.box(620, 182, 110, 78, "nodes", "Verilated rtl/", kind="hard")
    p.box(750, 182, 110, 78, "cables", "delay, errors", kind="hard")
    p.arrow((550, 153), (598, 153), kind="dashed")
    p.arrow((740, 100), (740, 114))
    p.arrow((675, 166), (675, 180))
    p.arrow((730, 221), (748, 221))
    p.text(
        20,
        296,
        "One thread runs at a time, in no virtual time: the call with the earliest time is answered first.",
        "small muted",
    )
    return p


def guests() -> Picture:
    """Virtual machines with simulated cards."""
    p = Picture("Guests with simulated cards", 900, 290)
    for at in range(2):
        x = 20 + 300 * at
        p.group(x, 16, 280, 190, f"QEMU: guest velo{at}")
        p.box(x + 20, 48, 110, 44, "MPI rank", kind="user")
        p.box(x + 150, 48, 110, 44, "libvelo", kind="velo")
        p.box(x + 20, 104, 240, 38, "Linux, velo.ko", kind="velo")
        p.box(x + 20, 154, 240, 38, "PCI Express, vfio-user", kind="old")
        p.arrow((x + 130, 70), (x + 148, 70))
        p.arrow((x + 205, 92), (x + 205, 102))
        p.arrow((x + 140, 142), (x + 140, 152))
        p.arrow((x + 140, 192), (x + 140, 232))
    p.group(20, 214, 580, 66, "")
    for at in range(2):
        p.box(70 + 300 * at, 234, 180, 36, "function and node", kind="hard")
    p.arrow((250, 252), (368, 252))
    p.text(290, 244, "cable", "small muted")
    p.lines(630, 60, "Each guest is a machine of its own, with", "a Linux, the driver and a card.")
    p.lines(630, 236, "velo-sim: the Verilated RTL of function", "and node. Guests run in real time; their",
            "clocks say nothing about the hardware.")  # fmt: skip
    return p


def house() -> Picture:
    """Which folder uses which: what is used stands below what uses it."""
    found = arrows(ROOT)
    level: dict[str, int] = {}

    def height(area: str) -> int:
        if area not in level:
            level[area] = max((1 + height(other) for other in found[area]), default=0)
        return level[area]

    rows: dict[int, list[str]] = {}
    for area in sorted(found):
        rows.setdefault(height(area), []).append(area)
    # Each row in the order of what it uses, so that few arrows cross.
    place: dict[str, float] = {}
    for _, row in sorted(rows.items()):

        def middle(area: str) -> float:
            used = [place[other] for other in found[area]]
            return sum(used) / len(used) if used else 0.5

        row.sort(key=lambda area: (middle(area), area))
        for at, area in enumerate(row):
            place[area] = (at + 0.5) / len(row)
    top = max(rows)
    p = Picture("Which folder uses which", 1100, 40 + 74 * (top + 1))
    width = {area: 22 + 7.6 * len(area) for area in found}
    box: dict[str, tuple[float, float]] = {}
    for number, row in rows.items():
        gap = (1080 - sum(width[area] for area in row)) / len(row)
        x = 10 + gap / 2
        for area in row:
            box[area] = (x + width[area] / 2, 20 + 74 * (top - number))
            x += width[area] + gap
    for area in sorted(found):
        for other in sorted(found[area]):
            (x, y), (to_x, to_y) = box[area], box[other]
            p.arrow((round(x), y + 34), (round(to_x), to_y - 1))
    kinds = {"lib": "velo", "include": "velo", "transports": "velo", "rtl": "hard", "spec": "hard",
             "sim": "hard", "driver": "hard"}  # fmt: skip
    for area, (x, y) in sorted(box.items()):
        wide = round(width[area])
        p.box(round(x - wide / 2), y, wide, 34, area, kind=kinds.get(area.split("/")[0], "user"))
    return p


PICTURES: dict[str, Callable[[], Picture]] = {
    "stack": stack,
    "house": house,
    "ring": ring,
    "native-message": native_message,
    "hardware-message": hardware_message,
    "node": node,
    "switch": blocks.switch,
    "card": card,
    "velo-unit": blocks.velo_unit,
    "link": blocks.link,
    "rma": blocks.rma,
    "dimmnet": blocks.dimmnet,
    "atu": blocks.atu,
    "barrier": blocks.barrier,
    "clock": blocks.clock,
    "congestion": blocks.congestion,
    "htax": blocks.htax,
    "netport": blocks.netport,
    "pcie": blocks.pcie,
    "pcs": blocks.pcs,
    "regfile": blocks.regfile,
    "simulator": simulator,
    "guests": guests,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the pictures")
    write = parser.parse_args().write
    bad = []
    for name, draw in PICTURES.items():
        path = HERE / f"{name}.svg"
        text = draw().svg()
        if write:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            bad.append(path.name)
    if bad:
        print(
            f"draw.py: not what their source gives: {', '.join(bad)}; docs/pictures/draw.py --write",
            file=sys.stderr,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
