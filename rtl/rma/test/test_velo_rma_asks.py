# SPDX-License-Identifier: Apache-2.0
"""Gets and updates between asking and answer: they hold up nobody, and nothing else is written.

The node's packets come back to it, or packets of 256 nodes are put beside them.
"""

import cocotb
import pytest
from host_model import (
    COMPLETER,
    ERROR,
    GET,
    LOST,
    MALFORMED,
    NETWORK,
    NODE,
    NOTIFY,
    PAGE,
    PUT,
    REQUESTER,
    STALL,
    UNREGISTERED,
    UPDATE,
    command,
    descriptor,
    packet,
)
from test_velo_rma import OURS, THEIRS, THEM, US, quiet, ready, snapshot
from test_velo_rma_lost import lose

ASKS_A_NODE, NODES, ENTRIES = 5, 256, 16
SLOTS = ASKS_A_NODE * NODES
PROBE_CYCLES = 4096  # least, after which one that asks a silent node is overdue
BEHIND = 64  # cycles, at most, for what comes behind any number of gets
LONG = 16 * PAGE


@pytest.mark.parametrize(
    "width", [32, *(pytest.param(width, marks=pytest.mark.nightly) for width in (64, 128))]
)
def test_rma_asks(simulate, width):
    simulate("velo_rma", {"DataWidth": width, "CtxBits": 4, "LineBits": 3})


def of_node(words: list[int], node: int) -> list[int]:
    """The same packet, sent by another node."""
    return [words[0] & ~(0xFF << 52) | node << 52, *words[1:]]


def field(words: list[int], word: int, lsb: int, bits: int) -> int:
    return words[word] >> lsb & (1 << bits) - 1


def words_of(setup, beats: list[int]) -> list[int]:
    number = setup.packet_number(beats)
    return [number >> 64 * i & (1 << 64) - 1 for i in range(-(-number.bit_length() // 64))]


async def taken(setup, tc: int = 0) -> int:
    """Cycles until all packets of a class that wait are taken."""
    start = setup.bench.cycle
    await setup.until(lambda: not setup.network[tc])
    return setup.bench.cycle - start


@cocotb.test()
async def whatever_comes_behind_gets_passes_them(dut):
    """Long gets of each node, whose answers cannot leave: as many as may ever come."""
    setup = await ready(dut)
    await setup.bench.cycles(NODES)
    setup.network_beats = 1 << 20
    setup.network_block[1] = True
    sent = []
    for node in range(NODES):
        for tag in range(ASKS_A_NODE):
            get = command(GET, LONG, THEIRS, OURS) if node else command(GET, 8, THEIRS, OURS)
            sent.append((node, tag))
            setup.inject(0, of_node(packet(2, 0, THEM, get, tag=tag), node))
            last = await taken(setup)
            assert last <= 16, (node, tag)
    setup.inject(0, packet(5, 0, THEM, command(NOTIFY, 0, 0, notify=COMPLETER), tag=9))
    assert await taken(setup) <= BEHIND
    (note,) = await setup.notified(THEM, limit=BEHIND)
    assert note.cookie == 9
    assert not setup.errors
    # More than that breaks the rule: they are refused, and hold up nobody.
    for _ in range(2):
        setup.inject(0, of_node(packet(2, 0, THEM, command(GET, 8, THEIRS, OURS)), 7))
        assert await taken(setup) <= 16
    await setup.bench.cycles(4)
    assert setup.errors == [(STALL, THEM, 7)] * 2
    setup.inject(0, packet(5, 0, THEM, command(NOTIFY, 0, 0, notify=COMPLETER), tag=10))
    assert await taken(setup) <= BEHIND


def collect(setup) -> list[list[int]]:
    """The answers that leave from now on, which come to nobody."""
    answers: list[list[int]] = []
    take_packet = setup._take_packet

    def take(c, beat, sop, eop):
        take_packet(c, beat, sop, eop)
        if c == 1:
            setup.network[1].clear()
            if eop:
                answers.append(words_of(setup, setup.packets[-1][1]))

    setup._take_packet = take
    return answers


@cocotb.test()
async def a_node_that_floods_takes_no_slot_of_another(dut):
    """It sends more than all slots hold, the others as many as they may: those are all served."""
    flood = 9
    setup = await ready(dut)
    setup.read_delay = 2
    answers = collect(setup)
    get = packet(2, 0, THEM, command(GET, 8, THEIRS, OURS))

    async def send(node, tag):
        setup.inject(0, of_node(packet(2, 0, THEM, command(GET, 8, THEIRS, OURS), tag=tag), node))
        await setup.until(lambda: len(setup.network[0]) < 64)

    setup.network_block[1] = True
    for _ in range(SLOTS + 2 * ASKS_A_NODE):
        setup.inject(0, of_node(get, flood))
        await setup.until(lambda: len(setup.network[0]) < 64)
    others = [(node, tag) for node in range(NODES) for tag in range(ASKS_A_NODE) if node != flood]
    setup.rng.shuffle(others)
    for node, tag in others:
        await send(node, tag)
        if not tag:
            await send(flood, 255)
    await taken(setup)
    await setup.bench.cycles(4)
    assert set(setup.errors) == {(STALL, THEM, flood)}
    refused, sent = len(setup.errors), SLOTS + 2 * ASKS_A_NODE + NODES - 1
    setup.network_block[1] = False
    await setup.until(lambda: len(answers) == len(others) + sent - refused, 50000)
    # One of its own is shown, some answers are on their way out, and its share waits.
    assert ASKS_A_NODE < sent - refused <= ASKS_A_NODE + 4
    told = [(field(words, 0, 8, 8), field(words, 0, 36, 8)) for words in answers]
    assert [answer for answer in told if answer[0] != flood] == others
    # And then it is served again, as long as it keeps to its share.
    setup.errors.clear()
    answers.clear()
    for tag in range(3 * ASKS_A_NODE):
        await send(flood, tag)
        await setup.until(lambda tag=tag: len(answers) == tag + 1)
    assert not setup.errors


@cocotb.test()
async def requests_are_served_in_order_and_whole(dut):
    """Gets and updates of all nodes, more than there are slots, as fast as they can be taken."""
    setup = await ready(dut, 0.1, 0.2, seed=11)
    rng = setup.rng
    setup.read_delay = setup.write_delay = 2
    answers = collect(setup)
    nodes = rng.sample(range(NODES), NODES)
    expected = []
    value = int.from_bytes(setup.read(THEIRS, 8), "little")
    for number in range(SLOTS + 88):
        node, tag = nodes[number % NODES], rng.randrange(256)
        if rng.random() < 0.5:
            place = THEIRS + 8 + rng.randrange(PAGE - 16)
            words = packet(2, 0, THEM, command(GET, 8, place, number), tag=tag)
            expected.append((node, tag, number, int.from_bytes(setup.read(place, 8), "little")))
        else:
            operands = [value ^ rng.randrange(2), rng.getrandbits(64)]
            words = packet(6, 0, THEM, command(UPDATE, 8, THEIRS, number), operands, tag=tag)
            expected.append((node, tag, number, value))
            if operands[0] == value:
                value = value + operands[1] & (1 << 64) - 1
        setup.inject(0, of_node(words, node))
        if number % 8 == 7:
            await setup.until(lambda: len(setup.network[0]) < 200)
    await setup.until(lambda: len(answers) == len(expected), 200000)
    for words, (node, tag, local, data) in zip(answers, expected, strict=True):
        assert (field(words, 0, 8, 8), field(words, 0, 36, 8)) == (node, tag)
        assert words[3] == local and (words[4] if len(words) > 4 else 0) == data
    assert int.from_bytes(setup.read(THEIRS, 8), "little") == value
    assert not setup.errors


@cocotb.test()
async def nobody_has_more_unanswered_with_a_node_than_it_has_slots(dut):
    setup = await ready(dut)
    setup.network_block[1] = True
    for cookie in range(ASKS_A_NODE + 3):
        setup.post(descriptor(GET, THEM, 8, OURS + 8 * cookie, THEIRS, REQUESTER, cookie))
    await setup.bench.cycles(600)
    assert len([1 for c, _, _ in setup.packets if c == 0]) == ASKS_A_NODE
    setup.network_block[1] = False
    notes = await setup.notified(US, ASKS_A_NODE + 3)
    assert [note.cookie for note in notes] == list(range(ASKS_A_NODE + 3)) and not setup.errors
    # Of all nodes together, as many as there are entries: none of these is answered.
    setup.packets.clear()
    for cookie in range(2 * ENTRIES):
        words = descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, cookie, node=100 + cookie // 2)
        setup.post(words)
    await setup.bench.cycles(3000)
    assert len([1 for c, _, _ in setup.packets if c == 0]) == ENTRIES
    numbers = [field(words_of(setup, beats), 1, 58, 6) for c, beats, _ in setup.packets if c == 0]
    assert len({number % ENTRIES for number in numbers}) == ENTRIES


@cocotb.test()
async def an_answer_that_nobody_asked_for_is_not_written(dut):
    """With any field unlike the operation's; then the true one comes."""
    setup = await ready(dut)
    data = [0xDEAD] * 8
    before = snapshot(setup)
    for kind, op in ((3, GET), (7, UPDATE)):
        size = 64 if op == GET else 8
        some = data[: size // 8]
        setup.inject(1, packet(kind, 1, US, command(op, size, 0, OURS), some))
        await setup.until(lambda: setup.errors)
        await quiet(setup)
        assert setup.errors == [(MALFORMED, US, NODE)]
        setup.errors.clear()
        assert snapshot(setup) == before and not setup.seen[US]
    changes = (
        (0, 52, "source node"),
        (0, 44, "source context"),
        (0, 16, "our context"),
        (0, 36, "cookie"),
        (1, 12, "length"),
        (1, 58, "number"),
        (1, 63, "number, its upper bits"),
        (3, 3, "local address"),
        (3, 30, "local address, far"),
    )
    for op, size in ((GET, 64), (UPDATE, 8)):
        for index, (word, bit, name) in enumerate(changes):
            expected = setup.read(THEIRS, size)
            setup.network_block[0] = True
            operands = [0, 0] if op == UPDATE else []
            local = OURS + 512 * (index + 16 * (op == UPDATE))
            words = descriptor(op, THEM, size, local, THEIRS, REQUESTER, index)
            stop = lose(setup, 0, {0})
            setup.post([*words, *operands])
            setup.network_block[0] = False
            await setup.until(lambda: setup.packets and setup.packets[-1][0] == 0)
            request = setup.packets[-1][1]
            stop()
            asked = words_of(setup, request)[1:4]
            asked[0] &= ~(0xF << 8)
            kind = 3 if op == GET else 7
            true = packet(kind, 1, US, asked, data[: size // 8], tag=index)
            true[0] = true[0] & ~(0xFF << 44) | THEM << 44
            false = list(true)
            false[word] ^= 1 << bit
            before = snapshot(setup)
            setup.inject(1, false)
            await setup.until(lambda: setup.errors)
            await quiet(setup, 60)
            assert len(setup.errors) == 1 and setup.errors[0][0] == MALFORMED, name
            setup.errors.clear()
            assert snapshot(setup) == before and not setup.seen[US] and not setup.seen[3], name
            # The request comes late; its answer is known, once.
            for number, beat in enumerate(request):
                setup.network[0].append((beat, number == 0, number == len(request) - 1))
            (note,) = await setup.notified(US)
            assert (note.place, note.error, note.cookie) == (REQUESTER, 0, index), name
            assert setup.read(local, size) == expected and not setup.errors
            setup.inject(1, true)
            await setup.until(lambda: setup.errors)
            await quiet(setup, 60)
            assert setup.read(local, size) == expected and not setup.seen[US]
            setup.errors.clear()
            setup.packets.clear()


@cocotb.test()
@cocotb.parametrize(lost=["request", "first", "last"])
async def an_operation_that_nobody_answers_ends_in_its_time(dut, lost):
    setup = await ready(dut, seed=21)
    least, most = 1280, 1920
    dut.answer_cycles_i.value, dut.answer_enable_i.value = least, 1
    size = 3 * 448
    tc, which = {"request": (0, {0}), "first": (1, {0, 1, 2}), "last": (1, {2})}[lost]
    for cookie in range(3):
        await setup.bench.cycles(setup.rng.randrange(400))
        setup.packets.clear()
        stop = lose(setup, tc, which)
        setup.post(descriptor(GET, THEM, size, OURS, THEIRS, REQUESTER, cookie))
        await setup.until(lambda: setup.packets)
        if lost != "request":
            await setup.until(lambda: len([1 for c, _, _ in setup.packets if c == 1]) == 3)
        await quiet(setup, 40)
        start = setup.bench.cycle
        (note,) = await setup.notified(US)
        passed = setup.bench.cycle - start
        assert (note.place, note.error, note.cookie, note.size) == (ERROR, LOST, cookie, 0)
        assert least - 600 <= passed <= most + 100, passed
        assert setup.errors == [(LOST, US, NODE)]
        setup.errors.clear()
        # What comes after that is not written, and told to nobody.
        late = [beats for c, beats, _ in setup.packets if c == tc][-1]
        stop()
        before = snapshot(setup)
        for index, beat in enumerate(late):
            setup.network[tc].append((beat, index == 0, index == len(late) - 1))
        await setup.until(lambda: setup.errors)
        await quiet(setup, 2 * most)
        assert {code for code, _, _ in setup.errors} == {MALFORMED}
        assert snapshot(setup) == before and not setup.seen[US]
        setup.errors.clear()
    # Nobody is short of a place.
    for cookie in range(2 * ENTRIES):
        setup.post(descriptor(GET, THEM, 64, OURS, THEIRS, REQUESTER, cookie))
    for note in await setup.notified(US, 2 * ENTRIES):
        assert note.place == REQUESTER


@cocotb.test()
async def time_is_never_short_and_quiet_is_quiet(dut):
    """Packets that come late one by one, but none too late; and no time at all while it is off."""
    setup = await ready(dut, seed=22)
    least = 768
    dut.answer_cycles_i.value, dut.answer_enable_i.value = least, 1
    for op in (GET, UPDATE):
        size = 4 * 448 if op == GET else 8
        setup.network_block[1] = True
        setup.post(
            [*descriptor(op, THEM, size, OURS, THEIRS, REQUESTER, 1), *[0] * 2 * (op == UPDATE)]
        )
        for _ in range(4 if op == GET else 1):
            await setup.bench.cycles(least - 200)
            count = len([1 for c, _, _ in setup.packets if c == 1])
            setup.network_block[1] = False
            await setup.until(
                lambda count=count: len([1 for c, _, _ in setup.packets if c == 1]) > count
            )
            setup.network_block[1] = True
        (note,) = await setup.notified(US)
        assert (note.place, note.error) == (REQUESTER, 0) and not setup.errors
        setup.packets.clear()
    # A host that takes no writes stops a packet's way into memory; that is not the peer's fault.
    setup.network_block[1] = False
    dut.answer_enable_i.value = 0
    setup.network_block[1] = True
    setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 2))
    await setup.bench.cycles(6 * least)
    assert not setup.errors and not setup.seen[US]
    setup.network_block[1] = False
    (note,) = await setup.notified(US)
    assert note.place == REQUESTER
    # Puts are not answered by responses; nobody waits for them here.
    dut.answer_enable_i.value = 1
    setup.post(descriptor(PUT, THEM, 8, OURS, THEIRS, REQUESTER, 3))
    (note,) = await setup.notified(US)
    await quiet(setup, 3 * least)
    assert not setup.errors and not setup.seen[US]


@cocotb.test()
async def after_a_reset_nothing_waits(dut):
    setup = await ready(dut, seed=23)
    setup.network_block[1] = True
    for cookie in range(ASKS_A_NODE + 1):
        setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, cookie))
    await setup.until(lambda: len(setup.packets) == ASKS_A_NODE)
    await quiet(setup)
    dut.rst_ni.value = 0
    await setup.bench.cycles(2)
    dut.rst_ni.value = 1
    setup.network_block[1] = False
    setup.packets.clear()
    await setup.bench.cycles(300)
    for ctx in (US, THEM):
        await setup.queue(ctx)
    await quiet(setup)
    assert not setup.packets and not setup.errors
    for cookie in range(3):
        setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, cookie))
    assert [note.cookie for note in await setup.notified(US, 3)] == [0, 1, 2]


FAR = 9  # a node that answers nothing


def swallow(setup, node: int) -> None:
    """What is for that node goes nowhere."""
    taken, gone = setup._take_packet, [False] * 3

    def take(c, beat, sop, eop):
        waiting = len(setup.network[c])
        taken(c, beat, sop, eop)
        gone[c] = beat >> 8 & 255 == node if sop else gone[c]
        while gone[c] and len(setup.network[c]) > waiting:
            setup.network[c].pop()

    setup._take_packet = take


@cocotb.test()
async def gets_that_nobody_answers_hold_up_no_other_for_long(dut):
    setup = await ready(dut, seed=24)
    least = 6000
    dut.answer_cycles_i.value, dut.answer_enable_i.value = least, 1
    for node in (FAR, FAR + 1):
        swallow(setup, node)
        start = setup.bench.cycle
        for cookie in range(ASKS_A_NODE + 1):
            op = (GET, UPDATE)[cookie % 2]
            words = descriptor(op, THEM, 8, OURS, THEIRS, REQUESTER, cookie, node=node)
            setup.post([*words, *[0] * 2 * (op == UPDATE)])
        setup.post(descriptor(GET, THEM, 64, OURS, THEIRS, REQUESTER, 20))
        setup.post(descriptor(PUT, THEM, 64, OURS, THEIRS, REQUESTER, 21))
        first, *notes = await setup.notified(US, 3, limit=least + 600)
        assert (first.place, first.error, first.cookie) == (ERROR, NETWORK, ASKS_A_NODE)
        overdue = setup.bench.cycle
        assert overdue - start >= least // 2, "it waits for what is not overdue"
        assert {(note.place, note.cookie) for note in notes} == {(REQUESTER, 20), (REQUESTER, 21)}
        # Entries are given in turn, and those of that node are passed over, round and round.
        for cookie in range(2 * ENTRIES):
            setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, cookie))
            (note,) = await setup.notified(US, limit=300)
            assert (note.place, note.error, note.cookie) == (REQUESTER, 0, cookie), node
            if cookie % 4 == 0:
                setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 99, node=node))
                (note,) = await setup.notified(US, limit=200)
                assert (note.place, note.error, note.cookie) == (ERROR, NETWORK, 99)
            if setup.bench.cycle - overdue > least // 2 - 600:
                break
        assert cookie > ENTRIES, node
        # They end in their time, each once.
        notes = await setup.notified(US, ASKS_A_NODE, limit=least)
        assert setup.bench.cycle - start >= least
        assert [(note.error, note.cookie) for note in sorted(notes, key=lambda n: n.cookie)] == [
            (LOST, cookie) for cookie in range(ASKS_A_NODE)
        ]
        setup.errors.clear()
        setup.requester_errors.clear()


@cocotb.test()
async def a_node_that_does_not_answer_holds_up_others_once(dut):
    setup = await ready(dut, seed=27)
    least = 40000
    dut.answer_cycles_i.value, dut.answer_enable_i.value = least, 1
    swallow(setup, FAR)
    setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 0, node=FAR))
    (note,) = await setup.notified(US, limit=2 * least)
    assert (note.error, note.cookie) == (LOST, 0)
    for cookie in (1, 2):
        setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, cookie, node=FAR))
    setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 20))
    start = setup.bench.cycle
    refused, note = await setup.notified(US, 2, limit=2 * PROBE_CYCLES + 300)
    assert (refused.place, refused.error, refused.cookie) == (ERROR, NETWORK, 2)
    assert (note.place, note.error, note.cookie) == (REQUESTER, 0, 20)
    assert setup.bench.cycle - start >= PROBE_CYCLES, "it waits for what is not overdue"
    for cookie in range(2 * ENTRIES):
        setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, cookie))
        (note,) = await setup.notified(US, limit=300)
        assert (note.place, note.error, note.cookie) == (REQUESTER, 0, cookie)
        setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 99, node=FAR))
        (note,) = await setup.notified(US, limit=200)
        assert (note.place, note.error, note.cookie) == (ERROR, NETWORK, 99)
    (note,) = await setup.notified(US, limit=2 * least)
    assert (note.error, note.cookie) == (LOST, 1)
    assert setup.bench.cycle - start >= least - 100


@cocotb.test()
async def a_node_that_answers_again_is_asked_as_any(dut):
    setup = await ready(dut, seed=28)
    least = 20000
    dut.answer_cycles_i.value, dut.answer_enable_i.value = least, 1
    answers = setup._take_packet
    swallow(setup, NODE)
    silent = setup._take_packet
    setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 0))
    (note,) = await setup.notified(US, limit=2 * least)
    assert (note.error, note.cookie) == (LOST, 0)
    setup._take_packet = answers
    setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 1))
    (note,) = await setup.notified(US)
    assert (note.place, note.error, note.cookie) == (REQUESTER, 0, 1)
    setup._take_packet = silent
    for cookie in range(ASKS_A_NODE + 1):
        setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, cookie))
    start = setup.bench.cycle
    (note,) = await setup.notified(US, limit=least + 600)
    assert (note.place, note.error, note.cookie) == (ERROR, NETWORK, ASKS_A_NODE)
    assert setup.bench.cycle - start >= least // 2 - 600


@cocotb.test()
async def half_of_the_entries_are_not_for_silent_nodes(dut):
    setup = await ready(dut, seed=29)
    least = 20000
    dut.answer_cycles_i.value, dut.answer_enable_i.value = least, 1
    nodes = range(FAR, FAR + ENTRIES)
    for node in nodes:
        swallow(setup, node)
        setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, node, node=node))
    notes = await setup.notified(US, ENTRIES, limit=2 * least)
    assert {note.error for note in notes} == {LOST}
    for node in nodes:
        setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, node, node=node))
    notes = await setup.notified(US, ENTRIES // 2, limit=1000)
    assert {(note.error, note.cookie) for note in notes} == {
        (NETWORK, node) for node in nodes[ENTRIES // 2 :]
    }
    setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 99))
    (note,) = await setup.notified(US, limit=300)
    assert (note.place, note.error, note.cookie) == (REQUESTER, 0, 99)


@cocotb.test()
async def all_entries_that_nobody_answers_are_not_waited_for(dut):
    setup = await ready(dut, seed=25)
    least = 4000
    dut.answer_cycles_i.value, dut.answer_enable_i.value = least, 1
    nodes = range(FAR, FAR + 4)
    for node in nodes:
        swallow(setup, node)
    for index in range(ENTRIES):
        words = descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, index, node=nodes[index // 4])
        setup.post(words)
    setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 30))
    setup.post(descriptor(PUT, THEM, 8, OURS, THEIRS, REQUESTER, 31))
    notes = await setup.notified(US, 2, limit=2 * least)
    assert [(note.place, note.error) for note in notes] == [(ERROR, NETWORK), (REQUESTER, 0)]
    assert {note.error for note in await setup.notified(US, ENTRIES, limit=least)} == {LOST}
    setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 32))
    (note,) = await setup.notified(US)
    assert (note.place, note.cookie) == (REQUESTER, 32)


@cocotb.test()
async def what_no_way_leads_to_is_refused(dut):
    setup = await ready(dut, seed=26)
    dut.way_none_i.value = 1
    for cookie, op in enumerate((PUT, GET, NOTIFY, UPDATE, PUT)):
        size = {NOTIFY: 0, UPDATE: 8}.get(op, 3 * 448)
        notify = REQUESTER | COMPLETER * (op == NOTIFY)
        words = descriptor(op, THEM, size, OURS, THEIRS, notify, cookie)
        setup.post([*words, *[0] * 2 * (op == UPDATE)])
        (note,) = await setup.notified(US)
        assert (note.place, note.error, note.cookie, note.size) == (ERROR, NETWORK, cookie, 0)
    assert setup.requester_errors == [(NETWORK, US)] * 5 and not setup.packets
    setup.requester_errors.clear()
    # The way ends while a put is sent: no more packets of it.
    dut.way_none_i.value = 0
    setup.post(descriptor(PUT, THEM, 5 * 448, OURS, THEIRS, REQUESTER, 7))
    await setup.until(lambda: setup.packets)
    dut.way_none_i.value = 1
    (note,) = await setup.notified(US)
    assert (note.place, note.error, note.cookie) == (ERROR, NETWORK, 7)
    assert len([1 for c, _, _ in setup.packets if c == 0]) < 5
    assert setup.requester_errors == [(NETWORK, US)]
    # It ends while a get waits for a place.
    dut.way_none_i.value = 0
    await quiet(setup)
    setup.requester_errors.clear()
    swallow(setup, FAR)
    for cookie in range(ASKS_A_NODE + 1):
        setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, cookie, node=FAR))
    await setup.bench.cycles(400)
    assert not setup.seen[US]
    dut.way_none_i.value = 1
    (note,) = await setup.notified(US)
    assert (note.place, note.error, note.cookie) == (ERROR, NETWORK, ASKS_A_NODE)
    assert setup.requester_errors == [(NETWORK, US)]
    dut.way_none_i.value = 0
    setup.post(descriptor(GET, THEM, 8, OURS, THEIRS, REQUESTER, 9))
    (note,) = await setup.notified(US)
    assert (note.place, note.cookie) == (REQUESTER, 9)


@cocotb.test()
async def a_late_answer_is_not_that_of_a_later_get_that_is_alike(dut):
    """The number comes again after 64 gets; all else of the two is the same."""
    setup = await ready(dut, seed=27)
    least = 1000
    dut.answer_cycles_i.value, dut.answer_enable_i.value = least, 1
    get = descriptor(GET, THEM, 64, OURS, THEIRS, REQUESTER, 5)
    old, new = setup.rng.randbytes(64), setup.rng.randbytes(64)
    setup.write(THEIRS, old)
    passing, answers = setup._take_packet, collect(setup)
    setup.post(get)
    (note,) = await setup.notified(US, limit=2 * least)
    assert (note.error, note.cookie) == (LOST, 5) and len(answers) == 1
    late = answers[0]
    setup._take_packet = passing
    for cookie in range(63):
        setup.post(descriptor(GET, THEM, 8, OURS + 256, THEIRS, REQUESTER, cookie))
        (note,) = await setup.notified(US)
        assert note.place == REQUESTER
    setup.write(THEIRS, new)
    setup.errors.clear()
    answers = collect(setup)
    setup.post(get)
    await setup.until(lambda: answers)
    setup._take_packet = passing
    assert field(late, 1, 58, 6) == field(answers[0], 1, 58, 6), "the number is the same"
    assert late[0] == answers[0][0] and late[1:3] == answers[0][1:3]
    setup.inject(1, late)
    await setup.until(lambda: setup.errors)
    assert setup.errors == [(MALFORMED, US, NODE)] and not setup.seen[US]
    setup.inject(1, answers[0])
    (note,) = await setup.notified(US)
    assert (note.place, note.error, note.cookie, note.address) == (REQUESTER, 0, 5, OURS)
    assert setup.read(OURS, 64) == new
    # These bits of the address are not the descriptor's to set.
    setup.post(descriptor(GET, THEM, 64, OURS | 1 << 48, THEIRS, REQUESTER, 6))
    (note,) = await setup.notified(US)
    assert (note.place, note.error, note.cookie) == (ERROR, UNREGISTERED, 6)
