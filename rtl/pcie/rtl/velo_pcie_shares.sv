// SPDX-License-Identifier: Apache-2.0
//
// How many stores each context may have under way, and how many were dropped as it had so many: a word for each
// context in BAR4, from PcieRegShares on (spec/pcie.toml, layout pcie_share).
//
// `look_i` asks for the share of `source_i`: from the next cycle on it is `lines_o`, until the next look. With
// `dropped_i` a store of the context that was looked at last is counted. `own_word_o` is what was at `own_addr_i` in
// the cycle before; zero where no context's word is.
//
// Reset: while `clear_i` is high each cycle makes a word zero, in 2**SourceBits cycles all of them. Nothing else may
// come meanwhile. Errors: none; a context that nobody gave a share has none.

`include "velo_assert.svh"

module velo_pcie_shares
  import velo_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned Bar4Bits   = PcieBar4Bits,
    parameter int unsigned SourceBits = 8
) (
    input logic clk_i,
    input logic rst_ni,
    input logic clear_i,

    input  logic                own_write_i,
    input  logic [Bar4Bits-1:0] own_write_addr_i,
    input  logic [        63:0] own_write_data_i,
    input  logic [         7:0] own_write_be_i,
    input  logic [Bar4Bits-1:0] own_addr_i,
    output logic [        63:0] own_word_o,

    input  logic                  look_i,
    input  logic [SourceBits-1:0] source_i,
    output logic [           7:0] lines_o,
    input  logic                  dropped_i
);

  typedef logic [SourceBits-1:0] source_t;

  // Each has one port for all of this, and one that only own_addr_i reads.
  (* ram_style = "block" *)logic [ 7:0] lines_mem  [2**SourceBits];
  (* ram_style = "block" *)logic [15:0] dropped_mem[2**SourceBits];

  localparam int unsigned Above = SourceBits + 3;
  localparam logic [Bar4Bits-1:Above] Shares = (Bar4Bits - Above)'(PcieRegShares >> Above);

  logic to_share;
  source_t clear_q, source_q, place, own_place;
  logic [7:0] lines_q, own_lines_q;
  logic [15:0] dropped_q, own_dropped_q;
  logic own_is_share_q;
  pcie_share_t own;

  assign to_share  = own_write_i && own_write_addr_i[Bar4Bits-1:Above] == Shares;
  assign own_place = own_addr_i[3+:SourceBits];
  assign lines_o   = lines_q;

  always_comb begin
    place = source_q;
    if (clear_i) place = clear_q;
    else if (to_share) place = own_write_addr_i[3+:SourceBits];
    else if (look_i) place = source_i;
  end

  always_ff @(posedge clk_i) begin
    if (clear_i || (to_share && own_write_be_i[0])) begin
      lines_mem[place] <= clear_i ? '0 : own_write_data_i[7:0];
    end
    if (clear_i || (to_share && own_write_be_i[4]) || dropped_i) begin
      dropped_mem[place] <= clear_i ? '0 : dropped_i ? dropped_q + 1'b1 : own_write_data_i[47:32];
    end
    if (look_i) begin
      lines_q   <= lines_mem[place];
      dropped_q <= dropped_mem[place];
      source_q  <= source_i;
    end
    own_lines_q    <= lines_mem[own_place];
    own_dropped_q  <= dropped_mem[own_place];
    own_is_share_q <= own_addr_i[Bar4Bits-1:Above] == Shares;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) clear_q <= '0;
    else if (clear_i) clear_q <= clear_q + 1'b1;
  end
  assign own = '{lines: own_lines_q, dropped: own_dropped_q, default: '0};
  assign own_word_o = own_is_share_q ? own : '0;

  logic unused;
  assign unused = ^{own_write_addr_i, own_write_data_i, own_write_be_i, own_addr_i};

  `VELO_ASSERT_INIT(SharesAreAligned, PcieRegShares % 2 ** Above == 0)
  `VELO_ASSERT_INIT(SharesFit, PcieRegShares + 2 ** Above <= 2 ** Bar4Bits)
  // They come from packets that follow each other, and what is dropped was looked at.
  logic fresh_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) fresh_q <= 1'b0;
    else fresh_q <= look_i || (fresh_q && !(clear_i || own_write_i || dropped_i));
  end
  `VELO_ASSUME(OneAtATime, 32'(clear_i) + 32'(own_write_i) + 32'(look_i) + 32'(dropped_i) <= 32'd1)
  `VELO_ASSUME(LookedBeforeDropped, !dropped_i || fresh_q)

endmodule
