// SPDX-License-Identifier: Apache-2.0
//
// A buffer that offers a packet or transaction only when all of it is in: what comes in slowly leaves in
// one go, and holds a way that others share for no longer than its own beats.
//
// Both sides valid/ready; `eop` marks a transaction's last beat; its first beat leaves a cycle after its
// last one came. `in_room_o`: there is room for `RoomBeats`, a beat that came in this cycle not counted. No
// transaction is longer than Depth, or it would never leave. Errors: none.

`include "velo_assert.svh"

module velo_whole #(
    parameter int unsigned Width = 32,
    parameter int unsigned Depth = 8,
    parameter int unsigned RoomBeats = Depth
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic             in_valid_i,
    output logic             in_ready_o,
    output logic             in_room_o,
    input  logic             in_eop_i,
    input  logic [Width-1:0] in_data_i,

    output logic             out_valid_o,
    input  logic             out_ready_i,
    output logic             out_eop_o,
    output logic [Width-1:0] out_data_o
);

  localparam int unsigned CountBits = $clog2(Depth) + 1;

  logic valid, end_in, end_out;
  logic [CountBits-1:0] ends_q, count;  // ends: whole transactions inside

  velo_fifo #(
      .Width(Width + 1),
      .Depth(Depth)
  ) u_fifo (
      .clk_i,
      .rst_ni,
      .push_valid_i(in_valid_i),
      .push_ready_o(in_ready_o),
      .push_data_i ({in_eop_i, in_data_i}),
      .pop_valid_o (valid),
      .pop_ready_i (out_ready_i && ends_q != '0),
      .pop_data_o  ({out_eop_o, out_data_o}),
      .count_o     (count)
  );

  assign in_room_o   = 32'(count) + RoomBeats <= Depth;
  assign out_valid_o = valid && ends_q != '0;
  assign end_in      = in_valid_i && in_ready_o && in_eop_i;
  assign end_out     = out_valid_o && out_ready_i && out_eop_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) ends_q <= '0;
    else ends_q <= ends_q + CountBits'(end_in) - CountBits'(end_out);
  end

  `VELO_ASSERT(NoLongerThanDepth, in_ready_o || ends_q != '0)
  `VELO_ASSERT(EndsAreInside, ends_q <= count)

endmodule
