# SPDX-License-Identifier: Apache-2.0
"""Packets that are lost on their way: their operation is not told to be done.

Those that hold an uncorrectable word are, and those that a restarted router had.
"""

import cocotb
import pytest
from host_model import COMPLETER, ERROR, GET, LOST, NODE, PUT, REQUESTER, descriptor
from test_velo_rma import OURS, THEIRS, THEM, US, quiet, ready

FRAGMENT = 448
SIZE = 3 * FRAGMENT


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_rma_lost(simulate, width):
    simulate("velo_rma", {"DataWidth": width, "CtxBits": 4, "LineBits": 3})


def lose(setup, tc, lost):
    """Of the packets of a class from now on, those with these numbers never come back."""
    taken, count = setup._take_packet, [0]

    def take(c, beat, sop, eop):
        waiting = len(setup.network[c])
        taken(c, beat, sop, eop)
        if c == tc:
            if count[0] in lost:
                while len(setup.network[c]) > waiting:
                    setup.network[c].pop()
            count[0] += eop

    setup._take_packet = take

    def stop():
        setup._take_packet = taken

    return stop


@cocotb.test()
@cocotb.parametrize(op=[PUT, GET], lost=[{0}, {1}, {0, 1}])
async def a_hole_is_not_success(dut, op, lost):
    setup = await ready(dut, seed=7)
    stop = lose(setup, 0 if op == PUT else 1, lost)
    setup.post(descriptor(op, THEM, SIZE, OURS, THEIRS, REQUESTER, 1))
    (note,) = await setup.notified(US)
    assert (note.place, note.error, note.size) == (ERROR, LOST, 0)
    await quiet(setup)
    # Counted where the gap was seen, once.
    assert setup.errors == [(LOST, THEM if op == PUT else US, NODE)]
    assert not setup.seen[US] and not setup.seen[THEM]
    # The next operation is whole.
    stop()
    setup.post(descriptor(op, THEM, SIZE, OURS, THEIRS, REQUESTER, 2))
    (note,) = await setup.notified(US)
    source, target = (OURS, THEIRS) if op == PUT else (THEIRS, OURS)
    assert note.error == 0 and setup.read(source, SIZE) == setup.read(target, SIZE)


@cocotb.test()
@cocotb.parametrize(op=[PUT, GET])
async def the_rest_of_one_operation_and_of_another_are_not_one(dut, op):
    """What is left of an operation and what is left of the same again look like one."""
    setup = await ready(dut, seed=8)
    lose(setup, 0 if op == PUT else 1, {1, 2, 3})
    for cookie in (1, 1):
        notify = REQUESTER | (COMPLETER if op == PUT else 0)
        setup.post(descriptor(op, THEM, SIZE, OURS, THEIRS, notify, cookie))
    (note,) = await setup.notified(US)
    assert (note.place, note.error) == (ERROR, LOST)
    await quiet(setup)
    assert not setup.seen[US] and not setup.seen[THEM]


@cocotb.test()
async def after_a_reset_nothing_is_continued(dut):
    """What was written before may not have arrived: the rest of such an operation is refused."""
    setup = await ready(dut, seed=9)
    setup.network_block[0] = True
    lose(setup, 0, {2})
    setup.network_block[0] = False
    setup.post(descriptor(PUT, THEM, SIZE, OURS, THEIRS, REQUESTER, 1))
    await setup.until(lambda: len([1 for c, _, _ in setup.packets if c == 0]) == 3)
    await quiet(setup)
    last = [beats for c, beats, _ in setup.packets if c == 0][2]
    dut.rst_ni.value = 0
    await setup.bench.cycles(2)
    dut.rst_ni.value = 1
    await setup.bench.cycles(300)
    for ctx in (US, THEM):
        await setup.queue(ctx)
    for index, beat in enumerate(last):
        setup.network[0].append((beat, index == 0, index == len(last) - 1))
    (note,) = await setup.notified(US)
    assert (note.place, note.error) == (ERROR, LOST)
