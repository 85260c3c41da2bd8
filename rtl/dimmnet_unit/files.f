// CoreLogic of DIMMnet-2 as a unit in the custom slot of a node.
build/rtl/velo_pkg.sv
-f rtl/common/files.f
-f rtl/htax/files.f
-f rtl/dimmnet/files.f
rtl/dimmnet_unit/rtl/dimmnet_unit_host.sv
rtl/dimmnet_unit/rtl/dimmnet_unit_memory.sv
rtl/dimmnet_unit/rtl/dimmnet_unit_send.sv
rtl/dimmnet_unit/rtl/dimmnet_unit_receive.sv
rtl/dimmnet_unit/rtl/dimmnet_unit.sv
