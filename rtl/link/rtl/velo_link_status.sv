// SPDX-License-Identifier: Apache-2.0
//
// The status that this side's words report about its receiver: acknowledgement, request for
// retransmission, and for one virtual channel at a time the number of buffer units freed since reset.
//
// Channels whose number has changed since it was last sent go first, round robin; with none, all take
// their turn, so that a later word replaces a lost one. Changes are seen a cycle late, so now and then a
// channel is reported once too often. `freed_i` is constant or counts up; reported is what goes beyond
// `base_i`, which changes only while the link is down. The other side sends nothing in a channel before it has
// heard of it. So when the link has come up, all channels take their turn for some rounds whatever changes:
// a report that is lost must not leave one waiting for as long as others are busy.
// `status_o.echo` is left to the transmitter.

module velo_link_status
  import velo_link_pkg::*;
#(
    parameter int unsigned NumVcs = 6,
    parameter int unsigned Rounds = 7
) (
    input logic clk_i,
    input logic rst_ni,

    input seq_t ack_i,
    input logic nak_i,
    input count_t [NumVcs-1:0] freed_i,
    input count_t [NumVcs-1:0] base_i,  // negative where units of an older session are still in use
    input logic came_up_i,

    input  logic    sent_i,
    output status_t status_o
);

  count_t [NumVcs-1:0] told_q;
  logic [NumVcs-1:0] changed_q, request, grant;
  vc_t vc_d, vc_q;
  logic [$clog2(Rounds+1)-1:0] rounds_q;  // still to go

  always_ff @(posedge clk_i) begin
    // The channel in turn is as good as told.
    for (int v = 0; v < int'(NumVcs); v++) begin
      changed_q[v] <= told_q[v] != freed_i[v] && vc_q != vc_t'(v);
    end
  end
  assign request = |changed_q && rounds_q == '0 ? changed_q : '1;

  velo_rr_arb #(
      .NumReq(NumVcs)
  ) u_arb (
      .clk_i,
      .rst_ni,
      .req_i  (request),
      .grant_o(grant),
      .take_i (sent_i)
  );

  always_comb begin
    vc_d = '0;
    for (int v = 0; v < int'(NumVcs); v++) if (grant[v]) vc_d = vc_t'(v);
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      told_q   <= '0;
      vc_q     <= '0;
      rounds_q <= '0;
    end else begin
      if (sent_i) begin
        told_q[vc_q] <= freed_i[vc_q];
        vc_q <= vc_d;
      end
      if (came_up_i) rounds_q <= $bits(rounds_q)'(Rounds);
      else if (sent_i && vc_q == '0 && rounds_q != '0) rounds_q <= rounds_q - 1'b1;
    end
  end

  assign status_o = '{
          freed: freed_i[vc_q] - base_i[vc_q],
          vc: vc_q,
          ack: ack_i,
          echo: 1'b0,
          nak: nak_i
      };

endmodule
