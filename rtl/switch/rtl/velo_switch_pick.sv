// SPDX-License-Identifier: Apache-2.0
//
// Of the virtual channels that have a packet for one output and may send it: which is next? Round
// robin, registered, so that the choice costs the crossbar's arbiters no time.
//
// `queued_i`: channels with a packet that may go, from registers, so it does not know of a packet that
// came in the last cycle. `hold_i`: none may be chosen now. `arrives_i`: one for channel `arrives_vc_i` is
// just coming; it is chosen only if none is queued, since it is known late, and stays chosen until
// `queued_i` knows. `asks_o`, `pick_o`: that there is a choice, and `may_ask_i` was
// set; the choice; both a cycle later.
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
    input  logic              may_ask_i,
    output logic              asks_o,
    output vc_t               pick_o
);

  logic [NumVcs-1:0] turn_q, in_turn, candidates;
  vc_t  queued_vc;
  logic arrived_q;

  assign in_turn = queued_i & turn_q;
  assign candidates = |in_turn ? in_turn : queued_i;
  always_comb begin
    queued_vc = '0;
    for (int v = int'(NumVcs) - 1; v >= 0; v--) if (candidates[v]) queued_vc = vc_t'(v);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      turn_q <= '1;
      asks_o <= 1'b0;
      pick_o <= '0;
      arrived_q <= 1'b0;
    end else begin
      if (served_i) for (int v = 0; v < int'(NumVcs); v++) turn_q[v] <= vc_t'(v) > served_vc_i;
      asks_o <= (|queued_i || arrives_i || arrived_q) && !hold_i && may_ask_i;
      if (|queued_i) pick_o <= queued_vc;
      else if (arrives_i) pick_o <= arrives_vc_i;
      arrived_q <= arrives_i && !hold_i && !(|queued_i);
    end
  end

endmodule
