// A board of DIMMnet-2 for velo-sim.
-f rtl/dimmnet_board/files.f
sim/boards/velo_board.sv
