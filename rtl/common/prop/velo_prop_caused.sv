// SPDX-License-Identifier: Apache-2.0
//
// Standard property: nothing without cause, nothing lost. Causes and effects of one kind, several causes before an
// effect being one: no effect comes without a cause since the last one, and while a cause has had none, `kept_i` says
// that it is remembered. In the cycle of an effect a new cause counts for the next one.
// For proofs and simulation; no hardware. Errors: its assertions.

`include "velo_assert.svh"

module velo_prop_caused (
    input logic clk_i,
    input logic rst_ni,
    input logic cause_i,
    input logic effect_i,
    input logic kept_i
);

  logic due_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) due_q <= 1'b0;
    else due_q <= cause_i || (due_q && !effect_i);
  end
  `VELO_ASSERT(NothingWithoutCause, !effect_i || due_q)
  `VELO_ASSERT(NothingLost, kept_i == due_q)

endmodule
