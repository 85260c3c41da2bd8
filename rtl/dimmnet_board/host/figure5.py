# SPDX-License-Identifier: Apache-2.0
"""The three measurements of the DIMMnet-2 paper's figure 5, between two PCs with a board each.

A ping-pong of BOTF packets, half of the round trip, from the first store into the Write Window on:

* a: until the receiver has seen the status; data in its Prefetch Window;
* b: the same; data in its SO-DIMM;
* c: as a, until it has read the data. It invalidated their lines before.

Data to be sent is in the cache, as in the paper. Boards are what the two `Pentium4` have before
them, at the pins of the memory slot; nothing here knows more of them than spec/dimmnet.toml.
"""

from dataclasses import dataclass, field

import cocotb
from dimmnet_board.host import pc2003 as pc
from dimmnet_board.host.layout import CONSTANTS, NAMES, pack, privileged, register, slot
from dimmnet_board.host.pentium4 import Pentium4

SIZES_BYTES = range(16, 497, 16)  # paper, section 4.1
CASES = {"a": ("prefetch", False), "b": ("sodimm", False), "c": ("prefetch", True)}
PGID = 0x2A


@dataclass
class Node:
    """A process on a board."""

    host: Pentium4
    lid: int
    wid: int = 0
    seen: int = 0  # statuses
    lost: list[str] = field(default_factory=list)  # data that was not what was sent

    async def enable(self, sodimm_words: int = 1 << 20) -> None:
        """What the privileged process does."""
        first = 8 * self.wid
        identity = pack("identity", pgid=PGID, enabled=1)
        await self.host.store(privileged("lid"), [self.lid])
        for place, word in enumerate((*identity, self.wid * sodimm_words, sodimm_words)):
            await self.host.store(privileged("process", first + place), [word])
        await self.host.fence()
        self.seen = await self.host.load_uncached(register("status_write", self.wid))

    async def send(self, peer: "Node", memory: str, payload: list[int], tag: int) -> None:
        self.host.spend(pc.CALL_NS)
        header = pack(
            "packet",
            kind=NAMES["kind"]["write"],
            memory=NAMES["memory"][memory],
            access=NAMES["access"]["contiguous"],
            status=1,
            words=len(payload),
            dst_wid=peer.wid,
            dst_lid=peer.lid,
            tag=tag,
        )
        await self.host.store(slot("write", self.wid, 0), header + payload)
        # The command must not overtake what it sends.
        await self.host.fence()
        command = pack("botf", window=0, first=0, words=len(header) + len(payload))
        await self.host.store(register("botf", self.wid), command)
        await self.host.fence()

    async def wait(self) -> None:
        """Polls the write pointer of the statuses."""
        self.host.spend(pc.CALL_NS)
        where = register("status_write", self.wid)
        while await self.host.load_uncached(where) == self.seen:
            self.host.spend(pc.POLL_NS)
        self.host.spend(pc.POLL_NS + pc.MISS_PREDICTED_NS)
        self.seen = (self.seen + 1) % (1 << 32)

    async def read(self, count: int) -> list[int]:
        return await self.host.load(slot("prefetch", self.wid, 0), count)

    async def prepare(self, count: int) -> None:
        """For the next packet, while it is not there yet: status taken, lines invalidated."""
        await self.host.store(register("status_read", self.wid), [self.seen])
        await self.host.fence()
        await self.host.clflush(slot("prefetch", self.wid, 0), count)


async def _answer(node: Node, peer: Node, case: str, payloads: list[list[int]]) -> None:
    """The other side of a ping-pong."""
    memory, reads = CASES[case]
    for tag, payload in enumerate(payloads):
        await node.wait()
        if reads and await node.read(len(payload)) != payload:
            node.lost.append(f"case {case}, {8 * len(payload)} bytes")
        await node.send(peer, memory, payload, tag)
        await node.prepare(len(payload))


def payload_word(size_bytes: int, turn: int, case: str, place: int) -> int:
    return size_bytes << 48 | turn << 32 | ord(case) << 16 | place


async def ping_pong(first: Node, second: Node, case: str, size_bytes: int, rounds: int) -> float:
    """Half of a round trip in ns, the mean of `rounds`; one more before them warms up."""
    assert size_bytes % 8 == 0 and size_bytes <= 8 * CONSTANTS["payload_words_max"]
    memory, reads = CASES[case]
    # Other data in each round: what is read must be this round's.
    payloads = [
        [payload_word(size_bytes, turn, case, place) for place in range(size_bytes // 8)]
        for turn in range(rounds + 1)
    ]
    for node in (first, second):
        await node.prepare(len(payloads[0]))
    other = cocotb.start_soon(_answer(second, first, case, payloads))
    trips_ns = []
    for tag, payload in enumerate(payloads):
        await first.host.catch_up()
        start_ns = first.host.now_ns
        await first.send(second, memory, payload, tag)
        await first.wait()
        if reads and await first.read(len(payload)) != payload:
            first.lost.append(f"case {case}, {size_bytes} bytes")
        trips_ns.append(first.host.now_ns - start_ns)
        await first.prepare(len(payload))
    await other
    assert not first.lost + second.lost, first.lost + second.lost
    return sum(trips_ns[1:]) / rounds / 2


async def figure5(
    first: Node, second: Node, sizes_bytes: range | list[int] = SIZES_BYTES, rounds: int = 4
) -> dict[str, dict[int, float]]:
    """By case and size: ns."""
    return {
        case: {size: await ping_pong(first, second, case, size, rounds) for size in sizes_bytes}
        for case in CASES
    }
