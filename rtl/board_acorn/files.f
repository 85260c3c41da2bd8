// A card: an Acorn CLE-215+ with a node.
# tops: velo_acorn
# tests: rtl/pcie/test rtl/pcie_node/test scripts/rtl_synth.py rtl/synth.toml
-f rtl/pcie_node/files.f
rtl/board_acorn/rtl/velo_pcie_7x_order.sv
rtl/board_acorn/rtl/velo_pcie_7x.sv
rtl/board_acorn/vendor/velo_acorn_block.sv
rtl/board_acorn/vendor/IBUFDS_GTE2.sv
rtl/board_acorn/rtl/velo_acorn.sv
