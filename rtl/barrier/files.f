// Barriers of a node: arrivals are counted on the way up a tree, the release is a message to a group.
# tops: velo_barrier
build/rtl/velo_pkg.sv
-f rtl/common/files.f
rtl/htax/rtl/htax_pkg.sv
rtl/regfile/rtl/velo_regfile_pkg.sv
rtl/node/rtl/velo_node_pkg.sv
rtl/node/rtl/velo_gather.sv
rtl/barrier/rtl/velo_barrier_groups.sv
rtl/barrier/rtl/velo_barrier_send.sv
rtl/barrier/rtl/velo_barrier.sv
