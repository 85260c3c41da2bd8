// SPDX-License-Identifier: Apache-2.0
//
// At the destination: tells the senders of marked packets that the way here is congested.
//
// Packets of the request class pass from `in_*` to `out_*` (both valid/ready) without a cycle more;
// the mark is taken off the header. A marked packet's sender gets a notice: a packet of the class of
// completions that is a header and nothing else. One notice is on its way out at a time, and between
// two of them there are `notice_cycles_i` cycles; marked packets that come meanwhile cause none. So
// each sender gets them in proportion to its part of the congestion, and requests never wait for the
// class of completions, which would couple the two.
//
// `notice_*`: valid/ready, one packet, whole. Errors: none.
// Source: VELO paper, section 3, "Buffer requirements and flow control", which names congestion management
// and does not say how it is done.

`include "velo_assert.svh"

module velo_congestion_notice
  import velo_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,  // clock of the core
    input logic rst_ni, // asynchronous reset

    input logic       enable_i,        // give notices
    input logic [7:0] node_id_i,       // this node
    input logic [7:0] notice_cycles_i, // at least, between two notices

    input  logic                 in_valid_i,  // requests from the network
    output logic                 in_ready_o,
    input  logic                 in_sop_i,
    input  logic                 in_eop_i,
    input  logic [DataWidth-1:0] in_data_i,

    output logic                 out_valid_o,  // the same, without marks
    input  logic                 out_ready_i,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic [DataWidth-1:0] out_data_o,

    output logic                 notice_valid_o,  // to the network, class completion
    input  logic                 notice_ready_i,
    output logic                 notice_sop_o,
    output logic                 notice_eop_o,
    output logic [DataWidth-1:0] notice_data_o,

    output logic marked_o,  // pulse: a marked packet came
    output logic suppressed_o  // with it: it causes no notice, so soon behind the last one
);

  localparam bit Narrow = DataWidth == 32;
  localparam packet_t Mark = '{marked: 1'b1, default: '0};

  logic moves, marked, due_q, second_q, upper_q, sends_q;
  logic [7:0] to_q, rest_q;
  packet_t header, notice;

  assign in_ready_o  = out_ready_i;
  assign out_valid_o = in_valid_i;
  assign out_sop_o   = in_sop_i;
  assign out_eop_o   = in_eop_i;
  assign moves       = in_valid_i && out_ready_i;
  assign marked      = in_sop_i && (in_data_i[31:0] & Mark[31:0]) != '0;
  assign marked_o    = moves && marked;

  always_comb begin
    out_data_o = in_data_i;
    if (in_sop_i) out_data_o[31:0] = in_data_i[31:0] & ~Mark[31:0];
  end

  // On the narrow path the sender stands in the header's second word.
  if (Narrow) begin : gen_narrow
    assign header = packet_t'({in_data_i, 32'b0});
  end else begin : gen_wide
    assign header = packet_t'(in_data_i[63:0]);
  end

  // `due_q`: a notice is to be made for the packet at hand, once its sender has been seen.
  logic wants, learns;
  assign wants        = marked_o && enable_i && !sends_q && rest_q == '0;
  assign suppressed_o = marked_o && enable_i && !wants;
  assign learns       = moves && (Narrow ? second_q && due_q : wants);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      due_q    <= 1'b0;
      second_q <= 1'b0;
      sends_q  <= 1'b0;
      upper_q  <= 1'b0;
      rest_q   <= '0;
    end else begin
      if (moves) begin
        second_q <= in_sop_i && !in_eop_i;
        due_q    <= Narrow && wants && !in_eop_i;
      end
      if (learns) begin
        sends_q <= 1'b1;
        rest_q  <= notice_cycles_i;
      end else if (rest_q != '0) begin
        rest_q <= rest_q - 1'b1;
      end
      if (notice_valid_o && notice_ready_i) begin
        upper_q <= Narrow && !upper_q;
        if (notice_eop_o) sends_q <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (learns) to_q <= header.src_node;
  end

  always_comb begin
    notice          = '0;
    notice.tc       = TrafficClassCompletion;
    notice.kind     = PacketKindCongestion;
    notice.dst_node = to_q;
    notice.src_node = node_id_i;
  end

  assign notice_valid_o = sends_q;
  assign notice_sop_o   = !upper_q;
  assign notice_eop_o   = !Narrow || upper_q;
  if (Narrow) begin : gen_narrow_notice
    assign notice_data_o = upper_q ? notice[63:32] : notice[31:0];
  end else begin : gen_wide_notice
    assign notice_data_o = DataWidth'(notice);
  end

  logic unused;
  assign unused = ^header;

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  // A notice is not changed under the network's hands.
  `VELO_ASSERT(OneAtATime, !(learns && sends_q))

endmodule
