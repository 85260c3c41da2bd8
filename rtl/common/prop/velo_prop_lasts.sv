// SPDX-License-Identifier: Apache-2.0
//
// Standard property: a time that began lasts; `fires_i` does not come before `cycles_i` cycles after `begins_i`, the
// length as it was then. A time that begins anew is counted from there.
// For proofs and simulation; no hardware. Errors: its assertion.

`include "velo_assert.svh"

module velo_prop_lasts #(
    parameter int unsigned Width = 16
) (
    input logic             clk_i,
    input logic             rst_ni,
    input logic             begins_i,
    input logic [Width-1:0] cycles_i,
    input logic             fires_i
);

  logic [Width-1:0] left_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) left_q <= '0;
    else if (begins_i) left_q <= cycles_i;
    else if (left_q != '0) left_q <= left_q - 1'b1;
  end
  `VELO_ASSERT(NeverEarly, !fires_i || left_q == '0)

endmodule
