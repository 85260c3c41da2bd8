# SPDX-License-Identifier: Apache-2.0
"""InfiniBand packets by the words of the specification, bit by bit: nothing is from the RTL."""

import struct
from dataclasses import dataclass

DATA, ACK = 0x04, 0x11
TAKEN, NOT_READY, SEQUENCE = 0x1F, 0x20, 0x60


def crc(data: bytes, width: int, poly: int) -> bytes:
    """Volume 1, 7.8: the lowest bit of each byte first into a register of ones; the complement of
    what is left goes out with the highest coefficient first, into the lowest bit of the first byte.
    """
    register = [1] * width  # the highest coefficient first
    taps = [poly >> width - 1 - place & 1 for place in range(width)]
    for byte in data:
        for place in range(8):
            feedback = register[0] ^ byte >> place & 1
            register = [*register[1:], 0]
            if feedback:
                register = [bit ^ tap for bit, tap in zip(register, taps, strict=True)]
    bits = [1 - bit for bit in register]
    return bytes(sum(bits[8 * i + j] << j for j in range(8)) for i in range(width // 8))


def icrc(packet: bytes) -> bytes:
    """Of a local packet up to its ICRC: VL and BTH:Resv8a are ones for it (7.8.1)."""
    masked = bytearray(packet)
    masked[0] |= 0xF0
    masked[12] = 0xFF
    return crc(masked, 32, 0x04C11DB7)


def vcrc(packet: bytes) -> bytes:
    return crc(packet, 16, 0x100B)


def close(packet: bytes) -> bytes:
    """With both CRCs."""
    packet += icrc(packet)
    return packet + vcrc(packet)


def headers(op: int, dlid: int, slid: int, psn: int, body_bytes: int, ack_req: bool) -> bytes:
    length = (8 + 12 + body_bytes + 4) // 4
    lrh = struct.pack(">BBHHH", 0, 2, dlid, length, slid)
    return lrh + struct.pack(">BBHII", op, 0, 0xFFFF, 1 << 16 | slid, ack_req << 31 | psn)


def data(dlid: int, slid: int, psn: int, lines: list[int]) -> bytes:
    body = struct.pack(f"<{len(lines)}Q", *lines)
    return close(headers(DATA, dlid, slid, psn, len(body), True) + body)


def ack(dlid: int, slid: int, psn: int, syndrome: int = TAKEN, msn: int = 0) -> bytes:
    return close(headers(ACK, dlid, slid, psn, 4, False) + struct.pack(">I", syndrome << 24 | msn))


@dataclass
class Packet:
    """What a packet says; reading one checks all that a receiver can check."""

    op: int
    dlid: int
    slid: int
    psn: int
    lines: list[int]
    syndrome: int = 0
    msn: int = 0


def read(packet: bytes) -> Packet:
    first, second, dlid, length, slid = struct.unpack(">BBHHH", packet[:8])
    op, flags, p_key, qp, last = struct.unpack(">BBHII", packet[8:20])
    assert (first, second) == (0, 2), "VL, LVer, SL 0; a BTH follows"
    assert 4 * length == len(packet) - 2, "PktLen"
    assert (flags, p_key, qp) == (0, 0xFFFF, 1 << 16 | slid)
    assert packet[-6:-2] == icrc(packet[:-6]), "ICRC"
    assert packet[-2:] == vcrc(packet[:-2]), "VCRC"
    body = packet[20:-6]
    assert last >> 24 == (0x80 if op == DATA else 0)
    psn = last & 0xFFFFFF
    if op == DATA:
        return Packet(op, dlid, slid, psn, list(struct.unpack(f"<{len(body) // 8}Q", body)))
    assert op == ACK and len(body) == 4
    return Packet(op, dlid, slid, psn, [], body[0], int.from_bytes(body[1:], "big"))


def pcap(packets: list[bytes]) -> bytes:
    """A capture file: each packet, from the LRH on, in an ERF record of type InfiniBand (21), link
    type 197. Tshark 4.0 does not take bare InfiniBand packets (link type 247)."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 4096, 197)
    for index, packet in enumerate(packets):
        size = 16 + len(packet)
        record = struct.pack("<Q", index << 12) + struct.pack(">BBHHH", 21, 4, size, 0, len(packet))
        out += struct.pack("<IIII", 0, index, size, size) + record + packet
    return out
