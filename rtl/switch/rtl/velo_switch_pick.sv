// SPDX-License-Identifier: Apache-2.0
//
// Of the virtual channels that have a packet for one output and may send it: which is next? Round
// robin, registered, so that the choice costs the crossbar's arbiters no time.
//
// `queued_i`: channels with a packet that may go, `hold_i`: none may be chosen now. `arrives_i`: one for
// channel `arrives_vc_i` is just coming; it is chosen only if none is queued, since it is known late.
// `some_o`, `pick_o`: the choice, a cycle later.
// `served_i`: a packet of channel `served_vc_i` is leaving; the turn moves on behind it.

`include "velo_assert.svh"

module velo_switch_pick
  import velo_link_pkg::*;
#(
    parameter int unsigned NumVcs = 6
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumVcs-1:0] queued_i,
    input  logic              hold_i,
    input  logic              arrives_i,
    input  vc_t               arrives_vc_i,
    input  logic              served_i,
    input  vc_t               served_vc_i,
    output logic              some_o,
    output vc_t               pick_o
);

  logic [NumVcs-1:0] turn_q, in_turn, candidates;
  vc_t queued_vc;

  assign in_turn = queued_i & turn_q;
  assign candidates = |in_turn ? in_turn : queued_i;
  always_comb begin
    queued_vc = '0;
    for (int v = int'(NumVcs) - 1; v >= 0; v--) if (candidates[v]) queued_vc = vc_t'(v);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q <= '1;
      some_o <= 1'b0;
      pick_o <= '0;
    end else begin
      if (served_i) for (int v = 0; v < int'(NumVcs); v++) turn_q[v] <= vc_t'(v) > served_vc_i;
      some_o <= (|queued_i || arrives_i) && !hold_i;
      pick_o <= |queued_i ? queued_vc : arrives_vc_i;
    end
  end

endmodule
