# SPDX-License-Identifier: Apache-2.0
"""Two users of a card: what one sends to a node that nobody reaches does not stop the other."""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from card_host import (
    ACCESS_WATCHDOG,
    ANSWER_WATCHDOG,
    CTX,
    GET,
    LINES,
    LINK_STATUS,
    LINKS,
    OTHER,
    PUT,
    QUEUE,
    QUEUE_READ_POINTERS,
    QUEUES,
    READ_POINTERS,
    REQUESTER,
    RINGS,
    RMA,
    RMA_REQUESTER_ERROR,
    SHARE_T,
    SHARES,
    STORES,
    STORES_T,
    UNDELIVERED,
    VELO,
    Host,
    Side,
    card,
    linked,
)
from stream import Bench

ACCESS, ANSWER = 600, 1000  # cycles: of access_watchdog and of answer_watchdog
DEAD = ACCESS // 4  # a link that is down is dead after one to two of these
# What an operation of the bystander may take while the other user floods: the link is not dead
# yet, answers are not overdue yet, and what that user has under way goes first, a get in about 170.
UNDER_WAY = 16
MOST = 2 * DEAD + ANSWER + 170 * 2 * UNDER_WAY
LOST, NETWORK = 14, 11
OTHER_RING, OTHER_SLOTS_LOG2 = 0x2000, 4
OTHER_LINES = 4  # of the card's, for stores of OTHER; CTX has the rest
ENTRIES_LOG2 = 6  # of the users' notification queues


def test_pcie_dead_link(simulate: Callable[..., None]) -> None:
    simulate("velo_pcie_pair", beside=["rtl/shared.vlt", "rtl/pcie_node/test/velo_pcie_pair.sv"])


class User:
    """A process with a context of its own, and a share of the card's lines for its stores."""

    def __init__(self, host: Host, ctx: int, node: int, share: int):
        self.host, self.ctx, self.node, self.share = host, ctx, node, share
        self.mine: deque[int] = (
            deque()
        )  # stores of this user that have not gone on to the node, by number
        self.notes = 0

    async def store(self, address: int, words: list[int]) -> None:
        start = self.host.bench.cycle
        while len(self.mine) >= self.share:
            taken = STORES_T.unpack_bits(await self.host.get(STORES, 4))["taken"]
            while self.mine and self.mine[0] < taken:
                self.mine.popleft()
            assert self.host.bench.cycle - start < MOST, "a store waits for room"
        self.mine.append(self.host.sent)
        self.host.sent += 1
        data = b"".join(word.to_bytes(8, "little") for word in words)
        await self.host.block.root.mem_write(self.host.bars[2] + address, data)

    async def send(self, tag: int, payload: list[int]) -> None:
        """A message to the context of the same number."""
        words = [1 | (tag & 255) << 8 | 8 * len(payload) << 16, *payload]
        place = self.node << 20 | self.ctx << 12 | len(payload) << 6
        await self.store(VELO << 36 | self.ctx << 28 | place, words)

    async def command(self, op: int, ours: int, theirs: int, size: int, cookie: int) -> None:
        low = op | REQUESTER << 4 | self.node << 8 | OTHER << 16 | cookie << 24 | size << 32
        await self.store(RMA << 36 | self.ctx << 28, [low, ours, theirs])

    def entry(self) -> int:
        return QUEUE + 0x400 * self.ctx + 16 * (self.notes % (1 << ENTRIES_LOG2))

    async def notifications(self) -> list[tuple[int, int]]:
        """Cookie and error of all that are there."""
        told = []
        while self.is_notified():
            note = self.host.word(self.entry())
            self.host.memory[self.entry() : self.entry() + 16] = bytes(16)
            self.notes += 1
            told.append((note >> 55 & 255, note >> 12 & 15))
        if told:
            await self.host.set(QUEUE_READ_POINTERS + (self.ctx << 12), self.notes)
        return told

    def is_notified(self) -> bool:
        return bool(self.host.word(self.entry()) & 1)


async def start(dut: Any) -> tuple[Host, Host]:
    inputs = ("rx_valid", "rx_last", "rx_keep", "rx_data", "rx_bar", "tx_ready", "config", "flr")
    names = [f"{side}_{name}_i" for side in "ab" for name in (*inputs, "tx_nonposted_ok")]
    bench = Bench(dut, names)
    logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
    low = card(bench, Side(dut, "a_"), 3, 0x9000_0000, 0.0)
    high = card(bench, Side(dut, "b_"), 200, 0x12_3400_0000, 0.0)
    low.peer, high.peer = high, low
    await bench.start()
    for host in (low, high):
        cocotb.start_soon(host.block.run())
    await bench.cycles(300)
    for host in (low, high):
        await host.find()
        await host.configure()
        await host.set(ACCESS_WATCHDOG, 1 << 32 | ACCESS)
        await host.set(ANSWER_WATCHDOG, 1 << 32 | ANSWER)
    for ctx, lines in ((CTX, LINES - OTHER_LINES), (OTHER, OTHER_LINES)):
        await low.set(SHARES + 8 * ctx, SHARE_T.pack(lines=lines), 4)
    base = low.base + OTHER_RING
    await low.set(RINGS + (OTHER << 12), 1 | base | OTHER_SLOTS_LOG2 << 48)
    for ctx in (CTX, OTHER):
        queue = low.base + QUEUE + 0x400 * ctx
        await low.set(QUEUES + (ctx << 12), 1 | queue | ENTRIES_LOG2 << 48)
    await linked(low, high)
    return low, high


class Flood:
    """Sends messages, puts and gets to the other host without end, and reads what it is told."""

    def __init__(self, user: User):
        self.user, self.number, self.stops = user, 0, False
        self.commands = 0
        self.told: list[tuple[int, int]] = []
        self.task = cocotb.start_soon(self.run())

    async def run(self) -> None:
        user, rng = self.user, self.user.host.rng
        while not self.stops:
            self.number += 1
            # More gets than may be unanswered, and puts, of which some are lost without a word.
            begin = user.host.bench.cycle
            while self.commands - len(self.told) >= UNDER_WAY and not self.stops:
                await user.host.bench.cycles(10)
                self.told += await user.notifications()
                if user.host.bench.cycle - begin > 150:
                    self.commands -= 1
            match self.number % 3:
                case 0:
                    await user.send(self.number, [self.number] * rng.randrange(8))
                case 1:
                    await user.command(
                        GET, 0x1000, 0x2000, 1 + rng.randrange(600), self.number & 255
                    )
                case _:
                    await user.command(
                        PUT, 0x1000, 0x2000, 1 + rng.randrange(600), self.number & 255
                    )
            self.commands += self.number % 3 != 0

    async def stop(self) -> None:
        self.stops = True
        await self.task
        await self.quiet()

    async def quiet(self) -> None:
        """No more notifications come."""
        quiet = 0  # cycles since the last one
        while quiet < 600:
            await self.user.host.bench.cycles(20)
            quiet += 20
            if told := await self.user.notifications():
                self.told += told
                quiet = 0


class Bystander:
    """Sends to its own node, so that no link is in its way; checks each operation and its time."""

    def __init__(self, user: User):
        self.user, self.host, self.number = user, user.host, 0
        self.longest = 0

    async def wait(self, start: int, condition: Callable[[], bool], what: str) -> None:
        while not condition():
            assert self.host.bench.cycle - start < MOST, f"{what} {self.number} does not end"
            await self.host.bench.cycles(5)
        self.longest = max(self.longest, self.host.bench.cycle - start)

    async def round(self) -> None:
        """A message, a put and a get."""
        host, user, number = self.host, self.user, self.number
        slot = OTHER_RING + 64 * (number % (1 << OTHER_SLOTS_LOG2))
        payload = [host.rng.getrandbits(64) for _ in range(3)]
        start = host.bench.cycle
        await user.send(number, payload)
        valid = number << 48 | 1
        await self.wait(start, lambda: host.word(slot) & (0xFFFF << 48 | 1) == valid, "the message")
        assert [host.word(slot + 8 + 8 * i) for i in range(3)] == payload
        await host.set(READ_POINTERS + (OTHER << 12), number + 1)
        for op in (PUT, GET):
            size = 1 + host.rng.randrange(600)
            data = host.rng.randbytes(size)
            source, target = (0x0000, 0x2000) if op == PUT else (0x2000, 0x0000)
            place = host.place(source)
            host.memory[place : place + size] = data
            start = host.bench.cycle
            await user.command(op, 0x0000, 0x2000, size, number & 255)
            await self.wait(start, user.is_notified, "the put" if op == PUT else "the get")
            assert await user.notifications() == [(number & 255, 0)]
            place = host.place(target)
            assert host.memory[place : place + size] == data
        self.number += 1


def users(low: Host, high: Host) -> tuple[User, User]:
    return (
        User(low, CTX, high.node, LINES - OTHER_LINES),
        User(low, OTHER, low.node, OTHER_LINES),
    )


async def take_link_down(low: Host, high: Host, by: Bystander, access: int) -> None:
    """No answer is overdue before the link is dead."""
    await low.set(ACCESS_WATCHDOG, 1 << 32 | access)
    await low.set(ANSWER_WATCHDOG, 1 << 32 | 2 * access)
    await by.round()
    await high.set(LINKS, 0)
    while await low.get(LINK_STATUS) & 1:
        pass


@cocotb.test()
async def a_user_goes_on_while_another_floods_a_link_that_is_down(dut: Any) -> None:
    low, high = await start(dut)
    flooding, user = users(low, high)
    by = Bystander(user)
    await by.round()
    flood = Flood(flooding)
    await by.round()
    # In the middle of gets, so that some of them have no answer.
    await high.set(LINKS, 0)
    begin, rounds = low.bench.cycle, by.number
    while low.bench.cycle - begin < 2 * (DEAD + ANSWER) or by.number < rounds + 2:
        await by.round()
    status = await low.get(LINK_STATUS)
    assert status & 3 == 2, "down, and dead"
    assert status >> 56, "packets were swallowed"
    assert await low.get(UNDELIVERED) == 0, "no message was given up behind them"
    await flood.stop()
    # The flooding user was told: first that nobody answers its gets, then that no way leads there.
    errors = {error for _, error in flood.told}
    assert errors <= {0, LOST, NETWORK} and NETWORK in errors and LOST in errors
    assert await low.get(RMA_REQUESTER_ERROR) == NETWORK | CTX << 8
    # The link comes up again: both users are served, and whatever arrives is whole.
    await high.set(LINKS, 1)
    await linked(low, high)
    # What the link had taken before it went down is sent now; some of it is answered.
    await flood.quiet()
    await high.look()
    for tag in range(2):
        await flooding.send(tag, [tag] * 5)
        await flooding.command(GET, 0x1000, 0x2000, 300, tag)
        await low.bench.until(flooding.is_notified, 3000)
        assert await flooding.notifications() == [(tag, 0)]
        await by.round()
    await high.look()
    assert high.got[-2:] == [(tag, [tag] * 5) for tag in range(2)]
    for tag, payload in high.got[:-2]:
        assert payload == [payload[0]] * len(payload) if payload else True
        assert not payload or payload[0] & 255 == tag
    numbers = [payload[0] for _, payload in high.got[:-2] if payload]
    assert numbers == sorted(set(numbers))
    assert not any(low.block.events.values())


@cocotb.test()
async def messages_behind_those_for_a_link_that_is_down_are_not_lost(dut: Any) -> None:
    low, high = await start(dut)
    flooding, user = users(low, high)
    by = Bystander(user)
    # Long enough that the node is full of packets before the link is dead.
    access = 6000
    await take_link_down(low, high, by, access)
    stops = False

    async def floods() -> None:
        number = 0
        while not stops:
            number += 1
            await flooding.send(number, [number] * 7)

    begin = low.bench.cycle
    task = cocotb.start_soon(floods())
    full = 0  # cycles in which that user had no room
    while full < 100:
        await low.bench.cycles(1)
        full = full + 1 if len(flooding.mine) == flooding.share else 0
        assert low.bench.cycle - begin < access // 4, "the node is not full"
    begin = low.bench.cycle
    while by.number < 3:
        await by.round()
    assert by.longest > access // 8, "nobody was in its way"
    assert low.bench.cycle - begin < access
    assert await low.get(LINK_STATUS) & 3 == 2, "down, and dead"
    assert await low.get(UNDELIVERED) == 0
    stops = True
    await task


@cocotb.test()
async def a_user_goes_on_while_another_overruns_its_share(dut: Any) -> None:
    low, high = await start(dut)
    flooding, user = users(low, high)
    flooding.share = 1 << 30  # It never waits for room.
    by = Bystander(user)
    access = 6000
    await take_link_down(low, high, by, access)
    stops = False

    async def floods() -> None:
        number = 0
        while not stops:
            number += 1
            await flooding.send(number, [number] * 7)
            await low.bench.cycles(15)  # A packet has 10 beats, and others have to get in.

    async def dropped(context: int) -> int:
        word = await low.get(SHARES + 8 * context, 4)
        return SHARE_T.unpack_bits(word)["dropped"]

    begin = low.bench.cycle
    task = cocotb.start_soon(floods())
    while await dropped(CTX) < 10:
        assert low.bench.cycle - begin < access // 4, "nothing is dropped"
    while by.number < 3:
        await by.round()
    assert by.longest < access
    assert await low.get(UNDELIVERED) == 0
    stops = True
    await task
    assert await dropped(CTX) > 20 and await dropped(OTHER) == 0


@cocotb.test()
async def a_descriptor_for_a_node_without_a_way_is_refused(dut: Any) -> None:
    low, high = await start(dut)
    flooding, user = users(low, high)
    by = Bystander(user)
    flooding.node = 77  # the routing table has no way to it
    for number in range(10):
        await flooding.command((PUT, GET)[number % 2], 0x1000, 0x2000, 100, number)
        if number % 5 == 0:
            await by.round()
        await low.bench.until(flooding.is_notified, 3000)
        assert await flooding.notifications() == [(number, NETWORK)]
    assert await low.get(RMA_REQUESTER_ERROR) == NETWORK | CTX << 8
    assert by.longest < ACCESS
