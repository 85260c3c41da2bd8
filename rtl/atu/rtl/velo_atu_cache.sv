// SPDX-License-Identifier: Apache-2.0
//
// Translation cache: direct-mapped, in block RAM, one entry of the table of pages a line.
//
// Look-up: `hit_o` and `entry_o` two cycles after `page_i`, which stays meanwhile: a register follows
// the block RAM, which is too slow for a comparison in the same cycle.
// `fill_i` puts an entry into its line, `drop_i` empties the line of a page, whoever's entry it holds.
// After reset the lines are emptied, one a cycle; `ready_o` says when that is done; nothing is asked
// before. Errors: none.

`include "velo_assert.svh"

module velo_atu_cache
  import velo_pkg::*;
#(
    parameter int unsigned PageBits = 24,
    parameter int unsigned LineBits = 6
) (
    input logic clk_i,
    input logic rst_ni,

    output logic ready_o,

    input  logic             [PageBits-1:0] page_i,
    output logic                            hit_o,
    output registered_page_t                entry_o,

    input logic             fill_i,
    input logic             drop_i,
    input registered_page_t entry_i
);

  localparam int unsigned TagBits = PageBits - LineBits;

  logic clearing_q;
  logic [LineBits-1:0] clear_line_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      clearing_q   <= 1'b1;
      clear_line_q <= '0;
    end else if (clearing_q) begin
      clear_line_q <= clear_line_q + 1'b1;
      clearing_q   <= clear_line_q != '1;
    end
  end
  assign ready_o = !clearing_q;

  logic valid, valid_q;
  logic [TagBits-1:0] tag, tag_q;
  registered_page_t entry;
  velo_table #(
      .Width(1 + TagBits + $bits(registered_page_t)),
      .AddrBits(LineBits)
  ) u_lines (
      .clk_i,
      .write_i     (clearing_q || fill_i || drop_i),
      .write_addr_i(clearing_q ? clear_line_q : page_i[LineBits-1:0]),
      .write_data_i({fill_i && !clearing_q, page_i[PageBits-1:LineBits], entry_i}),
      .read_addr_i (page_i[LineBits-1:0]),
      .read_data_o ({valid, tag, entry})
  );
  always_ff @(posedge clk_i) {valid_q, tag_q, entry_o} <= {valid, tag, entry};
  assign hit_o = valid_q && tag_q == page_i[PageBits-1:LineBits];

  `VELO_ASSERT_INIT(TagIsLeft, LineBits >= 1 && LineBits < PageBits)
  `VELO_ASSERT(FillOrDrop, !(fill_i && drop_i))
  `VELO_ASSUME(QuietWhileClearing, !clearing_q || !(fill_i || drop_i))

endmodule
