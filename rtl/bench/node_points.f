// One whole node and its functional points, for bench_nodes.cc under coverage.
-f rtl/bench/velo_node.f
rtl/bench/points/requester_points.sv
rtl/bench/points/completer_points.sv
rtl/bench/points/htax_points.sv
rtl/bench/points/gsm_points.sv
rtl/bench/points/switch_points.sv
rtl/bench/points/link_points.sv
