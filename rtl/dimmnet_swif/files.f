// Switch interface of DIMMnet-2.
# tops: dimmnet_swif
# tests: rtl/switch/test
-f rtl/common/files.f
build/rtl/dimmnet_pkg.sv
rtl/dimmnet_swif/rtl/dimmnet_swif_pkg.sv
rtl/dimmnet_swif/rtl/dimmnet_swif_psns.sv
rtl/dimmnet_swif/rtl/dimmnet_swif_frame.sv
rtl/dimmnet_swif/rtl/dimmnet_swif_check.sv
rtl/dimmnet_swif/rtl/dimmnet_swif_peers.sv
rtl/dimmnet_swif/rtl/dimmnet_swif_send.sv
rtl/dimmnet_swif/rtl/dimmnet_swif_judge.sv
rtl/dimmnet_swif/rtl/dimmnet_swif_store.sv
rtl/dimmnet_swif/rtl/dimmnet_swif.sv
