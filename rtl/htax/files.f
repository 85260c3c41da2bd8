// On-chip crossbar.
-f rtl/common/files.f
rtl/htax/rtl/htax_pkg.sv
rtl/htax/rtl/htax_channel.sv
rtl/htax/rtl/htax_order.sv
rtl/htax/rtl/htax.sv
