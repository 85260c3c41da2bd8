# SPDX-License-Identifier: Apache-2.0
"""The reader of registered memory: a read begins only where the buffer has room for all of it, and
while the last one's data come."""

import random

import cocotb
import pytest
from cocotb.triggers import FallingEdge, ReadOnly
from stream import Bench

BUFFER, LONGEST = 1024, 448
NONE, RIGHT, HOST = 0, 9, 10
ZEROS = (
    "job_valid_i",
    "job_keep_i",
    "data_ready_i",
    "atu_answer_valid_i",
    "response_valid_i",
    "response_eop_i",
    "response_error_i",
)


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly), 128])
def test_reader(simulate, width):
    sizes = {"BufferBytes": BUFFER, "MaxBytes": LONGEST}
    simulate("velo_rma_reader", {"DataWidth": width, **sizes})


class Setup:
    """A translation that grants what `errors` does not forbid, and a host that never hesitates."""

    def __init__(self, dut, drain=0.0, seed=1):
        self.dut, self.drain, self.rng = dut, drain, random.Random(seed)
        self.width = len(dut.data_o)
        self.bench = Bench(dut, ZEROS)
        self.errors: dict[int, int] = {}  # By address.
        self.results: list[int] = []
        self.spoiled: dict[int, int] = {}  # By address: how many beats are good.
        self.taken: list[int | None] = []  # Beats; None: a bad one.
        self.asked = self.read = self.released = self.ahead = 0
        self.wanted: list[int | None] = []

    async def start(self):
        self.dut.atu_ready_i.value = self.dut.nonposted_ready_i.value = 1
        await self.bench.start()
        cocotb.start_soon(self._run())

    def beats(self, size) -> int:
        return -(-size * 8 // self.width)

    async def _run(self):
        dut, answer, response = self.dut, None, []
        while True:
            dut.data_ready_i.value = int(self.rng.random() < self.drain)
            dut.atu_answer_valid_i.value = int(answer is not None)
            if answer is not None:
                dut.atu_answer_i.value = self.errors.get(answer, NONE) % HOST << 48 | answer
            beat, eop, error = response[0] if response else (0, 0, 0)
            dut.response_valid_i.value = int(bool(response))
            dut.response_data_i.value, dut.response_eop_i.value = beat, eop
            dut.response_error_i.value = error
            await ReadOnly()
            answer = None
            if response:
                response.pop(0)
            if int(dut.atu_valid_o.value):
                self.asked += 1
                answer = int(dut.atu_request_o.value) >> 38
            if int(dut.nonposted_valid_o.value):
                self.read += 1
                self.ahead += bool(response)
                assert sum(eop for _, eop, _ in response) <= 1, "an answer has yet to begin"
                address = int(dut.nonposted_addr_o.value)
                size = int(dut.nonposted_len_bytes_o.value)
                count = self.beats(size)
                words = [self.rng.getrandbits(self.width) for _ in range(count)]
                if self.errors.get(address) == HOST:
                    response.append((0, 1, 1))
                elif address in self.spoiled:
                    del words[self.spoiled[address] :]
                    response += [(word, 0, 0) for word in words] + [(0, 1, 1)]
                    self.wanted += [*words, None]
                else:
                    response += [(word, i == count - 1, 0) for i, word in enumerate(words)]
                    self.wanted += words
            if int(dut.result_valid_o.value):
                self.results.append(int(dut.result_error_o.value))
            self.released += int(dut.atu_release_o.value)
            if int(dut.data_valid_o.value) and int(dut.data_ready_i.value):
                bad = int(dut.data_bad_o.value)
                self.taken.append(None if bad else int(dut.data_o.value))
            await FallingEdge(dut.clk_i)

    def give(self, address, size, keep=0):
        self.dut.job_i.value = 1 | 3 << 20 | size << 28 | address << 38
        self.dut.job_valid_i.value, self.dut.job_keep_i.value = 1, keep

    async def job(self, address, size, keep=0) -> int:
        """The next job; its error."""
        before = len(self.results)
        self.give(address, size, keep)
        await self.bench.until(lambda: len(self.results) > before)
        self.dut.job_valid_i.value = 0
        return self.results[-1]

    async def drained(self):
        self.drain = 1.0
        await self.bench.until(lambda: len(self.taken) == len(self.wanted))
        await self.bench.cycles(20)
        assert self.taken == self.wanted


@cocotb.test
async def reads_wait_for_room_for_all_that_may_come(dut):
    setup = Setup(dut)
    await setup.start()
    room = BUFFER // LONGEST
    for i in range(room):
        assert await setup.job(i << 12, LONGEST) == NONE
    setup.give(room << 12, LONGEST)
    await setup.bench.cycles(500)
    assert setup.asked == setup.read == room
    setup.drain = 1.0
    await setup.bench.until(lambda: len(setup.results) == room + 1)
    dut.job_valid_i.value = 0
    await setup.drained()
    assert len(setup.taken) == (room + 1) * setup.beats(LONGEST)
    assert setup.released == room + 1


@cocotb.test
@cocotb.parametrize(drain=[0.1, 0.5, 1.0])
async def data_of_random_jobs_come_in_order_whoever_takes_them(dut, drain):
    setup = Setup(dut, drain)
    await setup.start()
    kept = 0
    for i in range(60):
        keep = setup.rng.randrange(2)
        kept += keep
        assert await setup.job(i << 12, setup.rng.randint(1, LONGEST), keep) == NONE
    await setup.bench.cycles(LONGEST)
    await setup.drained()
    assert setup.released == 60 - kept
    assert setup.ahead > 0


@cocotb.test
async def a_failed_read_behind_data_that_come_leaves_them_alone(dut):
    setup = Setup(dut, 1.0)
    setup.errors = {2 << 12: HOST, 4 << 12: RIGHT}
    await setup.start()
    for i, error in enumerate([NONE, HOST, NONE, RIGHT, NONE], start=1):
        assert await setup.job(i << 12, LONGEST, keep=0) == error
    await setup.drained()
    assert len(setup.taken) == 3 * setup.beats(LONGEST)
    assert setup.released == 4
    assert setup.ahead >= 2


@cocotb.test
async def errors_leave_no_data_and_hold_nothing(dut):
    setup = Setup(dut, 1.0)
    setup.errors = {1 << 12: RIGHT, 2 << 12: HOST}
    await setup.start()
    assert await setup.job(1 << 12, 64) == RIGHT
    assert setup.read == 0 and setup.released == 0
    assert await setup.job(2 << 12, 64, keep=1) == HOST
    assert setup.released == 1
    assert await setup.job(3 << 12, 64) == NONE
    await setup.drained()
    assert len(setup.taken) == setup.beats(64)


@cocotb.test
@cocotb.parametrize(drain=[0.3, 1.0])
async def data_that_fail_after_the_first_beat_end_with_a_bad_one(dut, drain):
    setup = Setup(dut, drain, seed=4)
    await setup.start()
    kept = 0
    for i in range(60):
        size = setup.rng.randint(2 * setup.width // 8, LONGEST)
        bad, keep = setup.rng.random() < 0.5, setup.rng.randrange(2)
        if bad:
            setup.spoiled[i << 12] = setup.rng.randrange(1, setup.beats(size))
        kept += keep and not bad
        assert await setup.job(i << 12, size, keep) == NONE
    await setup.bench.cycles(LONGEST)
    await setup.drained()
    assert setup.released == 60 - kept
    assert None in setup.taken
