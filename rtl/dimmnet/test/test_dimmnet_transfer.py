# SPDX-License-Identifier: Apache-2.0
"""Put, get, load and store of both processes at once, against the model of a whole board."""

import os
import random
from typing import Any

import cocotb
from board import LID, Board
from layout import ACCESS, CONSTANTS, MEMORY, OP, pack, packet, unpack
from model import RING, Model

PGID = 0x77
REGION = [(1000, 2048), (4000, 1500)]
LIST = 64  # where lists are in LLCM
ROUNDS = int(os.environ.get("DIMMNET_ROUNDS", "40"))


class Bench:
    """Both processes' writes have places of their own, so that their order does not matter.

    The first 500 words of SO-DIMM and the lists are only read.
    """

    def __init__(self, board: Board, model: Model, rng: random.Random):
        self.board, self.model, self.rng = board, model, rng
        self.taken = [0, 0]  # statuses
        self.listed: dict[str, bool] = {}
        self.span = {"local": 480, "remote": 480}

    async def fill(self) -> None:
        board, model, rng = self.board, self.model, self.rng
        await board.set_board(patience=1000)
        for wid, (first, words) in enumerate(REGION):
            await board.set_process(wid, PGID, first, words)
            own = model.processes[wid]
            own.sodimm = [rng.getrandbits(64) for _ in range(words)]
            for i, word in enumerate(own.sodimm):
                board.memory[first + i] = word
            for i in range(128):
                own.windows[i] = rng.getrandbits(64)
            await board.put_window(wid, 0, own.windows)
            head = {"kind": 1, "memory": 1, "dst_lid": LID, "dst_wid": wid, "pgid": PGID}
            for at in range(0, 256, 32):
                board.deliver(packet([0] * 32, **head, address=at))
            for at in range(0, 1024, 32):
                board.deliver(packet([0] * 32, **{**head, "memory": 2}, address=at))
        await board.quiet()

    def element(self) -> int:
        return self.rng.choice([1, 1, 2, 3, 4, 5, 8, 13, 23, 31, 32, self.rng.randint(1, 32)])

    async def patterns(self, wid: int, element: int, count: int) -> None:
        """New shapes and lists of a process: what they write is in its own part."""
        rng, own, board = self.rng, self.model.processes[wid], self.board
        for name in ("local", "remote"):
            # Inside the span, or far out of it.
            most = (self.span[name] - element) // max(count - 1, 1)
            step = min(most, rng.choice([element, element + 1, most, rng.randint(0, 40)]))
            if rng.random() < 0.05:
                step = 3000
            if rng.random() < 0.3:
                step = -step & 0xFFFFFFFF
            if self.listed[name]:
                step = LIST + (0 if name == "local" else 216) + rng.randint(0, 3)
                room = self.span[name] - element
                offsets = [rng.randint(0, max(room, 0)) for _ in range(count)]
                if rng.random() < 0.3:  # one after the other
                    offsets = [k * (element + rng.randint(0, 1)) for k in range(count)]
                if rng.random() < 0.08:
                    offsets[rng.randrange(count)] = rng.choice([0xFFFFFFFF, 0x80000000, 3000])
                offsets += [rng.getrandbits(32)] * (count % 2)
                for k in range(0, count, 2):
                    word = offsets[k] | offsets[k + 1] << 32
                    own.llcm[step + k // 2] = word
                    await board.write(board.slot(wid, "llcm", step + k // 2), word)
            shape = {"element_words": element, "step": step}
            if rng.random() < 0.02:
                shape["element_words"] = rng.choice([0, 33, element % 32 + 1])
            setattr(own, name, shape)
            value = pack("pattern", **shape)
            await board.set_register(wid, f"pattern_{name}", value)

    def first(self, wid: int, at: int, shape: dict[str, int], access: int, count: int) -> int:
        """Where an access begins, so that it lies in [at, at + 480), mostly."""
        if access == ACCESS["strided"] and shape["step"] >> 31:
            return at + (count - 1) * ((1 << 32) - shape["step"])
        return at

    async def command(self, wid: int) -> int:
        rng, own = self.rng, self.model.processes[wid]
        op = rng.choice(["put", "put", "get", "load", "store"])
        access = {
            "local": rng.choice([0, 0, 1, 1, 2]) if op != "get" else rng.choice([0, 0, 1]),
            "remote": rng.choice([0, 0, 1, 2]) if op in ("put", "get") else 0,
        }
        fields = {"op": OP[op], "wid": rng.randint(0, 1), "lid": LID, "tag": rng.randint(0, 255)}
        fields["status"] = rng.randint(0, 1)
        windows = op in ("put", "get") and rng.random() < 0.3
        if windows:
            access["local"], fields["local_memory"] = 0, MEMORY["prefetch"]
        memory = MEMORY["sodimm"]
        if op == "put" and rng.random() < 0.4:
            memory, access["remote"] = rng.choice([1, 2]), 0
        fields["remote_memory"] = memory
        element = self.element()
        limit = {
            "load": 128,
            "store": 128,
            "put": 128 if windows else 420,
            "get": 128 if windows else 420,
        }[op]
        if memory == MEMORY["prefetch"]:
            limit = min(limit, 128)
        patterned = any(access.values())
        count = rng.choice([1, 2, 3, rng.randint(1, limit), limit])
        if patterned:
            count = min(count, limit // element)
        count = max(1, count if patterned else min(count, limit))
        words = count * element if patterned else count
        self.listed = {name: value == ACCESS["list"] for name, value in access.items()}
        await self.patterns(wid, element, count)
        reads, writes = rng.randint(0, 20), 500 + 500 * wid + rng.randint(0, 3)
        source = op in ("put", "load")
        here, there = (reads, writes) if source else (writes, reads)
        # The SO-DIMM of load and store is the local one; that of get is read at the peer.
        fields["local_word"] = self.first(wid, here, own.local, access["local"], count)
        fields["remote_word"] = self.first(wid, there, own.remote, access["remote"], count)
        half = 128 * wid + rng.choice([0, 0, 1, max(0, 128 - words)])
        if windows:
            fields["local_word"] = half if op == "get" else rng.randint(0, max(0, 128 - words))
        if op == "load":
            fields["remote_word"] = half
        elif op == "store":
            fields["remote_word"] = rng.randint(0, max(0, 128 - words))
        elif memory == MEMORY["prefetch"]:
            fields["remote_word"] = half
        elif memory == MEMORY["llcm"]:
            fields["remote_word"] = 512 + 256 * wid + rng.randint(0, 5)
            words = min(words, 250)
        if rng.random() < 0.1:  # over the edge
            name = rng.choice(["local_word", "remote_word"])
            fields[name] = rng.choice([0xFFFFFFFF, 0xFFFFFF00, 1 << 31, 3000, 5000])
        fields |= {
            "words": words,
            "local_access": access["local"],
            "remote_access": access["remote"],
        }
        await self.board.command(wid, **fields)
        return pack("command", **fields)

    async def compare(self) -> None:
        board, model = self.board, self.model
        for wid, (first, words) in enumerate(REGION):
            own = model.processes[wid]
            there = [board.memory.get(first + i, 0) for i in range(words)]
            wrong = [i for i in range(words) if there[i] != own.sodimm[i]]
            assert not wrong, f"SO-DIMM of {wid}: {wrong[:10]}"
            assert await board.register(wid, "done") == own.done
            assert await board.register(wid, "error") == own.error
            count = await board.register(wid, "status_write")
            assert count == len(own.statuses), f"statuses of {wid}"
            size = CONSTANTS["status_entries"]
            fresh = range(self.taken[wid], count)
            ring = [(await board.llcm(wid, RING + i % size, 1))[0] for i in fresh]
            assert sorted(ring) == sorted(own.statuses[self.taken[wid] :])
            self.taken[wid] = count
            await board.set_register(wid, "status_read", count)
            start = self.rng.randint(0, 200)
            assert await board.prefetch(wid, start, 56) == own.prefetch[start : start + 56]
        allowed = {first + i for first, words in REGION for i in range(words)}
        assert board.touched <= allowed, "a request outside all regions"


async def run(dut: Any, seed: int, rounds: int, stall: float, latency: tuple[int, int]) -> None:
    rng = random.Random(seed)
    board = Board(dut, rng, stall)
    board.latency = latency
    await board.start()
    bench = Bench(board, Model(LID, [words for _, words in REGION]), rng)
    await bench.fill()
    before = await board.counts()
    for _ in range(rounds):
        numbers = [await bench.command(wid) for wid in (0, 1)]
        for wid, number in enumerate(numbers):
            own = bench.model.processes[wid]
            dut._log.debug(f"process {wid}: {unpack('command', number)}, {own.local}, {own.remote}")
            bench.model.command(wid, number)
        for wid in (0, 1):
            await board.finished(wid, bench.model.processes[wid].done)
        await board.quiet(110 + latency[1])
        await bench.compare()
    for wid in (0, 1):
        own = bench.model.processes[wid]
        assert await board.prefetch(wid, 0, 256) == own.prefetch
        assert await board.llcm(wid, 0, 1024) == own.llcm[:1024]
    counts = await board.counts()
    expected = {**before, "refused": bench.model.refused, "dropped_bounds": bench.model.bounds}
    for name in ("refused", "dropped_bounds", "dropped_pgid", "dropped_malformed", "dropped_busy"):
        assert counts[name] == expected[name], name
    assert counts["sent"] == counts["received"] - before["received"]


@cocotb.test()
async def random_commands_of_both_processes(dut: Any) -> None:
    await run(dut, 1, ROUNDS, 0.0, (1, 1))


@cocotb.test()
async def random_commands_with_a_slow_memory_and_network(dut: Any) -> None:
    await run(dut, 2, ROUNDS, 0.4, (5, 40))


@cocotb.test()
async def elements_of_8_bytes_are_asked_for_a_row_a_cycle(dut: Any) -> None:
    """A put of 400 strided, then of 400 listed words, whatever the latency."""
    board = Board(dut, random.Random(3))
    board.latency = (30, 30)
    await board.start()
    bench = Bench(board, Model(LID, [words for _, words in REGION]), board.rng)
    await bench.fill()
    for access in (ACCESS["strided"], ACCESS["list"]):
        board.requests.clear()
        step = 4 if access == ACCESS["strided"] else LIST
        await board.set_register(0, "pattern_local", pack("pattern", element_words=1, step=step))
        for k in range(200):
            word = 3 * k | (3 * k + 2) << 32
            await board.write(board.slot(0, "llcm", LIST + k), word)
        await board.command(
            0, op=OP["put"], words=400, lid=LID + 1, local_access=access, local_word=0
        )
        await board.quiet(100)
        cycles = board.requests[-1][0] - board.requests[0][0] + 1
        dut._log.info(f"access {access}: 400 requests in {cycles} cycles")
        assert len(board.requests) == 400
        assert cycles <= 400 * 1.12


def test_dimmnet_transfer(simulate: Any) -> None:
    # A shape of its own: both files are run at the same time.
    simulate("dimmnet_core", {"Commands": 2})
