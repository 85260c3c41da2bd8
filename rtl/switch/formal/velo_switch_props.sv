// SPDX-License-Identifier: Apache-2.0
//
// A small switch (one link, three node ports, one channel a class) under any source-routed traffic
// that keeps its credits, with any gaps, stops and stalled sinks. The switch's own assertions are what
// is proven: one input an output at a time, no word of another packet inside a packet, credits neither
// overdrawn nor in excess, no buffer unit used twice. Here: every unit of an input's credits is either
// inside or has come back, and what enters for class 0's node port leaves in order. At times the link leads nowhere: what
// leaves by it then is swallowed whole, and nothing reaches it that had no credits.

`include "velo_assert.svh"

module velo_switch_props
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
(
    input logic            clk_i,
    input logic            rst_ni,
    input logic [3:0]      want_i,
    input logic [3:0]      end_i,
    input logic [3:0]      leave_i,       // by the link, rather than to the node
    input logic [1:0]      link_class_i,
    input logic            stop_i,
    input logic            sink_i,
    input logic [3:0][2:0] return_i
);

  localparam int unsigned BufferUnits = 4;
  localparam int unsigned Need = 3;
  // So few that the second packet waits until the first one's unit is returned.
  localparam int unsigned OutCredits = 3;

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  logic [3:0] in_valid, in_sop, in_eop, out_valid, out_sop, out_eop, out_waited, out_sunk;
  logic [3:0] dropped, open_q;
  logic [3:0][1:0] place_q;
  vc_t [3:0] in_vc, out_vc;
  vc_t link_vc_q;
  logic [3:0][127:0] in_data, out_data;
  count_t [3:0][2:0] in_freed, out_freed_q, out_held_q, out_avail, used_q;
  logic [2:0] in_count_q, out_count_q;

  assign in_vc = {3'd2, 3'd1, 3'd0, open_q[0] ? link_vc_q : vc_t'(link_class_i % 2'd3)};
  for (genvar p = 0; p < 4; p++) begin : gen_in
    count_t avail;
    logic [3:0] hop;
    assign avail = count_t'(BufferUnits) + in_freed[p][in_vc[p][1:0]] - used_q[p][in_vc[p][1:0]];
    assign hop = leave_i[p] ? 4'd0 : HopLocal;
    assign in_sop[p] = !open_q[p];
    assign in_eop[p] = end_i[p] || place_q[p] == 2'd3;
    assign in_valid[p] = want_i[p] && (open_q[p] || avail >= count_t'(Need));
    assign in_data[p] = {117'b0, in_count_q, hop, 3'b0, !open_q[p]};
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        open_q[p]  <= 1'b0;
        place_q[p] <= '0;
        used_q[p]  <= '0;
      end else if (in_valid[p]) begin
        open_q[p]  <= !in_eop[p];
        place_q[p] <= in_eop[p] ? '0 : place_q[p] + 1'b1;
        if (in_sop[p]) used_q[p][in_vc[p][1:0]] <= used_q[p][in_vc[p][1:0]] + 1'b1;
      end
    end
    // A packet here is one unit: what is behind an output holds it until it is returned.
    for (genvar v = 0; v < 3; v++) begin : gen_out
      logic gets, returns;
      assign gets = out_valid[p] && out_sop[p] && out_vc[p] == vc_t'(v);
      assign returns = return_i[p][v] && out_held_q[p][v] != '0;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) begin
          out_held_q[p][v]  <= '0;
          out_freed_q[p][v] <= '0;
        end else begin
          out_held_q[p][v]  <= out_held_q[p][v] + count_t'(gets) - count_t'(returns);
          out_freed_q[p][v] <= out_freed_q[p][v] + count_t'(returns);
        end
      end
      `VELO_ASSERT(SinkNeverOverrun, out_held_q[p][v] <= count_t'(OutCredits))
      // What the switch believes to be free is. It learns late of what was returned, at once of what it used.
      `VELO_ASSERT(NoCreditTwice, out_avail[p][v] + out_held_q[p][v] <= count_t'(OutCredits))
      `VELO_ASSERT(InputCredits, count_t'(used_q[p][v] - in_freed[p][v]) <= count_t'(BufferUnits))
    end
  end

  velo_switch #(
      .DataWidth  (128),
      .NumLinks   (1),
      .NumVcs     (3),
      .MtuBytes   (64),
      .BufferUnits(BufferUnits),
      .Congestion (1'b1)
  ) u_dut (
      .table_we_i   (1'b0),
      .table_node_i ('0),
      .table_hop_i  ('0),
      .table_group_i('0),
      // Each packet that leaves by the port of requests gets a mark.
      .mark_enable_i(1'b1),
      .mark_cycles_i('0),
      .in_valid_i   (in_valid),
      .in_sop_i     (in_sop),
      .in_eop_i     (in_eop),
      .in_poison_i  ('0),
      .in_again_i   ('0),
      .in_vc_i      (in_vc),
      .in_data_i    (in_data),
      .in_freed_o   (in_freed),
      .out_valid_o  (out_valid),
      .out_sop_o    (out_sop),
      .out_eop_o    (out_eop),
      .out_poison_o (),
      .out_vc_o     (out_vc),
      .out_data_o   (out_data),
      .out_stop_i   ({3'b0, stop_i}),
      .out_credits_i({4{count_t'(OutCredits)}}),
      .out_freed_i  (out_freed_q),
      .out_avail_o  (out_avail),
      .out_waited_o (out_waited),
      .out_sink_i   ({3'b0, sink_i}),
      .out_sunk_o   (out_sunk),
      .dropped_o    (dropped),
      .ecc_o        (),
      .*
  );

  // The link leads nowhere until it was stopped for four cycles (velo_router_sink keeps it so for longer).
  logic [2:0] stopped_q;
  logic sink_was_q;
  always_ff @(posedge clk_i) begin
    sink_was_q <= rst_ni && sink_i;
    stopped_q  <= !rst_ni || !stop_i ? '0 : stopped_q + 3'(stopped_q != 3'd4);
  end
  always_comb assume (sink_i || !sink_was_q || (stop_i && stopped_q == 3'd4));
  // Nothing is swallowed unless it began to leave while the link led nowhere: packets here have up to 4 words, with gaps.
  logic sunk_before_q;
  always_ff @(posedge clk_i) sunk_before_q <= rst_ni && (sunk_before_q || sink_i);
  `VELO_ASSERT(NothingSwallowedWithoutCause, !out_sunk[0] || sunk_before_q)
  `VELO_ASSERT(NodePortsSwallowNothing, out_sunk[3:1] == '0)
  `VELO_ASSERT(SwallowedDoesNotLeave, !(out_sunk[0] && out_valid[0]))
  `VELO_COVER(SwallowedThenPasses, out_valid[0] && out_eop[0] && sunk_before_q && !sink_i &&
              out_held_q[0][0] != '0)
  `VELO_COVER(SwallowedWithoutCredits, out_sunk[0] && out_held_q[0][0] != '0)

  // `out_waited_o` tells of packets that wait for the link, and of nothing else. Counted are packets for the link whose
  // first word has come, in this cycle and in those before, and packets that have ended behind its output. Of three
  // packets that came four cycles before and have not ended, at least one waits: one may be leaving, and the end of
  // another may be on its way through the output.
  logic [3:0][4:0] for_link_q;  // packets that have come, one to four cycles before
  logic [4:0] for_link, over_q;
  always_comb begin
    for_link = for_link_q[0];
    for (int p = 0; p < 4; p++) for_link += 5'(in_valid[p] && in_sop[p] && leave_i[p]);
  end
  always_ff @(posedge clk_i) begin
    for_link_q <= rst_ni ? {for_link_q[2:0], for_link} : '0;
    over_q     <= rst_ni ? over_q + 5'(out_sunk[0] || (out_valid[0] && out_eop[0])) : '0;
  end
  `VELO_ASSERT(WaitingIsSeen,
               out_waited[0] || for_link_q[3] < over_q + 5'd3)
  `VELO_ASSERT(NothingWaitsWithoutCause, !out_waited[0] || for_link_q[0] != over_q)
  `VELO_COVER(ThreeAreInside, for_link_q[3] == over_q + 5'd3 && over_q != '0)

  // Numbered: the words from node port 0 (port 1 here) to node port 0, if all of its packets go there.
  logic numbers;
  assign numbers = in_valid[1] && !(in_sop[1] && leave_i[1]);
  always_comb assume (!leave_i[1] && !(in_valid[0] && in_vc[0] == '0 && !leave_i[0]));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      in_count_q  <= '0;
      out_count_q <= '0;
      link_vc_q   <= '0;
    end else begin
      if (numbers) in_count_q <= in_count_q + 1'b1;
      if (out_valid[1]) out_count_q <= out_count_q + 1'b1;
      if (in_valid[0]) link_vc_q <= in_vc[0];
    end
  end
  // The route word was shifted by a hop on its way, the other words were not.
  `VELO_ASSERT(InOrder, !out_valid[1] || out_data[1][(out_sop[1]?4 : 8)+:3] == out_count_q)
  `VELO_ASSERT(NothingDropped, dropped == '0)
  // Nothing came with a mark. First words that leave by port 1 have it, no other words, and none elsewhere.
  for (genvar p = 0; p < 4; p++) begin : gen_mark
    `VELO_ASSERT(MarkedByItsOwnPort,
                 !out_valid[p] || out_data[p][MarkBit] == (p == 1 && out_sop[p]))
  end
  // At each output packets are whole, of one channel, not longer than the longest that came.
  logic [3:0] out_open_q;
  logic [3:0][1:0] out_place_q;
  vc_t [3:0] out_vc_q;
  for (genvar p = 0; p < 4; p++) begin : gen_whole
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        out_open_q[p]  <= 1'b0;
        out_place_q[p] <= '0;
      end else if (out_valid[p]) begin
        out_open_q[p]  <= !out_eop[p];
        out_place_q[p] <= out_eop[p] ? '0 : out_place_q[p] + 1'b1;
      end
      if (out_valid[p]) out_vc_q[p] <= out_vc[p];
    end
    `VELO_ASSERT(OutFraming, !out_valid[p] || out_sop[p] == !out_open_q[p])
    `VELO_ASSERT(OneChannelAPacket, !(out_valid[p] && out_open_q[p]) || out_vc[p] == out_vc_q[p])
    `VELO_ASSERT(NotLongerThanItCame, !(out_valid[p] && out_place_q[p] == 2'd3) || out_eop[p])
  end
  `VELO_COVER(LongestLeaves, out_valid[1] && out_eop[1] && out_place_q[1] == 2'd3)
  `VELO_COVER(TwoLeaveAtOnce, out_valid[0] && out_eop[0] && out_valid[1] && out_eop[1])
  `VELO_COVER(CreditsRunOut, past_q && rst_ni && out_held_q[1][0] != '0 &&
              out_avail[1][0] < count_t'(Need))

endmodule
