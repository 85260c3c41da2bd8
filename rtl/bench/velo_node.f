// One whole node, for bench_nodes.cc.
-f rtl/node/files.f
