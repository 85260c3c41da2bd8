// SPDX-License-Identifier: Apache-2.0
//
// Check bits of a word for a protected memory; see velo_secded_pkg. Combinational.

`include "velo_assert.svh"

module velo_secded_encode
  import velo_secded_pkg::*;
#(
    parameter int unsigned Width = 32,  // bits of data, 1 to 256
    localparam int unsigned Checks = num_checks(Width)
) (
    input  logic [ Width-1:0] data_i,   // what is to be kept
    output logic [Checks-1:0] checks_o  // to be kept beside it
);

  localparam columns_t Columns = columns(Width);

  always_comb begin
    checks_o = '0;
    for (int i = 0; i < int'(Width); i++) if (data_i[i]) checks_o ^= Columns[i][Checks-1:0];
  end

  `VELO_ASSERT_INIT(WidthSupported, Width >= 1 && Width <= WidthMax)
  // One wrong bit is put right and two are noticed at this width.
  `VELO_ASSERT_INIT(SetsAreACode, is_code(Width))

endmodule
