// SPDX-License-Identifier: Apache-2.0
//
// Packets of several sources onto one stream, whole ones, in turn.
//
// A beat is at the output a cycle after it was taken; packets follow each other without a gap. What a source begins
// to send it goes on sending. Errors: none.

`include "velo_assert.svh"

module velo_pcie_send
  import velo_pcie_pkg::*;
#(
    parameter int unsigned NumSources = 4
) (
    input logic clk_i,
    input logic rst_ni,

    input  tlp_beat_t [NumSources-1:0] from_i,
    output logic      [NumSources-1:0] ready_o,
    output tlp_beat_t                  tx_o,
    input  logic                       tx_ready_i
);

  logic [NumSources-1:0] asks, grant, chosen, chosen_q;
  logic open_q, valid_q, space, take;
  tlp_beat_t beat, beat_q;

  for (genvar s = 0; s < NumSources; s++) begin : gen_asks
    assign asks[s] = from_i[s].valid;
  end

  velo_rr_arb #(
      .NumReq(NumSources)
  ) u_turn (
      .clk_i,
      .rst_ni,
      .req_i  (asks),
      .grant_o(grant),
      .take_i (take && !open_q)
  );

  assign chosen = open_q ? chosen_q : grant;
  assign space = !valid_q || tx_ready_i;
  assign ready_o = space ? chosen : '0;
  assign take = beat.valid && space;
  assign tx_o = '{valid: valid_q, last: beat_q.last, keep: beat_q.keep, data: beat_q.data};

  logic unused;
  assign unused = beat_q.valid;

  always_comb begin
    beat = '0;
    for (int unsigned s = 0; s < NumSources; s++) begin
      if (chosen[s]) beat |= from_i[s];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q  <= 1'b0;
      valid_q <= 1'b0;
    end else begin
      if (take) open_q <= !beat.last;
      if (space) valid_q <= beat.valid;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!open_q) chosen_q <= grant;
    if (space) beat_q <= beat;
  end

  `VELO_ASSERT(OneAtATime, (chosen & (chosen - 1'b1)) == '0)

endmodule
