// SPDX-License-Identifier: Apache-2.0
//
// Round-robin arbiter. Combinational from `req_i` to the one-hot `grant_o`.
//
// `take_i` says that the grant is used in this cycle; only then does the turn move on, to the
// requester after the one that was served. A requester that keeps asking is therefore served after
// at most NumReq - 1 others.
// Source: case-for-fpga, section 3, "round-robin arbiters to ensure fairness".

`include "velo_assert.svh"

module velo_rr_arb #(
    parameter int unsigned NumReq = 4
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumReq-1:0] req_i,    // who asks
    output logic [NumReq-1:0] grant_o,  // who is served, one-hot
    input  logic              take_i    // the grant is used
);

  `VELO_ASSERT_INIT(SomeRequesters, NumReq >= 1)

  // Ones from the requester whose turn it is upwards.
  logic [NumReq-1:0] turn_q, in_turn, candidates, up_to_first;

  assign in_turn = req_i & turn_q;
  assign candidates = |in_turn ? in_turn : req_i;
  assign up_to_first = candidates ^ (candidates - 1'b1);
  assign grant_o = candidates & up_to_first;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) turn_q <= '1;
    // All bits above the granted one. After the last one, none: then everybody is a candidate.
    else if (take_i && |req_i) turn_q <= ~up_to_first;
  end

  `VELO_ASSERT(AtMostOne, (grant_o & (grant_o - 1'b1)) == '0)
  `VELO_ASSERT(OnlyWhoAsked, (grant_o & ~req_i) == '0)
  `VELO_ASSERT(SomebodyWheneverAsked, (|grant_o) == (|req_i))

endmodule
