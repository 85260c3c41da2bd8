// SPDX-License-Identifier: Apache-2.0
//
// The intake's promises, for every order of identifiers and lengths: a packet is handed on only if
// its lines came as first, middle, last with nothing between, as many as its header says; each
// packet that ended is counted, and each that is not handed on is counted as malformed; `pop_i` may
// come at any time a packet is there.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_intake_props
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,
    input logic rx_valid_i,
    input dimmnet_line_e rx_ident_i,
    input logic [63:0] rx_line_i,
    input logic pop_i,
    input logic [ 5:0] word_i
);

  logic rx_ready_o;
  logic head_valid_o;
  dimmnet_packet_t head_o;
  logic [63:0] data_o;
  logic received_o;
  logic malformed_o;

  dimmnet_intake u_dut (.*);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  `VELO_ASSUME(PopsWhatIsThere, !pop_i || head_valid_o)

  logic take, inside_q, clean_q, pushes_q;
  logic [7:0] lines_q;
  logic [127:0] header_q;
  assign take = rx_valid_i && rx_ready_o;
  logic ends, good;
  assign ends = take && rx_ident_i == DimmnetLineLast && inside_q;
  dimmnet_packet_t header;
  assign header = {lines_q == 8'd1 ? rx_line_i : header_q[127:64], header_q[63:0]};
  assign good = ends && clean_q && lines_q <= 8'd63 && 8'(header.words) + 8'd1 == lines_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= 1'b0;
    else if (take) begin
      if (rx_ident_i == DimmnetLineFirst) {inside_q, clean_q, lines_q} <= {2'b11, 8'd1};
      else if (rx_ident_i == DimmnetLineLast) inside_q <= 1'b0;
      else begin
        if (rx_ident_i == DimmnetLineNone) clean_q <= 1'b0;
      end
      if (rx_ident_i != DimmnetLineFirst && lines_q != 8'd200) lines_q <= lines_q + 8'd1;
      if (rx_ident_i == DimmnetLineFirst) header_q[63:0] <= rx_line_i;
      if (inside_q && lines_q == 8'd1) header_q[127:64] <= rx_line_i;
    end
  end

  // So many good ones came and were not popped: just those are there.
  logic [2:0] there_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) there_q <= '0;
    else there_q <= there_q + 3'(good) - 3'(pop_i);
  end
  `VELO_ASSERT(JustTheGoodOnes, head_valid_o == (there_q != '0))
  `VELO_ASSERT(GoodOnesAreNotCountedBad, !good || (received_o && !malformed_o))
  `VELO_ASSERT(BadOnesAreCounted, !(ends && !good) || (received_o && malformed_o))
  `VELO_ASSERT(BrokenOffIsCounted, !(take && inside_q && rx_ident_i == DimmnetLineFirst) ||
               (received_o && malformed_o))
  `VELO_ASSERT(CountedOnlyIfReceived, !malformed_o || received_o)

  // How the unit's registers go with that: what makes the induction close.
  `VELO_ASSERT(SamePacket, u_dut.inside_q == inside_q)
  `VELO_ASSERT(SameLines, !inside_q || (u_dut.good_q == clean_q && lines_q != '0 &&
               lines_q <= 8'd200 &&
               u_dut.lines_q == (lines_q > 8'd65 ? 7'd65 : lines_q[6:0])))
  `VELO_ASSERT(SameHeader, !inside_q || (u_dut.word_0_q == header_q[63:0] &&
               (lines_q == 8'd1 || u_dut.word_1_q == header_q[127:64])))
  `VELO_ASSERT(SameCount, there_q == u_dut.u_headers.count_o && there_q <= 3'd4)
  `VELO_ASSERT(SlotsInStep, u_dut.write_slot_q - u_dut.read_slot_q == there_q[1:0])

  // Nothing of a packet that waits is overwritten.
  `VELO_ASSERT(SlotIsFree, !(u_dut.u_lines.we_i && head_valid_o) ||
               u_dut.write_slot_q != u_dut.read_slot_q || !u_dut.take)

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (good && header.words == 7'd4);
      cover (malformed_o && ends && lines_q == 8'd3);
      cover (there_q == 3'd3);
    end
  end

endmodule
