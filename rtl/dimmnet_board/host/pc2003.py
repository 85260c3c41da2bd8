# SPDX-License-Identifier: Apache-2.0
"""The times of the paper's PC: Pentium 4 of 2.6 GHz, VIA VT8751A, PC-1600 (DIMMnet-2, table 2).

Each has its source. `assumed` is what no source gives: chosen beforehand as usual for such a PC,
not fitted to the paper's figures. The memory bus itself is dimm_bus.py, with ddr200.py's times.

With DIMMNET_CLOCK_SCALE=2 the bus clocks stand for clocks of half that length: then the processor,
which is the same one, takes twice as much of the model's time.
"""

import os

CPU_CLOCK_NS = float(os.environ.get("DIMMNET_CLOCK_SCALE", "1")) / 2.6  # paper, table 2
LINE_BYTES = 64  # second-level cache and write-combining buffers: Intel SDM vol. 3, 10.3.1 and 10.1
WC_BUFFERS = 6  # open at a time: Intel IA-32 Optimization manual (2003), section 2, Pentium 4

# Front side bus: 100 MHz, four transfers of 64 bits a clock (Intel data sheet of the Pentium 4 with
# 400 MHz system bus).
FSB_CLOCK_NS = 10.0
FSB_LINE_NS = 2 * FSB_CLOCK_NS  # 64 bytes
FSB_PARTIAL_NS = FSB_CLOCK_NS  # up to 8 bytes take a clock of their own
# Arbitration, request, error and snoop phase before data: assumed 2 + 2 + 2 clocks for a
# transaction on an idle bus, and 3 for one behind another, with which its phases overlap.
FSB_REQUEST_NS = 6 * FSB_CLOCK_NS
FSB_NEXT_NS = 3 * FSB_CLOCK_NS

# Chipset, either way between front side bus and memory bus: assumed.
CHIPSET_NS = 2 * FSB_CLOCK_NS
CHIPSET_WRITES = 4  # posted writes that it holds: assumed

# Processor, in its clocks.
# A load through both caches: 7.5 ns at 2.40 GHz, as Cachemem measured (hardwareanalysis.com, 2002).
MISS_NS = 18 * CPU_CLOCK_NS
LOADS = 4  # lines that a row of loads asks for before the first is there: assumed
FILL_NS = 10 * CPU_CLOCK_NS  # from the bus to the register: assumed
HIT_NS = 2 * CPU_CLOCK_NS  # a load in the first-level cache: Intel Optimization manual
STORE_NS = 2 * CPU_CLOCK_NS  # 8 bytes from cache into a write-combining buffer: assumed
FENCE_NS = 40 * CPU_CLOCK_NS  # SFENCE with nothing to wait for: assumed
CLFLUSH_NS = 40 * CPU_CLOCK_NS  # a line that is clean: assumed
POLL_NS = 10 * CPU_CLOCK_NS  # compare and jump after a load: assumed
MISS_PREDICTED_NS = 20 * CPU_CLOCK_NS  # leaving a loop: Intel Optimization manual, 20 stages
CALL_NS = 30 * CPU_CLOCK_NS  # a library's function, header made, arguments checked: assumed
