// SPDX-License-Identifier: Apache-2.0
//
// Translation cache: direct-mapped, in block RAM, one entry of the table of pages a line.
//
// Look-up: `hit_o` and `entry_o` two cycles after `page_i`, which stays meanwhile: a register follows
// the block RAM, which is too slow for a comparison in the same cycle.
// `fill_i` puts an entry into its line, `drop_i` empties the line of a page, whoever's entry it holds.
// After reset, and with a pulse on `clear_i`, the lines are emptied, one a cycle; `ready_o` says when that is done;
// nothing is asked before.
//
// With `Ecc` the lines are protected (velo_ram). A line that cannot be read is no hit, so its entry is
// fetched afresh. `ecc_o` tells what was met by the look-up whose answer is used in this cycle, `use_i`.
// Errors: none.

`include "velo_assert.svh"

module velo_atu_cache
  import velo_pkg::*;
  import velo_secded_pkg::*;
#(
    parameter int unsigned PageBits = 24,
    parameter int unsigned LineBits = 6,
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic clear_i,  // forget all
    output logic ready_o,

    input  logic             [PageBits-1:0] page_i,
    output logic                            hit_o,
    output registered_page_t                entry_o,
    input  logic                            use_i,
    output ecc_t                            ecc_o,

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
    end else if (clear_i) begin
      clearing_q   <= 1'b1;
      clear_line_q <= '0;
    end else if (clearing_q) begin
      clear_line_q <= clear_line_q + 1'b1;
      clearing_q   <= clear_line_q != '1;
    end
  end
  assign ready_o = !clearing_q;

  ecc_t ecc, ecc_q;
  logic valid, valid_q;
  logic [TagBits-1:0] tag, tag_q;
  registered_page_t entry;
  velo_ram #(
      .Width(1 + TagBits + $bits(registered_page_t)),
      .Depth(2 ** LineBits),
      .ReadsOld(1'b1),
      .Ecc(Ecc)
  ) u_lines (
      .clk_i,
      .we_i       (clearing_q || fill_i || drop_i),
      .waddr_i    (clearing_q ? clear_line_q : page_i[LineBits-1:0]),
      .wdata_i    ({fill_i && !clearing_q, page_i[PageBits-1:LineBits], entry_i}),
      .raddr_i    (page_i[LineBits-1:0]),
      .rdata_o    ({valid, tag, entry}),
      .corrected_o(ecc.corrected),
      .broken_o   (ecc.broken)
  );
  always_ff @(posedge clk_i) {valid_q, tag_q, entry_o, ecc_q} <= {valid, tag, entry, ecc};
  assign ecc_o = use_i ? ecc_q : '0;
  assign hit_o = valid_q && !ecc_q.broken && tag_q == page_i[PageBits-1:LineBits];

  `VELO_ASSERT_INIT(TagIsLeft, LineBits >= 1 && LineBits < PageBits)
  `VELO_ASSERT(FillOrDrop, !(fill_i && drop_i))
  `VELO_ASSUME(QuietWhileClearing, !(clearing_q || clear_i) || !(fill_i || drop_i))

endmodule
