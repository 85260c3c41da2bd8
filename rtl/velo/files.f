// VELO: requester and completer.
build/rtl/velo_pkg.sv
-f rtl/common/files.f
rtl/velo/rtl/velo_contexts.sv
rtl/velo/rtl/velo_requester.sv
rtl/velo/rtl/velo_completer.sv
rtl/velo/rtl/velo_unit.sv
