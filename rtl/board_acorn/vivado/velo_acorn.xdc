# SPDX-License-Identifier: Apache-2.0
#
# Acorn CLE-215+: pins and clock of velo_acorn. From LiteX-boards (platforms/sqrl_acorn.py) and the constraints that
# RHS Research published for the same board (NiteFury). The former have 1.5 V for PERST# (J1), the latter 3.3 V, as have
# the LEDs of the same bank in both.

# PCI Express: the host's clock of 100 MHz, PERST#, CLKREQ#, lane 0 of the M.2 plug.
set_property PACKAGE_PIN F6 [get_ports pcie_refclk_p_i]
set_property PACKAGE_PIN E6 [get_ports pcie_refclk_n_i]
create_clock -name pcie_refclk -period 10.000 [get_ports pcie_refclk_p_i]
set_property -dict {PACKAGE_PIN J1 IOSTANDARD LVCMOS33 PULLUP true} [get_ports pcie_rst_ni]
set_property -dict {PACKAGE_PIN G1 IOSTANDARD LVCMOS33} [get_ports pcie_clkreq_no]
set_property PACKAGE_PIN B10 [get_ports {pcie_rx_p_i[0]}]
set_property PACKAGE_PIN A10 [get_ports {pcie_rx_n_i[0]}]
set_property PACKAGE_PIN B6 [get_ports {pcie_tx_p_o[0]}]
set_property PACKAGE_PIN A6 [get_ports {pcie_tx_n_o[0]}]

set_property -dict {PACKAGE_PIN G3 IOSTANDARD LVCMOS33} [get_ports {led_o[0]}]
set_property -dict {PACKAGE_PIN H3 IOSTANDARD LVCMOS33} [get_ports {led_o[1]}]
set_property -dict {PACKAGE_PIN G4 IOSTANDARD LVCMOS33} [get_ports {led_o[2]}]
set_property -dict {PACKAGE_PIN H4 IOSTANDARD LVCMOS33} [get_ports {led_o[3]}]

# Slow and asynchronous. The block's own clocks come with its constraints.
set_false_path -from [get_ports pcie_rst_ni]
set_false_path -to [get_ports {pcie_clkreq_no led_o[*]}]

# Flash: four bits wide, so that the card is there when the host looks for it.
set_property CFGBVS VCCO [current_design]
set_property CONFIG_VOLTAGE 3.3 [current_design]
set_property CONFIG_MODE SPIx4 [current_design]
set_property BITSTREAM.CONFIG.SPI_BUSWIDTH 4 [current_design]
set_property BITSTREAM.GENERAL.COMPRESS TRUE [current_design]
