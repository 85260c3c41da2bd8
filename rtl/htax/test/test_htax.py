# SPDX-License-Identifier: Apache-2.0
"""The crossbar: everything arrives once, whole and in order; channels and ports do not wait for
each other; a read stays behind its port's writes."""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench
from structs import Struct

PORTS, WIDTH = 4, 32
HOST, DEFAULT, WINDOW, DEFAULT_ONLY = 0, 1, 2, 3
# By source, the targets that it reaches; for others it is given the lowest of these.
REACH = {
    "posted": [{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2}, {DEFAULT}],
    "nonposted": [{1, 2}, set(), {0, 1, 2, 3}, {DEFAULT}],
    "response": [{0, 1, 2, 3}, {2, 3}, {0, 2}, {1, 3}],
}
WINDOW_BIT = 47  # of an address: the upper half of the window is port WINDOW's, nobody the lower's
CHANNELS = ("posted", "nonposted", "response")
PORT, READY, STREAM, READ = (
    Struct("htax_pkg", f"htax_{name}_t") for name in ("port", "ready", "stream", "read")
)


def test_htax(simulate: Callable[..., None]) -> None:
    base = 1 << (48 * WINDOW + WINDOW_BIT)
    none = (1 << 48) - 1  # a mask that no address fits
    mask = base | sum(none << (48 * port) for port in range(PORTS) if port != WINDOW)
    parts = {"WindowBase": base, "WindowMask": mask}
    reach = {
        f"{channel.capitalize()}Reach": sum(
            1 << (PORTS * source + target)
            for source, targets in enumerate(REACH[channel])
            for target in targets
        )
        for channel in CHANNELS
    }
    simulate(
        "htax",
        {name: f"{PORTS * PORTS}'h{value:x}" for name, value in reach.items()}
        | {name: f"{48 * PORTS}'h{value:x}" for name, value in parts.items()},
    )


def header(*, window: int = 0, addr: int = 0, length: int = 0, port: int = 0, tag: int = 0) -> int:
    return window << 71 | addr << 23 | length << 13 | port << 9 | tag << 1


def header_port(value: int) -> int:
    return (value >> 9) & 15


def slices(value: int, bits: int) -> list[int]:
    """A port by port of the crossbar."""
    return [(value >> (index * bits)) & ((1 << bits) - 1) for index in range(PORTS)]


def join(values: list[int], bits: int) -> int:
    return sum(value << (index * bits) for index, value in enumerate(values))


class Crossbar:
    """Queues of transactions at each port and channel; what came out of each, with its source."""

    def __init__(self, dut: Any, rng: random.Random):
        self.dut, self.rng = dut, rng
        self.queues: dict[tuple[str, int], list[tuple[int, list[int]]]] = defaultdict(list)
        self.beat: dict[tuple[str, int], int] = defaultdict(int)
        self.out: dict[tuple[str, int], list[tuple[int, list[int]]]] = defaultdict(list)
        self.open: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.stalled: set[tuple[str, int]] = set()
        self.idle, self.stall = 0.0, 0.0
        self.offered: dict[tuple[str, int], bool] = defaultdict(bool)
        self.last: dict[tuple[str, int], tuple[int, int, int]] = {}

    def send(self, channel: str, port: int, head: int, beats: list[int]) -> None:
        self.queues[channel, port].append((head, beats))

    def drive(self) -> None:
        offers: list[dict[str, int]] = [{} for _ in range(PORTS)]
        takes: list[dict[str, int]] = [{} for _ in range(PORTS)]
        data = {"posted": [0] * PORTS, "response": [0] * PORTS}
        for channel in CHANNELS:
            for port in range(PORTS):
                key = channel, port
                queue = self.queues[key]
                if queue and (self.offered[key] or self.rng.random() >= self.idle):
                    self.offered[key] = True
                    head, beats = queue[0]
                    if channel == "nonposted":
                        offers[port][channel] = READ.pack(valid=1, header=head)
                    else:
                        eop = int(self.beat[key] == len(beats) - 1)
                        offers[port][channel] = STREAM.pack(valid=1, eop=eop, header=head)
                        data[channel][port] = beats[self.beat[key]]
                go = key not in self.stalled and self.rng.random() >= self.stall
                takes[port][channel] = int(go)
        dut = self.dut
        dut.from_i.value = join([PORT.pack(**offer) for offer in offers], PORT.bits)
        dut.to_ready_i.value = join([READY.pack(**take) for take in takes], READY.bits)
        for channel, beats in data.items():
            getattr(dut, f"from_{channel}_data_i").value = join(beats, WIDTH)

    def values(self, name: str, struct: Struct) -> list[dict[str, int]]:
        """By port, the fields of its struct."""
        value = int(getattr(self.dut, name).value)
        return [struct.unpack_bits(port) for port in slices(value, struct.bits)]

    def collect(self) -> None:
        offers, takes = self.values("from_i", PORT), self.values("from_ready_o", READY)
        shown, ready = self.values("to_o", PORT), self.values("to_ready_i", READY)
        data = {
            channel: slices(int(getattr(self.dut, f"to_{channel}_data_o").value), WIDTH)
            for channel in ("posted", "response")
        }
        for channel in CHANNELS:
            struct = READ if channel == "nonposted" else STREAM
            for port in range(PORTS):
                key = channel, port
                if struct.unpack_bits(offers[port][channel])["valid"] and takes[port][channel]:
                    self.offered[key] = False
                    self.beat[key] += 1
                    if self.beat[key] == len(self.queues[key][0][1]):
                        self.beat[key] = 0
                        self.queues[key].pop(0)
                stream = struct.unpack_bits(shown[port][channel])
                if not stream["valid"]:
                    assert key not in self.last, f"{key}: an offered beat was withdrawn"
                    continue
                # A read is one beat without data.
                eop, head = stream.get("eop", 1), stream["header"]
                beat = data[channel][port] if channel in data else 0
                assert self.last.pop(key, (head, beat, eop)) == (head, beat, eop), key
                if not ready[port][channel]:
                    self.last[key] = (head, beat, eop)
                    continue
                self.open[key].append(beat)
                if eop:
                    self.out[key].append((head, self.open[key]))
                    self.open[key] = []

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            self.drive()
            await ReadOnly()
            self.collect()
            await FallingEdge(self.dut.clk_i)


async def start(dut: Any, seed: int) -> Crossbar:
    bench = Bench(dut, ["from_i", "to_ready_i"])
    await bench.start()
    await bench.cycles(1)
    return Crossbar(dut, random.Random(seed))


def target(channel: str, source: int, head: int) -> int:
    if channel == "response":
        wanted = header_port(head)
    elif not head >> 71:
        wanted = HOST
    else:
        wanted = WINDOW if head >> (23 + WINDOW_BIT) & 1 else DEFAULT
    reach = REACH[channel][source]
    return wanted if wanted in reach else min(reach)


@cocotb.test
async def random_traffic(dut: Any) -> None:
    crossbar = await start(dut, 1)
    rng = random.Random(2)
    crossbar.idle = crossbar.stall = 0.3
    expected: dict[tuple[str, int, int], list[tuple[int, list[int]]]] = defaultdict(list)
    for count in range(1200):
        channel, source = rng.choice(CHANNELS), rng.randrange(PORTS)
        if not REACH[channel][source]:
            continue
        head = header(
            window=rng.randrange(2),
            addr=rng.getrandbits(48),
            length=rng.getrandbits(10),
            port=rng.randrange(PORTS),
            tag=rng.getrandbits(8),
        )
        # The tops of the beats tell the source, which a response's header does not.
        beats = [source << 30 | count << 8 | beat for beat in range(rng.randint(1, 5))]
        if channel == "nonposted":
            beats = [0]
        crossbar.send(channel, source, head, beats)
        # A request's `port` is filled in, so nobody asks in another's name. Of a response's
        # header port, tag and error pass.
        seen = head & 0x1FFF if channel == "response" else head & ~(15 << 9) | source << 9
        expected[channel, source, target(channel, source, head)].append((seen, beats))
    await crossbar.cycles(9000)
    got: dict[tuple[str, int, int], list[tuple[int, list[int]]]] = defaultdict(list)
    for (channel, port), transactions in crossbar.out.items():
        for head, beats in transactions:
            assert len({beat >> 8 for beat in beats}) == 1, "transactions are mixed"
            source = header_port(head) if channel == "nonposted" else beats[0] >> 30
            got[channel, source, port].append((head, beats))
    assert got == expected


@cocotb.test
async def channels_do_not_wait(dut: Any) -> None:
    """The default port takes no posted writes: all else goes on."""
    crossbar = await start(dut, 3)
    crossbar.stalled.add(("posted", DEFAULT))
    for count in range(20):
        crossbar.send("posted", DEFAULT_ONLY, header(), [count])
        crossbar.send("posted", 2, header(), [count])  # to the host port
        crossbar.send("nonposted", 2, header(window=1, tag=count), [0])
        crossbar.send("response", DEFAULT, header(port=2), [count])
    await crossbar.cycles(60)
    assert not crossbar.out["posted", DEFAULT]
    assert len(crossbar.out["posted", HOST]) == 20
    assert len(crossbar.out["nonposted", DEFAULT]) == 20
    assert len(crossbar.out["response", 2]) == 20


@cocotb.test
async def a_read_stays_behind_writes(dut: Any) -> None:
    crossbar = await start(dut, 4)
    crossbar.stalled.add(("posted", DEFAULT))
    crossbar.send("posted", 2, header(window=1), [1])
    await crossbar.cycles(3)
    crossbar.send("nonposted", 2, header(), [0])
    await crossbar.cycles(30)
    assert not crossbar.out["nonposted", HOST], "the read overtook the write"
    # Writes that come later do not hold it up.
    crossbar.stalled.clear()
    for count in range(200):
        crossbar.send("posted", 2, header(window=1), [count])
    await crossbar.cycles(8)
    assert len(crossbar.out["nonposted", HOST]) == 1
    assert len(crossbar.out["posted", DEFAULT]) < 20
