// SPDX-License-Identifier: Apache-2.0
//
// Standard property: what is offered stands, as it is, until it is taken. `withdraw_i`: it may go in this cycle.
// For proofs and simulation, bound beside a stream; no hardware. Errors: its assertion.

`include "velo_assert.svh"

module velo_prop_stands #(
    parameter int unsigned Width = 1
) (
    input logic             clk_i,
    input logic             rst_ni,
    input logic             valid_i,     // offered
    input logic             ready_i,     // taken
    input logic             withdraw_i,  // need not stand any more
    input logic [Width-1:0] data_i       // what is offered
);

  logic waits_q;
  logic [Width-1:0] data_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) waits_q <= 1'b0;
    else waits_q <= valid_i && !ready_i;
  end
  always_ff @(posedge clk_i) data_q <= data_i;
  `VELO_ASSERT(OfferStands, !waits_q || withdraw_i || (valid_i && data_i == data_q))

endmodule
