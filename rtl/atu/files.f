// Address translation.
build/rtl/velo_pkg.sv
-f rtl/htax/files.f
rtl/atu/rtl/velo_atu_pkg.sv
rtl/atu/rtl/velo_atu_cache.sv
rtl/atu/rtl/velo_atu.sv
