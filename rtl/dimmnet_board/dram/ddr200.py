# SPDX-License-Identifier: Apache-2.0
"""A 200-pin SO-DIMM of 256 MB at PC-1600: what everything about it is computed from.

Timings are those of DDR-200 in JEDEC's JESD79 (table of AC timings). Samsung's data sheet of the
M312L6420ETS (column A0, DDR200 at CL 2) has the same, but 48 ns of tRAS. LiteDRAM's own table has
faster parts only, without tRAS and tRRD.
"""

from math import ceil

CLOCK_NS = 10.0  # PC-1600: 100 MHz, two transfers a clock (paper, section 2.2)

# One rank of four chips of 512 Mbit, 16 bits wide: LiteDRAM's MT46V32M16 has the same geometry.
BANKS = 4
ROWS = 8192
COLUMNS = 1024  # of 64 bits
BURST = 2  # transfers of a command: 128 bits, one clock

# Least distances in ns.
NS = {
    "rcd": 20.0,  # activate to read or write
    "rp": 20.0,  # precharge to activate
    "ras": 50.0,  # activate to precharge
    "rc": 70.0,  # activate to activate of one bank
    "rrd": 15.0,  # activate to activate of two banks
    "wr": 15.0,  # last data written to precharge
    "rfc": 80.0,  # refresh to anything
}
# Least distances in clocks.
CLOCKS = {
    "wtr": 1,  # last data written to read
    "mrd": 2,  # mode register set to anything
    "dll": 200,  # reset of the delay-locked loop to the first read
    "cl": 2,  # read to its data
    "wl": 1,  # write to its data (tDQSS is one clock, give or take a quarter)
}
# Greatest distances in ns. A row may stay open for 120 us, longer than refreshes may be late.
REFRESH_NS = 64e6 / 8192  # between refreshes, on average
REFRESH_POSTPONED = 8  # so many may be late
POWER_UP_NS = 200e3  # of a steady clock before the first command

# Not JEDEC's: the way through a PHY, assumed. A command leaves one clock after the controller gave
# it, and read data needs two to come back from the pads into the controller's clock.
PHY_CLOCKS = 3


def refresh_cycles() -> int:
    """Clocks between refreshes; rounded down, or refreshes would fall behind without end."""
    return int(REFRESH_NS / CLOCK_NS)


def cycles() -> dict[str, int]:
    """All of the distances in clocks."""
    return {name: ceil(ns / CLOCK_NS) for name, ns in NS.items()} | CLOCKS
