// SPDX-License-Identifier: Apache-2.0
//
// Synchronizer: bits of another clock domain, Stages flip-flops later.
//
// Bits that belong together may arrive one cycle apart. So a vector is only right here if at most one
// of its bits changes at a time (a Gray code), or if it stands still while it is looked at. `d_i` comes
// from a register, not from logic: a glitch would be taken for a value.
//
// Errors: none. Latency: Stages cycles, and one more if the change fell on the clock edge.

`include "velo_assert.svh"

module velo_cdc_sync #(
    parameter int unsigned Width  = 1,
    parameter int unsigned Stages = 2
) (
    input  logic             clk_i,   // the clock of `q_o`
    input  logic             rst_ni,  // the reset of `q_o`
    input  logic [Width-1:0] d_i,     // registers of another domain
    output logic [Width-1:0] q_o      // the same, in this one
);

  (* async_reg = "true" *)
  logic [Stages-1:0][Width-1:0] sync_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) sync_q <= '0;
    else sync_q <= {sync_q[Stages-2:0], d_i};
  end
  assign q_o = sync_q[Stages-1];

  `VELO_ASSERT_INIT(AtLeastTwoStages, Stages >= 2)

endmodule
