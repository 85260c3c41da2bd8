// Register file.
build/rtl/velo_pkg.sv
-f rtl/common/files.f
rtl/htax/rtl/htax_pkg.sv
build/rtl/velo_regs_pkg.sv
build/rtl/velo_regs.sv
rtl/regfile/rtl/velo_regfile_pkg.sv
rtl/regfile/rtl/velo_regfile.sv
