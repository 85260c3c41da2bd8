// SPDX-License-Identifier: Apache-2.0
//
// Does a way lead to this node? A copy of the routing table for a unit that refuses what would be lost.
//
// `none_o`, in the cycle after `node_i`: the table has no way to it, it is a group's number, or the way begins with a
// dead link (velo_router_sink). What happens beyond this node's links is not known here. Errors: none.

`include "velo_assert.svh"

module velo_node_way
  import velo_pkg::*;
  import velo_switch_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter bit Multicast = 1'b0  // numbers from GroupNodeMin on are of groups
) (
    input logic clk_i,
    input logic rst_ni,

    input logic       table_we_i,    // write this entry
    input logic [7:0] table_node_i,  // number of a node
    input hop_t       table_hop_i,   // the way to it
    input logic [7:0] dead_i,        // by link

    input  logic [7:0] node_i,
    output logic       none_o
);

  hop_t hop;
  velo_switch_table u_table (
      .clk_i,
      .rst_ni,
      .table_we_i,
      .table_node_i,
      .table_hop_i,
      .node_i,
      .hop_o(hop)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) none_o <= 1'b0;
    else begin
      none_o <= hop == HopNone || (hop != HopLocal && dead_i[hop[2:0]]) ||
          (Multicast && node_i >= 8'(GroupNodeMin));
    end
  end

endmodule
