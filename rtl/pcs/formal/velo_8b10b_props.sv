// SPDX-License-Identifier: Apache-2.0
//
// What the encoder makes, the decoder gives back, for every byte and the K symbols in use, at both
// disparities, without an error; the disparities agree, and a decoder that had a wrong one learns it from any
// symbol that is another one at each of them; and whatever comes, at most one kind of error is reported, and
// always for a symbol of a weight that none has. Combinational: a few steps are all.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_8b10b_props (
    input logic       clk_i,
    input logic       rst_ni,
    input logic [7:0] value_i,
    input logic       k_i,
    input logic       disparity_i,
    input logic [9:0] any_code_i,
    input logic       any_disparity_i
);

  logic [9:0] code, other_code;
  logic [7:0] value, any_value, wrong_value;
  logic k, bad, uneven, sent_after, got_after;
  logic other_after, wrong_k, wrong_bad, wrong_uneven, learnt_after;
  logic any_k, any_bad, any_uneven, any_after;
  logic real_k;
  logic [3:0] weight;

  velo_8b10b_enc u_enc (
      .value_i    (value_i),
      .k_i        (k_i),
      .disparity_i(disparity_i),
      .code_o     (code),
      .disparity_o(sent_after)
  );
  velo_8b10b_dec u_dec (
      .code_i           (code),
      .disparity_i      (disparity_i),
      .value_o          (value),
      .k_o              (k),
      .code_error_o     (bad),
      .disparity_error_o(uneven),
      .disparity_o      (got_after)
  );
  velo_8b10b_dec u_any (
      .code_i           (any_code_i),
      .disparity_i      (any_disparity_i),
      .value_o          (any_value),
      .k_o              (any_k),
      .code_error_o     (any_bad),
      .disparity_error_o(any_uneven),
      .disparity_o      (any_after)
  );

  // The same byte at the other disparity, and the symbol as a decoder sees it that believes that one.
  velo_8b10b_enc u_other (
      .value_i    (value_i),
      .k_i        (k_i),
      .disparity_i(!disparity_i),
      .code_o     (other_code),
      .disparity_o(other_after)
  );
  velo_8b10b_dec u_wrong (
      .code_i           (code),
      .disparity_i      (!disparity_i),
      .value_o          (wrong_value),
      .k_o              (wrong_k),
      .code_error_o     (wrong_bad),
      .disparity_error_o(wrong_uneven),
      .disparity_o      (learnt_after)
  );

  assign real_k = value_i[4:0] == 5'd28 || value_i inside {8'hF7, 8'hFB, 8'hFD, 8'hFE};

  `VELO_ASSUME(OnlyRealKs, !k_i || real_k)
  `VELO_ASSERT(Identity, value == value_i && k == k_i)
  `VELO_ASSERT(NoError, !bad && !uneven)
  `VELO_ASSERT(DisparitiesAgree, got_after == sent_after)
  `VELO_ASSERT(DisparityIsLearnt,
               code == other_code || (wrong_uneven && learnt_after == sent_after))
  `VELO_ASSERT(ValueWithoutDisparity, wrong_value == value_i && wrong_k == k_i && !wrong_bad)
  // The disparity is minus one or plus one, and the symbol's weight is what leads from one to the other.
  assign weight = 4'($countones(code));
  `VELO_ASSERT(DisparityBounded,
               weight == (sent_after == disparity_i ? 4'd5 : sent_after ? 4'd6 : 4'd4))
  `VELO_ASSERT(OneKindOfError, !(any_bad && any_uneven))
  `VELO_ASSERT(WrongWeightIsBad, any_bad || $countones(any_code_i) inside {4, 5, 6})
  `VELO_ASSERT(NoDFromAK, any_bad || !any_k || any_value[4:0] == 5'd28 ||
                          any_value inside {8'hF7, 8'hFB, 8'hFD, 8'hFE})
  `VELO_COVER(AComma, value_i == 8'hBC && k_i && disparity_i && !bad)

  logic unused;
  assign unused = any_after ^ other_after;

endmodule
