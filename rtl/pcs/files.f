// Physical coding sublayer.
# tests: rtl/switch/test
-f rtl/clock/files.f
-f rtl/link/files.f
rtl/pcs/rtl/velo_pcs_pkg.sv
rtl/pcs/rtl/velo_8b10b_enc.sv
rtl/pcs/rtl/velo_8b10b_dec.sv
rtl/pcs/rtl/velo_pcs8_tx.sv
rtl/pcs/rtl/velo_pcs8_align.sv
rtl/pcs/rtl/velo_pcs8_parse.sv
rtl/pcs/rtl/velo_pcs66_tx.sv
rtl/pcs/rtl/velo_pcs66_align.sv
rtl/pcs/rtl/velo_pcs66_parse.sv
rtl/pcs/rtl/velo_pcs_deskew.sv
rtl/pcs/rtl/velo_pcs_tx.sv
rtl/pcs/rtl/velo_pcs_rx.sv
rtl/pcs/rtl/velo_pcs_send.sv
rtl/pcs/rtl/velo_pcs_elastic.sv
rtl/pcs/rtl/velo_pcs_counters.sv
rtl/pcs/rtl/velo_pcs.sv
