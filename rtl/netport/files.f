// Network ports, and the router: all of a node that is network.
-f rtl/common/files.f
-f rtl/link/files.f
-f rtl/switch/files.f
rtl/netport/rtl/velo_netport_tx.sv
rtl/netport/rtl/velo_netport_rx.sv
rtl/netport/rtl/velo_router_sink.sv
rtl/netport/rtl/velo_router.sv
