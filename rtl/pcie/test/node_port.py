# SPDX-License-Identifier: Apache-2.0
"""A model of a node at its host port: takes stores and loads, writes and reads host memory."""

import random
from collections import deque
from typing import Any

from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench
from structs import Struct

HOST_REQUEST = Struct("velo_host_pkg", "host_request_t")
HOST_RESPONSE = Struct("velo_host_pkg", "host_response_t")
HOST_WRITE = Struct("velo_host_pkg", "host_write_t")
HOST_READ = Struct("velo_host_pkg", "host_read_t")
HOST_ANSWER = Struct("velo_host_pkg", "host_answer_t")
DMA_REQUEST = Struct("velo_host_pkg", "dma_request_t")
DMA_RESPONSE = Struct("velo_host_pkg", "dma_response_t")
DMA_READ = Struct("velo_host_pkg", "dma_read_t")
DMA_ANSWER = Struct("velo_host_pkg", "dma_answer_t")

REGISTERS = 2 << 36
OFFERS = HOST_REQUEST.pack(write_valid=1, read_valid=1)


class NodePort:
    """`open` = False: the network takes nothing, so stores stand."""

    def __init__(self, bench: Bench, seed: int, stall: float = 0.0):
        self.bench, self.dut, self.rng, self.stall = bench, bench.dut, random.Random(seed), stall
        self.open = True
        self.stores: list[tuple[int, list[int]]] = []  # address, words
        self.store_cycles: list[int] = []  # when each was first offered
        self.registers: dict[int, int] = {}
        self.register_writes: list[tuple[int, int]] = []
        self.units: dict[int, int] = {}  # words of units that are read; others refuse
        self.mute = False  # loads are not answered
        self.writes: deque = deque()  # address, bytes: to be written
        self.reads: deque = deque()  # address, length, tag: to be read
        self.write_cycles: list[int] = []  # when each was first offered
        self.answers: dict[
            int, tuple[bytes, bool]
        ] = {}  # by tag: what was read, and whether refused
        self.reset_seen = 0

    def write(self, addr: int, data: bytes) -> None:
        self.writes.append((addr, data))

    def read(self, addr: int, size: int, tag: int) -> None:
        self.reads.append((addr, size, tag))

    async def run(self) -> None:
        dut, rng = self.dut, self.rng
        loads: dict[str, deque] = {"host": deque(), "control": deque()}
        open_store: list[int] | None = None
        beats: deque = deque()
        answer = b""
        offered = stall_read = False
        while True:
            if not int(dut.function_rst_no.value):
                self.reset_seen += 1
                for queue in (*loads.values(), beats, self.writes, self.reads):
                    queue.clear()
                open_store, answer, offered = None, b"", False
                dut.dma_request_i.value = 0
                await FallingEdge(dut.clk_i)
                continue
            # A store is not given up once it has begun.
            ready = (self.open or open_store is not None) and rng.random() >= self.stall
            response = {"write_ready": int(ready), "read_ready": 1}
            control = {"write_ready": int(rng.random() >= self.stall), "read_ready": 1}
            for name, fields in (("host", response), ("control", control)):
                if loads[name] and not self.mute and rng.random() < 0.3:
                    tag, value = loads[name].popleft()
                    data = value or 0
                    fields |= {
                        "answer_valid": 1,
                        "answer": HOST_ANSWER.pack(eop=1, error=int(value is None), tag=tag),
                    }
                    getattr(dut, f"{name}_answer_data_i").value = data
                getattr(dut, f"{name}_response_i").value = HOST_RESPONSE.pack(**fields)
            if not beats and self.writes:
                addr, data = self.writes.popleft()
                pieces = [data[i : i + 8] for i in range(0, len(data), 8)]
                beats.extend(
                    (addr, len(data), p, i == len(pieces) - 1) for i, p in enumerate(pieces)
                )
                self.write_cycles.append(self.bench.cycle)
            request: dict[str, int] = {"answer_ready": int(rng.random() >= self.stall)}
            if beats:
                addr, size, piece, last = beats[0]
                request["write_valid"] = 1
                request["write"] = HOST_WRITE.pack(eop=int(last), addr=addr, len_bytes=size)
                dut.dma_write_data_i.value = int.from_bytes(piece, "little")
            stall_read = not offered and rng.random() < self.stall
            if self.reads and not stall_read:
                addr, size, tag = self.reads[0]
                offered = True
                request["read_valid"] = 1
                request["read"] = DMA_READ.pack(addr=addr, len_bytes=size, tag=tag)
            dut.dma_request_i.value = DMA_REQUEST.pack(**request)
            await ReadOnly()
            if int(dut.function_rst_no.value):
                open_store = self._store(ready, open_store)
                self._loads(control["write_ready"], loads)
                if self.reads or beats or request["answer_ready"]:
                    response = DMA_RESPONSE.unpack_bits(int(dut.dma_response_o.value))
                    if beats and response["write_ready"]:
                        beats.popleft()
                    if offered and response["read_ready"]:
                        self.reads.popleft()
                        offered = False
                    if response["answer_valid"] and request["answer_ready"]:
                        answer = self._answer(answer, response["answer"])
            await FallingEdge(dut.clk_i)

    def _store(self, ready: bool, store: Any) -> Any:
        value = int(self.dut.host_request_o.value)
        if not value & OFFERS and store is None:
            return store
        request = HOST_REQUEST.unpack_bits(value)
        if not request["write_valid"]:
            assert store is None, "a pause inside a store"
            return store
        write = HOST_WRITE.unpack_bits(request["write"])
        if store is None and len(self.store_cycles) == len(self.stores):
            self.store_cycles.append(self.bench.cycle)
        if not ready:
            return store
        store = [*(store or []), int(self.dut.host_write_data_o.value)]
        if not write["eop"]:
            return store
        assert write["len_bytes"] == 8 * len(store)
        self.stores.append((write["addr"], store))
        return None

    def _loads(self, control_ready: int, loads: dict[str, deque]) -> None:
        for name in ("host", "control"):
            value = int(getattr(self.dut, f"{name}_request_o").value)
            if not value & OFFERS:
                continue
            request = HOST_REQUEST.unpack_bits(value)
            if name == "control" and request["write_valid"] and control_ready:
                write = HOST_WRITE.unpack_bits(request["write"])
                assert write["len_bytes"] == 8 and write["eop"]
                addr = write["addr"]
                assert addr >> 36 == 2
                value = int(self.dut.control_write_data_o.value)
                self.registers[addr & 0xFFFFFFF] = value
                self.register_writes.append((addr & 0xFFFFFFF, value))
            if request["read_valid"]:
                read = HOST_READ.unpack_bits(request["read"])
                assert read["len_bytes"] == 8
                addr = read["addr"]
                if name == "control":
                    value = self.registers.get(addr & 0xFFFFFFF)
                else:
                    value = self.units.get(addr)
                loads[name].append((read["tag"], value))

    def _answer(self, so_far: bytes, packed: int) -> bytes:
        answer = DMA_ANSWER.unpack_bits(packed)
        so_far += int(self.dut.dma_answer_data_o.value).to_bytes(8, "little")
        if not answer["eop"]:
            return so_far
        assert answer["tag"] not in self.answers, "answered twice"
        self.answers[answer["tag"]] = so_far, bool(answer["error"])
        return b""
