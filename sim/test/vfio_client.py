# SPDX-License-Identifier: Apache-2.0
"""A client of vfio-user: what QEMU is to a card, without a guest."""

import array
import fcntl
import json
import mmap
import os
import select
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, REGION_INFO, IRQ_INFO = 1, 2, 3, 4, 5, 7
SET_IRQS, READ, WRITE, DMA_READ, DMA_WRITE, RESET, WRITES = 8, 9, 10, 11, 12, 13, 15
REPLY, NO_REPLY, ERROR = 1, 0x10, 0x20
CONFIG, MSIX = 7, 2
HEADER = struct.Struct("<HHIII")
SECONDS = 60.0


class RefusedError(Exception):
    """The server's error; its number is `errno`."""

    def __init__(self, errno: int) -> None:
        super().__init__(os.strerror(errno))
        self.errno = errno


class GoneError(Exception):
    """The server has ended the connection."""


class Memory:
    """A guest's memory. `sealed`: its file cannot shrink, so the server maps it."""

    def __init__(self, size: int, sealed: bool = True) -> None:
        self.file = os.memfd_create("guest", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.file, size)
        if sealed:
            fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.bytes = mmap.mmap(self.file, size)
        self.size = size

    def word(self, at: int) -> int:
        return int(struct.unpack_from("<Q", self.bytes, at)[0])

    def close(self) -> None:
        self.bytes.close()
        os.close(self.file)


@dataclass
class Client:
    """One connection. Memory of the guest is at `memories`, by address."""

    path: Path
    memories: dict[int, Memory] = field(default_factory=dict)
    asked: int = 0  # accesses that the server had this client carry out
    _id: int = 0

    def __post_init__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(self.path))

    def close(self) -> None:
        self.socket.close()

    # --- messages

    def send(
        self, command: int, body: bytes = b"", flags: int = 0, files: Sequence[int] = ()
    ) -> int:
        self._id = (self._id + 1) & 0xFFFF
        message = HEADER.pack(self._id, command, HEADER.size + len(body), flags, 0) + body
        extra = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", list(files)))] if files else []
        )
        sent = self.socket.sendmsg([message], extra)
        self.socket.sendall(message[sent:])
        return self._id

    def _bytes(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                part = self.socket.recv(size - len(data))
            except ConnectionError:
                part = b""
            if not part:
                raise GoneError
            data += part
        return data

    def message(self) -> tuple[int, int, int, int, bytes]:
        """Number, command, flags, error and body of the next one."""
        number, command, size, flags, error = HEADER.unpack(self._bytes(HEADER.size))
        return number, command, flags, error, self._bytes(size - HEADER.size)

    def reply(self, number: int) -> bytes:
        """The answer to a command; what the server asks meanwhile is done."""
        while True:
            got, command, flags, error, body = self.message()
            if not flags & REPLY:
                self.carry_out(got, command, body)
                continue
            assert got == number, f"answer {got} to {number}"
            if flags & ERROR:
                raise RefusedError(error)
            return body

    def carry_out(self, number: int, command: int, body: bytes) -> None:
        self.asked += 1
        address, count = struct.unpack_from("<QQ", body)
        base, memory = next(
            (base, memory)
            for base, memory in self.memories.items()
            if base <= address < base + memory.size
        )
        at = address - base
        answer = body[:16]
        if command == DMA_READ:
            answer += memory.bytes[at : at + count]
        else:
            assert command == DMA_WRITE
            memory.bytes[at : at + count] = body[16:]
        message = HEADER.pack(number, command, HEADER.size + len(answer), REPLY, 0)
        self.socket.sendall(message + answer)

    def serve(self, seconds: float) -> bool:
        """Does what the server asks for. False: it asked for nothing."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return False
        number, command, flags, _, body = self.message()
        assert not flags & REPLY
        self.carry_out(number, command, body)
        return True

    def ask(self, command: int, body: bytes = b"", files: Sequence[int] = ()) -> bytes:
        return self.reply(self.send(command, body, 0, files))

    # --- commands

    def negotiate(self) -> dict[str, object]:
        own = json.dumps({"capabilities": {"max_msg_fds": 8, "max_data_xfer_size": 1 << 20}})
        answer = self.ask(VERSION, struct.pack("<HH", 0, 0) + own.encode() + b"\0")
        assert struct.unpack_from("<HH", answer) == (0, 0)
        capabilities = json.loads(answer[4:-1])["capabilities"]
        assert isinstance(capabilities, dict)
        return capabilities

    def map(self, address: int, memory: Memory, with_file: bool = True, rights: int = 3) -> None:
        body = struct.pack("<IIQQQ", 32, rights, 0, address, memory.size)
        self.ask(DMA_MAP, body, [memory.file] if with_file else [])
        self.memories[address] = memory

    def unmap(self, address: int, size: int, flags: int = 0) -> None:
        self.ask(DMA_UNMAP, struct.pack("<IIQQ", 24, flags, address, size))

    def read(self, region: int, offset: int, size: int = 8) -> int:
        access = struct.pack("<QII", offset, region, size)
        body = self.ask(READ, access)
        assert body[:16] == access
        return int.from_bytes(body[16:], "little")

    def write(self, region: int, offset: int, value: int, size: int = 8) -> None:
        self.write_bytes(region, offset, value.to_bytes(size, "little"))

    def write_bytes(self, region: int, offset: int, data: bytes) -> None:
        self.ask(WRITE, struct.pack("<QII", offset, region, len(data)) + data)

    def post(self, region: int, offset: int, data: bytes) -> None:
        """As QEMU writes: nothing is answered."""
        self.send(WRITE, struct.pack("<QII", offset, region, len(data)) + data, NO_REPLY)

    def post_many(self, region: int, offset: int, data: bytes) -> None:
        """Words in one message, as QEMU sends those that wait."""
        words = [
            struct.pack("<QII", offset + at, region, 8) + data[at : at + 8]
            for at in range(0, len(data), 8)
        ]
        self.send(WRITES, struct.pack("<Q", len(words)) + b"".join(words), NO_REPLY)

    def connect_vectors(self, first: int, events: list[int]) -> None:
        body = struct.pack("<5I", 20, 4 | 32, MSIX, first, len(events))
        self.ask(SET_IRQS, body, events)

    def reset(self) -> None:
        self.ask(RESET)


def event() -> int:
    return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


def fired(number: int, seconds: float = SECONDS) -> int:
    """How often an eventfd was signalled; waits for it."""
    if not select.select([number], [], [], seconds)[0]:
        return 0
    return os.eventfd_read(number)
