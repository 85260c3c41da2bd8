// Parts that every block may use.
+incdir+rtl/common/rtl
rtl/common/rtl/velo_net_pkg.sv
rtl/common/rtl/velo_rr_arb.sv
rtl/common/rtl/velo_credit.sv
rtl/common/rtl/velo_watchdog.sv
rtl/common/rtl/velo_crc.sv
rtl/common/rtl/velo_secded_pkg.sv
rtl/common/rtl/velo_secded_encode.sv
rtl/common/rtl/velo_secded_decode.sv
rtl/common/rtl/velo_ram.sv
rtl/common/rtl/velo_patience.sv
rtl/common/rtl/velo_ram_through.sv
rtl/common/rtl/velo_fifo_ram.sv
rtl/common/rtl/velo_fifo.sv
rtl/common/rtl/velo_narrow.sv
rtl/common/rtl/velo_widen.sv
