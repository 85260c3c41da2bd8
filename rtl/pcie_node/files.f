// A node of 64 bits as a PCI Express function.
# tops: velo_pcie_node_flat velo_pcie_node_clocks
# tests: rtl/pcie/test
-f rtl/node/files.f
-f rtl/pcie/files.f
rtl/pcie_node/rtl/velo_pcie_node.sv
rtl/pcie_node/rtl/velo_pcie_node_flat.sv
rtl/pcie_node/rtl/velo_pcie_node_clocks.sv
