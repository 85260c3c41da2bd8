# SPDX-License-Identifier: Apache-2.0
"""Two hosts (root complexes of cocotbext-pcie), each with a node as its card, and one cable."""

import json
import logging
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import cocotb
from card_host import (
    CTX,
    DROPPED,
    GET,
    LINES,
    PUT,
    QUEUE,
    QUEUES,
    RECEIVED,
    RING,
    RINGS,
    RMA_ERRORS,
    SENT,
    STORES,
    Host,
    Side,
    card,
    linked,
)
from cocotb.triggers import FallingEdge
from stream import Bench

CYCLES = Path(__file__).resolve().parents[3] / "build" / "rtl" / "pcie-node-cycles.json"


def test_pcie_node(simulate: Callable[..., None]) -> None:
    simulate("velo_pcie_pair", beside=["rtl/shared.vlt", "rtl/pcie_node/test/velo_pcie_pair.sv"])


async def start(dut: Any, stall: float = 0.0) -> tuple[Host, Host]:
    inputs = ("rx_valid", "rx_last", "rx_keep", "rx_data", "rx_bar", "tx_ready", "config", "flr")
    names = [f"{side}_{name}_i" for side in "ab" for name in (*inputs, "tx_nonposted_ok")]
    bench = Bench(dut, names)
    logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
    low = card(bench, Side(dut, "a_"), 3, 0x9000_0000, stall)
    high = card(bench, Side(dut, "b_"), 200, 0x12_3400_0000, stall)
    low.peer, high.peer = high, low
    await bench.start()
    for host in (low, high):
        cocotb.start_soon(host.block.run())
    await bench.cycles(300)
    for host in (low, high):
        await host.find()
        await host.configure()
    await linked(low, high)
    return low, high


def payload_of(rng: random.Random) -> list[int]:
    return [rng.getrandbits(64) for _ in range(rng.randrange(8))]


@cocotb.test()
async def a_message_is_in_the_other_hosts_memory_before_the_interrupt(dut: Any) -> None:
    hosts = await start(dut, stall=0.2)
    wanted: dict[int, list[tuple[int, list[int]]]] = {host.node: [] for host in hosts}
    rng = random.Random(1)
    for number in range(60):
        host = rng.choice(hosts)
        payload = payload_of(rng)
        for _ in range(100):
            if await host.credit():
                break
        await host.send(number, payload)
        wanted[host.peer.node].append((number, payload))
        if rng.random() < 0.3:
            await host.look()
    for host in hosts:
        want = wanted[host.node]
        count = len(want)
        await host.bench.until(lambda h=host, n=count: h.there() == n, 3000)
        # The last interrupt finds all of them.
        await host.bench.until(lambda h=host, n=count: h.interrupts[-1:] == [n], 2000)
        assert all(host.interrupts)
        await host.look()
        assert host.got == want
        assert await host.get(RECEIVED) == len(want)
        assert await host.get(SENT) == len(wanted[host.peer.node])
        assert not any(host.block.events.values())


@cocotb.test()
async def remote_memory_is_put_and_got(dut: Any) -> None:
    hosts = await start(dut, stall=0.1)
    for number in range(10):
        host = hosts[number // 2 % 2]
        peer, rng = host.peer, host.rng
        op, size = (PUT, GET)[number % 2], rng.choice((1, 8, 37, 448, 513, 700))
        # Context CTX has the odd pages, OTHER the even ones.
        ours, theirs = (base + rng.randrange(4097 - size) for base in (0x1000, 0x2000))
        data = rng.randbytes(size)
        source, target = (host, ours), (peer, theirs)
        if op == GET:
            source, target = target, source
        start_at = source[0].place(source[1])
        source[0].memory[start_at : start_at + size] = data
        place = target[0].place(target[1])
        around = (
            target[0].memory[place - 1 : place],
            target[0].memory[place + size : place + size + 1],
        )
        await host.command(op, ours, theirs, size, number)
        assert await host.notification() == (number, 0)
        got = target[0].memory[place - 1 : place + size + 1]
        assert got == around[0] + data + around[1]
    for host in hosts:
        assert await host.get(RMA_ERRORS) == 0
        assert not any(host.block.events.values())


async def in_turn(hosts: tuple[Host, ...], step: Callable[[Host], Awaitable[None]]) -> None:
    for host in hosts:
        await step(host)


@cocotb.test()
async def both_rings_full_and_read_pointers_behind_stores(dut: Any) -> None:
    """Nobody looks until nothing moves any more, either way; then all of it arrives, once."""
    hosts = await start(dut)
    await in_turn(hosts, lambda host: host.set(RINGS + (CTX << 12), 1 | host.base + RING | 2 << 48))
    for host in hosts:
        host.slots = 4
    wanted: dict[int, list[tuple[int, list[int]]]] = {host.node: [] for host in hosts}

    async def fill(host: Host) -> bool:
        if not await host.credit():
            return False
        payload = payload_of(host.rng)
        await host.send(len(wanted[host.peer.node]), payload)
        wanted[host.peer.node].append((len(wanted[host.peer.node]) & 255, payload))
        return True

    stuck = 0
    while stuck < 20:
        moved = [await fill(host) for host in hosts]
        stuck = 0 if any(moved) else stuck + 1
    for host in hosts:
        assert host.there() == 4
        assert len(wanted[host.node]) > LINES + 4
    # A pointer that was to wait for the stores before it would never arrive.
    still = 0
    while still < 200 and any(len(host.got) < len(wanted[host.node]) for host in hosts):
        before = sum(len(host.got) for host in hosts)
        await in_turn(hosts, Host.look)
        still = still + 1 if sum(len(host.got) for host in hosts) == before else 0
        await hosts[0].bench.cycles(10)
    for host in hosts:
        assert host.got == wanted[host.node]
        assert await host.get(DROPPED, 4) == 0
        assert not any(host.block.events.values())


@cocotb.test()
async def a_reset_of_one_leaves_no_dma_behind_and_the_other_goes_on(dut: Any) -> None:
    hosts = await start(dut)
    stays, goes = hosts
    rng, number = random.Random(5), 0
    sent: list[int] = []  # by the one that stays, in order

    async def traffic(host: Host) -> None:
        nonlocal number
        if rng.random() < 0.4:
            op, size = rng.choice((PUT, GET)), rng.randrange(1, 513)
            await host.command(
                op, 0x1000 + rng.randrange(3000), 0x2000 + rng.randrange(3000), size, 1
            )
        else:
            number += 1
            await host.send(number, [number, rng.getrandbits(64)])
            if host is stays:
                sent.append(number)

    for trial in range(4):
        for host in hosts:
            # Notifications are not looked at here: the queue is emptied, rather.
            await host.set(QUEUES + (CTX << 12), 1 | host.base + QUEUE + 0x400 * CTX | 8 << 48)
        for _ in range(rng.randrange(6, 20)):
            for host in hosts:
                if await host.credit():
                    await traffic(host)
                await host.look()
        await goes.bench.cycles(rng.randrange(60))
        seen = len(goes.got)
        goes.block.dut.flr_i.value = 1
        await goes.bench.until(lambda: bool(int(goes.block.dut.flr_done_o.value)), 10000)
        # Writes that are inside the host's model still arrive; then memory is silent, though
        # the other one goes on to send, and so does this host.
        await goes.bench.cycles(20)
        before, packets = bytes(goes.memory), len(goes.block.sent)
        for _ in range(8):
            if await stays.credit():
                await traffic(stays)
            await goes.send(0, [0])
        await goes.bench.cycles(300)
        assert bytes(goes.memory) == before and len(goes.block.sent) == packets
        assert int(goes.block.dut.node_id_o.value) == 0
        goes.block.dut.flr_i.value = 0
        await goes.bench.cycles(60)
        assert await goes.get(STORES, 4) == 0 and await goes.get(SENT) == 0
        await goes.configure()
        await linked(*hosts)
        # Both are heard again; nothing came twice, or late behind something newer.
        for _ in range(4):
            for host in hosts:
                number += 1
                await host.send(number, [number])
                if host is stays:
                    sent.append(number)
            last = {stays: number, goes: sent[-1]}
            for host in hosts:
                await host.bench.until(lambda h=host: h.there() > h.head, 3000)
                for _ in range(500):
                    await host.look()
                    if host.got and host.got[-1][1][0] == last[host]:
                        break
                    await host.bench.cycles(5)
                assert host.got[-1][1][0] == last[host], trial
        numbers = [words[0] for _, words in goes.got[seen:]]
        assert numbers == sorted(set(numbers)) and set(numbers) <= set(sent)


@cocotb.test()
async def it_takes_so_many_cycles_from_host_to_host(dut: Any) -> None:
    low, high = await start(dut)
    rng = random.Random(6)
    figures: dict[str, int] = {}
    for host in (low, high):
        for words in (1, 7):
            for _ in range(4):
                peer = host.peer
                peer.block.sent.clear()
                peer.block.first_cycles.clear()
                count = peer.there() + 1
                await host.send(1, list(range(words)))
                await peer.bench.until(lambda p=peer, n=count: p.there() == n)
                await peer.bench.until(lambda p=peer: len(p.block.sent) == 3)
                first, head, interrupt = (
                    cycle - host.block.rx_first_cycle for cycle in peer.block.first_cycles
                )
                key = f"{8 * words}B_{4 if peer is high else 3}DW"
                # A cycle more or less: a message may find a link's idle word under way.
                for name, value in (("first", first), ("head", head), ("interrupt", interrupt)):
                    figures[f"{name}_{key}"] = max(value, figures.get(f"{name}_{key}", 0))
                await peer.bench.cycles(rng.randrange(40, 60))
    # From the packet of an 8-byte message to the packet of its header word, which is the last one.
    figures["pcie_message_cycles"] = figures["head_8B_4DW"]
    CYCLES.write_text(json.dumps(figures, indent=2) + os.linesep, encoding="utf-8")
    assert figures["pcie_message_cycles"] <= 40
    await FallingEdge(dut.clk_i)
