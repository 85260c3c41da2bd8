// SPDX-License-Identifier: Apache-2.0
//
// Promises of velo_pcie_shares, for a context of one's choice and all that may happen to the others: its word is what
// was written last, with its drops counted, by halves; who looks or loads gets that, and of others nothing; a reset's
// cycles make it zero.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_pcie_shares_props
  import velo_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned SourceBits = 2
) (
    input logic                    clk_i,
    input logic                    rst_ni,
    input logic                    clear_i,
    input logic                    own_write_i,
    input logic [PcieBar4Bits-1:0] own_write_addr_i,
    input logic [            63:0] own_write_data_i,
    input logic [             7:0] own_write_be_i,
    input logic [PcieBar4Bits-1:0] own_addr_i,
    input logic                    look_i,
    input logic [  SourceBits-1:0] source_i,
    input logic                    dropped_i,
    input logic [  SourceBits-1:0] who_i             // the context
);

  logic [63:0] own_word;
  logic [7:0] lines;

  velo_pcie_shares #(
      .SourceBits(SourceBits)
  ) u_dut (
      .own_word_o(own_word),
      .lines_o   (lines),
      .*
  );

  logic past_q, fresh_q;
  logic [SourceBits-1:0] who_q;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  always_ff @(posedge clk_i) begin
    past_q  <= 1'b1;
    who_q   <= who_i;
    fresh_q <= rst_ni && (look_i || (fresh_q && !(clear_i || own_write_i || dropped_i)));
  end
  `VELO_ASSUME(Constant, who_i == who_q)
  // Proven in velo_pcie_receive_props.
  `VELO_ASSUME(OneAtATime,
               32'(clear_i) + 32'(own_write_i) + 32'(look_i) + 32'(dropped_i) <= 32'd1)
  `VELO_ASSUME(LookedBeforeDropped, !dropped_i || fresh_q)

  // ----- its word, by an own account --------------------------------------------------------------

  localparam int unsigned AddrBits = PcieBar4Bits, Contexts = 2 ** SourceBits;
  logic [AddrBits-1:3] place, base;
  logic to_its, at_its, in_shares;
  assign base      = (AddrBits - 3)'(PcieRegShares / 8);
  assign place     = base + (AddrBits - 3)'(who_i);
  assign to_its    = own_write_i && own_write_addr_i[AddrBits-1:3] == place;
  assign at_its    = own_addr_i[AddrBits-1:3] == place;
  assign in_shares = own_addr_i[AddrBits-1:3] >= base &&
      {1'b0, own_addr_i[AddrBits-1:3]} < {1'b0, base} + (AddrBits - 2)'(Contexts);

  // It is known once it has been cleared, in whatever order that is done.
  logic known_q, looked_q, shown_q, nothing_q;
  logic [SourceBits:0] cleared_q;  // cycles
  pcie_share_t its_q, seen_q, shown_word_q;
  always_ff @(posedge clk_i) begin
    cleared_q <= !rst_ni || !clear_i ? '0 : cleared_q[SourceBits] ? cleared_q : cleared_q + 1'b1;
    if (!rst_ni) known_q <= 1'b0;
    else if (clear_i) known_q <= 32'(cleared_q) >= Contexts - 1;
    if (clear_i) its_q <= '0;
    if (to_its && own_write_be_i[0]) its_q.lines <= own_write_data_i[7:0];
    if (to_its && own_write_be_i[4]) its_q.dropped <= own_write_data_i[47:32];
    if (dropped_i && looked_q) its_q.dropped <= its_q.dropped + 16'd1;
    if (!rst_ni || clear_i) looked_q <= 1'b0;
    else if (look_i) looked_q <= source_i == who_i && known_q;
    if (look_i) seen_q <= its_q;
    shown_q      <= rst_ni && !clear_i && known_q && at_its;
    nothing_q    <= rst_ni && !in_shares;
    shown_word_q <= its_q;
  end

  `VELO_ASSERT(LookGivesItsShare, !looked_q || lines == seen_q.lines)
  `VELO_ASSERT(LoadGivesItsWord, !shown_q || own_word == shown_word_q)
  `VELO_ASSERT(NothingElsewhere, !nothing_q || own_word == '0)
  `VELO_ASSERT(NoneAfterReset, !(shown_q && cleared_q[SourceBits]) || own_word == '0)

  // ----- all of this happens ----------------------------------------------------------------------

  `VELO_COVER(Seen, looked_q && lines == 8'd7)
  `VELO_COVER(Counted, shown_q && own_word[47:32] == 16'd2)

endmodule
