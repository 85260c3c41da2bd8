# SPDX-License-Identifier: Apache-2.0
#
# Builds velo_acorn with Vivado, from the root of the tree; the results are in build/acorn:
#
#   vivado -mode batch -source rtl/board_acorn/vivado/build.tcl
#
# Ids and sizes are those of spec/pcie.toml, by way of the package that spec/ generates.

set part xc7a200tfbg484-3
set here rtl/board_acorn
set out build/acorn
file mkdir $out

# The list is made first, as this generates what spec/ has.
set sources {}
set includes {}
foreach line [split [exec scripts/rtl files board_acorn] "\n"] {
    if {[string match "+incdir+*" $line]} {
        lappend includes [string range $line 8 end]
    } elseif {![string match "$here/vendor/*" $line]} {
        lappend sources $line
    }
}

set package_file [open build/rtl/pcie_pkg.sv]
set package [read $package_file]
close $package_file
proc fact {name} {
    if {![regexp "parameter int unsigned $name = (\\d+);" $::package all value]} {
        error "pcie_pkg has no $name"
    }
    return $value
}

# A register of 2^bits bytes in the words of the generator. Loads of registers have effects, those of the window have none.
proc register {number bits prefetchable} {
    set scales {Kilobytes Megabytes Gigabytes}
    set step [expr {min(2, $bits / 10 - 1)}]
    return [list \
        CONFIG.Bar${number}_Enabled true \
        CONFIG.Bar${number}_Type Memory \
        CONFIG.Bar${number}_64bit true \
        CONFIG.Bar${number}_Prefetchable $prefetchable \
        CONFIG.Bar${number}_Scale [lindex $scales $step] \
        CONFIG.Bar${number}_Size [expr {1 << ($bits - 10 * ($step + 1))}]]
}

set vendor [format %04X [fact PcieVendor]]
set device [format %04X [fact PcieDevice]]
set class [format %06X [fact PcieClass]]

create_project -in_memory -part $part
create_ip -vendor xilinx.com -library ip -name pcie_7x -module_name velo_acorn_block -dir $out
set_property -dict [concat \
    [list \
        CONFIG.mode_selection Advanced \
        CONFIG.Device_Port_Type PCI_Express_Endpoint_device \
        CONFIG.PCIe_Blk_Locn X0Y0 \
        CONFIG.Maximum_Link_Width X1 \
        CONFIG.Link_Speed 5.0_GT/s \
        CONFIG.Trgt_Link_Speed 4'h2 \
        CONFIG.Ref_Clk_Freq 100_MHz \
        CONFIG.Interface_Width 64_bit \
        CONFIG.User_Clk_Freq 62.5 \
        CONFIG.Vendor_ID $vendor \
        CONFIG.Device_ID $device \
        CONFIG.Revision_ID [format %02X [fact PcieRevision]] \
        CONFIG.Subsystem_Vendor_ID $vendor \
        CONFIG.Subsystem_ID $device \
        CONFIG.Use_Class_Code_Lookup_Assistant false \
        CONFIG.Class_Code_Base [string range $class 0 1] \
        CONFIG.Class_Code_Sub [string range $class 2 3] \
        CONFIG.Class_Code_Interface [string range $class 4 5] \
        CONFIG.Max_Payload_Size 512_bytes \
        CONFIG.Extended_Tag_Field false \
        CONFIG.AER_Enabled true \
        CONFIG.No_Soft_Reset true \
        CONFIG.Buf_Opt_BMA true \
        CONFIG.Perf_Level High \
        CONFIG.Legacy_Interrupt NONE \
        CONFIG.IntX_Generation false \
        CONFIG.MSI_Enabled false \
        CONFIG.MSIx_Enabled true \
        CONFIG.MSIx_Table_Size [format %X [fact PcieVectors]] \
        CONFIG.MSIx_Table_BIR BAR_5:4 \
        CONFIG.MSIx_Table_Offset 0 \
        CONFIG.MSIx_PBA_BIR BAR_5:4 \
        CONFIG.MSIx_PBA_Offset [format %X [fact PcieMsixPba]] \
        CONFIG.cfg_fc_if true \
        CONFIG.err_reporting_if true \
        CONFIG.cfg_ctl_if true \
        CONFIG.cfg_status_if true \
        CONFIG.cfg_mgmt_if false \
        CONFIG.pl_interface false \
        CONFIG.rcv_msg_if false \
        CONFIG.en_ext_clk false] \
    [register 0 [fact PcieBar0Bits] false] \
    [register 2 [fact PcieBar2Bits] true] \
    [register 4 [fact PcieBar4Bits] false]] [get_ips velo_acorn_block]
generate_target all [get_ips velo_acorn_block]
synth_ip [get_ips velo_acorn_block]

read_verilog -sv $sources
read_xdc $here/vivado/velo_acorn.xdc
synth_design -top velo_acorn -part $part -include_dirs $includes -verilog_define SYNTHESIS
report_utilization -hierarchical -file $out/area_synth.txt

# The generator puts lane 0 elsewhere than the board does.
set lane [get_cells -hierarchical -filter {NAME =~ u_block/* && REF_NAME == GTPE2_CHANNEL}]
reset_property LOC $lane
set_property LOC GTPE2_CHANNEL_X0Y7 $lane

opt_design
place_design
phys_opt_design
route_design
report_utilization -file $out/area.txt
report_timing_summary -file $out/timing.txt
write_checkpoint -force $out/velo_acorn.dcp

set slack [get_property SLACK [get_timing_paths -delay_type min_max]]
if {[lindex [lsort -real $slack] 0] < 0} {
    error "the clocks are not met: see $out/timing.txt"
}
write_bitstream -force $out/velo_acorn.bit
write_cfgmem -force -format bin -interface SPIx4 -size 16 -loadbit "up 0x0 $out/velo_acorn.bit" \
    -file $out/velo_acorn.bin
