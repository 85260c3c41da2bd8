// SPDX-License-Identifier: Apache-2.0
//
// Lines of CoreLogic become packets of kind custom, one packet each, its lines the payload; a packet of CoreLogic,
// 64 lines at most, is as long as the longest payload of a packet, so nothing is cut.
//
// A packet leaves only when its last line is here: CoreLogic may wait for memory inside one, and a unit that stops
// inside its packet stops the others. The header comes in the cycle after the last line, then a line in each
// beat, or two (128 bits), or a line in two beats (32 bits). There is room for two of the longest packets; lines wait
// while there is none.
// What cannot be delivered is taken and dropped, and `unreachable_o` pulses once: for a LID that is no node's (with
// `Multicast` those of groups, too), for a peer that is stopped, from a LID that is not this node's, or if the unit is
// not enabled. All of that is looked at with the first line.
//
// `line_*`: valid/ready, as of dimmnet_core. `net_*`: as in velo_net_pkg, request class.

`include "velo_assert.svh"

module dimmnet_unit_send
  import velo_pkg::*;
  import dimmnet_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned PacketLines = DimmnetWindowWords,  // of the longest packet
    parameter int unsigned Lines = 2 * PacketLines,  // that wait here; a power of two
    parameter bit Multicast = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic        enabled_i,      // else all is dropped
    input  logic [ 7:0] node_id_i,      // this node
    input  logic [15:0] stop_i,         // peers, by the lowest four bits of their LIDs
    output logic        unreachable_o,  // a packet is dropped
    output logic        idle_o,         // no packet is here

    input  logic                 line_valid_i,  // a line
    output logic                 line_ready_o,  // it is taken
    input  dimmnet_line_e        line_ident_i,  // which of its packet's
    input  logic          [63:0] line_i,        // the line

    output logic                 net_valid_o,
    input  logic                 net_ready_i,
    output logic                 net_sop_o,
    output logic                 net_eop_o,
    output logic [DataWidth-1:0] net_data_o
);

  localparam int unsigned CountBits = $clog2(Lines) + 1;

  // ----- lines in -------------------------------------------------------------------------------

  dimmnet_packet_t to;  // of a first line; the second one is not needed here
  logic first, last, bad, drop, drop_q, inside_q, room, push, pop, head_last;
  logic [63:0] head;
  logic head_valid;
  logic [CountBits-1:0] fill;

  assign to = {64'b0, line_i};
  assign first = line_ident_i == DimmnetLineFirst;
  assign last = line_ident_i == DimmnetLineLast;
  assign bad = !enabled_i || stop_i[to.dst_lid[3:0]] ||
      to.src_lid != 16'(DimmnetLidOfNode) + 16'(node_id_i) ||
      to.dst_lid[15:8] != 8'(DimmnetLidOfNode >> 8) ||
      (Multicast && to.dst_lid[7:0] >= 8'(GroupNodeMin));
  assign drop = first ? bad : drop_q;
  assign line_ready_o = drop || room;
  assign push = line_valid_i && !drop;
  assign unreachable_o = line_valid_i && first && bad;

  velo_fifo #(
      .Width(65),
      .Depth(Lines)
  ) u_lines (
      .clk_i,
      .rst_ni,
      .push_valid_i(push),
      .push_ready_o(room),
      .push_data_i ({last, line_i}),
      .pop_valid_o (head_valid),
      .pop_ready_i (pop),
      .pop_data_o  ({head_last, head}),
      .count_o     (fill)
  );

  // Packets that are here whole.
  logic [CountBits-1:0] whole_q;
  logic whole_in, whole_out;
  assign whole_in  = push && room && last;
  assign whole_out = pop && head_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      whole_q  <= '0;
      drop_q   <= 1'b0;
      inside_q <= 1'b0;
    end else begin
      if (whole_in != whole_out) whole_q <= whole_in ? whole_q + 1'b1 : whole_q - 1'b1;
      if (line_valid_i && line_ready_o) begin
        if (first) drop_q <= bad;
        inside_q <= !last;
      end
    end
  end
  assign idle_o = !inside_q && fill == '0;

  // ----- packets out ----------------------------------------------------------------------------

  packet_t header;
  dimmnet_packet_t of;
  logic lines_q;  // the header is gone
  logic word_valid, word_ready, word_eop;

  assign of = {64'b0, head};
  always_comb begin
    header          = '0;
    header.tc       = TrafficClassRequest;
    header.kind     = PacketKindCustom;
    header.dst_node = of.dst_lid[7:0];
    header.len      = {7'(of.words + 7'(DimmnetHeaderWords)), 3'b0};
    header.src_node = node_id_i;
  end

  assign word_valid = head_valid && whole_q != '0;
  assign word_eop   = lines_q && head_last;
  assign pop        = word_valid && word_ready && lines_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) lines_q <= 1'b0;
    else if (word_valid && word_ready) lines_q <= !word_eop;
  end

  logic [63:0] word;
  assign word = lines_q ? head : header;

  if (DataWidth == 32) begin : gen_narrow
    velo_narrow #(
        .Width    (64),
        .HalfWidth(32)
    ) u_beats (
        .clk_i,
        .rst_ni,
        .in_valid_i (word_valid),
        .in_ready_o (word_ready),
        .in_sop_i   (!lines_q),
        .in_eop_i   (word_eop),
        .in_single_i(1'b0),
        .in_data_i  (word),
        .out_valid_o(net_valid_o),
        .out_ready_i(net_ready_i),
        .out_sop_o  (net_sop_o),
        .out_eop_o  (net_eop_o),
        .out_data_o (net_data_o)
    );
  end else begin : gen_wide
    velo_widen #(
        .Width    (DataWidth),
        .HalfWidth(64)
    ) u_beats (
        .clk_i,
        .rst_ni,
        .in_valid_i (word_valid),
        .in_ready_o (word_ready),
        .in_sop_i   (!lines_q),
        .in_eop_i   (word_eop),
        .in_single_i(!lines_q),
        .in_data_i  (word),
        .out_valid_o(net_valid_o),
        .out_ready_i(net_ready_i),
        .out_sop_o  (net_sop_o),
        .out_eop_o  (net_eop_o),
        .out_data_o (net_data_o)
    );
  end

  logic unused;
  assign unused = ^{to, of};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(LongestPacketFits, Lines >= PacketLines)
  `VELO_ASSERT_INIT(LidIsNodeBelow, DimmnetLidOfNode % 256 == 0 && DimmnetLidOfNode != 0)
  // A whole packet has its lines here: it goes on without a gap.
  `VELO_ASSERT(WholePacketIsHere, whole_q == '0 || head_valid)
  `VELO_ASSERT(BegunPacketIsWhole, !lines_q || whole_q != '0)
  // So much of the longest packet fits that lines never wait for lines behind them.
  `VELO_ASSERT(FullMeansWhole, room || whole_q != '0)

endmodule
