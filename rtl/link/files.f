// Link port.
# tests: rtl/switch/test
-f rtl/common/files.f
rtl/link/rtl/velo_link_pkg.sv
rtl/link/rtl/velo_link_ctl_crc.sv
rtl/link/rtl/velo_link_ring.sv
rtl/link/rtl/velo_link_tx.sv
rtl/link/rtl/velo_link_rx.sv
rtl/link/rtl/velo_link_status.sv
rtl/link/rtl/velo_link_units.sv
rtl/link/rtl/velo_link_init.sv
rtl/link/rtl/velo_link.sv
