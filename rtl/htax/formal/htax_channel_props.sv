// SPDX-License-Identifier: Apache-2.0
//
// The promises of one channel of the crossbar, for three ports and every traffic.
//
//   * A target sees whole transactions, one source at a time, none mixed, and an offered beat stands.
//   * Beats that a source sends to a target come out there, once, in order, and nowhere else.
//   * Fairness: while a source waits at a target, no other source is served there twice.
// Data is the source's number, its target, and a count of its beats.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module htax_channel_props #(
    // Also count beats: a proof of order, which is bounded, as the counts make it large.
    parameter bit Ordered = 1'b0
) (
    input logic            clk_i,
    input logic            rst_ni,
    input logic [2:0]      in_valid_i,
    input logic [2:0][2:0] in_target_i,
    input logic [2:0]      in_eop_i,
    input logic [2:0]      out_ready_i
);

  typedef struct packed {
    logic [1:0] source;
    logic [2:0] target;
    logic [3:0] count;
  } data_t;

  logic [2:0] in_ready, in_taken, out_valid, out_eop;
  logic [2:0][1:0] in_count;
  data_t [2:0] in_data, out_data;

  htax_channel #(
      .NumPorts(3),
      .Width   ($bits(data_t))
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

  // Counts of beats that went in and came out, for each pair.
  logic [2:0][2:0][3:0] sent_q, came_q;

  for (genvar s = 0; s < 3; s++) begin : gen_source
    logic wait_q, open_q, eop_q;
    logic [2:0] target_q;
    logic [3:0] count;
    always_comb begin
      count = '0;
      for (int t = 0; t < 3; t++) count |= in_target_i[s][t] ? sent_q[s][t] : '0;
    end
    assign in_data[s] = {2'(s), in_target_i[s], Ordered ? count : 4'd0};

    always_ff @(posedge clk_i) begin
      wait_q   <= rst_ni && in_valid_i[s] && !in_ready[s];
      target_q <= in_target_i[s];
      eop_q    <= in_eop_i[s];
      if (!rst_ni) begin
        open_q    <= 1'b0;
        sent_q[s] <= '0;
      end else if (in_valid_i[s] && in_ready[s]) begin
        open_q <= !in_eop_i[s];
        for (int t = 0; t < 3; t++) if (in_target_i[s][t]) sent_q[s][t] <= sent_q[s][t] + 4'd1;
      end
    end
    `VELO_ASSUME(OfferStands, !wait_q || (in_valid_i[s] && in_eop_i[s] == eop_q))
    `VELO_ASSUME(OneTarget, !in_valid_i[s] || in_target_i[s] == 3'd1 || in_target_i[s] == 3'd2 ||
                 in_target_i[s] == 3'd4)
    // Also between the beats of a transaction, so a source keeps it on its wires.
    `VELO_ASSUME(TargetHolds, !(wait_q || open_q) || in_target_i[s] == target_q)
  end

  // ----- targets --------------------------------------------------------------------------------

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
      `VELO_ASSERT(InOrderOnce, !Ordered || !mine || data.count == came_q[s][t])
      always_ff @(posedge clk_i) begin
        if (!rst_ni) came_q[s][t] <= '0;
        else if (mine && out_ready_i[t]) came_q[s][t] <= came_q[s][t] + 4'd1;
      end

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

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (came_q[0][2] == 4'd3 && came_q[1][2] == 4'd3 && came_q[0][1] == 4'd2);
      cover (&out_valid);
    end
  end

endmodule
