// SPDX-License-Identifier: Apache-2.0
//
// What dimmnet_unit_receive promises, for packets of any length and contents, and settings that change at any time: of
// a packet all lines go on or none, each once, unchanged, in order, named by their place; each one that does not is
// counted once; only CoreLogic holds up the network. On paths of 32, 64 and 128 bits. Granted: the network's framing,
// and on a path of 128 bits, which has padding, nothing else.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_unit_receive_props
  import velo_pkg::*;
  import dimmnet_pkg::*;
#(
    parameter int unsigned DataWidth = 64
) (
    input logic clk_i,
    input logic rst_ni,
    input logic enabled_i,
    input logic [7:0] node_id_i,
    input logic [15:0] stop_i,
    input logic net_valid_i,
    input logic net_sop_i,
    input logic net_eop_i,
    input logic [DataWidth-1:0] net_data_i,
    input logic line_ready_i
);

  logic foreign_o, malformed_o, idle_o, net_ready_o, line_valid_o;
  dimmnet_line_e line_ident_o;
  logic [63:0] line_o;

  dimmnet_unit_receive #(
      .DataWidth(DataWidth)
  ) u_dut (
      .*
  );

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // ----- what comes -----------------------------------------------------------------------------

  logic take, inside_q, stands_q;
  logic [DataWidth+1:0] beat_q;
  assign take = net_valid_i && net_ready_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= 1'b0;
    else if (take) inside_q <= !net_eop_i;
    stands_q <= rst_ni && net_valid_i && !net_ready_o;
    beat_q   <= {net_sop_i, net_eop_i, net_data_i};
  end
  `VELO_ASSUME(Framing, !net_valid_i || net_sop_i == !inside_q)
  `VELO_ASSUME(BeatsStand, !stands_q || (net_valid_i &&
               beat_q == {net_sop_i, net_eop_i, net_data_i}))
  logic half_q, word, last, odd_q, upper;
  // A packet has whole words.
  `VELO_ASSUME(WholeWords, DataWidth != 32 || !net_valid_i || !net_eop_i || half_q)

  // The words of a packet, by the beats: a word is there with its last beat, or is a half of one.
  logic [31:0] low_q;
  logic [63:0] now;
  packet_t header;
  if (DataWidth == 32) begin : gen_narrow
    assign word  = net_valid_i && half_q;
    assign last  = net_eop_i;
    assign now   = {net_data_i[31:0], low_q};
    assign upper = 1'b0;
  end else if (DataWidth == 64) begin : gen_same
    assign word  = net_valid_i;
    assign last  = net_eop_i;
    assign now   = net_data_i[63:0];
    assign upper = 1'b0;
  end else begin : gen_wide
    // A header's beat and an odd packet's last one have one word.
    logic one;
    assign one   = net_sop_i || (net_eop_i && odd_q);
    assign upper = half_q;
    assign word  = net_valid_i;
    assign last  = net_eop_i && (one || half_q);
    assign now   = half_q ? net_data_i[DataWidth-1:DataWidth-64] : net_data_i[63:0];
  end
  assign header = packet_t'(now);

  // ----- what becomes of it -----------------------------------------------------------------------

  // Of this packet: words that were looked at, the verdict.
  logic [1:0] words_q;  // stops at 2
  logic good_q, first, named, passes;
  logic [7:0] src_q;
  logic word_take;
  dimmnet_packet_t line;
  assign line = {64'b0, now};
  assign first = words_q == 2'd0;
  assign named = line.src_lid == 16'(DimmnetLidOfNode) + 16'(src_q);
  assign passes = word && !first && good_q && (words_q != 2'd1 || (named && !last));
  assign word_take = word && (line_ready_i || !passes);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      words_q <= '0;
      half_q  <= 1'b0;
    end else begin
      if (DataWidth == 32 ? net_valid_i && !half_q : 1'b0) begin
        half_q <= 1'b1;
        low_q  <= net_data_i[31:0];
      end
      if (word_take) begin
        if (DataWidth == 32) half_q <= 1'b0;
        if (DataWidth == 128) half_q <= !upper && !net_sop_i && !(net_eop_i && odd_q);
        words_q <= last ? '0 : words_q == 2'd2 ? 2'd2 : words_q + 1'b1;
        if (first) begin
          good_q <= enabled_i && header.dst_node == node_id_i && !stop_i[header.src_node[3:0]];
          src_q  <= header.src_node;
          odd_q  <= header.len[3] ^ |header.len[2:0];
        end else if (words_q == 2'd1) good_q <= passes;
      end
    end
  end

  `VELO_ASSERT(JustTheGoodOnes, line_valid_o == passes)
  `VELO_ASSERT(SameLine, !line_valid_o || line_o == now)
  `VELO_ASSERT(NamedByPlace, !line_valid_o || line_ident_o == (words_q == 2'd1 ? DimmnetLineFirst :
               last ? DimmnetLineLast : DimmnetLineMiddle))
  `VELO_ASSERT(CoreLogicAloneHolds, !net_valid_i || net_ready_o ||
               (line_valid_o && !line_ready_i) ||
               (DataWidth == 128 && !upper))
  `VELO_ASSERT(TakenWithItsWords, DataWidth == 128 || !word || net_ready_o == word_take)

  // Counted: with the word that decides, and no other.
  logic decides_bad;
  assign decides_bad = word && (first ?
      !(enabled_i && header.dst_node == node_id_i && !stop_i[header.src_node[3:0]]) || last :
      words_q == 2'd1 && good_q && (!named || last));
  `VELO_ASSERT(CountedOnce, (foreign_o || malformed_o) == decides_bad)
  `VELO_ASSERT(ForOneReason, !(foreign_o && malformed_o))
  `VELO_ASSERT(CountedWhenTaken, !decides_bad || word_take)
  `VELO_ASSERT(IdleBetween, idle_o == first)

  // ----- what makes the induction close -----------------------------------------------------------

  `VELO_ASSERT(SameState, words_q != 2'd3 && (words_q == '0 ? u_dut.state_q == 2'd0 :
               !good_q ? u_dut.state_q == 2'd3 : words_q == 2'd1 ?
               u_dut.state_q == 2'd1 : u_dut.state_q == 2'd2))
  `VELO_ASSERT(SameSource, words_q != 2'd1 || !good_q || u_dut.src_node_q == src_q)
  if (DataWidth == 32) begin : gen_state
    `VELO_ASSERT(SameHalf, u_dut.gen_narrow.u_words.gen_halves.kept_q == half_q &&
                 (!half_q || u_dut.gen_narrow.u_words.gen_halves.lower_q == low_q) &&
                 (inside_q == (words_q != '0 || half_q)) &&
                 (!half_q || words_q != '0 || u_dut.gen_narrow.u_words.gen_halves.sop_q) &&
                 (!half_q || words_q == '0 || !u_dut.gen_narrow.u_words.gen_halves.sop_q))
  end else if (DataWidth == 64) begin : gen_state
    `VELO_ASSERT(SameInside, inside_q == (words_q != '0))
  end else begin : gen_state
    `VELO_ASSERT(SameHalf, u_dut.gen_wide.u_words.gen_halves.upper_q == half_q &&
                 (!half_q || (net_valid_i && !net_sop_i)) && inside_q == (words_q != '0) &&
                 (!inside_q || u_dut.gen_wide.odd_q == odd_q))
    `VELO_ASSERT(HalfStands, !half_q || stands_q)
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (line_valid_o && line_ready_i && line_ident_o == DimmnetLineLast && words_q == 2'd2);
      cover (foreign_o && words_q == 2'd1);
      cover (malformed_o && words_q == 2'd1);
      cover (foreign_o && words_q == 2'd0);
      cover (line_valid_o && !line_ready_i && line_ident_o == DimmnetLineMiddle);
    end
  end

endmodule
