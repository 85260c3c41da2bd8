// Congestion management of a node: notices at the destination, levels and gaps at the source.
build/rtl/velo_pkg.sv
-f rtl/common/files.f
rtl/node/rtl/velo_unit_merge.sv
rtl/congestion/rtl/velo_congestion_pkg.sv
rtl/congestion/rtl/velo_congestion_throttle.sv
rtl/congestion/rtl/velo_congestion_notice.sv
rtl/congestion/rtl/velo_congestion_intake.sv
rtl/congestion/rtl/velo_congestion.sv
