// A node.
-f rtl/velo/files.f
-f rtl/htax/files.f
-f rtl/regfile/files.f
-f rtl/netport/files.f
rtl/node/rtl/velo_node_core.sv
rtl/node/rtl/velo_node.sv
