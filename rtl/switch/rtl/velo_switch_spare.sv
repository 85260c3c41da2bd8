// SPDX-License-Identifier: Apache-2.0
//
// Units of a packet that was cut off and comes again: still a list, they are the next to be used.
//
// `valid_o`, `unit_o`: there is such a unit, the first of them; `take_i`: a unit is taken, that one if there is one.
// `link_*`: see velo_switch_fills; `link_first_i`: the unit is its packet's first one. `truncate_i`: the packet
// keeps its first unit, what follows is spare (`more_i`: there is such a unit); `undo_i`: it keeps none, all from
// `undo_unit_i` on are spare. `last_unit_i` is the last one of the packet.
// With Repeats = 0 no packet comes again, and there is no logic. Errors: none.

module velo_switch_spare #(
    parameter int unsigned UnitBits = 8,
    parameter bit Repeats = 1'b1
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                link_i,
    input logic                link_first_i,
    input logic [UnitBits-1:0] link_unit_i,
    input logic [UnitBits-1:0] link_next_i,

    input logic                truncate_i,
    input logic                more_i,
    input logic                undo_i,
    input logic [UnitBits-1:0] undo_unit_i,
    input logic [UnitBits-1:0] last_unit_i,

    input  logic                take_i,
    output logic                valid_o,
    output logic [UnitBits-1:0] unit_o
);

  if (Repeats) begin : gen_spare
    typedef logic [UnitBits-1:0] unit_t;
    unit_t unit_d, last_q, behind, behind_first_q;
    logic [1:0] unused_ecc;

    // A unit that is written cannot be spare, so nothing is read that is written at the same edge.
    velo_ram #(
        .Width(UnitBits),
        .Depth(2 ** UnitBits)
    ) u_next (
        .clk_i,
        .we_i   (link_i),
        .waddr_i(link_unit_i),
        .wdata_i(link_next_i),
        .raddr_i(unit_d),
        .rdata_o(behind),
        .corrected_o(unused_ecc[0]),
        .broken_o(unused_ecc[1])
    );

    always_comb begin
      unit_d = unit_o;
      if (undo_i) unit_d = undo_unit_i;
      else if (truncate_i) unit_d = more_i ? behind_first_q : unit_o;
      else if (take_i) unit_d = behind;
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) valid_o <= 1'b0;
      else if (undo_i) valid_o <= 1'b1;
      else if (truncate_i) valid_o <= valid_o || more_i;
      else if (take_i) valid_o <= valid_o && unit_o != last_q;
    end
    always_ff @(posedge clk_i) begin
      unit_o <= unit_d;
      if (link_i && link_first_i) behind_first_q <= link_next_i;
      if ((truncate_i || undo_i) && !valid_o) last_q <= last_unit_i;
    end
  end else begin : gen_no_spare
    assign valid_o = 1'b0;
    assign unit_o  = '0;
    logic unused, unused_too;
    assign unused = ^{clk_i, rst_ni, link_i, link_first_i, link_unit_i, link_next_i, truncate_i};
    assign unused_too = ^{more_i, undo_i, undo_unit_i, last_unit_i, take_i};
  end

endmodule
