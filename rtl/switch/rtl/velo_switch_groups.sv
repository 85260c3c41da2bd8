// SPDX-License-Identifier: Apache-2.0
//
// Table of multicast groups: which outputs of this switch does a group's packet leave by?
//
// Written through `table_*_i`, as the routing table; a write for a number that is no group's changes nothing.
// `way_o`, combinational: the way of group `group_i`; no output until it was written since the reset.
// Errors: none. Source: InfiniBand Architecture Specification, multicast forwarding table (a mask of ports for
// each number of a reserved range of destinations).

module velo_switch_groups
  import velo_switch_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input logic               table_we_i,    // a write of either table
    input logic         [7:0] table_node_i,  // for this number
    input group_ports_t       table_group_i, // the way, if the number is a group's

    input  logic         [GroupBits-1:0] group_i,  // which group
    output group_ports_t                 way_o     // its way
);

  (* ram_style = "distributed" *)
  group_ports_t mem[NumGroups];
  logic [NumGroups-1:0] written_q;
  logic [GroupBits-1:0] table_group;
  logic we;

  assign we = table_we_i && is_group(table_node_i);
  assign table_group = table_node_i[GroupBits-1:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) written_q <= '0;
    else if (we) written_q[table_group] <= 1'b1;
  end
  always_ff @(posedge clk_i) if (we) mem[table_group] <= table_group_i;

  assign way_o = written_q[group_i] ? mem[group_i] : '0;

endmodule
