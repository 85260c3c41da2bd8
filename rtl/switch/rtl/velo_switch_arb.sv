// SPDX-License-Identifier: Apache-2.0
//
// Round-robin arbiter of the crossbar: as velo_rr_arb, but shallow. That one scans the requests twice,
// from the turn upwards and from the bottom; this one keeps a bit for each pair of requesters, saying
// which of the two goes first, so that a grant is one AND-OR over the others.
//
// `grant_o` is combinational and one-hot. `used_i`: of an earlier cycle's grants, the one that was used,
// one-hot or none; the turn moves on behind it. It comes late so that moving the turn is no part of the
// arbiters' path: whoever was served has a packet to send first.
// Source: case-for-fpga, section 3, "round-robin arbiters to ensure fairness".

`include "velo_assert.svh"

module velo_switch_arb #(
    parameter int unsigned NumReq = 9
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumReq-1:0] req_i,
    output logic [NumReq-1:0] grant_o,
    input  logic [NumReq-1:0] used_i
);

  // first_q[j][i], j < i: j goes before i. Not so while the turn is above j and not above i.
  logic [NumReq-1:0][NumReq-1:0] first_q, beats;

  for (genvar j = 0; j < int'(NumReq); j++) begin : gen_pair
    for (genvar i = 0; i < int'(NumReq); i++) begin : gen_with
      if (j < i) begin : gen_kept
        always_ff @(posedge clk_i or negedge rst_ni) begin
          if (!rst_ni) first_q[j][i] <= 1'b1;
          else if (|used_i) first_q[j][i] <= !(|used_i[i-1:j]);
        end
        assign beats[j][i] = first_q[j][i];
      end else begin : gen_mirrored
        assign first_q[j][i] = 1'b0;
        assign beats[j][i]   = (j > i) && !first_q[i][j];
      end
    end
  end

  always_comb begin
    for (int i = 0; i < int'(NumReq); i++) begin
      grant_o[i] = req_i[i];
      for (int j = 0; j < int'(NumReq); j++) if (req_i[j] && beats[j][i]) grant_o[i] = 1'b0;
    end
  end

  `VELO_ASSERT(AtMostOne, (grant_o & (grant_o - 1'b1)) == '0)
  `VELO_ASSERT(SomebodyWheneverAsked, (|grant_o) == (|req_i))

endmodule
