// SPDX-License-Identifier: Apache-2.0
//
// For any word: no wrong bit changes nothing, any one is put right, any two are noticed, and neither
// is taken for the other.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_secded_props
  import velo_secded_pkg::*;
#(
    parameter int unsigned Width = 64,
    localparam int unsigned Checks = num_checks(Width)
) (
    input logic                    clk_i,
    input logic                    rst_ni,
    input logic [       Width-1:0] data_i,
    input logic [Width+Checks-1:0] first_i,  // the wrong bits, one-hot or none
    input logic [Width+Checks-1:0] second_i
);

  logic [Width-1:0] kept, result;
  logic [Checks-1:0] checks, kept_checks;
  logic corrected, broken;

  velo_secded_encode #(
      .Width(Width)
  ) u_encode (
      .data_i,
      .checks_o(checks)
  );

  assign {kept_checks, kept} = {checks, data_i} ^ first_i ^ second_i;

  velo_secded_decode #(
      .Width(Width)
  ) u_decode (
      .data_i     (kept),
      .checks_i   (kept_checks),
      .data_o     (result),
      .corrected_o(corrected),
      .broken_o   (broken)
  );

  logic one, two;
  assign one = (first_i == '0) != (second_i == '0);
  assign two = first_i != '0 && second_i != '0 && first_i != second_i;

  `VELO_ASSUME(OneBitEach, $onehot0(first_i) && $onehot0(second_i))
  `VELO_ASSERT(RightOfOneWrongBit, two || result == data_i)
  `VELO_ASSERT(OneIsCorrected, corrected == one)
  `VELO_ASSERT(TwoAreBroken, broken == two)
  `VELO_COVER(DataBitPutRight, corrected && kept != data_i)
  `VELO_COVER(CheckBitPutRight, corrected && kept == data_i)
  `VELO_COVER(Noticed, broken)

endmodule
