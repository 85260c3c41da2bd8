// SPDX-License-Identifier: Apache-2.0
//
// Reset of one clock domain, from an asynchronous one.
//
// `rst_no` falls together with `rst_ni`, without any clock, and rises Stages cycles of `clk_i` after
// it, so every flip-flop of the domain leaves reset at the same edge. The one path that has to be
// left out of timing is the clear input of these flip-flops.
//
// Errors: none. Latency: 0 into reset, Stages cycles out of it.

`include "velo_assert.svh"

module velo_rst_sync #(
    parameter int unsigned Stages = 2  // flip-flops in a row; 3 for fast clocks
) (
    input  logic clk_i,   // the domain's clock
    input  logic rst_ni,  // reset from anywhere, active low
    output logic rst_no   // the domain's reset, active low
);

  (* async_reg = "true" *)
  logic [Stages-1:1] early_q;
  (* async_reg = "true" *)
  logic last_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) {early_q, last_q} <= '0;
    else {early_q, last_q} <= {1'b1, early_q};
  end
  assign rst_no = last_q;

  `VELO_ASSERT_INIT(AtLeastTwoStages, Stages >= 2)

endmodule
