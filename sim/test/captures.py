#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Capture files, read bit by bit and by tshark with the dissector.

captures.py PROGRAM DISSECTOR

PROGRAM is velo-sim-capture-words; the captures of all three widths have to hold the same.
"""

import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# spec/velo.toml, enum packet_kind.
KINDS = (
    "velo", "put", "get_request", "get_response", "put_immediate", "notification",
    "fetch_compare_add_request", "fetch_compare_add_response", "custom", "congestion", "barrier",
)  # fmt: skip
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
LINK_TYPE = 147
NAME, RESOLUTION = 2, 9
PICOSECONDS = 12
# As tshark names them; what is in a frame, then what is in a packet.
FIELDS = (
    "velo.capture_place.node", "velo.capture_place.link", "velo.capture_place.to_node",
    "velo.capture_place.to_link", "velo.capture_place.repeated", "velo.link_start.seq",
    "velo.capture_frame.crc",
    "velo.route.hops", "velo.packet.kind", "velo.packet.src_node", "velo.packet.src_ctx",
    "velo.packet.dst_node", "velo.packet.dst_ctx", "velo.packet.tag", "velo.packet.len",
    "velo.rma_command.op", "velo.rma_command.len", "velo.short", "frame.interface_name",
)  # fmt: skip


@dataclass(frozen=True)
class Packet:
    """A packet, as far as it was sent."""

    kind: str
    source: tuple[int, int]
    target: tuple[int, int]
    tag: int
    len: int
    payload: bytes


@dataclass(frozen=True)
class Frame:
    """A frame and the packet in it."""

    time_ps: int
    interface: str
    way: tuple[tuple[int, int], tuple[int, int]]
    is_repeated: bool
    seq: int
    crc: int
    hops: int | None
    packet: "Packet | None"
    """None: the frame was cut short before its end."""


def bits(word: int, lsb: int, count: int) -> int:
    return word >> lsb & ((1 << count) - 1)


def options(data: bytes) -> dict[int, bytes]:
    found = {}
    while data:
        code, length = struct.unpack_from("<HH", data)
        if code == 0:
            break
        found[code] = data[4 : 4 + length]
        data = data[4 + (length + 3) // 4 * 4 :]
    return found


def read(path: Path) -> list[Frame]:
    """The frames of a capture, which has to be as pcapng says."""
    data = path.read_bytes()
    interfaces: list[str] = []
    frames = []
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + length - 4]
        assert length % 4 == 0 and struct.unpack_from("<I", data, at + length - 4) == (length,)
        if kind == SECTION:
            assert at == 0 and struct.unpack_from("<IHH", body) == (0x1A2B3C4D, 1, 0)
        elif kind == INTERFACE:
            given = options(body[8:])
            assert struct.unpack_from("<H", body) == (LINK_TYPE,)
            assert given[RESOLUTION] == bytes([PICOSECONDS])
            interfaces.append(given[NAME].decode())
        else:
            assert kind == PACKET, kind
            number, high, low, captured, original = struct.unpack_from("<5I", body)
            assert captured == original == len(body) - 20
            words = struct.unpack(f"<{captured // 8}Q", body[20:])
            frames.append(take_apart(high << 32 | low, interfaces[number], words))
        at += length
    assert at == len(data)
    return frames


def take_apart(time_ps: int, interface: str, words: tuple[int, ...]) -> Frame:
    place, around, *packet = words
    hops = bits(packet.pop(0), 4, 60) if packet and packet[0] & 1 else None
    return Frame(
        time_ps=time_ps,
        interface=interface,
        way=(
            (bits(place, 0, 16), bits(place, 16, 8)),
            (bits(place, 24, 16), bits(place, 40, 8)),
        ),
        is_repeated=bool(bits(place, 48, 1)),
        seq=bits(around, 3, 6),
        crc=bits(around, 32, 32),
        hops=hops,
        packet=packet_of(*packet) if packet else None,
    )


def packet_of(header: int, *payload: int) -> Packet:
    length = bits(header, 26, 10)
    assert len(payload) <= (length + 7) // 8, "words behind the payload"
    return Packet(
        kind=KINDS[bits(header, 4, 4)],
        source=(bits(header, 52, 8), bits(header, 44, 8)),
        target=(bits(header, 8, 8), bits(header, 16, 8)),
        tag=bits(header, 36, 8),
        len=length,
        payload=struct.pack(f"<{len(payload)}Q", *payload)[:length],
    )


def dissected(path: Path, dissector: Path) -> list[list[str]]:
    """What tshark sees in each frame: FIELDS."""
    command = ["tshark", "-X", f"lua_script:{dissector}", "-r", str(path), "-T", "fields"]
    for name in FIELDS:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "Lua" not in done.stderr and str(dissector) not in done.stderr, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def shown(frame: Frame) -> list[str]:
    """FIELDS as tshark has to see them."""
    return [
        *(str(number) for end in frame.way for number in end),
        str(int(frame.is_repeated)),
        str(frame.seq),
        f"0x{frame.crc:08x}",
        "" if frame.hops is None else f"0x{frame.hops:016x}",
        *(shown_packet(frame.packet) if frame.packet else [""] * 9 + ["1"]),
        frame.interface,
    ]


def shown_packet(packet: Packet) -> list[str]:
    begins_with_command = KINDS.index(packet.kind) in range(1, 8) and len(packet.payload) >= 24
    command = struct.unpack_from("<Q", packet.payload)[0] if begins_with_command else 0
    return [
        str(KINDS.index(packet.kind)),
        *(str(number) for end in (packet.source, packet.target) for number in end),
        str(packet.tag),
        str(packet.len),
        str(bits(command, 0, 4)) if begins_with_command else "",
        str(bits(command, 12, 23)) if begins_with_command else "",
        "1" if len(packet.payload) < packet.len else "",
    ]


def main(program: str, dissector: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True, timeout=60)
        paths = {width: Path(folder) / f"{width}.pcapng" for width in (32, 64, 128)}
        read_from = {width: read(path) for width, path in paths.items()}
        for width, frames in read_from.items():
            seen = dissected(paths[width], Path(dissector))
            assert seen == [shown(frame) for frame in frames], f"{width} bits: {seen}"
            assert frames == read_from[32], f"{width} bits: {frames}"
    frames = read_from[32]
    assert frames.pop().packet is None, frames
    packets = [frame.packet for frame in frames if frame.packet]
    assert [p.len for p in packets] == [0, 8, 24, 61, 8, 40, 8, 16], frames
    assert [len(p.payload) for p in packets] == [0, 8, 24, 61, 8, 16, 8, 16], frames
    assert [f.hops for f in frames] == [None, None, 0x321, None, 0x321, None, None, None], frames
    assert [f.is_repeated for f in frames] == [False] * 6 + [True, False], frames
    assert [f.crc == 0 for f in frames] == [False] * 5 + [True] + [False] * 2, frames
    for packet in packets:
        assert packet.payload == bytes(range(1, 1 + len(packet.payload))), packet
        assert (packet.kind, packet.source, packet.target) == ("velo", (1, 4), (7, 3)), packet
    for frame in frames:
        assert frame.way == ((1, 2), (0, 0)) and frame.interface == "node1 link2 to node0 link0"
    assert [f.time_ps for f in frames] == [n * 1_000_000 for n in range(1, 9)]


if __name__ == "__main__":
    main(*sys.argv[1:])
