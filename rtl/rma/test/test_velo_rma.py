# SPDX-License-Identifier: Apache-2.0
"""The RMA unit against a model of its host; its packets come back to it, so it is both sides.

Registered pages: of context 1 (who asks) 0x00 to 0x0f, of context 2 (who is asked) 0x10 to 0x1f.
"""

from collections import defaultdict

import cocotb
import pytest
from cocotb.triggers import FallingEdge
from host_model import (
    ATOMIC,
    COMPLETER,
    CONTEXT,
    ERROR,
    GET,
    HOST,
    IMMEDIATE,
    KIND,
    MALFORMED,
    MISALIGNED,
    NODE,
    NOTIFY,
    OVERSIZE,
    PAGE,
    PUT,
    QUERY,
    READ,
    REQUESTER,
    RESPONDER,
    RIGHT,
    STALL,
    UNREGISTERED,
    UPDATE,
    WRITE,
    Setup,
    command,
    descriptor,
    htax_header,
    packet,
)

US, THEM = 1, 2
OURS, THEIRS = 0x00 * PAGE, 0x10 * PAGE
SIZES = (0, 1, 3, 4, 5, 8, 63, 64, 447, 448, 449, 1000, 3 * 448 + 7)
CONDITIONS = ((0.0, 0.0), (0.3, 0.0), (0.0, 0.5), (0.3, 0.3))


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_rma(simulate, width):
    simulate("velo_rma", {"DataWidth": width, "CtxBits": 4, "LineBits": 3})


async def ready(dut, idle=0.0, stall=0.0, seed=1) -> Setup:
    """Two contexts with queues and sixteen pages each, full of random bytes."""
    setup = Setup(dut, idle, stall, seed)
    await setup.start()
    for ctx, first in ((US, 0x00), (THEM, 0x10)):
        await setup.queue(ctx)
        for page in range(first, first + 16):
            setup.register(page, ctx)
            setup.write(page * PAGE, setup.rng.randbytes(PAGE))
    return setup


def snapshot(setup) -> bytes:
    return bytes(setup.memory[0x200 * PAGE :])


def padding_is_zero(setup):
    """The padding of a packet never shows what lies beside the data."""
    for _, beats, _ in setup.packets:
        words = setup.packet_number(beats)
        size = words >> 26 & 1023
        assert words >> (64 + 8 * size) == 0


async def quiet(setup, cycles=300):
    """Nothing happens any more."""
    await setup.until(lambda: not (setup.writes or setup.reads or setup.descriptors))
    await setup.bench.cycles(cycles)


@cocotb.test()
@cocotb.parametrize(condition=CONDITIONS)
async def puts_and_gets_of_every_size_and_alignment(dut, condition):
    setup = await ready(dut, *condition, seed=3)
    rng = setup.rng
    for size in SIZES:
        local, remote = OURS + rng.randrange(2 * PAGE), THEIRS + rng.randrange(2 * PAGE)
        for op, source, target in ((PUT, local, remote), (GET, remote, local)):
            data = setup.read(source, size)
            expected = bytearray(snapshot(setup))
            for i in range(size):
                expected[setup.place(target + i) - 0x200 * PAGE] = data[i]
            other = COMPLETER if op == PUT else RESPONDER
            cookie = rng.randrange(256)

            def written(_, target=target, data=data):
                # Visible before the notification, not only in the end.
                assert setup.read(target, len(data)) == data

            setup.watch[US, REQUESTER, cookie] = written
            if op == PUT:
                setup.watch[THEM, COMPLETER, cookie] = written
            setup.post(descriptor(op, THEM, size, local, remote, REQUESTER | other, cookie))
            (ours,) = await setup.notified(US)
            (theirs,) = await setup.notified(THEM)
            assert not setup.watch
            assert (ours.place, ours.op, ours.error, ours.size) == (REQUESTER, op, 0, size)
            assert (ours.ctx, ours.node, ours.cookie) == (THEM, NODE, cookie)
            assert ours.address == local and theirs.address == remote
            assert (theirs.place, theirs.op, theirs.size) == (other, op, size)
            assert (theirs.ctx, theirs.cookie, theirs.error) == (US, cookie, 0)
            assert snapshot(setup) == bytes(expected), (op, size)
    padding_is_zero(setup)
    assert not setup.errors and not setup.requester_errors


@cocotb.test()
async def immediate_puts_also_across_pages_and_notifications(dut):
    setup = await ready(dut, 0.1, 0.2)
    rng = setup.rng
    for trial in range(40):
        size = rng.randrange(1, 9)
        remote = THEIRS + PAGE - rng.randrange(12) if trial % 2 else THEIRS + rng.randrange(PAGE)
        value = rng.getrandbits(64)
        expected = bytearray(snapshot(setup))
        for i in range(size):
            expected[setup.place(remote + i) - 0x200 * PAGE] = value >> (8 * i) & 255
        setup.post(descriptor(IMMEDIATE, THEM, size, value, remote, REQUESTER | COMPLETER, trial))
        (ours,) = await setup.notified(US)
        (theirs,) = await setup.notified(THEM)
        assert (theirs.place, theirs.op, theirs.size) == (COMPLETER, IMMEDIATE, size)
        assert (theirs.address, ours.address, ours.place) == (remote, value, REQUESTER)
        assert snapshot(setup) == bytes(expected)
    before = snapshot(setup)
    setup.post(descriptor(NOTIFY, THEM, 0, 7, 0x1234, COMPLETER | REQUESTER, 77))
    (ours,) = await setup.notified(US)
    (theirs,) = await setup.notified(THEM)
    assert (theirs.op, theirs.address, theirs.cookie, theirs.size) == (NOTIFY, 0x1234, 77, 0)
    assert (ours.place, ours.op) == (REQUESTER, NOTIFY)
    assert snapshot(setup) == before and not setup.errors
    padding_is_zero(setup)


@cocotb.test()
async def updates_are_atomic_however_late_writes_are(dut):
    setup = await ready(dut, 0.0, 0.2)
    setup.write_delay = 60
    setup.write(THEIRS, bytes(8))
    for number in range(24):
        words = descriptor(UPDATE, THEM, 8, OURS + 8 * number, THEIRS, REQUESTER, number, always=1)
        setup.post([*words, 0, 3], ctx=US)
    notes = await setup.notified(US, 24)
    assert [note.cookie for note in notes] == list(range(24))
    assert {note.place for note in notes} == {REQUESTER}
    olds = [int.from_bytes(setup.read(OURS + 8 * n, 8), "little") for n in range(24)]
    assert olds == [3 * n for n in range(24)]
    assert int.from_bytes(setup.read(THEIRS, 8), "little") == 72
    # Compare and add: only if it is what was expected; all 64 bits count.
    big = 1 << 63 | 72
    for compare, add, start, end in ((72, 5, 72, 77), (71, 5, 72, 72), (72, 5, big, big)):
        setup.write(THEIRS, start.to_bytes(8, "little"))
        words = descriptor(UPDATE, THEM, 8, OURS, THEIRS, REQUESTER | RESPONDER, 9)
        setup.post([*words, compare, add])
        await setup.notified(US)
        (theirs,) = await setup.notified(THEM)
        assert (theirs.place, theirs.op, theirs.address) == (RESPONDER, UPDATE, THEIRS)
        await quiet(setup, 80)
        assert int.from_bytes(setup.read(OURS, 8), "little") == start
        assert int.from_bytes(setup.read(THEIRS, 8), "little") == end
    assert not setup.errors


@cocotb.test()
async def a_get_sees_the_put_before_it(dut):
    setup = await ready(dut)
    setup.write_delay = 80
    for trial in range(6):
        data = setup.read(OURS + 100 * trial, 100)
        setup.post(descriptor(PUT, THEM, 100, OURS + 100 * trial, THEIRS))
        setup.post(descriptor(GET, THEM, 100, OURS + 2 * PAGE, THEIRS, REQUESTER))
        await setup.notified(US)
        assert setup.read(OURS + 2 * PAGE, 100) == data


@cocotb.test()
async def no_answer_leaves_before_what_it_answers_can_be_seen(dut):
    setup = await ready(dut)
    setup.write_delay = 200
    for trial in range(5):
        local, remote = OURS + 64 * trial, THEIRS + 64 * trial
        data = setup.read(local, 64)
        setup.packets.clear()
        setup.post(descriptor(PUT, THEM, 64, local, remote, REQUESTER, trial))
        await setup.until(lambda: any(tc == 2 for tc, _, _ in setup.packets))
        assert setup.read(remote, 64) == data
        await setup.notified(US)
        setup.write(remote, bytes(8))
        setup.packets.clear()
        setup.post([*descriptor(UPDATE, THEM, 8, local, remote, REQUESTER, trial), 0, 5])
        await setup.until(lambda: any(tc == 1 for tc, _, _ in setup.packets))
        assert int.from_bytes(setup.read(remote, 8), "little") == 5
        await setup.notified(US)
    assert not setup.errors


@cocotb.test()
@cocotb.parametrize(condition=CONDITIONS)
async def everything_at_once(dut, condition):
    setup = await ready(dut, *condition, seed=20)
    rng = setup.rng
    expected = bytearray(snapshot(setup))
    wanted: dict[tuple[int, int], set[int]] = {}
    # Each operation has a piece of each side of its own, so that order does not matter.
    for number in range(48):
        op = rng.choice((PUT, GET, IMMEDIATE, UPDATE))
        piece = 1024 * number
        size = {IMMEDIATE: rng.randrange(1, 9), UPDATE: 8}.get(op, rng.randrange(900))
        shift = rng.randrange(100) & (~7 if op == UPDATE else ~0)
        local = OURS + piece + (rng.randrange(100) & (~7 if op == UPDATE else ~0))
        remote = THEIRS + piece + shift
        other = COMPLETER if op in (PUT, IMMEDIATE) else RESPONDER
        notify = rng.choice((0, REQUESTER, other, REQUESTER | other))
        value = rng.getrandbits(64)
        words = descriptor(op, THEM, size, local, remote, notify, number)
        moves = []
        if op == PUT:
            moves = [(remote, setup.read(local, size))]
        elif op == GET:
            moves = [(local, setup.read(remote, size))]
        elif op == IMMEDIATE:
            words[1] = value
            moves = [(remote, value.to_bytes(8, "little")[:size])]
        else:
            old = setup.read(remote, 8)
            compare = int.from_bytes(old, "little") ^ rng.randrange(2)
            words += [compare, value]
            moves = [(local, old)]
            if compare == int.from_bytes(old, "little"):
                new = (compare + value) & (1 << 64) - 1
                moves.append((remote, new.to_bytes(8, "little")))
        for address, data in moves:
            for i, byte in enumerate(data):
                expected[setup.place(address + i) - 0x200 * PAGE] = byte
        for flag, ctx in ((REQUESTER, US), (other, THEM)):
            if notify & flag:
                wanted.setdefault((ctx, flag), set()).add(number)
        setup.post(words)
    for ctx in (US, THEM):
        count = sum(len(each) for (c, _), each in wanted.items() if c == ctx)
        for note in await setup.notified(ctx, count, 60000):
            assert not note.error
            wanted[ctx, note.place].remove(note.cookie)
    await quiet(setup, 2500)
    assert snapshot(setup) == bytes(expected)
    assert not any(wanted.values()) and not setup.seen[US] and not setup.seen[THEM]
    assert not setup.errors and not setup.requester_errors
    assert setup.counts["posted"] == 48


@cocotb.test()
async def wrong_descriptors_are_refused_and_touch_nothing(dut):
    setup = await ready(dut, 0.1, 0.1)
    before = snapshot(setup)
    far = 0x80 * PAGE  # in the table, not registered
    cases = [
        (MALFORMED, descriptor(0, THEM, 8, OURS, THEIRS)),
        (MALFORMED, descriptor(6, THEM, 8, OURS, THEIRS)),
        (MALFORMED, descriptor(PUT, THEM, 8, OURS, THEIRS, RESPONDER)),
        (MALFORMED, descriptor(GET, THEM, 8, OURS, THEIRS, COMPLETER)),
        (MALFORMED, descriptor(IMMEDIATE, THEM, 8, 0, THEIRS, RESPONDER)),
        (MALFORMED, [*descriptor(UPDATE, THEM, 8, OURS, THEIRS, COMPLETER), 0, 0]),
        (MALFORMED, descriptor(NOTIFY, THEM, 0, 0, 0, REQUESTER)),
        (MALFORMED, descriptor(PUT, THEM, 8, OURS, THEIRS, always=1)),
        (MALFORMED, descriptor(PUT, THEM, 8 | 1 << 23, OURS, THEIRS)),
        (MALFORMED, descriptor(IMMEDIATE, THEM, 8 | 1 << 31, 0, THEIRS)),
        (OVERSIZE, descriptor(IMMEDIATE, THEM, 9, 0, THEIRS)),
        (OVERSIZE, descriptor(IMMEDIATE, THEM, 0, 0, THEIRS)),
        (OVERSIZE, descriptor(NOTIFY, THEM, 8, 0, 0, COMPLETER)),
        (OVERSIZE, [*descriptor(UPDATE, THEM, 4, OURS, THEIRS), 0, 0]),
        (OVERSIZE, descriptor(UPDATE, THEM, 8, OURS, THEIRS)),
        (OVERSIZE, [*descriptor(PUT, THEM, 8, OURS, THEIRS), 0]),
        (OVERSIZE, [*descriptor(PUT, THEM, 8, OURS, THEIRS), 0, 0, 0, 0, 0]),
        (OVERSIZE, descriptor(PUT, THEM, 8, OURS, THEIRS)[:1]),
        (MISALIGNED, [*descriptor(UPDATE, THEM, 8, OURS, THEIRS + 4), 0, 0]),
        (MISALIGNED, [*descriptor(UPDATE, THEM, 8, OURS + 1, THEIRS), 0, 0]),
        (UNREGISTERED, descriptor(PUT, THEM, 8, far, THEIRS)),
        (UNREGISTERED, descriptor(PUT, THEM, 8, PAGE << 8, THEIRS)),
        (UNREGISTERED, descriptor(PUT, THEM, 8, OURS | 1 << 36, THEIRS)),
        (RIGHT, descriptor(PUT, THEM, 8, THEIRS, THEIRS)),
    ]
    for index, (error, words) in enumerate(cases):
        words[0] |= index << 24
        setup.post(words)
        (note,) = await setup.notified(US)
        assert (note.place, note.error, note.cookie) == (ERROR, error, index), index
        assert note.size == 0
        assert setup.requester_errors == [(error, US)], index
        setup.requester_errors.clear()
        # The next one is not harmed.
        setup.post(descriptor(NOTIFY, THEM, 0, 0, 0, COMPLETER, index))
        (theirs,) = await setup.notified(THEM)
        assert theirs.cookie == index
    # The end of one that the host has split is as long as one, and is none.
    for offset in (8, 16, 0x800):
        setup.post(descriptor(NOTIFY, THEM, 0, 0, 0, COMPLETER), offset=offset)
        (note,) = await setup.notified(US)
        assert (note.place, note.error) == (ERROR, OVERSIZE), offset
    assert setup.requester_errors == [(OVERSIZE, US)] * 3
    await quiet(setup)
    assert snapshot(setup) == before and not setup.seen[US] and not setup.errors


@cocotb.test()
async def what_the_other_side_does_not_permit_is_refused_there(dut):
    setup = await ready(dut, 0.1, 0.1)
    peer = NODE << 8 | US
    setup.register(0x20, THEM, READ)
    setup.register(0x21, THEM, WRITE)
    setup.register(0x22, THEM, ATOMIC)
    setup.register(0x23, THEM, 7, peer=peer ^ 1)
    setup.register(0x24, THEM, 7, peer=peer)
    setup.register(0x25, US, READ)
    setup.register(0x26, US, WRITE)
    before = snapshot(setup)
    far = 0x80 * PAGE
    update = [0, 1]
    cases = [
        (RIGHT, descriptor(PUT, THEM, 100, OURS, 0x20 * PAGE)),
        (RIGHT, descriptor(PUT, THEM, 100, OURS, 0x22 * PAGE)),
        (RIGHT, descriptor(IMMEDIATE, THEM, 8, 0, 0x20 * PAGE)),
        (RIGHT, descriptor(GET, THEM, 100, OURS, 0x21 * PAGE)),
        (RIGHT, [*descriptor(UPDATE, THEM, 8, OURS, 0x20 * PAGE), *update]),
        (RIGHT, [*descriptor(UPDATE, THEM, 8, OURS, 0x21 * PAGE), *update]),
        (RIGHT, descriptor(PUT, THEM, 100, OURS, 0x23 * PAGE)),
        (RIGHT, descriptor(GET, THEM, 100, OURS, 0x23 * PAGE)),
        (RIGHT, descriptor(PUT, 3, 100, OURS, THEIRS)),
        (UNREGISTERED, descriptor(PUT, THEM, 100, OURS, far)),
        (UNREGISTERED, descriptor(GET, THEM, 100, OURS, far)),
        (UNREGISTERED, descriptor(GET, THEM, 100, OURS, PAGE << 8)),
        (UNREGISTERED, [*descriptor(UPDATE, THEM, 8, OURS, far), *update]),
        (UNREGISTERED, descriptor(PUT, THEM, 100, OURS, 1 << 63)),
        # Ours: a get needs the right to write here, a put that to read.
        (RIGHT, descriptor(GET, THEM, 100, 0x25 * PAGE, THEIRS)),
        (RIGHT, [*descriptor(UPDATE, THEM, 8, 0x25 * PAGE, 0x22 * PAGE), 1 << 60, 0]),
        (RIGHT, descriptor(PUT, THEM, 100, 0x26 * PAGE, THEIRS)),
        (CONTEXT, descriptor(NOTIFY, 5, 0, 0, 0, COMPLETER)),
    ]
    for index, (error, words) in enumerate(cases):
        words[0] |= index << 24
        # An operation that fails is not also told to be done.
        words[0] |= (0 if index % 2 or words[0] & 15 == NOTIFY else REQUESTER) << 4
        setup.post(words)
        (note,) = await setup.notified(US)
        assert (note.place, note.error, note.cookie) == (ERROR, error, index), index
        assert len(setup.errors) + len(setup.requester_errors) >= 1
        setup.errors.clear()
        setup.requester_errors.clear()
    await quiet(setup)
    assert snapshot(setup) == before and not setup.seen[US] and not setup.seen[THEM]
    # The one peer may, and the owner may without being it.
    setup.post(descriptor(PUT, THEM, 100, OURS, 0x24 * PAGE, REQUESTER))
    (note,) = await setup.notified(US)
    assert note.place == REQUESTER


@cocotb.test()
async def a_long_operation_that_fails_in_the_middle_is_told_once(dut):
    setup = await ready(dut, 0.1, 0.2)
    setup._set_entry(0x12, 0)
    setup._set_entry(0x02, 0)
    inside = PAGE - 600
    cases = [
        (descriptor(PUT, THEM, 2000, OURS, THEIRS + PAGE + inside), 600),
        (descriptor(GET, THEM, 2000, OURS, THEIRS + PAGE + inside), 600),
        (descriptor(PUT, THEM, 2000, OURS + PAGE + inside, THEIRS), 600),
        (descriptor(GET, THEM, 2000, OURS + PAGE + inside, THEIRS), 600),
        # Refused in the middle, permitted again at its end.
        (descriptor(PUT, THEM, PAGE + 1200, OURS + 3 * PAGE, THEIRS + PAGE + inside), 600),
    ]
    for index, (words, _) in enumerate(cases):
        words[0] |= index << 24 | (REQUESTER | (COMPLETER if words[0] & 15 == PUT else 0)) << 4
        setup.post(words)
        (note,) = await setup.notified(US)
        assert (note.place, note.error, note.cookie) == (ERROR, UNREGISTERED, index)
        await quiet(setup)
        assert not setup.seen[US] and not setup.seen[THEM], index
    # And after that, operations from this node work again.
    setup.post(descriptor(PUT, THEM, 1000, OURS, THEIRS, REQUESTER | COMPLETER))
    (note,) = await setup.notified(US)
    assert note.place == REQUESTER


@cocotb.test()
async def bad_packets_are_dropped_reported_and_harm_nobody(dut):
    setup = await ready(dut)
    before = snapshot(setup)
    put = command(PUT, 64, THEIRS)
    data = [0xDEAD] * 8
    cases = [
        (KIND, 0, packet(0, 0, THEM, put, data), None),
        (KIND, 0, packet(3, 0, THEM, put, data), None),
        (KIND, 0, packet(1, 1, THEM, put, data), None),
        (KIND, 1, packet(1, 1, THEM, put, data), None),
        (KIND, 2, packet(1, 2, THEM, put, data), None),
        (MALFORMED, 0, packet(1, 0, THEM, put, data, node=NODE ^ 1), None),
        (MALFORMED, 0, packet(1, 0, THEM, put, size=16), None),
        (MALFORMED, 0, packet(1, 0, THEM, put, data, size=24), None),
        (MALFORMED, 0, packet(1, 0, THEM, put, size=88), None),
        (MALFORMED, 0, packet(1, 0, THEM, put, [0] * 62), None),
        (MALFORMED, 0, packet(1, 0, THEM, put, data), 2),
        (MALFORMED, 0, packet(1, 0, THEM, command(PUT, 63, THEIRS), data), None),
        (MALFORMED, 0, packet(1, 0, THEM, command(PUT, 64, THEIRS, offset=8), data), None),
        (MALFORMED, 0, packet(2, 0, THEM, command(GET, 64, THEIRS, OURS), data), None),
        (MALFORMED, 0, packet(6, 0, THEM, command(UPDATE, 8, THEIRS, OURS), [1]), None),
        # The kind and the command name different operations.
        (MALFORMED, 0, packet(1, 0, THEM, command(IMMEDIATE, 64, THEIRS), data), None),
        (MALFORMED, 0, packet(2, 0, THEM, command(PUT, 64, THEIRS, OURS)), None),
        (MALFORMED, 0, packet(5, 0, THEM, command(PUT, 0, 0, notify=COMPLETER)), None),
        (MALFORMED, 1, packet(3, 1, US, command(UPDATE, 64, 0, OURS), data), None),
        # More than a page from one address: only the translation stands in its way.
        (OVERSIZE, 0, packet(1, 0, THEM, command(PUT, 64, THEIRS + PAGE - 8), data), None),
        # Nobody asked for this: test_velo_rma_asks.py has more of them.
        (MALFORMED, 1, packet(3, 1, US, command(GET, 64, 0, OURS), data), None),
    ]
    for index, (error, tc, words, cut) in enumerate(cases):
        setup.inject(tc, words, cut)
        await setup.until(lambda: setup.errors)
        await quiet(setup, 60)
        assert {code for code, _, _ in setup.errors} == {error}, index
        setup.errors.clear()
        setup.seen.clear()
        setup.post(descriptor(NOTIFY, THEM, 0, 0, 0, COMPLETER, index))
        (theirs,) = await setup.notified(THEM)
        assert theirs.cookie == index and theirs.op == NOTIFY
    assert snapshot(setup) == before
    # It is answered, and nobody waits for that.
    setup.inject(0, packet(6, 0, THEM, command(UPDATE, 8, THEIRS + 1, OURS), [1, 2]))
    await setup.until(lambda: len(setup.errors) == 2)
    assert [code for code, _, _ in setup.errors] == [MISALIGNED, MALFORMED]
    await quiet(setup, 60)
    assert snapshot(setup) == before
    setup.errors.clear()
    # Too short after its data began: its write is filled up, nobody is told that it is done.
    setup.inject(0, packet(1, 0, THEM, command(PUT, 64, THEIRS, OURS, COMPLETER), data), 7)
    await setup.until(lambda: setup.errors)
    await quiet(setup, 100)
    assert {code for code, _, _ in setup.errors} == {MALFORMED}
    assert not setup.seen[THEM]
    assert setup.touched[-1][1] == 16 or (setup.place(THEIRS), 64) in setup.touched


@cocotb.test()
async def a_full_queue_stops_and_loses_nothing_unless_software_says_so(dut):
    setup = await ready(dut)
    await setup.queue(THEM, 2)
    setup.free_entries = False
    for number in range(4):
        setup.post(descriptor(NOTIFY, THEM, 0, 0, 0, COMPLETER, number))
    await setup.bench.cycles(600)
    assert int(dut.stalled_o.value) and int(dut.stall_ctx_o.value) == THEM
    setup.free_entries = True
    notes = await setup.notified(THEM, 4)
    assert [note.cookie for note in notes] == [0, 1, 2, 3]
    assert not setup.errors
    setup.asleep = {THEM}
    dut.watchdog_cycles_i.value, dut.watchdog_enable_i.value = 100, 1
    for number in range(3):
        setup.post(descriptor(NOTIFY, THEM, 0, 0, 0, COMPLETER, number))
    await setup.until(lambda: setup.errors)
    assert {code for code, _, _ in setup.errors} == {STALL}
    (note,) = await setup.notified(US)
    assert (note.place, note.error, note.cookie) == (ERROR, STALL, 2)
    # The peer of the put is told the reason, once; the data are there all the same.
    setup.errors.clear()
    data = setup.read(OURS, 8)
    for cookie, notify in ((7, COMPLETER), (8, COMPLETER | REQUESTER)):
        setup.post(descriptor(PUT, THEM, 8, OURS, THEIRS + 8 * cookie, notify, cookie))
        (note,) = await setup.notified(US)
        assert (note.place, note.error, note.cookie) == (ERROR, STALL, cookie)
        assert setup.read(THEIRS + 8 * cookie, 8) == data
    assert setup.errors == 2 * [(STALL, THEM, NODE)]
    setup.asleep.clear()
    notes = await setup.notified(THEM, 2)
    assert [note.cookie for note in notes] == [0, 1]
    setup.post(descriptor(PUT, THEM, 8, OURS, THEIRS, COMPLETER | REQUESTER, 9))
    for ctx in (US, THEM):
        (note,) = await setup.notified(ctx)
        assert (note.error, note.cookie) == (0, 9)


@cocotb.test()
async def each_queue_has_its_own_patience_and_uses_it_up_once(dut):
    setup = await ready(dut)
    budget, a_round = 60, 8 * 16  # cycles; of velo_patience, with CtxBits 4
    sleepers = (3, 4)
    stalls: dict[int, int] = defaultdict(int)

    async def watch():
        while True:
            await FallingEdge(dut.clk_i)
            stalls[int(dut.stall_ctx_o.value)] += int(dut.stalled_o.value)

    async def dropped(ctx) -> int:
        """How many cycles a notification that finds no room holds up the unit."""
        stalls.clear()
        setup.post(descriptor(NOTIFY, ctx, 0, 0, 0, COMPLETER, 7))
        await setup.until(lambda: setup.errors)
        assert setup.errors.pop() == (STALL, ctx, NODE) and not setup.errors
        await setup.notified(US)
        return stalls[ctx]

    cocotb.start_soon(watch())
    for ctx in sleepers:
        await setup.queue(ctx, 2)
        for number in range(2):
            setup.post(descriptor(NOTIFY, ctx, 0, 0, 0, COMPLETER, number))
    setup.asleep = set(sleepers)
    await quiet(setup, 200)
    dut.watchdog_cycles_i.value, dut.watchdog_enable_i.value = budget, 1
    for ctx in sleepers:
        assert budget <= await dropped(ctx) <= budget + 3
    # Each has got few cycles back meanwhile, and there are three more until it is seen.
    for ctx in sleepers:
        assert await dropped(ctx) <= 10
    await setup.bench.cycles(20 * a_round)
    for ctx in sleepers:
        assert 19 <= await dropped(ctx) <= 32
    # A queue that is opened anew has no patience anew; one that is read is served.
    await setup.queue(3, 2)
    for number in range(2):
        setup.post(descriptor(NOTIFY, 3, 0, 0, 0, COMPLETER, number))
    assert await dropped(3) <= 20
    setup.asleep.clear()
    assert [note.cookie for note in await setup.notified(3, 2)] == [0, 1]
    setup.post(descriptor(NOTIFY, 3, 0, 0, 0, COMPLETER, 9))
    (note,) = await setup.notified(3)
    assert note.cookie == 9 and not setup.errors


@cocotb.test()
async def a_full_queue_that_is_set_anew_or_closed_goes_on(dut):
    setup = await ready(dut)
    for entries, enabled in ((4, 1), (2, 0)):
        await setup.queue(THEM, 2)
        setup.free_entries = False
        for number in range(3):
            setup.post(descriptor(NOTIFY, THEM, 0, 0, 0, COMPLETER | REQUESTER, number))
        await setup.until(lambda: int(dut.stalled_o.value) and not setup.descriptors)
        await setup.queue(THEM, entries, enabled)
        setup.free_entries = True
        ours = await setup.notified(US, 3)
        if enabled:
            # The last one is the first of the new queue.
            (note,) = await setup.notified(THEM)
            assert note.cookie == 2 and not setup.errors
            assert {note.place for note in ours} == {REQUESTER}
        else:
            assert setup.errors == [(CONTEXT, THEM, NODE)]
            assert [(note.cookie, note.error) for note in ours if note.place == ERROR] == [
                (2, CONTEXT)
            ]
        await quiet(setup)


@cocotb.test()
async def responses_and_completions_pass_while_requests_stand_still(dut):
    setup = await ready(dut)
    # Two gets, of which the second one's answer must not wait for the put that cannot leave.
    setup.post(descriptor(GET, THEM, 1000, OURS, THEIRS, REQUESTER, 1))
    setup.post(descriptor(PUT, THEM, 4000, OURS + PAGE, THEIRS + PAGE, REQUESTER, 2))
    await setup.until(lambda: len(setup.packets) >= 2)
    setup.network_block[0] = True
    (note,) = await setup.notified(US)
    assert note.cookie == 1
    setup.network_block[0] = False
    (note,) = await setup.notified(US)
    assert note.cookie == 2
    # And the other way: an answer that cannot leave does not stop puts of others.
    setup.network_block[1] = True
    setup.post(descriptor(GET, THEM, 4000, OURS, THEIRS, REQUESTER, 3))
    setup.post(descriptor(PUT, THEM, 1000, OURS + PAGE, THEIRS + PAGE, REQUESTER, 4))
    (note,) = await setup.notified(US)
    assert note.cookie == 4
    setup.network_block[1] = False
    (note,) = await setup.notified(US)
    assert note.cookie == 3 and not setup.errors


@cocotb.test()
@cocotb.parametrize(seed=range(6))
async def after_deregistration_nobody_touches_the_page(dut, seed):
    setup = await ready(dut, 0.0, 0.3, seed=seed + 40)
    setup.write_delay = 50
    setup.post(descriptor(PUT, THEM, 3 * PAGE, OURS, THEIRS, REQUESTER, 1))
    setup.post(descriptor(GET, THEM, 3 * PAGE, OURS + 4 * PAGE, THEIRS + 4 * PAGE, 0, 2))
    await setup.until(lambda: len(setup.touched) > 2)
    await setup.bench.cycles(setup.rng.randrange(400))
    await setup.deregister(0x10)
    setup.touched.clear()
    frame = setup.table[0x10]
    (note,) = await setup.notified(US, limit=60000)
    await quiet(setup, 1500)
    assert all(addr // PAGE != frame for addr, _ in setup.touched)
    assert note.place in (REQUESTER, ERROR)


@cocotb.test()
async def a_host_that_refuses_is_reported(dut):
    setup = await ready(dut)
    setup.read_errors = {setup.place(OURS), setup.place(THEIRS + 8), 0x10_0000 + 8 * 0x1F}
    for index, words in enumerate(
        (
            descriptor(PUT, THEM, 8, OURS, THEIRS),
            descriptor(GET, THEM, 8, OURS, THEIRS + 8),
            [*descriptor(UPDATE, THEM, 8, OURS, THEIRS + 8), 0, 0],
            descriptor(PUT, THEM, 8, OURS + 8, 0x1F * PAGE),
        )
    ):
        words[0] |= index << 24
        setup.post(words)
        (note,) = await setup.notified(US)
        assert (note.place, note.error, note.cookie) == (ERROR, HOST, index)
    # The access was given back: deregistration ends, and updates go on.
    await setup.deregister(0x10)
    setup.post([*descriptor(UPDATE, THEM, 8, OURS, THEIRS + PAGE, REQUESTER), 0, 0])
    (note,) = await setup.notified(US)
    assert note.place == REQUESTER


@cocotb.test()
@cocotb.parametrize(condition=CONDITIONS)
async def a_host_that_fails_under_way_spoils_one_packet(dut, condition):
    """Wherever in it: its data are not told to be there, and the next ones are right."""
    setup = await ready(dut, *condition, seed=5)
    beats = 448 * 8 // setup.width
    for index, (op, good) in enumerate(
        (op, good) for op in (PUT, GET) for good in (1, 2, beats // 2, beats - 2, beats - 1)
    ):
        size = 3 * 448
        source, target = (OURS, THEIRS) if op == PUT else (THEIRS, OURS)
        setup.read_spoiled = {setup.place(source + 448): good}
        setup.post(descriptor(op, THEM, size, OURS, THEIRS, REQUESTER, index))
        (note,) = await setup.notified(US)
        assert (note.place, note.error, note.cookie) == (ERROR, MALFORMED, index)
        await quiet(setup)
        setup.read_spoiled = {}
        setup.write(source, setup.rng.randbytes(size))
        setup.post(descriptor(op, THEM, size, OURS, THEIRS, REQUESTER, index))
        (note,) = await setup.notified(US)
        assert (note.place, note.error) == (REQUESTER, 0)
        assert setup.read(target, size) == setup.read(source, size)
    if setup.width == 32:
        setup.read_spoiled = {setup.place(THEIRS): 1}
        setup.post([*descriptor(UPDATE, THEM, 8, OURS, THEIRS, REQUESTER, 77), 0, 0])
        (note,) = await setup.notified(US)
        assert (note.place, note.error, note.cookie) == (ERROR, HOST, 77)
        setup.read_spoiled = {}
    await setup.deregister(0x10)  # All accesses were given back.


@cocotb.test()
async def a_read_of_the_window_is_answered_with_an_error(dut):
    setup = await ready(dut)
    setup.query = QUERY.pack(valid=1, header=htax_header(1 << 36, 8, tag=0x33))
    await setup.bench.until(lambda: bool(setup.answer["valid"]))
    await setup.bench.cycles(3)
    assert setup.answer["valid"] and setup.answer["eop"]
    assert setup.answer["header"] & 0x1FF == 0x33 << 1 | 1
    setup.answer_taken = True
    await setup.bench.until(lambda: not setup.answer["valid"], 4)


@cocotb.test()
async def how_many_cycles(dut):
    setup = await ready(dut)
    setup.read_delay = setup.write_delay = 1
    for words in (
        descriptor(IMMEDIATE, THEM, 8, 5, THEIRS, COMPLETER),
        descriptor(PUT, THEM, 8, OURS, THEIRS, COMPLETER),
    ):
        setup.post(words)
        await setup.notified(THEM)
        await quiet(setup, 50)
    setup.packets.clear()
    setup.descriptor_cycles.clear()
    figures = {}
    for name, words in (
        ("immediate", descriptor(IMMEDIATE, THEM, 8, 5, THEIRS, COMPLETER)),
        ("put", descriptor(PUT, THEM, 8, OURS, THEIRS, COMPLETER)),
    ):
        setup.post(words)
        await setup.notified(THEM)
        figures[f"{name}, descriptor to packet"] = (
            setup.packets[-1][2] - setup.descriptor_cycles[-1]
        )
        figures[f"{name}, descriptor to notification"] = (
            setup.bench.cycle - setup.descriptor_cycles[-1]
        )
        await quiet(setup, 50)
    for name, op in (("put", PUT), ("get", GET)):
        start = setup.bench.cycle
        flag = COMPLETER if op == PUT else REQUESTER
        setup.post(descriptor(op, THEM, 8 * PAGE, OURS, THEIRS, flag))
        await setup.notified(THEM if op == PUT else US)
        figures[f"{name}, bytes a cycle of 32 KiB"] = round(
            8 * PAGE / (setup.bench.cycle - start), 2
        )
        await quiet(setup, 50)
    dut._log.info("figures at %d bits: %s", setup.width, figures)
    assert figures["immediate, descriptor to packet"] <= 16
    assert figures["put, bytes a cycle of 32 KiB"] >= {32: 2.4, 64: 4.8, 128: 9.2}[setup.width]
    # While the network takes all, every beat of a packet is followed by the next one.
    setup.network_beats = 10000
    setup.packets.clear()
    setup.packet_cycles.clear()
    setup.post(descriptor(PUT, THEM, 8 * PAGE, OURS, THEIRS, COMPLETER))
    await setup.notified(THEM)
    for (_, beats, _), cycles in zip(setup.packets, setup.packet_cycles, strict=True):
        assert cycles == len(beats)
    sizes = [len(beats) for tc, beats, _ in setup.packets if tc == 0]
    # Header, command of 24 bytes, data of 448.
    assert max(sizes) == {32: 120, 64: 60, 128: 31}[setup.width]
    first = [start for tc, _, start in setup.packets if tc == 0]
    dut._log.info("cycles from packet to packet: %s", first[2] - first[1])
