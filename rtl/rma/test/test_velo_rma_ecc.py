# SPDX-License-Identifier: Apache-2.0
"""The RMA unit's protected queue of descriptors: what follows a lost beat is nobody else's."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

ZEROS = ("write_valid_i", "net_ready_i", "notify_ready_i", "atu_ready_i", "atu_answer_valid_i",
         "nonposted_ready_i", "response_valid_i", "response_error_i", "node_id_i")  # fmt: skip
MEMORY, NOTIFY = 13, 5
BEATS = 6  # of a descriptor, on 32 bits, and one that names its sender


def test_rma_source_ecc(simulate):
    simulate("velo_rma_source", {"DataWidth": 32, "Ecc": 1})


class Setup:
    def __init__(self, dut):
        self.dut, self.bench = dut, Bench(dut, ZEROS)
        self.told, self.packets, self.errors = [[0, 0], [0, 0]], [], []

    async def start(self):
        await self.bench.start()
        cocotb.start_soon(self._watch())
        await self.bench.cycles(3)

    async def _watch(self):
        dut, words = self.dut, []
        while True:
            await ReadOnly()
            ecc = int(dut.ecc_o.value)
            for memory in range(2):
                self.told[memory][0] += ecc >> (2 * memory + 1) & 1
                self.told[memory][1] += ecc >> (2 * memory) & 1
            if int(dut.error_valid_o.value):
                self.errors.append((int(dut.error_code_o.value), int(dut.error_ctx_o.value)))
            if int(dut.net_valid_o.value) and int(dut.net_ready_i.value):
                words.append(int(dut.net_data_o.value))
                if int(dut.net_eop_o.value):
                    self.packets.append(words)
                    words = []
            await FallingEdge(dut.clk_i)

    async def post(self, ctx, cookie):
        """A notification put: a packet of header and command, no data."""
        low = NOTIFY | 4 << 4 | 9 << 8 | 1 << 16 | cookie << 24
        words = [low, 0, 0, 0, 0, 0]
        dut = self.dut
        dut.write_source_i.value, dut.write_len_bytes_i.value = ctx, 24
        dut.write_at_start_i.value = 1
        for number, word in enumerate(words):
            dut.write_valid_i.value, dut.write_data_i.value = 1, word
            dut.write_eop_i.value = int(number == 5)
            while True:
                await ReadOnly()
                ready = int(dut.write_ready_o.value)
                await FallingEdge(dut.clk_i)
                if ready:
                    break
        dut.write_valid_i.value = 0

    def cookies(self):
        return [words[1] >> 4 & 255 for words in self.packets]


@cocotb.test()
async def a_lost_beat_costs_its_own_descriptor_and_no_other(dut):
    setup = Setup(dut)
    await setup.start()
    dut.notify_ready_i.value = 1
    # The first one waits at the network, the others behind it in the queue.
    place = 0
    mem = dut.u_intake.u_queue.u_ram.gen_any.mem
    sent, lost, broken, corrected = [], [], 0, 0
    for cycle in range(40):
        dut.net_ready_i.value = 0
        cookies = [(4 * cycle + n) % 256 for n in range(4)]
        starts = []
        for cookie in cookies:
            starts.append(place)
            await setup.post(7, cookie)
            place += 7
        await setup.bench.cycles(20)
        # Two are taken already: one is a packet, the next one stands before it.
        victim, beat = starts[2], cycle % 7
        word = mem[(victim + beat) % 512]
        wrong = 1 << (cycle * 5) % len(word)
        if cycle % 2:
            wrong |= 1 << (cycle * 5 + 11) % len(word)
            broken += 1
        else:
            corrected += 1
        word.value = int(word.value) ^ wrong
        dut.net_ready_i.value = 1
        await setup.bench.cycles(400)
        sent += [c for n, c in enumerate(cookies) if n != 2 or not cycle % 2]
        lost += [MEMORY] if cycle % 2 else []
        assert setup.cookies() == [c % 256 for c in sent], (cycle, beat)
        assert [code for code, _ in setup.errors] == lost
        assert setup.errors[-1:] in ([], [(MEMORY, 0)], [(MEMORY, 7)])
        assert setup.told[0] == [corrected, broken], (cycle, beat)
