// SPDX-License-Identifier: Apache-2.0
//
// A word of a protected memory, put right; see velo_secded_pkg. Combinational.
//
// Errors: `corrected_o`, one bit of the word or of its checks was wrong and `data_o` is right;
// `broken_o`, two were, and `data_o` is as it was read. Three or more wrong bits may look like one,
// like two or like none.

`include "velo_assert.svh"

module velo_secded_decode
  import velo_secded_pkg::*;
#(
    parameter int unsigned Width = 32,  // bits of data, 1 to 256
    localparam int unsigned Checks = num_checks(Width)
) (
    input  logic [ Width-1:0] data_i,       // as read
    input  logic [Checks-1:0] checks_i,     // as read
    output logic [ Width-1:0] data_o,       // put right
    output logic              corrected_o,  // one bit was wrong
    output logic              broken_o      // two bits were wrong
);

  localparam columns_t Columns = columns(Width);

  logic [Checks-1:0] expected, syndrome;

  velo_secded_encode #(
      .Width(Width)
  ) u_encode (
      .data_i,
      .checks_o(expected)
  );

  assign syndrome = expected ^ checks_i;
  assign corrected_o = ^syndrome;
  assign broken_o = syndrome != '0 && !corrected_o;

  always_comb begin
    for (int i = 0; i < int'(Width); i++) begin
      data_o[i] = data_i[i] ^ (syndrome == Columns[i][Checks-1:0]);
    end
  end

endmodule
