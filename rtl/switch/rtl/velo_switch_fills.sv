// SPDX-License-Identifier: Apache-2.0
//
// What an input knows of its buffer's units: how far each is filled, and which one follows it. Block RAM; what is
// read comes a cycle after its address, with all that was written before or in that cycle.
//
// `write_*`: what has been written into a unit. `link_i`: the unit `link_unit_i` is full and `link_next_i` follows it.
// `unit_i` → `fill_o`, `next_o`; `next_unit_i` → `next_fill_o`. Errors: none.

module velo_switch_fills
  import velo_switch_pkg::*;
#(
    parameter int unsigned UnitBits = 8
) (
    input logic clk_i,

    input logic                 write_i,
    input logic  [UnitBits-1:0] write_unit_i,
    input fill_t                write_fill_i,
    input logic                 link_i,
    input logic  [UnitBits-1:0] link_unit_i,
    input logic  [UnitBits-1:0] link_next_i,

    input  logic  [UnitBits-1:0] unit_i,
    output fill_t                fill_o,
    output logic  [UnitBits-1:0] next_o,
    input  logic  [UnitBits-1:0] next_unit_i,
    output fill_t                next_fill_o
);

  velo_ram_through #(
      .Width($bits(fill_t)),
      .Depth(2 ** UnitBits)
  ) u_fill (
      .clk_i,
      .we_i   (write_i),
      .waddr_i(write_unit_i),
      .wdata_i(write_fill_i),
      .raddr_i(unit_i),
      .rdata_o(fill_o)
  );

  velo_ram_through #(
      .Width($bits(fill_t)),
      .Depth(2 ** UnitBits)
  ) u_next_fill (
      .clk_i,
      .we_i   (write_i),
      .waddr_i(write_unit_i),
      .wdata_i(write_fill_i),
      .raddr_i(next_unit_i),
      .rdata_o(next_fill_o)
  );

  velo_ram_through #(
      .Width(UnitBits),
      .Depth(2 ** UnitBits)
  ) u_next (
      .clk_i,
      .we_i   (link_i),
      .waddr_i(link_unit_i),
      .wdata_i(link_next_i),
      .raddr_i(unit_i),
      .rdata_o(next_o)
  );

endmodule
