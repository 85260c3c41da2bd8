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

PORTS, WIDTH, HEADER_BITS = 4, 32, 72
HOST, DEFAULT, WINDOW, DEFAULT_ONLY = 0, 1, 2, 3
# By source, the targets that it reaches; for others it is given the lowest of these.
REACH = {
    "posted": [{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2}, {DEFAULT}],
    "nonposted": [{1, 2}, set(), {0, 1, 2, 3}, {DEFAULT}],
    "response": [{0, 1, 2, 3}, {2, 3}, {0, 2}, {1, 3}],
}
WINDOW_BIT = 47  # of an address: the upper half of the window is port WINDOW's, nobody the lower's
CHANNELS = ("posted", "nonposted", "response")


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


def slice_of(value: int, index: int, bits: int) -> int:
    return (value >> (index * bits)) & ((1 << bits) - 1)


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
        for channel in CHANNELS:
            valid = eop = head = data = ready = 0
            for port in range(PORTS):
                key = channel, port
                queue = self.queues[key]
                if queue and (self.offered[key] or self.rng.random() >= self.idle):
                    self.offered[key] = True
                    valid |= 1 << port
                    head |= queue[0][0] << (HEADER_BITS * port)
                    data |= queue[0][1][self.beat[key]] << (WIDTH * port)
                    eop |= (self.beat[key] == len(queue[0][1]) - 1) << port
                if key not in self.stalled and self.rng.random() >= self.stall:
                    ready |= 1 << port
            for name, value in (
                ("in_valid_i", valid),
                ("in_eop_i", eop),
                ("in_header_i", head),
                ("in_data_i", data),
                ("out_ready_i", ready),
            ):
                getattr(self.dut, f"{channel}_{name}").value = value

    def value(self, name: str) -> int:
        return int(getattr(self.dut, name).value)

    def collect(self) -> None:
        for channel in CHANNELS:
            taken = self.value(f"{channel}_in_valid_i") & self.value(f"{channel}_in_ready_o")
            valid, ready = (
                self.value(f"{channel}_out_valid_o"),
                self.value(f"{channel}_out_ready_i"),
            )
            for port in range(PORTS):
                key = channel, port
                if taken >> port & 1:
                    self.offered[key] = False
                    self.beat[key] += 1
                    if self.beat[key] == len(self.queues[key][0][1]):
                        self.beat[key] = 0
                        self.queues[key].pop(0)
                if not valid >> port & 1:
                    assert key not in self.last, f"{key}: an offered beat was withdrawn"
                    continue
                eop = self.value(f"{channel}_out_eop_o") >> port & 1
                head = slice_of(self.value(f"{channel}_out_header_o"), port, HEADER_BITS)
                data = slice_of(self.value(f"{channel}_out_data_o"), port, WIDTH)
                assert self.last.pop(key, (head, data, eop)) == (head, data, eop), key
                if not ready >> port & 1:
                    self.last[key] = (head, data, eop)
                    continue
                self.open[key].append(data)
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
    names = [f"{channel}_{name}" for channel in CHANNELS for name in ("in_valid_i", "out_ready_i")]
    bench = Bench(dut, names)
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
            beats = beats[:1]
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
            got[channel, beats[0] >> 30, port].append((head, beats))
    assert got == expected


@cocotb.test
async def channels_do_not_wait(dut: Any) -> None:
    """The default port takes no posted writes: all else goes on."""
    crossbar = await start(dut, 3)
    crossbar.stalled.add(("posted", DEFAULT))
    for count in range(20):
        crossbar.send("posted", DEFAULT_ONLY, header(), [count])
        crossbar.send("posted", 2, header(), [count])  # to the host port
        crossbar.send("nonposted", 2, header(window=1), [count])
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
