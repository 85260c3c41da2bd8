// SPDX-License-Identifier: Apache-2.0
//
// The promises of one channel of the crossbar, for three ports and every traffic.
//
//   * A target sees whole transactions, one source at a time, none mixed, and an offered beat stands.
//   * Beats that a source sends to a target come out there, once, in order, and nowhere else.
//   * Fairness: while a source waits at a target, no other source is served there twice.
// Data is the source's number, its target, and two bits of its own. Followed is one beat of any source,
// taken at any time: the proof holds for all of them, and has no bound.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module htax_channel_props #(
    parameter logic [2:0][2:0] Reach = '1  // as htax_channel
) (
    input logic            clk_i,
    input logic            rst_ni,
    input logic [2:0]      in_valid_i,
    input logic [2:0][2:0] in_target_i,
    input logic [2:0]      in_eop_i,
    input logic [2:0][1:0] in_bits_i,
    input logic [2:0]      out_ready_i,
    input logic [2:0]      follow_i
);

  typedef struct packed {
    logic [1:0] source;
    logic [2:0] target;
    logic [1:0] bits;
  } data_t;

  logic [2:0] in_ready, in_taken, out_valid, out_eop;
  logic [2:0][1:0] in_count;
  data_t [2:0] in_data, out_data;

  htax_channel #(
      .NumPorts(3),
      .Width   ($bits(data_t)),
      .Reach   (Reach)
  ) u_dut (
      .in_ready_o (in_ready),
      .in_data_i  (in_data),
      .in_count_o (in_count),
      .in_taken_o (in_taken),
      .out_valid_o(out_valid),
      .out_eop_o  (out_eop),
      .out_data_o (out_data),
      .*
  );

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // ----- sources --------------------------------------------------------------------------------

  for (genvar s = 0; s < 3; s++) begin : gen_source
    logic wait_q, open_q, eop_q;
    logic [2:0] target_q;
    logic [1:0] bits_q;
    assign in_data[s] = {2'(s), in_target_i[s], in_bits_i[s]};

    always_ff @(posedge clk_i) begin
      wait_q   <= rst_ni && in_valid_i[s] && !in_ready[s];
      target_q <= in_target_i[s];
      eop_q    <= in_eop_i[s];
      bits_q   <= in_bits_i[s];
      if (!rst_ni) open_q <= 1'b0;
      else if (in_valid_i[s] && in_ready[s]) open_q <= !in_eop_i[s];
    end
    `VELO_ASSUME(OfferStands, !wait_q || (in_valid_i[s] && in_eop_i[s] == eop_q &&
                 in_bits_i[s] == bits_q))
    `VELO_ASSUME(OneTarget, !in_valid_i[s] || in_target_i[s] == 3'd1 || in_target_i[s] == 3'd2 ||
                 in_target_i[s] == 3'd4)
    `VELO_ASSUME(WithinReach, !in_valid_i[s] || (in_target_i[s] & ~Reach[s]) == '0)
    // Also between the beats of a transaction, so a source keeps it on its wires.
    `VELO_ASSUME(TargetHolds, !(wait_q || open_q) || in_target_i[s] == target_q)
  end

  // ----- targets --------------------------------------------------------------------------------

  logic [2:0][2:0] comes;  // a beat of this source is taken by this target
  for (genvar t = 0; t < 3; t++) begin : gen_target
    logic open_q, wait_q, eop_q, take;
    logic [1:0] owner_q;
    data_t data_q, data;
    assign data = out_data[t];
    assign take = out_valid[t] && out_ready_i[t];

    always_ff @(posedge clk_i) begin
      wait_q <= rst_ni && out_valid[t] && !out_ready_i[t];
      data_q <= data;
      eop_q  <= out_eop[t];
      if (!rst_ni) open_q <= 1'b0;
      else if (take) begin
        open_q  <= !out_eop[t];
        owner_q <= data.source;
      end
    end
    `VELO_ASSERT(OutStands, !wait_q || (out_valid[t] && data == data_q && out_eop[t] == eop_q))
    `VELO_ASSERT(OneSourceATransaction, !(out_valid[t] && open_q) || data.source == owner_q)
    `VELO_ASSERT(RightTarget, !out_valid[t] || data.target == 3'(1 << t))

    for (genvar s = 0; s < 3; s++) begin : gen_pair
      logic mine;
      assign mine = out_valid[t] && data.source == 2'(s);
      assign comes[s][t] = mine && out_ready_i[t];

      // A source whose beat is at the head of its buffer for this target, and who else was served.
      logic waits;
      logic [2:0][1:0] others_q;
      assign waits = u_dut.head_valid[s] && u_dut.head[s].target[t] && !mine;
      `VELO_ASSERT(NobodyWaitsForNothing, !waits || out_valid[t] || open_q)
      for (genvar o = 0; o < 3; o++) begin : gen_other
        always_ff @(posedge clk_i) begin
          if (!rst_ni || !waits) others_q[o] <= '0;
          else if (take && out_eop[t] && data.source == 2'(o)) others_q[o] <= others_q[o] + 2'd1;
        end
        `VELO_ASSERT(Fair, others_q[o] <= 2'd1)
      end
    end
  end

  // ----- each beat once, in order ---------------------------------------------------------------

  for (genvar s = 0; s < 3; s++) begin : gen_order
    logic push, followed_q, left_q, start, leaves, eop_q, out_has_it;
    logic [1:0] ahead_q;  // beats of this source in front of the followed one
    logic [2:0] after_q;  // and behind it, for the cover
    data_t value_q;
    assign push   = in_valid_i[s] && in_ready[s];
    assign start  = follow_i[s] && !followed_q && push;
    assign leaves = followed_q && !left_q && ahead_q == '0 && in_taken[s];
    always_comb begin
      out_has_it = 1'b0;
      for (int t = 0; t < 3; t++) begin
        out_has_it |= comes[s][t] && out_data[t] == value_q && out_eop[t] == eop_q;
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        followed_q <= 1'b0;
        left_q     <= 1'b0;
        ahead_q    <= '0;
        after_q    <= '0;
      end else begin
        if (start) begin
          followed_q <= 1'b1;
          value_q    <= in_data[s];
          eop_q      <= in_eop_i[s];
          ahead_q    <= in_count[s] - 2'(in_taken[s]);
        end else if (followed_q && !left_q && in_taken[s]) begin
          if (ahead_q == '0) left_q <= 1'b1;
          else ahead_q <= ahead_q - 2'd1;
        end
        if (left_q && push && after_q != '1) after_q <= after_q + 3'd1;
      end
    end
    // What leaves a source's buffer is taken by one target, and nothing else is.
    `VELO_ASSERT(OnceAndNoMore, 2'(comes[s][0]) + 2'(comes[s][1]) + 2'(comes[s][2]) ==
                 2'(in_taken[s]))
    `VELO_ASSERT(FollowedIsInside, !followed_q || left_q || ahead_q < in_count[s])
    `VELO_ASSERT(InOrderOnce, !leaves || out_has_it)
    // The followed beat, of a transaction that went on, and enough behind it for the places to wrap.
    `VELO_COVER(LeavesAndGoesOn, left_q && !eop_q && after_q == 3'd5)
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (&out_valid);
    end
  end

endmodule
