// Two nodes, for node_bench.cc.
-f rtl/node/files.f
rtl/bench/node_pair.sv
