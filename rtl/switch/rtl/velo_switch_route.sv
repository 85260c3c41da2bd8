// SPDX-License-Identifier: Apache-2.0
//
// First stage of an input: where does this packet go? One cycle.
//
// A packet either begins with a route word (bit 0 set): its hops are used and shifted on, the node
// after this one finds its own in the same place; or with the header, whose destination node is looked
// up in the table. On a 32-bit path the shift needs the route's second word, so the first one waits
// here for it; nothing else can come meanwhile.
//
// In and out: words with `valid` and no ready. `drop_o`: no such way, or a poisoned packet of one word; the
// packet is to be swallowed.
// `out_first_o`: a first word that is not to be swallowed, `out_next_o`: another one; `out_valid_o`: any.
// For this node, a packet leaves by the port of its class. Where there are several for requests, one a
// VELO unit, a message leaves by that of its target context's low bits, so all that is for a context goes
// one way; the rest, and a message behind a route word, whose header is not there yet, by the first one.
// `to_o` (one-hot), `vc_o`, `size_o` and `drop_o` hold for the packet's first word only. On a 32-bit path
// the header's second word ends its length, and is waited for by nobody: if it is late, or if a route word
// goes ahead of the header, the size is that of the longest packet.
// With Multicast, the last node numbers are groups (velo_switch_pkg): a message to one has `group_o` set, all
// outputs that get a copy in `to_o`, and in `dateline_o` the links where it takes the second channel. What is
// for a group and is no message leads nowhere. A route word names no group.
// The table is written through `table_*_i`, and leads nowhere until written.
// Source: case-for-fpga, section 3 ("source path routing"); high-message-rates, section 3.A.

`include "velo_assert.svh"

module velo_switch_route
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned NumNodePorts = NumClasses,
    parameter bit Multicast = 1'b0,
    localparam int unsigned NumPorts = NumLinks + NumNodePorts
) (
    input logic clk_i,
    input logic rst_ni,

    input logic               table_we_i,
    input logic         [7:0] table_node_i,
    input hop_t               table_hop_i,
    input group_ports_t       table_group_i, // the way of a group; unused without Multicast

    input logic                 in_valid_i,
    input logic                 in_sop_i,
    input logic                 in_eop_i,
    input logic                 in_poison_i,
    input logic                 in_again_i,
    input vc_t                  in_vc_i,
    input logic [DataWidth-1:0] in_data_i,

    output logic                  out_valid_o,
    output logic                  out_first_o,
    output logic                  out_next_o,
    output logic                  out_sop_o,
    output logic                  out_eop_o,
    output logic                  out_poison_o,
    output logic                  out_again_o,
    output vc_t                   out_in_vc_o,
    output logic  [DataWidth-1:0] out_data_o,
    output logic  [ NumPorts-1:0] to_o,
    output vc_t                   vc_o,
    output size_t                 size_o,
    output logic                  group_o,       // for all of `to_o`; with a packet's first word
    output logic  [ NumLinks-1:0] dateline_o,    // of a group, by link
    output logic                  drop_o
);

  localparam bit Narrow = DataWidth == 32;
  localparam int unsigned RouteBits = Narrow ? 32 : 64;  // of the route in its first word
  localparam int unsigned VcsPerClass = NumVcs / NumClasses;
  localparam int unsigned NumVelo = NumNodePorts - NumClasses + 1;

  // Everything about the way is decoded while the first word comes in, so that the stage behind, which
  // adds the packet to a queue, has it from registers.
  hop_t hop, table_hop;
  vc_t tc, vc;
  logic [NumPorts-1:0] to;
  logic in_routed, local_port, leads_nowhere;
  logic [1:0] unit;

  velo_switch_table u_table (
      .clk_i,
      .rst_ni,
      .table_we_i,
      .table_node_i,
      .table_hop_i,
      .node_i(in_data_i[15:8]),
      .hop_o (table_hop)
  );

  assign in_routed = in_sop_i && in_data_i[0];
  assign hop = in_routed ? in_data_i[7:4] : table_hop;
  assign tc = in_vc_i / vc_t'(VcsPerClass);

  group_ports_t group_way;
  logic group, group_nowhere;
  if (Multicast) begin : gen_groups
    velo_switch_groups u_groups (
        .clk_i,
        .rst_ni,
        .table_we_i,
        .table_node_i,
        .table_group_i,
        .group_i(in_data_i[8+:GroupBits]),
        .way_o  (group_way)
    );
    assign group = !in_routed && is_group(in_data_i[15:8]);
    assign group_nowhere = tc != '0 || in_data_i[7:4] != '0 ||
        {group_way.node, group_way.links[NumLinks-1:0]} == '0;
  end else begin : gen_no_groups
    logic unused_group;
    assign unused_group = ^table_group_i;
    assign group_way = '0;
    assign group = 1'b0;
    assign group_nowhere = 1'b0;
  end

  assign local_port = group ? group_way.node : hop == HopLocal;
  // Of a message (kind 0) the lowest bits of `dst_ctx`.
  assign unit = in_data_i[17:16] & {2{!in_routed && in_data_i[7:4] == '0}} & 2'(NumVelo - 1);
  // A channel that there is not comes with a header that the link believed wrongly.
  assign leads_nowhere = group ? group_nowhere :
      tc >= vc_t'(NumClasses) || ({1'b0, hop[2:0]} >= 4'(NumLinks) && !local_port);

  always_comb begin
    for (int l = 0; l < int'(NumLinks); l++) begin
      to[l] = group ? group_way.links[l] : hop[2:0] == 3'(l);
    end
    for (int c = 0; c < int'(NumClasses); c++) begin
      to[int'(NumLinks)+c] = local_port && tc == vc_t'(c) && (c != 0 || unit == '0);
    end
    for (int u = 1; u < int'(NumVelo); u++) begin
      to[int'(NumLinks+NumClasses)+u-1] = local_port && tc == '0 && unit == 2'(u);
    end
    vc = tc * vc_t'(VcsPerClass);
    if (VcsPerClass > 1 && !local_port && !group) vc[0] = hop[3];
  end

  logic valid_q, first_q, sop_q, eop_q, poison_q, again_q, routed, needs_q, waiting, drop;
  vc_t in_vc_q;
  logic [DataWidth-1:0] data_q;

  // A route of one word on the narrow path is not a route.
  assign drop = leads_nowhere || (in_eop_i && ((Narrow && in_routed) || in_poison_i));
  assign waiting = valid_q && needs_q && !in_valid_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      first_q <= 1'b0;
    end else begin
      valid_q <= in_valid_i || waiting;
      first_q <= waiting ? first_q : in_valid_i && in_sop_i && !drop;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!waiting) begin
      sop_q   <= in_sop_i;
      eop_q   <= in_eop_i;
      poison_q <= in_poison_i;
      again_q <= in_again_i;
      in_vc_q <= in_vc_i;
      data_q  <= in_data_i;
      routed  <= in_routed;
      to_o    <= to;
      vc_o    <= vc;
      needs_q <= Narrow && in_routed && !in_eop_i;
      drop_o  <= drop;
      group_o <= group;
      dateline_o <= group && VcsPerClass > 1 ? group_way.dateline[NumLinks-1:0] : '0;
    end
  end

  logic [63:0] route, shifted;
  if (Narrow) begin : gen_narrow
    assign route = {in_data_i, data_q};
  end else begin : gen_wide
    assign route = data_q[63:0];
  end
  assign shifted = {4'd0, route[63:8], route[3:0]};

  // The second word of a route, on the narrow path, loses its low hop to the first one.
  logic second_q, second;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) second_q <= 1'b0;
    else if (out_valid_o) second_q <= Narrow && routed && !eop_q;
  end
  assign second = second_q && !sop_q;

  always_comb begin
    out_data_o = data_q;
    if (routed) out_data_o[RouteBits-1:0] = shifted[RouteBits-1:0];
    else if (second) out_data_o = data_q >> 4;
  end

  if (Narrow) begin : gen_narrow_size
    assign size_o = eop_q ? size_t'(0) : routed || !in_valid_i ? SizeLongest : size_of(
        {in_data_i[3:0], data_q[31:26]}
    );
  end else begin : gen_wide_size
    assign size_o = routed ? SizeLongest : size_of(data_q[35:26]);
  end

  logic unused;
  assign unused = &{1'b0, route[7:4], shifted};

  assign out_valid_o = valid_q && !waiting;
  assign out_first_o = first_q && !(needs_q && !in_valid_i);
  assign out_next_o = valid_q && !sop_q;
  assign out_sop_o = sop_q;
  assign out_eop_o = eop_q;
  assign out_poison_o = eop_q && poison_q;
  assign out_again_o = again_q;
  assign out_in_vc_o = in_vc_q;

  `VELO_ASSERT_INIT(VcsAreClassesTimesDatelines, NumVcs == NumClasses || NumVcs == 2 * NumClasses)
  `VELO_ASSERT_INIT(LinksFitHop, NumLinks >= 1 && NumLinks <= 6)

endmodule
