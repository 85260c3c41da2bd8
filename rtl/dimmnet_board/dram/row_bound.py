# SPDX-License-Identifier: Apache-2.0
"""How fast the rows of one SO-DIMM let a list of reads be: no controller can be faster.

Every read takes a clock of the data bus. One to another row than its bank's last read needs an
activate. Each bank works through its reads in their order, as early as its own rules allow, and
knows nothing of the other banks; all activates together keep tRRD. The slowest of the three is the
bound. An ideal controller needs unlimited sight of what comes, and no refreshes, to reach it. The
command bus, which takes one command a clock, is not part of it: `command_bound` is with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dimmnet_board.dram import ddr200

TIMING = ddr200.cycles()
BURST = ddr200.BURST // 2  # clocks
LINES_OF_ROW = ddr200.COLUMNS // ddr200.BURST


@dataclass
class Bank:
    row: int = -1
    activated: int = -(10**9)
    ready: int = 0  # for the next read of the row
    precharged: int = -(10**9)  # at the earliest


def place(word: int) -> tuple[int, int]:
    """Bank and row of a word, as dimmnet_ddr_sodimm maps them."""
    row, bank = divmod(word // 2 // LINES_OF_ROW, ddr200.BANKS)
    assert row < ddr200.ROWS, "another SO-DIMM"
    return bank, row


def activates(words: Sequence[int]) -> int:
    rows: dict[int, int] = {}
    count = 0
    for word in words:
        bank, row = place(word)
        count += rows.get(bank) != row
        rows[bank] = row
    return count


def row_bound(words: Sequence[int]) -> int:
    """Clocks from the first activate to the end of the last read."""
    banks: dict[int, Bank] = {}
    end = 0
    for word in words:
        number, row = place(word)
        bank = banks.setdefault(number, Bank())
        if row != bank.row:
            start = max(0, bank.activated + TIMING["rc"], bank.precharged + TIMING["rp"])
            bank.row, bank.activated = row, start
            bank.ready = start + TIMING["rcd"]
        read, bank.ready = bank.ready, bank.ready + BURST
        bank.precharged = max(bank.activated + TIMING["ras"], read + BURST)
        end = max(end, bank.ready)
    first = TIMING["rcd"]
    rrd = (activates(words) - 1) * TIMING["rrd"] + first + BURST
    return max(end, rrd, first + len(words) * BURST)


def command_bound(words: Sequence[int]) -> int:
    """The same if every activate and read takes a clock of the command bus; precharges are free."""
    return max(row_bound(words), activates(words) + len(words))
