// SPDX-License-Identifier: Apache-2.0
//
// At the source: takes notices of congestion out of the class of completions.
//
// Packets pass from `in_*` to `out_*` (both valid/ready) without a cycle more, except those of kind
// `congestion`: such a packet is taken at once, whatever its length, and `notice_valid_o` pulses with
// the node that it came from. So a notice never waits for a unit, and no unit ever sees one.
// Errors: none.
// Source: VELO paper, section 3, "Buffer requirements and flow control", which names congestion management
// and does not say how it is done.

`include "velo_assert.svh"

module velo_congestion_intake
  import velo_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,  // clock of the core
    input logic rst_ni, // asynchronous reset

    input  logic                 in_valid_i,  // completions from the network
    output logic                 in_ready_o,
    input  logic                 in_sop_i,
    input  logic                 in_eop_i,
    input  logic [DataWidth-1:0] in_data_i,

    output logic                 out_valid_o,  // the same, without notices
    input  logic                 out_ready_i,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic [DataWidth-1:0] out_data_o,

    output logic       notice_valid_o,  // pulse
    output logic [7:0] notice_node_o    // the way to this node is congested
);

  localparam bit Narrow = DataWidth == 32;

  logic is_notice, notice_q, second_q, takes;
  packet_t header;

  assign is_notice   = in_sop_i ? in_data_i[7:4] == PacketKindCongestion : notice_q;
  assign takes       = in_valid_i && is_notice;
  assign in_ready_o  = is_notice || out_ready_i;
  assign out_valid_o = in_valid_i && !is_notice;
  assign out_sop_o   = in_sop_i;
  assign out_eop_o   = in_eop_i;
  assign out_data_o  = in_data_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      notice_q <= 1'b0;
      second_q <= 1'b0;
    end else if (in_valid_i && in_ready_o) begin
      notice_q <= is_notice && !in_eop_i;
      second_q <= is_notice && in_sop_i && !in_eop_i;
    end
  end

  // On the narrow path the sender stands in the header's second word.
  if (Narrow) begin : gen_narrow
    assign notice_valid_o = takes && second_q;
    assign header = packet_t'({in_data_i, 32'b0});
  end else begin : gen_wide
    assign notice_valid_o = takes && in_sop_i;
    assign header = packet_t'(in_data_i[63:0]);
  end
  assign notice_node_o = header.src_node;

  logic unused;
  assign unused = ^{header, second_q};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})

endmodule
