# SPDX-License-Identifier: Apache-2.0
"""SWIF against packets that are made and read bit by bit (infiniband.py), and by tshark."""

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cocotb
import infiniband as ib
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

ROOT = Path(__file__).resolve().parents[3]
CAPTURE = ROOT / "build" / "rtl" / "dimmnet_swif.pcap"
LID, PEER, OTHER = 0x1234, 0x1237, 0x123A
FIRST, MIDDLE, LAST = 1, 2, 3
COUNTS = ["crc", "malformed", "foreign", "ahead", "duplicate", "no_room", "repeated"]
COUNTS += ["unreachable", "gave_up"]
TIMEOUT, RNR, RETRIES, ROOM = 1024, 64, 3, 128
INPUTS = (
    "stop_i tx_valid_i tx_ident_i tx_line_i rx_ready_i net_tx_ready_i "
    "net_rx_valid_i net_rx_first_i net_rx_last_i net_rx_bytes_i net_rx_word_i"
)


def test_swif(simulate: Callable[..., None]) -> None:
    CAPTURE.unlink(missing_ok=True)
    parameters = {
        "TimeoutCycles": TIMEOUT,
        "RnrCycles": RNR,
        "RetryLimit": RETRIES,
        "StoreLines": ROOM,
    }
    simulate("dimmnet_swif", parameters)
    if "COCOTB_TEST_FILTER" not in os.environ:  # else some of what is to be dissected is not there
        dissect(CAPTURE)


def dissect(path: Path) -> None:
    """Tshark must find in each packet what infiniband.py found, and nothing malformed."""
    names = "infiniband.lrh.dlid infiniband.lrh.slid infiniband.bth.opcode infiniband.bth.psn"
    names += " infiniband.aeth.syndrome infiniband.invariant.crc infiniband.variant.crc data.len"
    names += " _ws.malformed _ws.expert"
    fields = [option for name in names.split() for option in ("-e", name)]
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "separator=;", *fields]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.split(";") for line in output.splitlines()]
    packets = [bytes.fromhex(one) for one in json.loads(path.with_suffix(".json").read_text())]
    assert len(rows) == len(packets) > 100
    for row, packet in zip(rows, packets, strict=True):
        one = ib.read(packet)
        assert row[8:] == ["", ""], f"malformed: {packet.hex()}"
        assert [int(row[i]) for i in range(4)] == [one.dlid, one.slid, one.op, one.psn]
        assert row[4] == ("" if one.op == ib.DATA else str(one.syndrome))
        assert int(row[5], 16) == int.from_bytes(packet[-6:-2], "big")
        assert int(row[6], 16) == int.from_bytes(packet[-2:], "big")
        assert row[7] == ("" if one.op == ib.ACK else str(8 * len(one.lines)))


def test_crc_of_the_specification() -> None:
    """The specification's sample packet, as the ICRC sees it, and its ICRC (volume 1, 7.8.4)."""
    sample = bytes.fromhex(
        "f012375c000e17d20a202487ff87b1b3000dec2a01710a1c015d400238f27a05"
        "0000000ebb884d85fd5cfba4728bc0690ed40000"
    )
    assert ib.icrc(sample).hex() == "9625b75a"
    switched = bytearray(sample)
    switched[0], switched[12] = 0x30, 0x55  # what a switch may change
    assert ib.icrc(bytes(switched)) == ib.icrc(sample)


class Setup:
    """CoreLogic on one side, the network on the other: what comes out of either is in a list."""

    def __init__(self, dut: Any, seed: int = 1, stall: float = 0.0):
        self.dut, self.bench, self.rng, self.stall = (
            dut,
            Bench(dut, INPUTS.split()),
            random.Random(seed),
            stall,
        )
        self.raw: list[bytes] = []  # packets on the network, and what they say
        self.seen: list[ib.Packet] = []
        self.got: list[list[int]] = []  # packets of lines
        self.taking = True
        dut.lid_i.value = LID

    async def start(self) -> None:
        await self.bench.start()
        cocotb.start_soon(self._network())
        cocotb.start_soon(self._core())

    def forget(self) -> None:
        del self.raw[:], self.seen[:]

    def data(self) -> list[ib.Packet]:
        return [one for one in self.seen if one.op == ib.DATA]

    def acks(self) -> list[ib.Packet]:
        return [one for one in self.seen if one.op == ib.ACK]

    def count(self, name: str) -> int:
        return int(self.dut.counts_o.value) >> 32 * COUNTS.index(name) & 0xFFFFFFFF

    async def _network(self) -> None:
        dut, words = self.dut, bytearray()
        while True:
            dut.net_tx_ready_i.value = int(self.rng.random() >= self.stall)
            await ReadOnly()
            if int(dut.net_tx_valid_o.value) and int(dut.net_tx_ready_i.value):
                assert int(dut.net_tx_first_o.value) == (not words), "first word out of place"
                size = int(dut.net_tx_bytes_o.value)
                words += int(dut.net_tx_word_o.value).to_bytes(8, "little")[:size]
                if int(dut.net_tx_last_o.value):
                    self.raw.append(bytes(words))
                    self.seen.append(ib.read(self.raw[-1]))
                    words.clear()
                else:
                    assert size == 8
            await FallingEdge(dut.clk_i)

    async def _core(self) -> None:
        dut, packet = self.dut, []
        while True:
            dut.rx_ready_i.value = int(self.taking and self.rng.random() >= self.stall)
            await ReadOnly()
            if int(dut.rx_valid_o.value) and int(dut.rx_ready_i.value):
                ident = int(dut.rx_ident_o.value)
                assert (ident == FIRST) == (not packet), "first line out of place"
                packet.append(int(dut.rx_line_o.value))
                if ident == LAST:
                    self.got.append(packet)
                    packet = []
            await FallingEdge(dut.clk_i)

    def lines(self, count: int, peer: int = PEER, own: int = LID) -> list[int]:
        """A packet of CoreLogic of so many lines; the same, the other way round, is one to it."""
        first = own << 48 | peer << 32 | (count - 2) << 10 | self.rng.getrandbits(10)
        return [first, *(self.rng.getrandbits(64) for _ in range(count - 1))]

    async def send(self, lines: list[int], gap: float = 0.0, begin: int = 0, end: int = 64) -> None:
        """The packet, or its lines from one to another."""
        dut = self.dut
        for index, line in list(enumerate(lines))[begin:end]:
            while self.rng.random() < gap:
                await FallingEdge(dut.clk_i)
            dut.tx_valid_i.value, dut.tx_line_i.value = 1, line
            dut.tx_ident_i.value = (
                FIRST if index == 0 else LAST if index == len(lines) - 1 else MIDDLE
            )
            for _ in range(20000):
                await ReadOnly()
                taken = int(dut.tx_ready_o.value)
                await FallingEdge(dut.clk_i)
                if taken:
                    break
            else:
                raise AssertionError("CoreLogic is held for ever")
            dut.tx_valid_i.value = 0

    async def words(self, words: list[tuple[int, bool, bool, int]], gap: float = 0.0) -> None:
        """Words with their marks: value, first, last, bytes."""
        dut = self.dut
        for word, first, last, size in words:
            while self.rng.random() < gap:
                dut.net_rx_valid_i.value = 0
                await FallingEdge(dut.clk_i)
            dut.net_rx_valid_i.value, dut.net_rx_word_i.value = 1, word
            dut.net_rx_first_i.value, dut.net_rx_last_i.value = int(first), int(last)
            dut.net_rx_bytes_i.value = size
            await FallingEdge(dut.clk_i)
        dut.net_rx_valid_i.value = 0

    async def receive(self, packet: bytes, gap: float = 0.0) -> None:
        await self.words(cut(packet), gap)

    async def receive_data(self, psn: int, lines: list[int], peer: int = PEER) -> None:
        await self.receive(ib.data(LID, peer, psn, lines))

    async def receive_ack(self, psn: int, syndrome: int = ib.TAKEN, peer: int = PEER) -> None:
        await self.receive(ib.ack(LID, peer, psn, syndrome))

    async def acknowledge(self) -> None:
        """Each packet, as it comes."""
        told = 0
        while True:
            while told < len(self.seen):
                await self.receive_ack(self.seen[told].psn, peer=self.seen[told].dlid)
                told += 1
            await FallingEdge(self.dut.clk_i)

    def keep_capture(self) -> None:
        """What this test saw goes into the file that tshark reads, behind what others saw."""
        listing = CAPTURE.with_suffix(".json")
        before = json.loads(listing.read_text()) if CAPTURE.exists() else []
        packets = before + [one.hex() for one in self.raw]
        CAPTURE.write_bytes(ib.pcap([bytes.fromhex(one) for one in packets]))
        listing.write_text(json.dumps(packets))


def cut(packet: bytes) -> list[tuple[int, bool, bool, int]]:
    pieces = [packet[i : i + 8] for i in range(0, len(packet), 8)]
    return [
        (int.from_bytes(piece, "little"), i == 0, i == len(pieces) - 1, len(piece))
        for i, piece in enumerate(pieces)
    ]


async def started(dut: Any, **options: Any) -> Setup:
    setup = Setup(dut, **options)
    await setup.start()
    return setup


@cocotb.test()
async def packets_are_infiniband(dut: Any) -> None:
    """Every length, to two peers, with gaps, and a network that is not always ready."""
    setup = await started(dut, stall=0.2)
    sent: dict[int, list[list[int]]] = {PEER: [], OTHER: []}
    cocotb.start_soon(setup.acknowledge())
    for number in range(126):
        peer = PEER if setup.rng.random() < 0.5 else OTHER
        lines = setup.lines(2 + number // 2, peer)
        sent[peer].append(lines)
        await setup.send(lines, gap=0.3 if number % 3 == 0 else 0.0)
    await setup.bench.until(lambda: len(setup.seen) == 126)
    for peer, packets in sent.items():
        seen = [one for one in setup.data() if one.dlid == peer]
        assert [one.lines for one in seen] == packets
        assert [one.psn for one in seen] == list(range(len(packets)))
        assert all(one.slid == LID for one in seen)
    assert setup.count("repeated") == 0
    setup.keep_capture()


@cocotb.test()
async def packets_are_taken_in_order(dut: Any) -> None:
    """Every length, from two peers; what comes out is what was sent, each is acknowledged."""
    setup = await started(dut, stall=0.1)
    expected, psns = [], {PEER: 0, OTHER: 0}
    for number in range(126):
        peer = OTHER if number % 5 == 0 else PEER
        lines = setup.lines(2 + number // 2, LID, peer)
        expected.append(lines)
        await setup.receive(
            ib.data(LID, peer, psns[peer], lines), gap=0.3 if number % 7 == 0 else 0.0
        )
        psns[peer] += 1
        await setup.bench.cycles(setup.rng.randrange(40))
    await setup.bench.cycles(400)
    assert setup.got == expected
    assert setup.count("no_room") == 0
    for peer, count in psns.items():
        acks = [one for one in setup.acks() if one.dlid == peer]
        assert all(one.syndrome == ib.TAKEN and one.msn == one.psn + 1 for one in acks)
        assert acks[-1].psn == count - 1
        assert [one.psn for one in acks] == sorted({one.psn for one in acks}), "acknowledged twice"
    setup.keep_capture()


@cocotb.test()
async def what_is_wrong_is_dropped(dut: Any) -> None:
    """Any wrong byte but those that a switch may change, any wrong form: dropped in silence."""
    setup = await started(dut)
    lines = setup.lines(5, LID, PEER)
    right = ib.data(LID, PEER, 0, lines)
    for place in range(len(right)):
        wrong = bytearray(right)
        wrong[place] ^= 1 << setup.rng.randrange(8)
        await setup.receive(bytes(wrong))
    body = right[:-6]
    assert setup.count("crc") + setup.count("malformed") == len(right)

    def changed(place: int, value: int, base: bytes = body) -> bytes:
        """One byte is another one, and both CRCs are right."""
        return ib.close(base[:place] + bytes([value]) + base[place + 1 :])

    malformed = [
        changed(0, 0x01),  # another version of the link
        changed(1, 0x03),  # a GRH follows
        changed(5, body[5] + 1),  # half a line more
        changed(5, body[5] + 2),  # a line more than there is
        changed(5, body[5] - 2),
        changed(8, 0x05),  # SEND Only with Immediate
        changed(8, 0x11),  # an acknowledgement as long as data
        changed(9, 0x10),  # padded
        changed(9, 0x01),  # another version of the transport
        changed(11, 0x00),  # another partition
        changed(15, 0x00),  # another queue pair
        ib.data(LID, PEER, 0, [lines[0]]),  # no header's length
        ib.data(LID, PEER, 0, [lines[0]] * 65),
        ib.close(body[:20]),
    ]
    before = setup.count("malformed")
    for packet in malformed:
        await setup.receive(packet)
    assert setup.count("malformed") == before + len(malformed)
    foreign = [
        ib.data(LID + 1, PEER, 0, lines),
        ib.data(LID, PEER ^ 0x100, 0, lines),
        ib.ack(LID + 1, PEER, 0),
    ]
    for packet in foreign:
        await setup.receive(packet)
    await setup.bench.cycles(2)
    assert setup.count("foreign") == len(foreign)

    # The marks: cut off, no beginning, no end, too many of either, too late, a wrong size.
    words = cut(right)
    bad = [
        words[:3],
        words[1:],
        words[:1] * 3,
        words[:-1] + [(words[-1][0], False, False, 2)] * 200,
    ]
    bad += [
        [(*one[:2], True, one[3]) for one in words],
        [words[-1]] * 3,
        [*words[:-1], (*words[-1][:3], 6)],
    ]
    for packet in bad:
        await setup.words(packet)
    await setup.bench.cycles(100)
    assert not setup.got and not setup.raw

    # A switch may change VL and resv8a, and gives the packet a VCRC of its own.
    switched = bytearray(right[:-2])
    switched[0], switched[12] = 0x30, 0x77
    await setup.receive(bytes(switched) + ib.vcrc(bytes(switched)))
    # With the right VCRC but a wrong ICRC it is dropped.
    damaged = bytearray(ib.data(LID, PEER, 1, lines)[:-2])
    damaged[25] ^= 4
    await setup.receive(bytes(damaged) + ib.vcrc(bytes(damaged)))
    await setup.receive_data(1, lines[:3])
    await setup.bench.cycles(100)
    assert setup.got == [lines, lines[:3]]


@cocotb.test()
async def acknowledgements_are_few(dut: Any) -> None:
    """One for four packets, or after some time; at once what a sender must know."""
    setup = await started(dut)
    for psn in range(8):
        await setup.receive_data(psn, setup.lines(2, LID, PEER))
    await setup.bench.cycles(130)
    first = len(setup.acks())
    assert setup.acks()[-1].psn == 7 and first <= 3
    await setup.receive_data(5, setup.lines(2, LID, PEER))  # came already
    await setup.bench.cycles(16)
    assert [(one.psn, one.syndrome) for one in setup.acks()[first:]] == [(7, ib.TAKEN)]
    for psn in (9, 10, 11):  # 8 is missing: that is said once
        await setup.receive_data(psn, setup.lines(2, LID, PEER))
    await setup.bench.cycles(16)
    assert [(one.psn, one.syndrome) for one in setup.acks()[first + 1 :]] == [(8, ib.SEQUENCE)]
    for psn in (8, 10):  # and again when another is missing
        await setup.receive_data(psn, setup.lines(2, LID, PEER))
    await setup.bench.cycles(16)
    assert [(one.psn, one.syndrome) for one in setup.acks()[first + 2 :]] == [(9, ib.SEQUENCE)]
    assert len(setup.got) == 9
    assert (setup.count("duplicate"), setup.count("ahead")) == (1, 4)
    setup.keep_capture()


@cocotb.test()
async def no_room_holds_up_nothing(dut: Any) -> None:
    """CoreLogic takes nothing: RNR; acknowledgements go in and out; later all goes on."""
    setup = await started(dut)
    setup.taking = False
    packets = [setup.lines(60, LID, PEER) for _ in range(3)]
    for psn, packet in enumerate(packets):
        await setup.receive_data(psn, packet)
    await setup.bench.cycles(20)
    assert (setup.acks()[-1].syndrome, setup.acks()[-1].psn) == (ib.NOT_READY, 2)
    mine = setup.lines(2)
    await setup.send(mine)
    await setup.bench.cycles(20)
    await setup.receive_ack(0)
    await setup.bench.cycles(3 * TIMEOUT)
    assert [one.lines for one in setup.data()] == [mine], "the acknowledgement was not heard"
    setup.taking = True
    await setup.bench.cycles(130)
    await setup.receive_data(2, packets[2])
    await setup.bench.cycles(200)
    assert setup.got == packets and setup.acks()[-1].psn == 2
    assert setup.count("no_room") == 1
    setup.keep_capture()


@cocotb.test()
async def what_is_lost_comes_again(dut: Any) -> None:
    """NAK: at once, from the missing one on, nothing of another peer. RNR, silence: later."""
    setup = await started(dut)
    mine = [setup.lines(2 + i) for i in range(6)]
    for i, lines in enumerate(mine):
        await setup.send(lines)
        if i == 3:
            await setup.send(setup.lines(3, OTHER))
    await setup.bench.cycles(60)
    setup.forget()
    await setup.receive_ack(2, ib.SEQUENCE)
    await setup.bench.cycles(80)
    assert [one.lines for one in setup.data()] == mine[2:]
    assert [one.psn for one in setup.data()] == [2, 3, 4, 5]
    setup.forget()
    await setup.receive_ack(0, peer=OTHER)
    await setup.receive_ack(4, ib.NOT_READY)
    await setup.bench.cycles(RNR + 60)
    assert [one.psn for one in setup.data()] == [4, 5]
    setup.forget()
    await setup.bench.cycles(2 * TIMEOUT + 60)
    assert [one.psn for one in setup.data()] == [4, 5]
    await setup.receive_ack(5)
    await setup.bench.cycles(5)
    setup.forget()
    await setup.bench.cycles(4 * TIMEOUT)
    assert not setup.raw and setup.count("gave_up") == 0
    assert setup.count("repeated") == 2, "a NAK, a timeout"
    setup.keep_capture()


@cocotb.test()
async def a_silent_peer_is_given_up_alone(dut: Any) -> None:
    """After RetryLimit repetitions. Others go on; it is sent nothing until it was stopped."""
    setup = await started(dut)
    await setup.send(setup.lines(2))
    await setup.send(setup.lines(2, OTHER))
    await setup.bench.cycles(30)
    await setup.receive_ack(0, peer=OTHER)
    await setup.bench.until(lambda: int(dut.failed_o.value) == 1 << (PEER & 15), 20 * TIMEOUT)
    assert len([one for one in setup.data() if one.dlid == PEER]) == 1 + RETRIES
    await setup.bench.cycles(2)
    assert setup.count("gave_up") == 1
    setup.forget()
    for _ in range(40):  # more than the ring has places
        await setup.send(setup.lines(2))
    await setup.send(setup.lines(4, OTHER))
    await setup.bench.cycles(30)
    assert [(one.dlid, one.psn) for one in setup.data()] == [(OTHER, 1)]
    assert setup.count("unreachable") == 40
    # What it sends is still taken.
    await setup.receive_data(0, setup.lines(2, LID, PEER))
    await setup.bench.cycles(4)
    assert len(setup.got) == 1

    dut.stop_i.value = 1 << (PEER & 15)
    await setup.bench.cycles(5)
    assert int(dut.off_o.value) == 1 << (PEER & 15)
    await setup.receive_data(1, setup.lines(2, LID, PEER))
    await setup.receive_ack(1, peer=OTHER)
    await setup.bench.cycles(20)
    assert len(setup.got) == 1 and int(dut.failed_o.value) == 0
    dut.stop_i.value = 0
    await setup.bench.until(lambda: int(dut.off_o.value) == 0)
    setup.forget()
    again = setup.lines(3)
    await setup.send(again)
    await setup.receive_data(0, again)
    await setup.bench.cycles(100)
    assert [(one.psn, one.lines) for one in setup.data()] == [(0, again)]
    assert setup.got[1:] == [again]


@cocotb.test()
async def stopping_drops_what_waits(dut: Any) -> None:
    """Packets in the ring and one half written, behind another peer's unacknowledged one."""
    setup = await started(dut)
    await setup.send(setup.lines(2, OTHER))
    for _ in range(5):
        await setup.send(setup.lines(2))
    half = setup.lines(8)
    await setup.send(half, end=4)
    dut.stop_i.value = 1 << (PEER & 15)
    await setup.bench.cycles(3)
    dut.stop_i.value = 0
    await setup.bench.cycles(50)
    assert int(dut.off_o.value) != 0, "its packets are still there"
    await setup.send(half, begin=4)
    await setup.bench.cycles(50)
    assert int(dut.off_o.value) != 0
    await setup.receive_ack(0, peer=OTHER)
    await setup.bench.until(lambda: int(dut.off_o.value) == 0)
    setup.forget()
    await setup.send(setup.lines(2))
    await setup.bench.cycles(30)
    assert [(one.dlid, one.psn) for one in setup.data()] == [(PEER, 0)]


@cocotb.test()
async def lies_are_not_believed(dut: Any) -> None:
    """Acknowledgements of what was not sent, by others, of no known kind; then noise."""
    setup = await started(dut)
    mine = [setup.lines(3) for _ in range(3)]
    for lines in mine:
        await setup.send(lines)
    await setup.bench.cycles(60)
    setup.forget()
    for psn in (3, 4, 1000, 0x7FFFFF, 0xFFFFFE):
        for kind in (ib.TAKEN, ib.SEQUENCE, ib.NOT_READY):
            await setup.receive_ack(psn + (kind != ib.TAKEN), kind)
    await setup.receive_ack(2, peer=OTHER)
    await setup.receive_ack(2, 0x61)
    await setup.receive_ack(2, 0xA0)
    for _ in range(40):
        packet = bytearray(ib.ack(LID, PEER, setup.rng.randrange(4), ib.SEQUENCE))
        packet[setup.rng.randrange(len(packet))] ^= 1 << setup.rng.randrange(8)
        await setup.receive(bytes(packet))
    await setup.bench.cycles(2 * TIMEOUT)
    assert [one.psn for one in setup.data()][:3] == [0, 1, 2], "they are still kept"
    await setup.receive_ack(2)
    for _ in range(500):
        marks = setup.rng.random() < 0.3, setup.rng.random() < 0.3, setup.rng.randrange(16)
        await setup.words([(setup.rng.getrandbits(64), *marks)], gap=0.2)
    setup.forget()
    await setup.send(mine[0])
    await setup.bench.cycles(60)
    assert [one.psn for one in setup.data()] == [3]
    await setup.receive_data(0, mine[0])
    await setup.bench.cycles(20)
    assert setup.got == [mine[0]]


@cocotb.test()
async def latency(dut: Any) -> None:
    """What the block says of itself in its header."""
    setup = await started(dut)
    await setup.bench.cycles(10)
    begin = setup.bench.cycle
    cocotb.start_soon(setup.send(setup.lines(2)))
    await setup.bench.until(lambda: int(dut.net_tx_valid_o.value) == 1)
    assert setup.bench.cycle - begin == 5
    await setup.bench.cycles(60)
    begin = setup.bench.cycle
    cocotb.start_soon(setup.receive_data(0, setup.lines(2, LID, PEER)))
    await setup.bench.until(lambda: int(dut.rx_valid_o.value) == 1)
    assert setup.bench.cycle - begin == 6
