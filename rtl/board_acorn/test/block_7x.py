# SPDX-License-Identifier: Apache-2.0
"""A model of Xilinx' 7-series block, with streams of 64 bits, behind a root complex.

What the block does and HardBlock does not: every dword is a number with its first byte highest,
`keep` has a bit for each byte, a base address register of 64 bits has two bits beside the stream,
two requests may come after `rx_np_ok` has fallen, and reads cost credits whose count is late.
"""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from cocotbext.pcie.core.tlp import Tlp
from pcie.test.hard_block import HardBlock

NO_LIMIT = 0x80
LATE = 12  # cycles that the count of credits is late


def vendor_beats(packet: bytes) -> list[tuple[int, int, int]]:
    """Data, keep and last of a packet's beats as the block has them."""
    beats = []
    for at in range(0, len(packet), 8):
        part = packet[at : at + 8]
        dwords = [int.from_bytes(part[i : i + 4], "big") for i in range(0, len(part), 4)]
        data = sum(dword << 32 * i for i, dword in enumerate(dwords))
        beats.append((data, (1 << len(part)) - 1, int(at + 8 >= len(packet))))
    return beats


def vendor_packet(beats: list[tuple[int, int]]) -> bytes:
    packet = b""
    for data, keep in beats:
        assert keep in (0x0F, 0xFF)
        for i in range(1 + (keep == 0xFF)):
            packet += (data >> 32 * i & 0xFFFFFFFF).to_bytes(4, "big")
    return packet


def vendor_user(bar: int | None) -> int:
    """`m_axis_rx_tuser`: both bits of a base address register of 64 bits."""
    return 0 if bar is None else 0b11 << bar + 2


class Block7x(HardBlock):
    """Between the root complex and the signals of `pins`, which have the vendor's names."""

    def __init__(self, bench: Any, pins: Any, seed: int, stall: float = 0.0):
        super().__init__(bench, seed, stall)
        self.pins = pins
        self.bars: dict[int, int | None] = {}  # by the packet
        self.held = 0  # requests that came though they are held back
        self.credits, self.shown = self.rng.choice((1, 2, 5, NO_LIMIT)), deque([0] * LATE)
        self.least_credits = self.credits
        self.errors = dict.fromkeys(("poisoned", "cpl_timeout", "cpl_unexpect"), 0)

    def deliver(self, tlp: Tlp, bar: int | None, packet: bytes | None = None) -> None:
        beats = vendor_beats(bytes(tlp.pack()) if packet is None else packet)
        entry = tlp, beats, vendor_user(bar)
        if tlp.is_completion() and self.mixed:
            self.completions.setdefault(tlp.tag, deque()).append(entry)
        else:
            self.arriving.append(entry)

    def _hold(self) -> bool:
        """Two more may be on their way when it begins."""
        if int(self.pins.rx_np_ok.value):
            self.held = 0
            return False
        return self.held >= 2

    def _next(self) -> Any:
        entry = super()._next()
        if entry and entry[0].is_nonposted() and not int(self.pins.rx_np_ok.value):
            self.held += 1
        return entry

    def _configure(self) -> None:
        function, pins = self.function, self.pins
        cap, msix = function.pcie_cap, function.msix_cap
        pins.cfg_bus_number.value = function.pcie_id.bus
        pins.cfg_device_number.value = function.pcie_id.device
        pins.cfg_function_number.value = function.pcie_id.function
        # Bits that the card has no use for are set.
        pins.cfg_command.value = 0xFB0 | int(function.bus_master_enable) << 2 | 0b11
        pins.cfg_dcommand.value = (
            0x0F0F & ~0x10
            | int(cap.enable_relaxed_ordering) << 4
            | cap.max_payload_size << 5
            | cap.max_read_request_size << 12
        )
        pins.cfg_interrupt_msixenable.value = int(msix.msix_enable)
        pins.cfg_interrupt_msixfm.value = int(msix.msix_function_mask)

    async def _pay_back(self) -> None:
        """The link partner has taken a read, sooner or later."""
        for _ in range(self.rng.randrange(40)):
            await FallingEdge(self.pins.user_clk_out)
        self.credits += 1

    def _read_begins(self, data: int) -> None:
        if data >> 30 & 3 == 0 and data >> 24 & 0x1F == 0 and self.credits != NO_LIMIT:
            self.credits -= 1
            self.least_credits = min(self.least_credits, self.credits)
            assert self.credits >= 0, "a read without a credit"
            cocotb.start_soon(self._pay_back())

    async def run(self) -> None:
        """Once a cycle; call right after a falling edge, with the reset over."""
        pins, current, beats, out = self.pins, None, deque(), []
        while True:
            if not beats and (current := self._next()):
                beats.extend(current[1])
                first = True
            valid = bool(beats) and self.rng.random() >= self.stall
            pins.m_axis_rx_tvalid.value = int(valid)
            if valid:
                data, keep, last = beats[0]
                pins.m_axis_rx_tdata.value, pins.m_axis_rx_tlast.value = data, last
                # It counts with the last beat alone.
                pins.m_axis_rx_tkeep.value = keep if last else self.rng.choice((0, 0x0F, 0xFF))
                pins.m_axis_rx_tuser.value = current[2]
                if first:
                    self.rx_first_cycle, first = self.bench.cycle, False
            ready = self.rng.random() >= self.stall
            pins.s_axis_tx_tready.value = int(ready)
            assert int(pins.fc_sel.value) == 0b100
            self.shown.append(self.credits)
            pins.fc_nph.value = self.shown.popleft()
            self._configure()
            await ReadOnly()
            if valid and int(pins.m_axis_rx_tready.value):
                beats.popleft()
            if ready and int(pins.s_axis_tx_tvalid.value):
                data = int(pins.s_axis_tx_tdata.value)
                if not out:
                    self.first_cycles.append(self.bench.cycle)
                    self._read_begins(data)
                out.append((data, int(pins.s_axis_tx_tkeep.value)))
                if int(pins.s_axis_tx_tlast.value):
                    self._sent(vendor_packet(out))
                    out = []
            for name in self.errors:
                self.errors[name] += int(getattr(pins, f"cfg_err_{name}").value)
            await FallingEdge(pins.user_clk_out)
