// Resets and crossings of clock domains.
-f rtl/common/files.f
rtl/clock/rtl/velo_rst_sync.sv
rtl/clock/rtl/velo_cdc_sync.sv
rtl/clock/rtl/velo_cdc_fifo.sv
rtl/clock/rtl/velo_cdc_ordered.sv
rtl/clock/rtl/velo_cdc_bus.sv
rtl/clock/rtl/velo_cdc_pulse.sv
rtl/clock/rtl/velo_cdc_count.sv
