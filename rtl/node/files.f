// A node.
# tops: velo_node_axi velo_node_clocks velo_node_axi:DataWidth=128
# tops: velo_node:NumVcs=3,Multicast=1,Barrier=1,Congestion=1,Ecc=1,DimmnetUnit=1
# tops: velo_node:DataWidth=64,NumLinks=3,NumVelo=2,VeloWidth=32,Congestion=1,Ecc=1
# tops: velo_node:DataWidth=128,NumLinks=3,NumVelo=4,VeloWidth=32,Multicast=1,Barrier=1,Ecc=1,DimmnetUnit=1
# tops: velo_node@28,20,0:CtxBits=8 velo_node@24,16,4:CtxBits=4,DataWidth=64,NumLinks=3
# tests: rtl/bench rtl/switch/test scripts/rtl_bench.py scripts/rtl_network.py tools/velo/cluster tools/papers/__init__.py tools/papers/figure4.py
-f rtl/velo/files.f
-f rtl/htax/files.f
-f rtl/rma/files.f
-f rtl/regfile/files.f
-f rtl/dimmnet_unit/files.f
-f rtl/netport/files.f
-f rtl/congestion/files.f
-f rtl/barrier/files.f
-f rtl/clock/files.f
-f rtl/pcs/files.f
rtl/node/rtl/velo_host_pkg.sv
rtl/node/rtl/velo_node_pkg.sv
rtl/node/rtl/velo_unit_split.sv
rtl/node/rtl/velo_unit_merge.sv
rtl/node/rtl/velo_unit_net.sv
rtl/node/rtl/velo_packet_gate.sv
rtl/node/rtl/velo_store_guard.sv
rtl/node/rtl/velo_load_guard.sv
rtl/node/rtl/velo_read_guard.sv
rtl/node/rtl/velo_gather.sv
rtl/node/rtl/velo_emit.sv
rtl/node/rtl/velo_gsm_requester.sv
rtl/node/rtl/velo_gsm_target.sv
rtl/node/rtl/velo_gsm.sv
rtl/node/rtl/velo_net_width.sv
rtl/node/rtl/velo_whole.sv
rtl/node/rtl/velo_unit_slot.sv
rtl/node/rtl/velo_units.sv
rtl/node/rtl/velo_custom_slot.sv
rtl/node/rtl/velo_rma_slot.sv
rtl/node/rtl/velo_node_way.sv
rtl/node/rtl/velo_node_fabric.sv
rtl/node/rtl/velo_node_units.sv
rtl/node/rtl/velo_node_core.sv
rtl/node/rtl/velo_node.sv
rtl/node/rtl/velo_node_flat.sv
rtl/node/rtl/velo_axi_write_wide.sv
rtl/node/rtl/velo_node_clocks.sv
rtl/node/rtl/velo_axi_write.sv
rtl/node/rtl/velo_axi_read.sv
rtl/node/rtl/velo_axi_dma_write.sv
rtl/node/rtl/velo_axi_dma_read.sv
rtl/node/rtl/velo_axi_master.sv
rtl/node/rtl/velo_axi_order.sv
rtl/node/rtl/velo_node_axi.sv
