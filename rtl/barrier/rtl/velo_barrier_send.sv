// SPDX-License-Identifier: Apache-2.0
//
// Packets without payload that a node has to send for its barriers, of one traffic class, in order.
//
// `push_*`: target and tag of one; there has to be room for it, `Depth` of them at most. `out_*`: packets,
// valid/ready, the first beat from the next cycle on. `sent_o` pulses with the last beat; `header_o` is that of
// the packet at the output. Errors: none.

`include "velo_assert.svh"

module velo_barrier_send
  import velo_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned Depth = 32,
    parameter traffic_class_e Class = TrafficClassRequest,
    parameter packet_kind_e Kind = PacketKindVelo
) (
    input logic clk_i,  // clock of the core
    input logic rst_ni, // asynchronous reset

    input logic [7:0] node_id_i,  // the sender

    input logic       push_valid_i,
    input logic [7:0] push_node_i,   // target node
    input logic [7:0] push_ctx_i,    // target context, and the sender's
    input logic [7:0] push_tag_i,

    output logic                 out_valid_o,
    input  logic                 out_ready_i,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic [DataWidth-1:0] out_data_o,

    output logic    sent_o,
    output packet_t header_o
);

  logic ready, second_q;
  logic [7:0] node, ctx, tag;
  logic [$clog2(Depth):0] unused_count;

  velo_fifo #(
      .Width(24),
      .Depth(Depth)
  ) u_fifo (
      .clk_i,
      .rst_ni,
      .push_valid_i(push_valid_i),
      .push_ready_o(ready),
      .push_data_i ({push_node_i, push_ctx_i, push_tag_i}),
      .pop_valid_o (out_valid_o),
      .pop_ready_i (out_ready_i && out_eop_o),
      .pop_data_o  ({node, ctx, tag}),
      .count_o     (unused_count)
  );

  always_comb begin
    header_o          = '0;
    header_o.tc       = Class;
    header_o.kind     = Kind;
    header_o.dst_node = node;
    header_o.dst_ctx  = ctx;
    header_o.tag      = tag;
    header_o.src_ctx  = ctx;
    header_o.src_node = node_id_i;
  end

  assign out_sop_o = !second_q;
  assign sent_o    = out_valid_o && out_ready_i && out_eop_o;

  if (DataWidth == 32) begin : gen_halves
    assign out_eop_o  = second_q;
    assign out_data_o = second_q ? header_o[63:32] : header_o[31:0];
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) second_q <= 1'b0;
      else if (out_valid_o && out_ready_i) second_q <= !second_q;
    end
  end else begin : gen_whole
    assign out_eop_o  = 1'b1;
    assign out_data_o = DataWidth'(header_o);
    assign second_q   = 1'b0;
  end

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSUME(RoomForEach, !push_valid_i || ready)

endmodule
