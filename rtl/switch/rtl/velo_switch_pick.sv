// SPDX-License-Identifier: Apache-2.0
//
// Of the virtual channels that have a packet for one output and may send it: which is next? Round
// robin, registered, so that the choice costs the crossbar's arbiters no time.
//
// `eligible_i` is what will be true in the next cycle. `some_o`, `pick_o`: the choice, one-hot.
// `served_i`: the choice that is at the output now is being used; the turn moves on behind it.

`include "velo_assert.svh"

module velo_switch_pick
  import velo_link_pkg::*;
#(
    parameter int unsigned NumVcs = 6
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumVcs-1:0] eligible_i,
    input  logic              served_i,
    output logic              some_o,
    output vc_t               pick_o
);

  logic [NumVcs-1:0] turn_d, turn_q, in_turn, candidates;

  always_comb begin
    turn_d = turn_q;
    if (served_i) for (int v = 0; v < int'(NumVcs); v++) turn_d[v] = vc_t'(v) > pick_o;
  end
  assign in_turn = eligible_i & turn_d;
  assign candidates = |in_turn ? in_turn : eligible_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= '1;
      some_o <= 1'b0;
      pick_o <= '0;
    end else begin
      turn_q <= turn_d;
      some_o <= |eligible_i;
      for (int v = int'(NumVcs) - 1; v >= 0; v--) if (candidates[v]) pick_o <= vc_t'(v);
    end
  end

endmodule
