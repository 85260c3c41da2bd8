// SPDX-License-Identifier: Apache-2.0
//
// Network port of one traffic class, from the network: the buffer that a stalled unit fills before its
// class, and no other, is held back by credits. Takes the route word, if there is one, off the packet:
// a unit sees the header first.
//
// `in_*` words from the switch's node port, no ready; `freed_o` counts the buffer's freed units.
// `out_*` valid/ready stream. Latency one cycle, plus that of a route word. Errors: none.
// Source: case-for-fpga, section 3, "Network Ports".

`include "velo_assert.svh"

module velo_netport_rx
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth   = 32,
    parameter int unsigned BufferUnits = 30
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                   in_valid_i,
    input  logic                   in_sop_i,
    input  logic                   in_eop_i,
    input  logic   [DataWidth-1:0] in_data_i,
    output count_t                 freed_o,

    output logic                 out_valid_o,
    input  logic                 out_ready_i,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic [DataWidth-1:0] out_data_o
);

  localparam int unsigned FifoWords = 2 ** $clog2(BufferUnits * UnitWords);
  localparam bit Narrow = DataWidth == 32;
  typedef logic [$clog2(UnitWords)-1:0] off_t;

  logic valid, ready, sop, eop, pop, strip, route_q, first_q;
  logic [$clog2(FifoWords):0] count;
  logic [DataWidth-1:0] data;
  off_t off_q, off;

  velo_fifo #(
      .Width(DataWidth + 2),
      .Depth(FifoWords)
  ) u_fifo (
      .clk_i,
      .rst_ni,
      .push_valid_i(in_valid_i),
      .push_ready_o(ready),
      .push_data_i ({in_sop_i, in_eop_i, in_data_i}),
      .pop_valid_o (valid),
      .pop_ready_i (pop),
      .pop_data_o  ({sop, eop, data}),
      .count_o     (count)
  );

  // A route is one word, two on the narrow path; the word after it is the packet's first.
  assign strip = (sop && data[0]) || (Narrow && route_q);
  assign pop = valid && (strip || out_ready_i);
  assign out_valid_o = valid && !strip;
  assign out_sop_o = sop || first_q;
  assign out_eop_o = eop;
  assign out_data_o = data;
  assign off = sop ? '0 : off_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      route_q <= 1'b0;
      first_q <= 1'b0;
      freed_o <= '0;
    end else if (pop) begin
      route_q <= sop && data[0];
      first_q <= strip;
      // Each unit of the sender's reckoning, when its last word leaves.
      if (eop || off == '1) freed_o <= freed_o + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (pop) off_q <= off + 1'b1;
  end

  logic unused;
  assign unused = &{1'b0, count};

  `VELO_ASSUME(CreditsKept, !in_valid_i || ready)

endmodule
