// SPDX-License-Identifier: Apache-2.0
//
// Lets a packet begin only when what follows has room for all of it.
//
// Both sides valid/ready; data and `sop` go past. `out_room_i`: the other side takes the longest packet
// without a wait, though it may hold its first beat (velo_congestion_throttle). Until that is taken, its unit
// may take it back; then the rest follows as fast as it comes. Combinational, adds no cycle. Errors: none.

module velo_packet_gate (
    input logic clk_i,
    input logic rst_ni,

    input  logic in_valid_i,
    output logic in_ready_o,
    input  logic in_eop_i,

    output logic out_valid_o,
    input  logic out_ready_i,
    input  logic out_room_i
);

  logic open_q, pass;

  assign pass        = open_q || out_room_i;
  assign out_valid_o = in_valid_i && pass;
  assign in_ready_o  = out_ready_i && pass;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (out_valid_o && out_ready_i) open_q <= !in_eop_i;
  end

endmodule
