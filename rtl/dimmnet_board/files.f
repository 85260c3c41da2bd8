// Board of DIMMnet-2: SO-DIMM interface, host interface. model/ is for simulation.
# tops: dimmnet_board_pair dimmnet_ddr_host_pair dimmnet_ddr_sodimm dimmnet_ddr_sodimm_bench dimmnet_dram_model
# tests: rtl/dimmnet/test rtl/switch/test
-f rtl/dimmnet/files.f
-f rtl/dimmnet_swif/files.f
build/rtl/dimmnet_ddr_pkg.sv
build/rtl/dimmnet_dram.v
rtl/dimmnet_board/rtl/dimmnet_dfi_pkg.sv
rtl/dimmnet_board/rtl/dimmnet_dram_init.sv
rtl/dimmnet_board/rtl/dimmnet_ddr_sodimm.sv
rtl/dimmnet_board/rtl/dimmnet_ddr_host.sv
rtl/dimmnet_board/rtl/dimmnet_board.sv
rtl/dimmnet_board/model/dimmnet_dram_model.sv
rtl/dimmnet_board/model/dimmnet_ddr_sodimm_bench.sv
rtl/dimmnet_board/model/dimmnet_ddr_host_pair.sv
rtl/dimmnet_board/model/dimmnet_board_pair.sv
