// The PCI Express function around a node.
# tops: velo_pcie
build/rtl/velo_pkg.sv
-f rtl/common/files.f
-f rtl/htax/files.f
rtl/node/rtl/velo_host_pkg.sv
rtl/node/rtl/velo_axi_dma_write.sv
rtl/node/rtl/velo_axi_dma_read.sv
build/rtl/pcie_pkg.sv
rtl/pcie/rtl/velo_pcie_pkg.sv
rtl/pcie/rtl/velo_pcie_receive.sv
rtl/pcie/rtl/velo_pcie_stores.sv
rtl/pcie/rtl/velo_pcie_shares.sv
rtl/pcie/rtl/velo_pcie_loads.sv
rtl/pcie/rtl/velo_pcie_writes.sv
rtl/pcie/rtl/velo_pcie_reads.sv
rtl/pcie/rtl/velo_pcie_msix.sv
rtl/pcie/rtl/velo_pcie_regs.sv
rtl/pcie/rtl/velo_pcie_send.sv
rtl/pcie/rtl/velo_pcie_reset.sv
rtl/pcie/rtl/velo_pcie.sv
