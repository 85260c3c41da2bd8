# SPDX-License-Identifier: Apache-2.0
"""Streams and signals of the vendor's block beside those of velo_pcie: all kinds of packets."""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from block_7x import LATE, NO_LIMIT, vendor_beats, vendor_user
from cocotb.triggers import FallingEdge, ReadOnly
from cocotbext.pcie.core.tlp import Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId
from pcie.test.hard_block import BAR, CONFIG, EVENT, beats_of
from stream import Bench

KINDS = (TlpType.MEM_READ, TlpType.MEM_READ_64, TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)
KINDS += (TlpType.CPL, TlpType.CPL_DATA)
# A message has a header of four dwords, as a request with an address of 64 bits.
MESSAGES = {TlpType.MEM_READ_64: 0x34, TlpType.MEM_WRITE_64: 0x74}
INPUTS = ("m_axis_rx_tvalid", "m_axis_rx_tlast", "m_axis_rx_tkeep", "m_axis_rx_tdata")
INPUTS += ("m_axis_rx_tuser", "s_axis_tx_tready", "fc_nph", "cfg_bus_number", "cfg_device_number")
INPUTS += ("cfg_function_number", "cfg_command", "cfg_dcommand", "cfg_interrupt_msixenable")
INPUTS += ("cfg_interrupt_msixfm", "cfg_to_turnoff", "rx_ready", "rx_hold", "tx_valid", "tx_last")
INPUTS += ("tx_keep", "tx_data", "event", "unexpected", "timeout")


def test_pcie_7x(simulate: Callable[..., None]) -> None:
    simulate("velo_pcie_7x")


def packet(rng: random.Random) -> tuple[Tlp, bytes]:
    tlp = Tlp()
    tlp.fmt_type = rng.choice(KINDS)
    tlp.requester_id, tlp.completer_id = PcieId(1, 2, 3), PcieId(4, 5, 6)
    tlp.tag, tlp.tc = rng.randrange(256), rng.randrange(8)
    if tlp.has_data():
        tlp.set_data(rng.randbytes(4 * rng.choice((1, 2, 3, 4, 16, 17, 128))))
    else:
        tlp.length = rng.randrange(1, 128)
    tlp.first_be, tlp.last_be = 0xF, 0xF if tlp.length > 1 else 0
    tlp.address = 4 * rng.getrandbits(29)
    if tlp.fmt & 1:
        tlp.address |= rng.randrange(1, 1 << 31) << 32
    packed = bytearray(tlp.pack())
    if tlp.fmt_type in MESSAGES and rng.random() < 0.3:
        packed[0] = MESSAGES[tlp.fmt_type]
    return tlp, bytes(packed)


async def start(dut: Any) -> Bench:
    bench = Bench(dut, [f"{name}_i" for name in INPUTS])
    await bench.start()
    await bench.cycles(20)
    return bench


async def transfer(
    dut: Any, names: tuple[str, str, str], beats: deque, seen: list, rng: random.Random
) -> None:
    """Offer the beats of one side, take those of the other; `names`: of these and of `ready`."""
    offer, taken, look = names
    stall = rng.choice((0.0, 0.3, 0.7))
    while beats:
        valid = rng.random() >= stall
        getattr(dut, f"{offer}valid_i").value = int(valid)
        if valid:
            for name, value in beats[0].items():
                getattr(dut, name).value = value
        getattr(dut, taken).value = int(rng.random() >= stall)
        await ReadOnly()
        assert int(getattr(dut, f"{look}valid_o").value) == valid
        assert getattr(dut, taken).value == getattr(dut, f"{offer}ready_o").value
        if valid and int(getattr(dut, taken).value):
            beats.popleft()
            seen.append(
                tuple(
                    int(getattr(dut, f"{look}{name}_o").value) for name in ("data", "keep", "last")
                )
            )
            if look == "rx_":
                seen[-1] += (int(dut.rx_bar_o.value),)
        await FallingEdge(dut.clk_i)
    getattr(dut, f"{offer}valid_i").value = 0


@cocotb.test()
async def packets_come_in_as_velo_pcie_wants_them(dut: Any) -> None:
    await start(dut)
    rng = random.Random(1)
    for _ in range(30):
        offered, wanted, seen = deque(), [], []
        for _ in range(8):
            tlp, packed = packet(rng)
            bar = rng.choice((None, 0, 2, 4))
            # Beside the bar: errors that are not ours, and where packets begin on wider streams.
            user = vendor_user(bar) | rng.choice((0, 1, 2)) | rng.getrandbits(12) << 10
            for data, keep, last in vendor_beats(packed):
                offered.append(
                    {
                        "m_axis_rx_tdata_i": data,
                        "m_axis_rx_tkeep_i": keep if last else rng.choice((0, 0x0F, 0xFF)),
                        "m_axis_rx_tlast_i": last,
                        "m_axis_rx_tuser_i": user,
                    }
                )
            one_hot = BAR.pack(**{f"bar{bar}": 1}) if bar is not None else 0
            for beat in beats_of(packed, 4 if tlp.fmt & 1 else 3):
                wanted.append((*beat, one_hot))
        await transfer(dut, ("m_axis_rx_t", "rx_ready_i", "rx_"), offered, seen, rng)
        assert seen == wanted


@cocotb.test()
async def packets_go_out_as_the_block_wants_them(dut: Any) -> None:
    await start(dut)
    rng = random.Random(2)
    for _ in range(30):
        offered, wanted, seen = deque(), [], []
        for _ in range(8):
            tlp, packed = packet(rng)
            for data, keep, last in beats_of(packed, 4 if tlp.fmt & 1 else 3):
                offered.append({"tx_data_i": data, "tx_keep_i": keep, "tx_last_i": last})
            wanted += vendor_beats(packed)
        await transfer(dut, ("tx_", "s_axis_tx_tready_i", "s_axis_tx_t"), offered, seen, rng)
        assert seen == wanted
    assert int(dut.s_axis_tx_tuser_o.value) == 0


@cocotb.test()
async def reads_begin_with_a_credit_each(dut: Any) -> None:
    """A read is offered as soon as it may be; the count is late; nothing else costs a credit."""
    await start(dut)
    rng = random.Random(3)
    for given in (1, 2, 15, 16, 17, 60, NO_LIMIT, 0x7F):
        dut.fc_nph_i.value = 0
        dut.tx_valid_i.value = 0
        dut.s_axis_tx_tready_i.value = 1
        for _ in range(20):
            await FallingEdge(dut.clk_i)
        assert not int(dut.tx_nonposted_ok_o.value)
        left, shown, begun, beats, allowed = given, deque([0] * LATE), 0, deque(), False
        for cycle in range(900):
            shown.append(left)
            dut.fc_nph_i.value = shown.popleft()
            # As velo_pcie_send does it, a cycle behind; a write now and then.
            if not beats:
                if allowed:
                    beats = deque([(0x2000_0001 if rng.random() < 0.5 else 1, 0), (0, 1)])
                elif rng.random() < 0.3:
                    beats = deque([(0x4000_0001, 0), (0, 0), (0, 1)])
            dut.tx_valid_i.value = int(bool(beats))
            if beats:
                dut.tx_data_i.value, dut.tx_last_i.value = beats[0]
            ready = rng.random() < 0.8
            dut.s_axis_tx_tready_i.value = int(ready)
            await ReadOnly()
            allowed = bool(int(dut.tx_nonposted_ok_o.value))
            if beats and ready:
                word, last = beats.popleft()
                if not last and word >> 30 == 0 and word and given != NO_LIMIT:
                    left, begun = left - 1, begun + 1
                    assert left >= 0
            await FallingEdge(dut.clk_i)
            if cycle == 600:
                left += 1 if given < 60 else 0
        # All that there were were used; that which was given back, too.
        if given < 16:
            assert begun == given + 1
        elif given == NO_LIMIT:
            assert allowed
    # Fewer than none.
    for count in (0, 0xFF, 0x81):
        dut.fc_nph_i.value = count
        for _ in range(20):
            await FallingEdge(dut.clk_i)
        assert not int(dut.tx_nonposted_ok_o.value)


@cocotb.test()
async def the_rest_is_told(dut: Any) -> None:
    await start(dut)
    rng = random.Random(4)
    assert [int(dut.fc_sel_o.value), int(dut.rx_np_req_o.value)] == [4, 1]
    for _ in range(200):
        # Bits that mean something else are set as it comes.
        wanted = {name: rng.randrange(1 << bits) for name, (_, bits) in CONFIG.fields.items()}
        command, dcommand = rng.getrandbits(16) & ~4, rng.getrandbits(16) & ~0x70F0
        dut.cfg_bus_number_i.value = wanted["id"] >> 8
        dut.cfg_device_number_i.value = wanted["id"] >> 3 & 31
        dut.cfg_function_number_i.value = wanted["id"] & 7
        dut.cfg_command_i.value = command | wanted["bus_master"] << 2
        dut.cfg_dcommand_i.value = (
            dcommand
            | wanted["relaxed"] << 4
            | wanted["max_payload"] << 5
            | wanted["max_read"] << 12
        )
        dut.cfg_interrupt_msixenable_i.value = wanted["msix_enable"]
        dut.cfg_interrupt_msixfm_i.value = wanted["msix_mask"]
        hold, unexpected, timeout = (rng.randrange(2) for _ in range(3))
        events = {name: rng.randrange(2) for name in EVENT.fields}
        dut.rx_hold_i.value, dut.unexpected_i.value, dut.timeout_i.value = hold, unexpected, timeout
        dut.event_i.value = EVENT.pack(**events)
        await ReadOnly()
        assert CONFIG.unpack_bits(int(dut.config_o.value)) == wanted
        assert int(dut.rx_np_ok_o.value) == 1 - hold
        assert int(dut.cfg_err_poisoned_o.value) == events["poisoned"]
        assert int(dut.cfg_err_cpl_unexpect_o.value) == unexpected
        assert int(dut.cfg_err_cpl_timeout_o.value) == timeout
        await FallingEdge(dut.clk_i)
    # Power may go between two packets, not within one.
    dut.s_axis_tx_tready_i.value = 1
    dut.tx_valid_i.value, dut.tx_last_i.value = 1, 0
    await FallingEdge(dut.clk_i)
    dut.tx_valid_i.value, dut.cfg_to_turnoff_i.value = 0, 1
    for _ in range(5):
        await FallingEdge(dut.clk_i)
        assert not int(dut.cfg_turnoff_ok_o.value)
    dut.tx_valid_i.value, dut.tx_last_i.value = 1, 1
    await FallingEdge(dut.clk_i)
    dut.tx_valid_i.value = 0
    for _ in range(2):
        await FallingEdge(dut.clk_i)
    assert int(dut.cfg_turnoff_ok_o.value)
