# SPDX-License-Identifier: Apache-2.0
"""A floorplan of velo_switch, default parameters, on an LFE5UM-85: a region for each link's input.

nextpnr-ecp5 runs it, if it was built with Python: --pre-place rtl/switch/floorplan.py

Links are left and right; node ports, arbiters and outputs have no region and come between them.
Yosys names a cell after its net, or makes a name up of what it is wired to, which may be of another
part. So only registers and LUT RAMs with a net's name are held, two thirds of an input's, and the
placer puts the rest beside them. Block RAMs are left free: they lie in four rows of the FPGA.
"""

import re

LINKS = 6
COLUMNS = ((20, 41), (84, 105))  # of tiles, both ends included
BANDS = ((11, 34), (35, 58), (59, 82))
INPUT = re.compile(r"gen_port\[(\d+)\]\.u_input\.")
MADE_UP = re.compile(r"_(LUT4|PFUMX|L6MUX21|CCU2C|TRELLIS_FF_(?!Q(_\d+)?$))")

design = globals()["ctx"]  # nextpnr's
for link in range(LINKS):
    (x0, x1), (y0, y1) = COLUMNS[link // len(BANDS)], BANDS[link % len(BANDS)]
    design.createRectangularRegion(f"link{link}", x0, y0, x1, y1)

held = [0] * LINKS
for cell in design.cells:
    found = INPUT.match(cell.first)
    if not found or int(found[1]) >= LINKS or cell.second.type == "DP16KD":
        continue
    if not MADE_UP.search(cell.first):
        design.constrainCellToRegion(cell.first, f"link{found[1]}")
        held[int(found[1])] += 1
print("floorplan: cells held, by link:", *held)
if 0 in held:
    raise SystemExit("floorplan: the netlist has no switch of six links")
