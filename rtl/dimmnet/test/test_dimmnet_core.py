# SPDX-License-Identifier: Apache-2.0
"""CoreLogic by itself: BOTF and AOTF, what is dropped and refused, statuses, cycles."""

import random
from typing import Any

import cocotb
from board import FIRST, LAST, LID, MIDDLE, REGISTER, Board
from layout import ACCESS, CONSTANTS, ERROR, KIND, MEMORY, OP, WORD, pack, packet, unpack

PGID = 0x77
REGION = [(1000, 512), (2000, 512)]  # words of the boards' SO-DIMM


async def start(dut: Any, seed: int = 1, stall: float = 0.0) -> Board:
    board = Board(dut, random.Random(seed), stall)
    await board.start()
    await board.set_board()
    for wid, (first, words) in enumerate(REGION):
        await board.set_process(wid, PGID, first, words)
    return board


def header(**fields: int) -> dict[str, int]:
    return {
        "kind": KIND["write"],
        "memory": MEMORY["prefetch"],
        "dst_lid": LID,
        "dst_wid": 1,
        "src_lid": 9,
        "src_wid": 0,
        "pgid": PGID,
        **fields,
    }


@cocotb.test()
async def a_botf_arrives_with_its_true_sender(dut: Any) -> None:
    board = await start(dut)
    payload = [0x1111222233334444, 0x5555666677778888]
    # A user who lies about length, sender and group.
    forged = packet(
        payload,
        **header(words=62, src_lid=0xBAD, src_wid=5, pgid=0xEE, status=1, tag=7, address=129),
    )
    await board.put_window(0, 3, forged)
    cycle = await board.botf(0, 0, 3, 4)
    await board.finished(0, 1)
    await board.quiet()
    assert await board.prefetch(1, 129, 2) == payload
    assert await board.register(1, "status_write") == 1
    (status,) = await board.llcm(1, CONSTANTS["status_llcm_word"], 1)
    assert unpack("status", status) == {
        "kind": KIND["write"],
        "memory": MEMORY["prefetch"],
        "words": 2,
        "src_wid": 0,
        "tag": 7,
        "src_lid": LID,
    }
    assert await board.register(0, "status_write") == 0
    counts = await board.counts()
    assert counts == {**dict.fromkeys(counts, 0), "sent": 1, "received": 1}
    assert board.sent_cycle[0] - cycle <= 16


@cocotb.test()
async def cycles_of_send_and_receive(dut: Any) -> None:
    """16 bytes, as in the paper: command to last line, first line to the write pointer."""
    board = await start(dut)
    board.loop = False
    await board.put_window(0, 0, packet([1, 2], **header()))
    cycle = await board.botf(0, 0, 0, 4)
    await board.quiet(30)
    send = board.sent_cycle[0] - cycle
    board.deliver(packet([1, 2], **header(status=1)))
    while int(dut.u_register.status_write_q.value) == 0:
        await board.bench.cycles(1)
    receive = board.bench.cycle - board.rx_cycle[0]
    dut._log.info(f"send {send}, receive {receive}")
    assert send <= 9 and receive <= 12


@cocotb.test()
async def every_length_and_place_of_a_botf(dut: Any) -> None:
    board = await start(dut, stall=0.3)
    rng = random.Random(2)
    model = [0] * 256
    for word in range(0, 256, 62):
        count = min(62, 256 - word)
        board.deliver(packet([0] * count, **header(address=word)))
    await board.quiet()
    for done in range(1, 40):
        count = rng.choice([0, 1, 2, 3, 61, 62, rng.randint(0, 62)])
        first = rng.randint(0, 62 - count)
        window = rng.randint(0, 1)
        address = rng.randint(0, 256 - count)
        payload = [rng.getrandbits(64) for _ in range(count)]
        await board.put_window(0, 64 * window + first, packet(payload, **header(address=address)))
        await board.botf(0, window, first, count + 2)
        await board.finished(0, done)
        await board.quiet()
        model[address : address + count] = payload
    assert await board.prefetch(1, 0, 256) == model


@cocotb.test()
async def an_aotf_store_is_a_packet(dut: Any) -> None:
    board = await start(dut)
    for k in (0, 1, 31):
        head = packet([], **header(address=10 + k, words=5))
        await board.put_window(0, 64 + 2 * k, head)
    # Only the lower word of a row is a register.
    address = board.slot(0, "register", REGISTER["aotf"])
    await board.write_row(address, 0xAAAA | 0xDDDD << 64)
    await board.set_register(0, "aotf", 0xDDDD, 1)
    await board.set_register(0, "aotf", 0xBBBB, 1 * CONSTANTS["aotf_step_words"])
    await board.set_register(0, "aotf", 0xCCCC, 31 * CONSTANTS["aotf_step_words"])
    await board.finished(0, 3)
    await board.quiet()
    assert await board.prefetch(1, 10, 2) == [0xAAAA, 0xBBBB]
    assert await board.prefetch(1, 41, 1) == [0xCCCC]


@cocotb.test()
async def llcm_takes_packets_below_its_ring(dut: Any) -> None:
    board = await start(dut, stall=0.2)
    top = CONSTANTS["status_llcm_word"]
    for word in (top - 2, top - 1):
        await board.write(board.slot(1, "llcm", word), 0)
    await board.write(board.slot(1, "llcm", top), 0x5A)
    board.deliver(packet([1, 2], **header(memory=MEMORY["llcm"], address=top - 2)))
    board.deliver(packet([3, 4], **header(memory=MEMORY["llcm"], address=top - 1)))
    await board.quiet()
    assert await board.llcm(1, top - 2, 3) == [1, 2, 0x5A]
    assert await board.count("dropped_bounds") == 1


@cocotb.test()
async def hostile_packets_are_dropped_and_counted(dut: Any) -> None:
    board = await start(dut, stall=0.2)
    rng = random.Random(3)
    await board.set_process(0, PGID, *REGION[0], enabled=0)
    before = await board.prefetch(1, 0, 256)
    pattern = {"element_words": 2, "count": 3, "step": 5}
    sodimm = {"memory": MEMORY["sodimm"]}
    strided, listed = sodimm | {"access": 1}, sodimm | {"access": 2}

    def patterned(fields: dict[str, int], payload: list[int], **change: int) -> list[int]:
        return packet([pack("pattern", **{**pattern, **change}), *payload], **header(**fields))

    read = sodimm | {"kind": KIND["read"]}
    reply = pack("reply", words=4, memory=MEMORY["prefetch"])
    pgid = [
        packet([1], **header(pgid=PGID + 1)),
        packet([1], **header(dst_wid=0)),
        packet([1], **header(dst_wid=7)),
        packet([1], **header(dst_lid=LID + 1)),
    ]
    bounds = [
        packet([1, 2], **header(address=255)),
        packet([1, 2], **header(address=0xFFFFFFFF)),
        packet([1], **header(memory=MEMORY["llcm"], address=4095)),
        packet([1], **header(**sodimm, address=512)),
        packet([1, 2], **header(**sodimm, address=511)),
        packet([1, 2], **header(**sodimm, address=0xFFFFFFFF)),
        patterned(strided | {"address": 10}, [0] * 6, step=0xFFFFFFF0),
        patterned(strided | {"address": 501}, [0] * 6, step=5),
        patterned(strided | {"address": 0xFFFFFFFF}, [0] * 6, step=1),
        patterned(listed | {"address": 10}, [(501 << 32), 0, *[0] * 6], step=0),
        patterned(listed | {"address": 10}, [0, 0xFFFFFFFE, *[0] * 6], step=0),
        packet([reply], **header(**read, address=509)),
        packet([reply], **header(**read, address=0xFFFFFFFE)),
    ]
    malformed = [
        packet([1], **header(words=2)),
        packet([1, 2], **header(words=1)),
        packet([1], **header(words=0)),
        packet([1], **header(words=65)),
        packet([1], **header(kind=0)),
        packet([1], **header(kind=9)),
        packet([1], **header(memory=3)),
        packet([1], **header(access=1)),
        packet([1], **header(**sodimm, access=3)),
        packet([0] * 63, **header(words=63)),
        packet([], **header(**strided)),
        packet([], **header(**read)),
        packet([reply], **header(kind=KIND["read"])),
        patterned(strided, [0] * 5),
        patterned(strided, [0] * 7),
        patterned(strided, [], count=0),
        patterned(strided, [0] * 6, element_words=0),
        patterned(strided, [0] * 33, element_words=33, count=1),
        patterned(strided, [0] * 6, count=3 + 0x100),
        patterned(listed, [0] * 8, step=1),
        packet([pack("reply", words=0)], **header(**read)),
        packet([reply, 0], **header(**read)),
        packet([pack("reply", words=4, memory=MEMORY["llcm"])], **header(**read)),
        packet([pack("reply", words=4, access=2)], **header(**read)),
        packet(
            [reply, pack("pattern", element_words=3, count=1, step=1)],
            **header(**(read | {"access": 1})),
        ),
        packet(
            [reply, pack("pattern", element_words=2, count=3, step=1)],
            **header(**(read | {"access": 1})),
        ),
    ]
    good = packet([1, 2], **header())
    odd = [
        ([LAST], good[:1]),
        ([MIDDLE, MIDDLE, LAST], good[:3]),
        ([FIRST, MIDDLE], good[:2]),  # no end: the next one's beginning ends it
        ([FIRST, MIDDLE, 0, LAST], good),
        ([FIRST, LAST], good[:2]),
        ([FIRST, *[MIDDLE] * 200, LAST], [good[0], good[1], *[5] * 200]),
    ]
    everything = [(packet_, None) for packet_ in pgid + bounds + malformed]
    everything += [(lines, idents) for idents, lines in odd]
    for _ in range(2):
        rng.shuffle(everything)
        for lines, idents in everything:
            board.deliver(lines, idents)
            # One that leaves no way out of its middle would take the next one for its rest.
            board.deliver(packet([], **header(dst_wid=9)))
        await board.quiet()
    counts = await board.counts()
    extra = len(everything) * 2
    expected = {
        "dropped_pgid": 2 * len(pgid) + extra,
        "dropped_bounds": 2 * len(bounds),
        "dropped_malformed": 2 * (len(malformed) + len(odd)),
        "received": 2 * len(everything) + extra,
    }
    assert {name: counts[name] for name in expected} == expected
    assert await board.prefetch(1, 0, 256) == before
    assert not board.touched and not board.sent
    board.deliver(packet([21, 22], **header(status=1)))
    await board.quiet()
    assert await board.prefetch(1, 0, 2) == [21, 22]
    assert await board.register(1, "status_write") == 1


@cocotb.test()
async def a_full_ring_costs_the_patience_and_no_more(dut: Any) -> None:
    board = await start(dut)
    entries = CONSTANTS["status_entries"]
    for tag in range(entries + 2):
        board.deliver(packet([], **header(status=1, tag=tag & 255)))
    await board.quiet()
    assert await board.register(1, "status_write") == entries
    assert await board.count("dropped_status") == 2
    # Room for one: the next status is at the ring's beginning.
    await board.set_register(1, "status_read", 1)
    board.deliver(packet([], **header(status=1, tag=99)))
    await board.quiet()
    assert await board.register(1, "status_write") == entries + 1
    first, second = await board.llcm(1, CONSTANTS["status_llcm_word"], 2)
    assert unpack("status", first)["tag"] == 99
    assert unpack("status", second)["tag"] == 1
    # A pointer that makes no sense is a full ring.
    await board.set_register(1, "status_read", 5000)
    board.deliver(packet([], **header(status=1)))
    await board.quiet()
    assert await board.count("dropped_status") == 3
    # It is given time.
    await board.set_board(patience=2000)
    board.deliver(packet([], **header(status=1)))
    await board.bench.cycles(500)
    await board.set_register(1, "status_read", entries + 1)
    await board.bench.cycles(5)
    assert await board.register(1, "status_write") == entries + 2


@cocotb.test()
async def wrong_commands_are_refused_and_counted(dut: Any) -> None:
    board = await start(dut)
    refused = 0

    async def expect(error: str) -> None:
        nonlocal refused
        refused += 1
        await board.finished(0, refused)
        assert await board.register(0, "error") == ERROR[error], error
        await board.set_register(0, "error", 0)
        assert await board.register(0, "error") == ERROR["none"]

    for word, error in (
        (pack("botf", words=2) & ~15, "op"),
        (pack("botf", words=4) | 2, "op"),
        (pack("botf", words=1), "size"),
        (pack("botf", words=0), "size"),
        (pack("botf", words=65), "size"),
        (pack("botf", first=63, words=2), "size"),
        (pack("botf", first=1, words=64), "size"),
    ):
        await board.set_register(0, "botf", word)
        await expect(error)
    # Half a register.
    await board.write_row(board.slot(0, "register", REGISTER["botf"]), pack("botf", words=2), 0x0F)
    await expect("op")
    await board.set_register(0, "pattern_local", pack("pattern", element_words=3, step=5))
    await board.set_register(0, "pattern_remote", pack("pattern", element_words=2, step=5))
    put = {"op": OP["put"], "words": 6, "lid": 3, "wid": 1}
    get, load, store = (put | {"op": OP[name]} for name in ("get", "load", "store"))
    strided = {"local_access": ACCESS["strided"]}
    listed = {"local_access": ACCESS["list"]}
    window = {"local_memory": MEMORY["prefetch"]}
    for fields, error in (
        (put | {"op": OP["botf"]}, "op"),
        (put | {"op": 0}, "op"),
        (put | {"op": 6}, "op"),
        (put | {"local_access": 3}, "op"),
        (put | {"remote_access": 3}, "op"),
        (put | {"local_memory": MEMORY["llcm"]}, "op"),
        (put | {"remote_memory": 3}, "op"),
        (put | window | strided, "op"),
        (put | {"remote_memory": MEMORY["llcm"], "remote_access": 1}, "op"),
        (get | listed, "op"),
        (load | {"remote_access": 1}, "op"),
        (put | {"words": 0}, "size"),
        (put | strided | {"words": 7}, "size"),
        (put | strided | {"remote_access": 1}, "size"),
        (put | {"local_word": 507}, "bounds"),
        (put | {"local_word": 0xFFFFFFFE}, "bounds"),
        (put | {"words": (1 << 20) - 1}, "bounds"),
        (put | window | {"local_word": 123}, "bounds"),
        (get | {"local_word": 507}, "bounds"),
        (get | window | {"local_word": 251}, "bounds"),
        (load | {"remote_word": 251}, "bounds"),
        (store | {"remote_word": 123}, "bounds"),
        (load | strided | {"local_word": 505}, "bounds"),
    ):
        await board.command(0, **fields)
        await expect(error)
    for step, element, error in (
        (0xFFFFFFFF, 3, "bounds"),
        (0x80000000, 3, "bounds"),
        (0, 0, "size"),
        (0, 33, "size"),
    ):
        await board.set_register(
            0, "pattern_local", pack("pattern", element_words=element, step=step)
        )
        await board.command(0, **load | strided)
        await expect(error)
    # The list itself must be in LLCM; and what it says is looked at.
    await board.set_register(0, "pattern_local", pack("pattern", element_words=3, step=4096))
    await board.command(0, **load | listed)
    await expect("bounds")
    await board.write(board.slot(0, "llcm", 8), 510 << 32)
    await board.set_register(0, "pattern_local", pack("pattern", element_words=3, step=8))
    for fields in (load, put, store):
        await board.command(0, **fields | listed)
        await expect("bounds")
    # The first of three segments fails, the others are left out, and their offsets with them.
    await board.command(0, **store | listed | {"words": 126})
    await expect("bounds")
    await board.set_board(lid=0)
    await board.botf(0, 0, 0, 2)
    await expect("disabled")
    await board.set_board()
    assert await board.count("refused") == refused
    await board.set_process(0, PGID, *REGION[0], enabled=0)
    await board.botf(0, 0, 0, 2)
    refused, before = 0, refused
    await expect("disabled")
    assert await board.count("refused") == before + 1
    assert not board.sent and await board.count("sent") == 0
    assert not board.touched


@cocotb.test()
async def a_process_reaches_its_own_page_only(dut: Any) -> None:
    """Writes in the pages of process 0 leave all of process 1 and of the board as it was."""
    board = await start(dut)
    rng = random.Random(5)
    await board.set_register(1, "pattern_local", pack("pattern", element_words=3, step=5))
    for word in (0, 63, 64, 127):
        await board.write(board.slot(1, "write", word), 0x1234)
    llcm = {word: rng.getrandbits(64) for word in (0, 1, 511, 512, 4094, 4095)}
    for word, value in llcm.items():
        await board.write(board.slot(1, "llcm", word), value)
    pages = [0, 256]  # rows of the register pages, process 1 and privileged
    watched = [board.slot(1, "register", 2 * row) for row in range(16)]
    watched += [board.privileged(2 * row) for row in (0, 1, 2, 5, 64, 65, 68, 69)]
    before = [await board.read_row(address) for address in watched]
    for _ in range(400):
        address = pack("slot", wid=0, page=rng.randint(0, 15), offset=16 * rng.randint(0, 255))
        if rng.random() < 0.3:  # nobody's
            address = pack(
                "slot",
                wid=rng.randint(2, 15),
                page=rng.choice([0, 2, 8]),
                offset=16 * rng.choice(pages[:1]),
            )
        # No command: a packet that it sends is another matter.
        if address >> 12 & 15 == 2 and (address & 4095) // 16 in (0, 1, *range(128, 160)):
            continue
        await board.write_row(address, rng.getrandbits(128))
    assert [await board.read_row(address) for address in watched] == before
    for word, value in llcm.items():
        assert await board.llcm(1, word, 1) == [value]
    await board.put_window(1, 0, packet([0x99], **header(dst_lid=4)))
    await board.botf(1, 0, 0, 3)
    await board.quiet()
    assert board.sent[0][2] == 0x99
    # Write Windows are not read, Prefetch Windows not written by the host.
    assert await board.read_row(board.slot(1, "write", 0)) == 0
    board.deliver(packet([7], **header(address=20)))
    await board.quiet()
    await board.write(board.slot(1, "prefetch", 20), 8)
    assert await board.prefetch(1, 20, 1) == [7]


@cocotb.test()
async def a_network_that_stops_holds_up_nothing_else(dut: Any) -> None:
    """Packets come in, reads wait, then are dropped; the host is served, its commands refused."""
    board = await start(dut)
    board.network_open = False
    reply = pack("reply", words=4, memory=MEMORY["prefetch"], address=3)
    read = packet([reply], **header(kind=KIND["read"], memory=MEMORY["sodimm"], src_lid=LID + 1))
    for _ in range(30):
        board.deliver(read)
    board.deliver(packet([5, 6], **header(status=1)))
    await board.quiet(300)
    assert await board.prefetch(1, 0, 2) == [5, 6]
    assert await board.register(1, "status_write") == 1
    dropped = await board.count("dropped_busy")
    assert 30 - 11 <= dropped <= 30 - 8
    for _ in range(20):
        await board.botf(0, 0, 0, 2)
    assert await board.register(0, "error") == ERROR["busy"]
    refused = await board.count("refused")
    assert 20 - 10 <= refused <= 20 - 8
    assert await board.register(0, "done") == refused
    board.network_open = True
    await board.quiet()
    # Each answer that was not dropped, then the BOTFs.
    kinds = [unpack("packet", one[0] | one[1] << 64)["kind"] for one in board.sent]
    assert kinds.count(KIND["answer"]) == 30 - dropped
    assert await board.register(0, "done") == 20
    assert await board.count("sent") == 30 - dropped + 20 - refused


@cocotb.test()
async def a_new_identity_begins_anew(dut: Any) -> None:
    board = await start(dut)
    board.network_open = False
    for _ in range(6):
        await board.botf(0, 0, 0, 2)
    await board.set_register(0, "pattern_local", WORD)
    await board.set_process(0, PGID + 1, *REGION[0])
    await board.quiet(50)
    board.network_open = True
    await board.quiet(50)
    # What had begun leaves with the name under which it began; the others are gone.
    assert 1 <= await board.count("sent") <= 2
    for one in [line for line in board.sent if line]:
        assert unpack("packet", one[0] | one[1] << 64)["pgid"] == PGID
    assert await board.register(0, "pattern_local") == 0
    assert await board.register(0, "status_write") == 0


def test_dimmnet_core(simulate: Any) -> None:
    simulate("dimmnet_core")
