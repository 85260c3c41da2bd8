#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cards of velo-sim, driven over vfio-user without a guest.

cards.py VELO_SIM CLIENTS ROUTING SPEC_FOLDER [CASE...]
"""

import contextlib
import errno
import json
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import vfio_client as vfio
from vfio_client import CONFIG, Client, GoneError, Memory, RefusedError, fired

SECONDS = 60
CYCLE_ID = 0xC1C  # of the vendor's capability that shows the cluster's cycle
CTX, OTHER = 1, 2  # contexts: that of messages and descriptors; that of remote memory
VELO, RMA = 0, 1
# Registers, spec/velo_regs.rdl.
SETUP, RECEIVED, LINKS, PAGES, LINK_STATUS = 0x08, 0x50, 0x80, 0x88, 0x100
RINGS, READ_POINTERS, ROUTES = 0x8000000, 0x8100000, 0x8200000
QUEUES, QUEUE_READ_POINTERS = 0x8300000, 0x8400000
PUT, GET, REQUESTER = 1, 2, 1
# A guest's memory: for DMA, and within it. Pages of remote memory do not lie behind each other.
BASE, SIZE = 0x1_0000_0000, 1 << 17
RING, QUEUE, TABLE, FRAMES = 0x0, 0x4000, 0x5000, 0x8000
SLOTS_LOG2, ENTRIES_LOG2 = 6, 3
COMMAND, DEVICE_CONTROL, MSIX_CONTROL, POWER_CONTROL = 0x04, 0x48, 0x82, 0x94
MASTER, MSIX_ENABLE, D3HOT = 6, 0x8000, 3
FLR = 0x80  # in the second byte of the device's control

Spec = dict[str, Any]


class Layouts:
    """Constants and layouts of spec/."""

    def __init__(self, folder: Path) -> None:
        self.constants: dict[str, int] = {}
        self.fields: dict[str, dict[str, tuple[int, int]]] = {}
        for name in ("velo.toml", "pcie.toml"):
            spec: Spec = tomllib.loads((folder / name).read_text())
            self.constants |= {one["name"]: one["value"] for one in spec["constant"]}
            for layout in spec["layout"]:
                self.fields[layout["name"]] = {
                    one["name"]: (one["lsb"], one["bits"])
                    for one in layout["field"]
                    if one.get("word", 0) == 0
                }

    def pack(self, layout: str, **values: int) -> int:
        word = 0
        for name, value in values.items():
            lsb, bits = self.fields[layout][name]
            assert value < 1 << bits
            word |= value << lsb
        return word

    def get(self, layout: str, field: str, word: int) -> int:
        lsb, bits = self.fields[layout][field]
        return word >> lsb & (1 << bits) - 1


class Guest:
    """What a driver and a process with context CTX do with a card, at first hand."""

    def __init__(self, layouts: Layouts, path: Path, node: int) -> None:
        self.layouts, self.path, self.node, self.peer = layouts, path, node, 1 - node
        self.rng = random.Random(node)
        self.memory = Memory(SIZE)
        self.event = vfio.event()
        self.head = self.notes = 0

    def connect(self, memory: bool = True) -> None:
        self.client = Client(self.path)
        self.client.negotiate()
        self.heard = False
        if memory:
            self.client.map(BASE, self.memory)

    def close(self) -> None:
        self.client.close()
        self.memory.close()
        os.close(self.event)

    def set(self, offset: int, value: int, bar: int = 0) -> None:
        self.client.write(bar, offset, value)

    def get(self, offset: int, bar: int = 0) -> int:
        return self.client.read(bar, offset)

    def configure(self) -> None:
        """All that a driver sets after a reset."""
        pack, constant = self.layouts.pack, self.layouts.constants
        self.head = self.notes = 0
        self.memory.bytes[:FRAMES] = bytes(FRAMES)
        for page in range(4):
            entry = pack(
                "registered_page",
                rights=7,
                ctx=CTX if page % 2 else OTHER,
                frame=(BASE + self.frame(page)) >> 12,
            )
            struct.pack_into("<Q", self.memory.bytes, TABLE + 8 * page, entry)
        self.client.write(CONFIG, COMMAND, MASTER, 2)
        self.client.write(CONFIG, MSIX_CONTROL, MSIX_ENABLE, 2)
        # A reset leaves the client's eventfds as they are.
        if not self.heard:
            self.client.connect_vectors(0, [self.event])
            self.heard = True
        function = self.get(constant["pcie_reg_function"], 4)
        lines = self.layouts.get("pcie_function", "store_lines", function)
        share = pack("pcie_share", lines=lines)
        self.set(constant["pcie_reg_shares"] + 8 * CTX, share, 4)
        watch = pack("pcie_watch", enable=1, base=(BASE + RING) >> 12)
        self.set(constant["pcie_reg_watch"], watch, 4)
        self.set(SETUP, self.node)
        self.set(ROUTES + 8 * self.node, 15)
        self.set(ROUTES + 8 * self.peer, 0)
        for context in (CTX, OTHER):
            queue = BASE + QUEUE + 0x400 * context
            self.set(QUEUES + (context << 12), 1 | queue | ENTRIES_LOG2 << 48)
        self.set(RINGS + (CTX << 12), 1 | BASE + RING | SLOTS_LOG2 << 48)
        self.set(PAGES, BASE + TABLE | 1 << 8 | 2)
        self.set(LINKS, 1)

    @staticmethod
    def frame(page: int) -> int:
        return FRAMES + 0x2000 * (page ^ 1)

    def place(self, address: int) -> int:
        """Where a byte of registered memory is."""
        return self.frame(address >> 12) + address % 4096

    def window(self, unit: int, target: int) -> int:
        return self.layouts.pack("window", unit=unit, source=CTX, target=target)

    # --- messages

    def message(self, tag: int, payload: list[int]) -> tuple[int, bytes]:
        """Where it is stored, and what."""
        words = [1 | (tag & 255) << 8 | 8 * len(payload) << 16, *payload]
        target = self.peer << 20 | CTX << 12 | len(payload) << 6
        return self.window(VELO, target), struct.pack(f"<{len(words)}Q", *words)

    def send(self, tag: int, payload: list[int], way: int = 0) -> None:
        """By words, as QEMU does; all words in one message; or as one store."""
        offset, data = self.message(tag, payload)
        if way == 0:
            for at in range(0, len(data), 8):
                self.client.post(2, offset + at, data[at : at + 8])
        elif way == 1:
            self.client.post_many(2, offset, data)
        else:
            self.client.write_bytes(2, offset, data)

    def receive(self) -> tuple[int, list[int]] | None:
        """Tag and payload of the next message; None: none is there."""
        slot = RING + 64 * (self.head % (1 << SLOTS_LOG2))
        head = self.memory.word(slot)
        if not (head & 1 and head >> 48 == self.head & 0xFFFF):
            return None
        assert head >> 32 & 0xFFFF == self.peer << 8 | CTX
        words = [self.memory.word(slot + 8 + at) for at in range(0, head >> 16 & 0xFFFF, 8)]
        self.head += 1
        self.set(READ_POINTERS + (CTX << 12), self.head & 0xFFFF)
        return head >> 8 & 255, words

    # --- remote memory

    def command(self, op: int, ours: int, theirs: int, size: int, cookie: int) -> None:
        low = op | REQUESTER << 4 | self.peer << 8 | OTHER << 16 | cookie << 24 | size << 32
        self.client.write_bytes(2, self.window(RMA, 0), struct.pack("<3Q", low, ours, theirs))

    def notification(self, peer: "Guest") -> tuple[int, int]:
        """Cookie and error of the next one."""
        entry = QUEUE + 0x400 * CTX + 16 * (self.notes % (1 << ENTRIES_LOG2))
        until(lambda: self.memory.word(entry) & 1, [self, peer])
        note = self.memory.word(entry)
        self.memory.bytes[entry : entry + 16] = bytes(16)
        self.notes += 1
        self.set(QUEUE_READ_POINTERS + (CTX << 12), self.notes)
        get = self.layouts.get
        return get("rma_notification", "cookie", note), get("rma_notification", "error", note)


def until(condition: Callable[[], object], guests: list[Guest]) -> None:
    """Waits, and does what the cards ask their guests for."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it does not come"
        for guest in guests:
            guest.client.serve(0.001)


class Simulator:
    """velo-sim with two cards on a cable."""

    def __init__(self, velo_sim: str, clients: str, routing: str, spec: str, folder: Path) -> None:
        self.velo_sim, self.clients = velo_sim, clients
        self.folder, self.layouts = folder, Layouts(Path(spec))
        self.topology = folder / "topology"
        text = subprocess.run(
            [sys.executable, routing, "full", "2"], check=True, capture_output=True
        )
        self.topology.write_bytes(text.stdout)
        self.result = folder / "result.json"
        self.sockets = [folder / f"card{node}" for node in range(2)]
        self.pid = 0

    def command(self, options: list[str]) -> list[str]:
        return [
            self.velo_sim,
            *("--topology-file", str(self.topology), "--area", str(self.folder / "area")),
            *("--result", str(self.result), *options),
        ]

    @contextlib.contextmanager
    def running(
        self, *options: str, beside: Sequence[str] = (), number: int = signal.SIGTERM
    ) -> Iterator[list[Guest]]:
        """Ends with a signal, in good order. `beside`: a command that runs on the cluster, too."""
        cards = [f"--card={node}={path}" for node, path in enumerate(self.sockets)]
        job = ["--", *beside] if beside else []
        with subprocess.Popen(
            self.command([*cards, *options, *job]), stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                end = time.monotonic() + SECONDS
                while not all(path.exists() for path in self.sockets):
                    assert process.poll() is None, process.communicate()[1]
                    assert time.monotonic() < end, "no socket"
                    time.sleep(0.01)
                self.pid = process.pid
                yield [Guest(self.layouts, path, node) for node, path in enumerate(self.sockets)]
                assert process.poll() is None, f"it ended: {process.communicate()[1]}"
                process.send_signal(number)
                _, said = process.communicate(timeout=SECONDS)
                # The signal ends the command, and that is how it ended.
                assert process.returncode == (128 + number if beside else 0), said
            finally:
                process.terminate()  # and so its command
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(SECONDS)
                process.kill()
        left = sorted(path.name for path in self.folder.iterdir())
        assert left == ["result.json", "topology"], left

    def figures(self) -> dict[str, Any]:
        figures: dict[str, Any] = json.loads(self.result.read_text())
        return figures

    @contextlib.contextmanager
    def linked(self, *options: str) -> Iterator[list[Guest]]:
        with self.running(*options) as guests:
            for guest in guests:
                guest.connect()
                guest.configure()
            link(guests)
            yield guests
            for guest in guests:
                guest.close()


def link(guests: list[Guest]) -> None:
    for guest in guests:
        until(lambda guest=guest: guest.get(LINK_STATUS) & 1, [])


def payload_of(rng: random.Random) -> list[int]:
    return [rng.getrandbits(64) for _ in range(rng.randrange(8))]


def refused(error: int, action: Callable[[], object]) -> None:
    try:
        action()
    except RefusedError as why:
        assert why.errno == error, f"{why} instead of {os.strerror(error)}"
        return
    raise AssertionError("it was not refused")


# ----- cases


def a_client_finds_the_card(simulator: Simulator) -> None:
    constant = simulator.layouts.constants
    with simulator.running() as (guest, _):
        guest.connect()
        client = guest.client
        flags, regions, irqs = struct.unpack("<4x3I", client.ask(vfio.GET_INFO, ints(16, 0, 0, 0)))
        assert (flags, regions, irqs) == (3, 9, 5)
        sizes = {}
        for region in range(9):
            body = client.ask(vfio.REGION_INFO, struct.pack("<4I2Q", 32, 0, region, 0, 0, 0))
            sizes[region] = struct.unpack("<16xQ8x", body)[0]
        bits = {bar: constant[f"pcie_bar{bar}_bits"] for bar in (0, 2, 4)}
        assert sizes == {bar: 1 << bits[bar] if bar in bits else 0 for bar in range(7)} | {
            7: 4096,
            8: 0,
        }
        body = client.ask(vfio.IRQ_INFO, ints(16, 0, vfio.MSIX, 0))
        assert struct.unpack("<4x3I", body) == (1, vfio.MSIX, constant["pcie_vectors"])
        assert client.read(CONFIG, 0, 4) == constant["pcie_vendor"] | constant["pcie_device"] << 16
        assert client.read(CONFIG, 8, 4) == (
            constant["pcie_class"] << 8 | constant["pcie_revision"]
        )
        for bar, size in bits.items():
            client.write(CONFIG, 0x10 + 4 * bar, (1 << 64) - 1)
            assert client.read(CONFIG, 0x10 + 4 * bar) & ~0xF == (1 << 64) - (1 << size)
        # Capabilities end: power states, PCI Express with FLR, and MSI-X.
        found, at = {}, client.read(CONFIG, 0x34, 1)
        while at:
            found[client.read(CONFIG, at, 1)] = at
            at = client.read(CONFIG, at + 1, 1)
        assert set(found) == {0x01, 0x10, 0x11}
        assert found[0x01] + 4 == POWER_CONTROL
        assert client.read(CONFIG, found[0x10] + 4, 4) >> 28 & 1
        assert client.read(CONFIG, found[0x11] + 2, 2) == constant["pcie_vectors"] - 1
        # The registers of the node and of the function.
        guest.set(SETUP, 77)
        assert guest.get(SETUP) & 0xFF == 77
        assert client.read(0, SETUP, 1) == 77
        function = guest.get(constant["pcie_reg_function"], 4)
        assert simulator.layouts.get("pcie_function", "vectors", function) == 8
        # What the function refuses reads as ones; the error is in the configuration space.
        assert client.read(4, 0x1000, 1) != 0xFF
        # Extended capabilities: errors, and the cluster's cycle, which goes on with a load.
        found, at = {}, 0x100
        while at:
            head = client.read(CONFIG, at, 4)
            found[head & 0xFFFF], at = at, head >> 20
        assert set(found) == {0x01, 0x0B}
        assert client.read(CONFIG, found[0x0B] + 4, 4) == 12 << 20 | CYCLE_ID
        before = client.read(CONFIG, found[0x0B] + 8, 4)
        guest.get(SETUP)
        assert client.read(CONFIG, found[0x0B] + 8, 4) > before
        client.close()


def messages_reach_the_other_guest(simulator: Simulator, *options: str) -> dict[str, Any]:
    rng = random.Random(1)
    with simulator.linked(*options) as guests:
        for number in range(60):
            guest = guests[rng.randrange(2)]
            peer = guests[guest.peer]
            payload = payload_of(rng)
            before = peer.head
            guest.send(number, payload, number % 3)
            # The interrupt comes after the message.
            assert fired(peer.event) > 0
            got = peer.receive()
            assert got == (number, payload), (got, number, payload)
            assert peer.head == before + 1
        assert sum(guest.get(RECEIVED) for guest in guests) == 60
        errors = simulator.layouts.constants["pcie_reg_errors"]
        assert not any(guest.get(errors, 4) for guest in guests)
    return simulator.figures()


def lines_that_are_split_are_put_together(simulator: Simulator) -> None:
    """By the receiver: fragments have one tag. So nothing is compared slot by slot here."""
    with simulator.linked("--split-one-in", "1", "--seed", "7") as (guest, peer):
        offset, data = guest.message(1, list(range(1, 8)))
        for _ in range(10):
            guest.client.write_bytes(2, offset, data)
        stores = simulator.layouts.constants["pcie_reg_stores"]
        until(lambda: peer.memory.word(RING) & 1, [])
        accepted = guest.get(stores, 4) & 0xFFFFFFFF
        assert 20 <= accepted <= 80, accepted
    cards = simulator.figures()["cards"]
    assert cards["packets"] == accepted


def stores_in_one_message_are_one_packet(simulator: Simulator) -> None:
    with simulator.linked() as (guest, peer):
        for number in range(10):
            guest.send(number, list(range(7)), way=1)
            until(guests_message(peer), [])
    cards = simulator.figures()["cards"]
    assert cards["packets"] == 10, cards
    assert cards["stores"] == 80, cards


def guests_message(guest: Guest) -> Callable[[], object]:
    return lambda: guest.receive() is not None


def remote_memory(simulator: Simulator, by_client: bool = False) -> None:
    with simulator.linked() as guests:
        if by_client:
            for guest in guests:
                # The same memory, but each access goes through the client.
                guest.client.unmap(BASE, SIZE)
                guest.client.map(BASE, guest.memory, with_file=False)
        for number in range(10):
            guest = guests[number // 2 % 2]
            peer, rng = guests[guest.peer], guest.rng
            op, size = (PUT, GET)[number % 2], rng.choice((1, 8, 37, 448, 513, 700))
            # Context CTX has the odd pages, OTHER the even ones.
            ours, theirs = (base + rng.randrange(4097 - size) for base in (0x1000, 0x2000))
            data = rng.randbytes(size)
            source, target = (guest, ours), (peer, theirs)
            if op == GET:
                source, target = target, source
            begin = source[0].place(source[1])
            source[0].memory.bytes[begin : begin + size] = data
            at, memory = target[0].place(target[1]), target[0].memory.bytes
            wanted = memory[at - 1 : at] + data + memory[at + size : at + size + 1]
            guest.command(op, ours, theirs, size, number)
            assert guest.notification(peer) == (number, 0)
            # What a client carries out may be later than a notification at the other guest.
            until(
                lambda at=at, size=size, wanted=wanted, memory=memory: (
                    memory[at - 1 : at + size + 1] == wanted
                ),
                guests if by_client else [],
            )
        assert by_client == any(guest.client.asked for guest in guests)
    assert simulator.figures()["cards"]["lost"] == 0


def remote_memory_is_put_and_got(simulator: Simulator) -> None:
    remote_memory(simulator)


def a_client_carries_out_what_has_no_file(simulator: Simulator) -> None:
    remote_memory(simulator, by_client=True)


def memory_that_was_not_given_stays_as_it_is(simulator: Simulator) -> None:
    """Nothing mapped; mapped for reading only; not a master of the bus."""
    with simulator.linked() as (guest, peer):
        pattern = bytes(range(256)) * (SIZE // 256)
        changes: list[Callable[[], None]] = [
            lambda: peer.client.write(CONFIG, COMMAND, 2, 2),
            lambda: peer.client.unmap(BASE, SIZE),
            lambda: peer.client.map(BASE, peer.memory, rights=1),
        ]
        for change in changes:
            change()
            if change is changes[0]:
                peer.memory.bytes[:] = pattern
            received = peer.get(RECEIVED)
            guest.send(1, [5, 6, 7])
            until(lambda received=received: peer.get(RECEIVED) != received, [])
            peer.client.write(CONFIG, COMMAND, MASTER, 2)
            assert peer.memory.bytes[:] == pattern
        assert fired(peer.event, 0) == 2  # not without being a master
    assert simulator.figures()["cards"]["lost"] >= 2


def reset_in_the_middle(simulator: Simulator, reset: Callable[[Guest], None]) -> None:
    """Nothing is written after it, and the card works again."""
    pattern = b"\xa5" * SIZE
    with simulator.linked() as (guest, peer):
        for turn in range(4):
            # Messages, and a long put whose parts are under way.
            for number in range(10):
                guest.send(number, list(range(7)), number % 2)
                peer.send(number, list(range(7)), number % 2)
            guest.command(PUT, 0x1000, 0x2000, 4000, 1)
            peer.command(GET, 0x1000, 0x2000, 4000, 1)
            peer.get(SETUP)
            if turn % 2:
                until(lambda: peer.memory.word(RING) & 1, [])
            reset(peer)
            peer.memory.bytes[:] = pattern
            while fired(peer.event, 0):
                pass
            for number in range(10):
                guest.send(number, list(range(7)))
            assert peer.get(SETUP) & 0xFF == 0
            assert peer.client.read(CONFIG, COMMAND, 2) == 0
            guest.get(SETUP)
            assert peer.memory.bytes[:] == pattern
            assert fired(peer.event, 0) == 0
            # A link comes up again when both sides have been reset.
            guest.client.reset()
            for one in (guest, peer):
                one.configure()
            link([guest, peer])
            for one, other in ((guest, peer), (peer, guest)):
                while fired(other.event, 0):
                    pass
                one.send(turn, [turn])
                assert fired(other.event)
                assert other.receive() == (turn, [turn])
    assert simulator.figures()["cards"]["resets"] >= 8


def a_reset_leaves_nothing_behind(simulator: Simulator) -> None:
    reset_in_the_middle(simulator, lambda guest: guest.client.reset())


def a_function_level_reset_leaves_nothing_behind(simulator: Simulator) -> None:
    def reset(guest: Guest) -> None:
        guest.client.write(CONFIG, DEVICE_CONTROL + 1, FLR, 1)
        guest.get(SETUP)  # waits for its end, as a driver does for 100 ms

    reset_in_the_middle(simulator, reset)


def a_sleep_leaves_nothing_behind(simulator: Simulator) -> None:
    """And while a card sleeps its memory answers nobody."""

    def sleep(guest: Guest) -> None:
        guest.client.write(CONFIG, POWER_CONTROL, D3HOT, 1)
        assert guest.get(SETUP) == (1 << 64) - 1
        guest.set(SETUP, 5)
        guest.client.write(CONFIG, POWER_CONTROL, 0, 1)
        assert guest.get(SETUP) & 0xFF != 5

    reset_in_the_middle(simulator, sleep)


def a_guest_that_goes_leaves_nothing_behind(simulator: Simulator) -> None:
    def reconnect(guest: Guest) -> None:
        # One that goes with a command half sent, and one that comes again at once.
        guest.client.socket.send(vfio.HEADER.pack(1, vfio.WRITE, 100, 0, 0))
        guest.client.close()
        guest.connect()

    reset_in_the_middle(simulator, reconnect)


def ints(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def wrong_messages_are_refused_and_change_nothing(simulator: Simulator) -> None:
    with simulator.linked() as (guest, _):
        client = guest.client
        other = Memory(4096)

        def region(command: int, *values: int, data: bytes = b"") -> Callable[[], object]:
            return lambda: client.ask(command, struct.pack("<QII", *values) + data)

        def mapping(*values: int, files: list[int] | None = None) -> Callable[[], object]:
            body = struct.pack("<IIQQQ", 32, *values)
            return lambda: client.ask(vfio.DMA_MAP, body, files or [])

        def irqs(*values: int, files: list[int] | None = None) -> Callable[[], object]:
            return lambda: client.ask(vfio.SET_IRQS, ints(20, *values), files or [])

        far = 1 << 38
        reader, writer = os.pipe()
        wrong: list[tuple[int, Callable[[], object]]] = [
            (errno.ENOTSUP, lambda: client.ask(99)),
            (errno.ENOTSUP, lambda: client.ask(0)),
            (errno.ENOTSUP, lambda: client.ask(6, ints(16, 0, 0, 0))),
            (errno.EINVAL, client.negotiate),
            (errno.E2BIG, lambda: client.ask(vfio.WRITE, bytes(1 << 20))),
            *(
                (errno.EINVAL, lambda command=command: client.ask(command))
                for command in range(2, 6)
                if command != 6
            ),
            *(
                (errno.EINVAL, lambda command=command: client.ask(command, b"x"))
                for command in (7, 8, 9, 10, 15)
            ),
            (errno.EINVAL, lambda: client.ask(vfio.REGION_INFO, ints(32, 0, 9, 0, 0, 0, 0, 0))),
            (errno.EINVAL, lambda: client.ask(vfio.REGION_INFO, ints(31, 0, 0, 0, 0, 0, 0, 0))),
            (errno.EINVAL, lambda: client.ask(vfio.IRQ_INFO, ints(16, 0, 5, 0))),
            # Regions: not there, beyond the end, around the end of numbers, too long, too short.
            (errno.EINVAL, region(vfio.READ, 0, 1, 8)),
            (errno.EINVAL, region(vfio.READ, 0, 200, 8)),
            (errno.EINVAL, region(vfio.READ, 4096, CONFIG, 1)),
            (errno.EINVAL, region(vfio.READ, 4093, CONFIG, 4)),
            (errno.EINVAL, region(vfio.READ, far, 2, 8)),
            (errno.EINVAL, region(vfio.READ, (1 << 64) - 4, 2, 8)),
            (errno.EINVAL, region(vfio.READ, 0, 0, 0)),
            (errno.EINVAL, region(vfio.READ, 4, 0, 8)),
            (errno.EINVAL, region(vfio.READ, 0, 2, 16)),
            (errno.EINVAL, region(vfio.READ, 0, 2, (1 << 32) - 1)),
            (errno.EINVAL, region(vfio.WRITE, far - 4, 2, 8, data=bytes(8))),
            (errno.EINVAL, region(vfio.WRITE, 0, 0, 8, data=bytes(7))),
            (errno.EINVAL, region(vfio.WRITE, 0, 0, 8, data=bytes(9))),
            (errno.EINVAL, region(vfio.WRITE, 0, 2, 1 << 20, data=bytes(8))),
            (errno.EINVAL, lambda: client.ask(vfio.WRITES, struct.pack("<Q", 1 << 61))),
            (errno.EINVAL, lambda: client.ask(vfio.WRITES, struct.pack("<QQIIQ", 2, 0, 0, 8, 0))),
            # The second one is wrong, so the first one is not done.
            (
                errno.EINVAL,
                lambda: client.ask(
                    vfio.WRITES, struct.pack("<QQIIQQIIQ", 2, SETUP, 0, 8, 9, 0, 0, 9, 0)
                ),
            ),
            # Memory: not whole pages, no rights, overlaps, the place of interrupts, round the end.
            (errno.EINVAL, mapping(3, 0, BASE + SIZE + 8, 4096)),
            (errno.EINVAL, mapping(3, 0, BASE + SIZE, 4095)),
            (errno.EINVAL, mapping(3, 0, BASE + SIZE, 0)),
            (errno.EINVAL, mapping(0, 0, BASE + SIZE, 4096)),
            (errno.EINVAL, mapping(8, 0, BASE + SIZE, 4096)),
            (errno.EINVAL, mapping(3, 7, BASE + SIZE, 4096, files=[other.file])),
            (errno.EINVAL, mapping(3, (1 << 63) - 4096, BASE + SIZE, 8192, files=[other.file])),
            (errno.EINVAL, mapping(3, 0, BASE + SIZE, 4096, files=[other.file, other.file])),
            (errno.EEXIST, mapping(3, 0, BASE, SIZE)),
            (errno.EEXIST, mapping(3, 0, BASE + SIZE - 4096, 8192)),
            (errno.EEXIST, mapping(3, 0, BASE - 4096, 8192)),
            (errno.EEXIST, mapping(3, 0, 0, 1 << 40)),
            (errno.EINVAL, mapping(3, 0, 1 << 62, 4096)),
            (errno.EINVAL, mapping(3, 0, (1 << 62) - 4096, 8192)),
            (errno.EINVAL, mapping(3, 0, (1 << 64) - 4096, 8192)),
            (errno.EINVAL, lambda: client.unmap(BASE, 4096)),
            (errno.EINVAL, lambda: client.unmap(BASE + 4096, SIZE)),
            (errno.EINVAL, lambda: client.unmap(BASE, 0)),
            (errno.EINVAL, lambda: client.unmap(BASE, SIZE, 1)),
            (errno.EINVAL, lambda: client.unmap((1 << 64) - 4096, 8192)),
            (errno.ENOENT, lambda: client.unmap(BASE + SIZE, 4096)),
            # Interrupts: none such, too many, of too few files, of what is no eventfd.
            (errno.EINVAL, irqs(36, 5, 0, 1)),
            (errno.EINVAL, irqs(36, 0, 0, 1, files=[guest.event])),
            (errno.EINVAL, irqs(36, vfio.MSIX, 8, 1, files=[guest.event])),
            (errno.EINVAL, irqs(36, vfio.MSIX, 4, (1 << 32) - 2, files=[guest.event])),
            (errno.EINVAL, irqs(36, vfio.MSIX, 0, 2, files=[guest.event])),
            (errno.EINVAL, irqs(36, vfio.MSIX, 0, 1, files=[guest.event, guest.event])),
            (errno.EINVAL, irqs(36, vfio.MSIX, 0, 1, files=[writer])),
            (errno.EINVAL, irqs(34, vfio.MSIX, 0, 1)),
            (errno.EINVAL, irqs(63, vfio.MSIX, 0, 1)),
            (errno.EINVAL, irqs(9, vfio.MSIX, 0, 1)),
        ]
        for error, action in wrong:
            refused(error, action)
        # An answer to nothing.
        client.socket.sendall(vfio.HEADER.pack(3, vfio.DMA_READ, 40, vfio.REPLY, 0) + bytes(24))
        os.close(reader)
        os.close(writer)
        other.close()
        # Nothing has changed: node, memory, interrupts.
        assert guest.get(SETUP) & 0xFF == guest.node
        works(guest)
    print(f"{len(wrong)} refused")


def works(guest: Guest) -> None:
    """A message to the own node comes by the ring, with its interrupt."""
    while fired(guest.event, 0):
        pass
    guest.peer = guest.node
    offset, data = guest.message(3, [1, 2, 3])
    guest.client.write_bytes(2, offset, data)
    assert fired(guest.event)
    assert guest.receive() == (3, [1, 2, 3])
    guest.peer = 1 - guest.node


def what_cannot_be_parsed_ends_the_connection(simulator: Simulator) -> None:
    with simulator.running() as (guest, _):
        for size in (0, 15):
            guest.connect()
            guest.client.socket.sendall(vfio.HEADER.pack(1, vfio.READ, size, 0, 0))
            try:
                guest.client.message()
                raise AssertionError("it was not ended")
            except GoneError:
                guest.client.close()
        # Before the version nothing is done.
        guest.client = Client(guest.path)
        refused(errno.EPROTO, lambda: guest.get(SETUP))
        refused(errno.ENOTSUP, lambda: guest.client.ask(vfio.VERSION, struct.pack("<HH", 1, 0)))
        for text in (b"x", b"{}", b"[]\0", b"{\xff}\0"):
            refused(
                errno.EINVAL,
                lambda text=text: guest.client.ask(vfio.VERSION, struct.pack("<HH", 0, 0) + text),
            )
        guest.client.negotiate()
        guest.get(SETUP)
        guest.client.close()


def random_messages_harm_nobody(simulator: Simulator) -> None:
    """Right ones with wrong bits, and rubbish; the other guest goes on."""
    rng = random.Random(3)
    rubbish = 0
    with simulator.linked() as (guest, peer):
        for turn in range(25):
            guest.client.socket.settimeout(0.05)
            with contextlib.suppress(GoneError, OSError):
                for _ in range(40):
                    guest.client.socket.sendall(random_message(rng))
                    rubbish += 1
                    with contextlib.suppress(BlockingIOError):
                        guest.client.socket.recv(1 << 16, socket.MSG_DONTWAIT)
            guest.client.close()
            guest.connect()
            if turn % 5 == 0:
                works(peer)
        guest.configure()
        works(guest)
    print(f"{rubbish} messages")


def random_message(rng: random.Random) -> bytes:
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(1, 200))
    command = rng.choice((1, 2, 3, 4, 5, 7, 8, 9, 10, 10, 10, 13, 15, rng.randrange(1 << 16)))
    size = rng.choice((0, 16, 20, 24, 32, rng.randrange(64)))
    words = []
    for _ in range((size + 3) // 4):
        small = rng.randrange(16)
        words.append(rng.choice((small, small, rng.randrange(8192), rng.getrandbits(32))))
    body = struct.pack(f"<{len(words)}I", *words)[:size]
    flags = rng.choice((0, 0, 0, vfio.NO_REPLY, vfio.REPLY, rng.getrandbits(8)))
    length = vfio.HEADER.size + size
    if rng.random() < 0.03:
        length = rng.choice((length + 8, rng.randrange(1 << 14)))
    return vfio.HEADER.pack(rng.randrange(1 << 16), command, length, flags, 0) + body


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def ended(client: Client) -> bool:
    """Has the server ended the connection? Waits for it."""
    try:
        while True:
            client.message()
    except GoneError:
        return True


def files_of_wrong_messages_are_closed(simulator: Simulator) -> None:
    """Those of messages that are refused are neither kept nor taken for the next one's."""
    with simulator.linked() as (guest, _):
        client = guest.client
        known = open_files(simulator.pid)
        other = Memory(4096)
        too_long = bytes(9000 - vfio.HEADER.size)
        for _ in range(40):
            refused(errno.E2BIG, lambda: client.ask(vfio.DMA_MAP, too_long, [other.file] * 16))
            refused(errno.EINVAL, lambda: client.ask(vfio.GET_INFO, b"", [other.file] * 16))
        # The first part of a message that will be left out, and its file with it.
        refused(
            errno.EINVAL,
            lambda: client.ask(vfio.DMA_MAP, ints(32, 3, 0, 0, 0, 64, 0, 0), [other.file] * 2),
        )
        assert open_files(simulator.pid) == known
        # The next one has no file, so the client is asked for what it names.
        guest.peer = guest.node
        area = Memory(4096)
        address = BASE + (1 << 20)
        client.map(address, area, with_file=False)
        asked = client.asked
        guest.set(RINGS + (CTX << 12), 1 | address | 5 << 48)
        offset, data = guest.message(3, [7])
        client.write_bytes(2, offset, data)
        while client.asked == asked:
            client.serve(SECONDS)
        assert not any(other.bytes[:])
        guest.peer = 1 - guest.node
        area.close()
        other.close()


def a_message_with_too_many_files_ends_the_connection(simulator: Simulator) -> None:
    with simulator.running() as (guest, _):
        guest.connect(memory=False)
        known = open_files(simulator.pid)
        message = vfio.HEADER.pack(1, vfio.DMA_MAP, 4096, 0, 0) + bytes(4080)
        sent = 0
        with contextlib.suppress(OSError):
            for at in range(len(message)):
                files = socket.SCM_RIGHTS, struct.pack("i", guest.event) * 16
                guest.client.socket.sendmsg([message[at : at + 1]], [(socket.SOL_SOCKET, *files)])
                sent += 1
        assert ended(guest.client)
        assert sent < len(message), "all of it was taken"
        guest.client.close()
        guest.connect()
        assert open_files(simulator.pid) <= known
        # Files of many commands, sent together, are taken in turns; none is lost.
        events = [vfio.event() for _ in range(8)]
        body = ints(20, 4 | 32, vfio.MSIX, 0, len(events))
        numbers = [guest.client.send(vfio.SET_IRQS, body, 0, events) for _ in range(60)]
        for number in numbers:
            guest.client.reply(number)
        guest.client.ask(vfio.SET_IRQS, ints(20, 1 | 32, vfio.MSIX, 0, len(events)))
        assert [fired(one) for one in events] == [1] * len(events)
        for one in events:
            os.close(one)
        guest.client.close()


def an_eventfd_that_would_block_holds_up_nobody(simulator: Simulator) -> None:
    with simulator.linked() as (guest, peer):
        os.eventfd_write(guest.event, (1 << 64) - 2)  # full
        os.set_blocking(guest.event, True)
        trigger = ints(20, 1 | 32, vfio.MSIX, 0, 1)
        for _ in range(3):
            guest.client.ask(vfio.SET_IRQS, trigger)
        assert os.get_blocking(guest.event)
        assert os.eventfd_read(guest.event) >= (1 << 64) - 2
        works(guest)
        works(peer)


def a_client_without_a_descriptor_for_it_is_turned_away(simulator: Simulator) -> None:
    with simulator.running() as (guest, _):
        known = open_files(simulator.pid)
        guest.connect()
        guest.client.close()
        until(lambda: open_files(simulator.pid) == known, [])
        limits = resource.prlimit(simulator.pid, resource.RLIMIT_NOFILE)
        used = {int(file.name) for file in Path(f"/proc/{simulator.pid}/fd").iterdir()}
        lowest_free = min(set(range(len(used) + 1)) - used)
        resource.prlimit(simulator.pid, resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
        for _ in range(3):
            assert ended(Client(guest.path))
        resource.prlimit(simulator.pid, resource.RLIMIT_NOFILE, limits)
        guest.connect()
        guest.configure()
        works(guest)
        guest.client.close()


def a_cluster_at_rest_stands_still(simulator: Simulator) -> None:
    """Its cycles do not depend on how long nothing happens, and the simulator sleeps."""
    cycles = []
    for looks in (0, 50):
        with simulator.linked() as guests:
            works(guests[0])
            guests[0].get(SETUP)
            time.sleep(looks / 100)
            states = set()
            for _ in range(looks):
                stat = Path(f"/proc/{simulator.pid}/stat").read_text()
                states.add(stat.rpartition(")")[2].split()[0])
                time.sleep(0.01)
            assert states <= {"S"}, states
        cycles.append(simulator.figures()["cycles"])
    # Links are asked whether they are up until they are, so the runs are not the same.
    assert abs(cycles[1] - cycles[0]) < 2000, cycles


def loads_after_a_leap_of_a_process_come_back(simulator: Simulator) -> None:
    """Its time leaps while it waits, and the hardware's with it, past all that a guest did."""
    leapt = simulator.folder / "leapt"
    script = f"{simulator.clients} in_vain | (read line && touch {leapt}; cat)"
    with simulator.running(beside=["sh", "-c", script]) as (guest, _):
        guest.connect()
        until(leapt.exists, [])
        for turn in range(20):
            guest.set(SETUP, turn)
            assert guest.get(SETUP) & 0xFF == turn
        guest.close()
        leapt.unlink()


def a_process_that_naps_and_ends_holds_up_nobody(simulator: Simulator) -> None:
    """Its end is seen while a guest keeps the hardware going."""
    ended = simulator.folder / "ended"
    script = f"{simulator.clients} napping && touch {ended}; exec sleep infinity"
    with simulator.running(beside=["sh", "-c", script]) as (guest, _):
        guest.connect()
        until(ended.exists, [])
        # Its end is seen at one of the next looks.
        time.sleep(0.2)
        guest.get(SETUP)
        guest.close()
        ended.unlink()


def a_command_that_waits_for_a_load_is_carried_out_beside_a_program(simulator: Simulator) -> None:
    """The cluster goes on for the load while the command waits, without a call of a process."""
    with simulator.running(beside=["sleep", "infinity"]) as (guest, _):
        guest.connect()
        for turn in range(20):
            guest.set(SETUP, turn)
            load = struct.pack("<QII", SETUP, 0, 8)
            for sent in [guest.client.send(vfio.READ, load) for _ in range(2)]:
                assert guest.client.reply(sent)[16] == turn
        guest.close()


def signals_and_names(simulator: Simulator) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with simulator.running(number=number):
            # The client that is there keeps the card; its socket keeps its name.
            free = simulator.folder / "free"
            other = simulator.command([f"--card=0={simulator.sockets[0]}", f"--card=1={free}"])
            other[other.index("--area") + 1] += "2"
            done = subprocess.run(other, capture_output=True, text=True, timeout=SECONDS)
            assert done.returncode == 1, done.stderr
            assert str(simulator.sockets[0]) in done.stderr
    # One that was killed leaves its socket.
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(simulator.sockets[0]))
    left.close()
    with simulator.running() as (guest, _):
        guest.connect()
        guest.client.close()


def what_cannot_be_is_refused(simulator: Simulator) -> None:
    path = simulator.folder / "card"
    for options, words in (
        ([], "command is required"),
        (["--card", "0"], "NODE=SOCKET"),
        (["--card", "x=y"], "NODE=SOCKET"),
        (["--card", "0="], "NODE=SOCKET"),
        (["--card", f"2={path}"], "nodes end at 1"),
        (["--card", f"0={path}", "--card", f"0={path}"], "two"),
        (["--card", f"0={path}", "--card", f"1={path}", "--width", "32"], "64 bits"),
        (["--card", "0=" + "x" * 200, "--card", f"1={path}"], "1 to 107 bytes"),
        (["--card", f"0={path}/no", "--card", f"1={path}"], "No such file"),
    ):
        done = subprocess.run(
            simulator.command(options), capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode != 0
        assert words in done.stderr, (options, done.stderr)
        assert not path.exists()


CASES = [
    a_client_finds_the_card,
    messages_reach_the_other_guest,
    stores_in_one_message_are_one_packet,
    lines_that_are_split_are_put_together,
    remote_memory_is_put_and_got,
    a_client_carries_out_what_has_no_file,
    memory_that_was_not_given_stays_as_it_is,
    a_reset_leaves_nothing_behind,
    a_function_level_reset_leaves_nothing_behind,
    a_sleep_leaves_nothing_behind,
    a_guest_that_goes_leaves_nothing_behind,
    wrong_messages_are_refused_and_change_nothing,
    what_cannot_be_parsed_ends_the_connection,
    random_messages_harm_nobody,
    files_of_wrong_messages_are_closed,
    a_message_with_too_many_files_ends_the_connection,
    an_eventfd_that_would_block_holds_up_nobody,
    a_client_without_a_descriptor_for_it_is_turned_away,
    a_cluster_at_rest_stands_still,
    loads_after_a_leap_of_a_process_come_back,
    a_process_that_naps_and_ends_holds_up_nobody,
    a_command_that_waits_for_a_load_is_carried_out_beside_a_program,
    signals_and_names,
    what_cannot_be_is_refused,
]


def main() -> None:
    velo_sim, clients, routing, spec, *wanted = sys.argv[1:]
    cases = {case.__name__: case for case in CASES}
    for name in wanted or cases:
        with tempfile.TemporaryDirectory() as folder:
            print(name, flush=True)
            cases[name](Simulator(velo_sim, clients, routing, spec, Path(folder)))


if __name__ == "__main__":
    main()
