// SPDX-License-Identifier: Apache-2.0
//
// Routing table: whatever is written and whenever it is reset, one entry of one's choice shows what was last written
// to it since the reset, or no way. Proven without a bound; nothing is granted but a reset at the start.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_switch_table_props
  import velo_switch_pkg::*;
(
    input logic       clk_i,
    input logic       rst_ni,
    input logic       table_we_i,
    input logic [7:0] table_node_i,
    input hop_t       table_hop_i
);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // Any node, the same for ever.
  logic [7:0] node_q;
  always_ff @(posedge clk_i) node_q <= node_q;

  hop_t hop;
  velo_switch_table u_table (
      .*,
      .node_i(node_q),
      .hop_o (hop)
  );

  hop_t last_q;
  logic written_q, others_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      last_q    <= HopNone;
      written_q <= 1'b0;
      others_q  <= 1'b0;
    end else if (table_we_i) begin
      if (table_node_i == node_q) begin
        last_q    <= table_hop_i;
        written_q <= 1'b1;
      end
      others_q <= others_q || table_node_i != node_q && table_node_i[3:0] == node_q[3:0];
    end
  end

  `VELO_ASSERT(ShowsWhatWasWrittenSinceTheReset, hop == last_q)
  // The memory held another way before the reset.
  logic before_q;
  initial before_q = 1'b0;
  always_ff @(posedge clk_i) if (rst_ni && hop != HopNone) before_q <= 1'b1;
  `VELO_COVER(AnotherAtThatPlaceComesFirst, before_q && others_q && !written_q)
  `VELO_COVER(WrittenAfterTheOther, before_q && others_q && written_q && hop != HopNone)

endmodule
