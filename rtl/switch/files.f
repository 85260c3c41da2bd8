// Switch.
# tests: rtl/netport tools/velo/cluster
-f rtl/common/files.f
rtl/link/rtl/velo_link_pkg.sv
rtl/switch/rtl/velo_switch_pkg.sv
rtl/switch/rtl/velo_switch_groups.sv
rtl/switch/rtl/velo_switch_table.sv
rtl/switch/rtl/velo_switch_route.sv
rtl/switch/rtl/velo_switch_pool.sv
rtl/switch/rtl/velo_switch_units.sv
rtl/switch/rtl/velo_switch_pick.sv
rtl/switch/rtl/velo_switch_queues.sv
rtl/switch/rtl/velo_switch_again.sv
rtl/switch/rtl/velo_switch_buffer.sv
rtl/switch/rtl/velo_switch_chase.sv
rtl/switch/rtl/velo_switch_copies.sv
rtl/switch/rtl/velo_switch_fills.sv
rtl/switch/rtl/velo_switch_spare.sv
rtl/switch/rtl/velo_switch_input.sv
rtl/switch/rtl/velo_switch_arb.sv
rtl/switch/rtl/velo_switch_patience.sv
rtl/switch/rtl/velo_switch_match.sv
rtl/switch/rtl/velo_switch_pressure.sv
rtl/switch/rtl/velo_switch_output.sv
rtl/switch/rtl/velo_switch.sv
