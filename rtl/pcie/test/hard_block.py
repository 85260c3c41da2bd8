# SPDX-License-Identifier: Apache-2.0
"""A model of a PCI Express hard block, between cocotbext-pcie's root complex and velo_pcie.

It has the configuration space, tells which base address register a request came by, keeps requests
that want an answer back when it is told to, and mixes completions of different tags as a host may.
"""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.queue import Queue
from cocotb.triggers import FallingEdge, ReadOnly
from cocotbext.axi import MemoryRegion
from cocotbext.pcie.core import Device, Endpoint, RootComplex
from cocotbext.pcie.core.caps import MsixCapability
from cocotbext.pcie.core.tlp import Tlp
from stream import Bench
from structs import Struct

CONFIG = Struct("velo_pcie_pkg", "config_t")
BAR = Struct("velo_pcie_pkg", "bar_t")
EVENT = Struct("velo_pcie_pkg", "receive_event_t")

VENDOR, DEVICE = 0x1234, 0x7E10
BAR_BITS = {0: 28, 2: 38, 4: 14}
VECTORS, PBA = 8, 0x800
# Tags from here on are those of a test's own requests; their completions do not reach the host.
OWN_TAGS = 0xE0


def beats_of(packet: bytes, header_dwords: int) -> list[tuple[int, int, int]]:
    """Data, keep and last of a packet's beats; the header's dwords are numbers."""
    dwords = [
        int.from_bytes(packet[at : at + 4], "big" if at < 4 * header_dwords else "little")
        for at in range(0, len(packet), 4)
    ]
    beats = []
    for at in range(0, len(dwords), 2):
        pair = dwords[at : at + 2]
        data = sum(dword << (32 * i) for i, dword in enumerate(pair))
        beats.append((data, (1 << len(pair)) - 1, int(at + 2 >= len(dwords))))
    return beats


def packet_of(beats: list[tuple[int, int]]) -> bytes:
    """The packet of beats of data and keep."""
    dwords = []
    for data, keep in beats:
        assert keep in (1, 3)
        dwords += [data & 0xFFFFFFFF, data >> 32][: 1 + (keep == 3)]
    header = 4 if dwords[0] >> 29 & 1 else 3
    return b"".join(
        dword.to_bytes(4, "big" if i < header else "little") for i, dword in enumerate(dwords)
    )


class Function(Endpoint):
    """Configuration space; what is not configuration goes through the streams."""

    def __init__(self, block: "HardBlock"):
        super().__init__()
        self.block = block
        self.vendor_id, self.device_id, self.class_code = VENDOR, DEVICE, 0x028000
        for bar, bits in BAR_BITS.items():
            self.configure_bar(bar, 1 << bits, ext=True, prefetch=True)
        self.msix_cap = MsixCapability()
        self.msix_cap.msix_table_size = VECTORS - 1
        self.msix_cap.msix_table_bar_indicator_register = 4
        self.msix_cap.msix_pba_bar_indicator_register = 4
        self.msix_cap.msix_pba_offset = PBA
        self.register_capability(self.msix_cap)
        self.pcie_cap.extended_tag_supported = True
        self.pcie_cap.max_payload_size_supported = 2

    def match_bar(self, addr: int, io: bool = False) -> tuple[int, int] | None:
        """The package's own takes a register of 4 GB for none: its lower half has no bits."""
        for bar, bits in BAR_BITS.items():
            base = (self.bar[bar + 1] << 32 | self.bar[bar]) & ~0xF
            if base and not io and addr >> bits == base >> bits:
                return bar, addr & (1 << bits) - 1
        return None

    async def handle_tlp(self, tlp: Tlp) -> None:
        if tlp.fmt_type in self.rx_tlp_handler:
            await super().handle_tlp(tlp)
            return
        tlp.release_fc()
        bar = None if tlp.is_completion() else self.match_bar(tlp.address)
        self.block.deliver(tlp, bar[0] if bar else None)


class HardBlock:
    """The streams' other side. `stall`: how often it pauses, either way."""

    def __init__(self, bench: Bench, seed: int, stall: float = 0.0):
        self.bench, self.dut, self.rng, self.stall = bench, bench.dut, random.Random(seed), stall
        self.root = RootComplex()
        self.device = Device()
        self.function = Function(self)
        self.device.append_function(self.function)
        self.root.make_port().connect(self.device)
        self.config: dict[str, int] = {}  # instead of the configuration space's
        self.arriving: deque = deque()  # (kind, beats, bar), in order
        self.completions: dict[int, deque] = {}  # by tag, if they are mixed
        self.mixed = False
        self.sent: list[Tlp] = []  # by the function
        self.answers: list[Tlp] = []  # of those, completions of a test's own requests
        self.first_cycles: list[int] = []  # of the packets in `sent`
        self.events = dict.fromkeys(EVENT.fields, 0) | {"unexpected": 0, "timeout": 0}
        self.rx_first_cycle = 0
        self.to_root: Queue = Queue()
        self.to_host: Callable[[Tlp], bool] = lambda tlp: True  # a test may take packets out
        self.nonposted_ok = True
        self.dumb = False  # it takes nothing
        cocotb.start_soon(self._to_root())

    def deliver(self, tlp: Tlp, bar: int | None, packet: bytes | None = None) -> None:
        """A packet for the function; `packet`: its bytes, if they are not what it says."""
        if packet is None:
            packet = bytes(tlp.pack())
        one_hot = BAR.pack(**{f"bar{bar}": 1}) if bar is not None else 0
        entry = tlp, beats_of(packet, 4 if tlp.fmt & 1 else 3), one_hot
        if tlp.is_completion() and self.mixed:
            self.completions.setdefault(tlp.tag, deque()).append(entry)
        else:
            self.arriving.append(entry)

    async def _to_root(self) -> None:
        while True:
            await self.function.upstream_send(await self.to_root.get())

    def _config(self) -> int:
        cap, msix = self.function.pcie_cap, self.function.msix_cap
        values = {
            "id": int(self.function.pcie_id),
            "bus_master": int(self.function.bus_master_enable),
            "relaxed": int(cap.enable_relaxed_ordering),
            "max_payload": cap.max_payload_size,
            "max_read": cap.max_read_request_size,
            "msix_enable": int(msix.msix_enable),
            "msix_mask": int(msix.msix_function_mask),
        }
        return CONFIG.pack(**(values | self.config))

    def _hold(self) -> bool:
        """Whether requests that want an answer are kept back."""
        return bool(int(self.dut.rx_hold_o.value))

    def _next(self) -> Any:
        """The packet to send: the oldest, or one that may pass it."""
        if self.completions and self.rng.random() < 0.2:
            tag = self.rng.choice(list(self.completions))
            entry = self.completions[tag].popleft()
            if not self.completions[tag]:
                del self.completions[tag]
            return entry
        hold = self._hold()
        for index, entry in enumerate(self.arriving):
            if not (hold and entry[0].is_nonposted()):
                del self.arriving[index]
                return entry
        return None

    async def run(self) -> None:
        """Once a cycle; call right after a falling edge, with the reset over."""
        dut, current, beats, out = self.dut, None, deque(), []
        while True:
            if not beats and (current := self._next()):
                beats.extend(current[1])
                first = True
            valid = bool(beats) and self.rng.random() >= self.stall
            dut.rx_valid_i.value = int(valid)
            if valid:
                dut.rx_data_i.value, dut.rx_keep_i.value, dut.rx_last_i.value = beats[0]
                dut.rx_bar_i.value = current[2]
                if first:
                    self.rx_first_cycle, first = self.bench.cycle, False
            ready = not self.dumb and self.rng.random() >= self.stall
            dut.tx_ready_i.value = int(ready)
            dut.tx_nonposted_ok_i.value = int(self.nonposted_ok)
            dut.config_i.value = self._config()
            await ReadOnly()
            if valid and int(dut.rx_ready_o.value):
                beats.popleft()
            if int(dut.tx_valid_o.value):
                if not out:
                    self.first_cycles.append(self.bench.cycle)
                    out.append(None)
                if ready:
                    out.append((int(dut.tx_data_o.value), int(dut.tx_keep_o.value)))
                    if int(dut.tx_last_o.value):
                        self._sent(packet_of(out[1:]))
                        out = []
            event = int(dut.event_o.value)
            if event:
                for name, value in EVENT.unpack_bits(event).items():
                    self.events[name] += value
            self.events["unexpected"] += int(dut.unexpected_o.value)
            self.events["timeout"] += int(dut.timeout_o.value)
            await FallingEdge(dut.clk_i)

    def _sent(self, packet: bytes) -> None:
        tlp = Tlp.unpack(bytearray(packet))
        assert tlp.check(), repr(tlp)
        self.sent.append(tlp)
        if tlp.is_completion() and tlp.tag >= OWN_TAGS:
            self.answers.append(tlp)
        elif self.to_host(tlp):
            self.to_root.put_nowait(tlp)

    def memory(self, base: int, size: int) -> MemoryRegion:
        region = MemoryRegion(size)
        self.root.mem_address_space.register_region(region, base)
        return region
