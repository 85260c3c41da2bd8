# SPDX-License-Identifier: Apache-2.0
#
# Clocks and crossings of velo_node_clocks. Periods in ns: change them to the board's. The crossings are
# found by the names of registers in rtl/clock; a flow that renames them has to keep these names.

set host_period 5.0
set core_period 6.4
set link_period 6.4

create_clock -name host -period $host_period [get_ports host_clk_i]
create_clock -name core -period $core_period [get_ports core_clk_i]
create_clock -name link -period $link_period [get_ports link_clk_i]
# One recovered clock a lane.
foreach_in_collection port [get_ports rx_clk_i*] {
    create_clock -name rx_[get_object_name $port] -period $link_period $port
}

# What is as fast as the fastest source keeps a Gray pointer's bits less than a step apart.
set fastest [expr {min($host_period, $core_period, $link_period)}]

# The first flip-flop of every synchronizer: pointers, toggles, counts, locks.
set first [get_cells -hierarchical *sync_q_reg*0*]
set_max_delay $fastest -to $first
set_false_path -hold -to $first

# Data that stand still before they are looked at: memories of velo_cdc_fifo, words of velo_cdc_bus.
set held [get_cells -hierarchical {*u_*fifo*mem_reg* *u_lead*mem_reg* *u_behind*mem_reg* *word_q_reg*}]
set_max_delay [expr {2 * $fastest}] -from $held
set_false_path -hold -from $held

# The asynchronous reset of the chip, up to the clears of the reset synchronizers.
set_false_path -from [get_ports rst_ni]
