// SPDX-License-Identifier: Apache-2.0
//
// Standard property: what waits does so for at most `Cycles` cycles in a row.
// For proofs and simulation; no hardware. Errors: its assertion.

`include "velo_assert.svh"

module velo_prop_ends #(
    parameter int unsigned Cycles = 4
) (
    input logic clk_i,
    input logic rst_ni,
    input logic waits_i
);

  logic [$clog2(Cycles+1)-1:0] waited_q;  // cycles
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waited_q <= '0;
    else if (!waits_i) waited_q <= '0;
    else if (32'(waited_q) < Cycles) waited_q <= waited_q + 1'b1;
  end
  `VELO_ASSERT(WaitEnds, !waits_i || 32'(waited_q) < Cycles)

endmodule
