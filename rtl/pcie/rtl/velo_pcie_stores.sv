// SPDX-License-Identifier: Apache-2.0
//
// Stores to BAR2 that have come in and that the node has not taken yet.
//
// A line is filled word by word and becomes a store with `commit_i`; until then it is nothing. Stores leave in order,
// the first beat a cycle after the commit at the earliest and each without a pause inside, as the node wants it.
// `accepted_o` and `taken_o` count them. `room_o` tells whether `source_i`, a context, may have one more: fewer than
// `share_i` of the lines are its own, and one is free. If all shares together are no more than `Lines`, one is free
// whenever a context has fewer than its share. Errors: none; lines are filled only if there is `room_o`.

`include "velo_assert.svh"

module velo_pcie_stores
  import htax_pkg::*;
  import velo_host_pkg::*;
#(
    parameter int unsigned Lines = 16,
    parameter int unsigned SourceBits = 8,
    localparam int unsigned LineBits = $clog2(Lines)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [SourceBits-1:0] source_i,  // whose store comes
    input  logic [           7:0] share_i,   // lines that it may have
    output logic                  room_o,    // there is one for it
    input  logic                  word_i,    // a word of it
    input  logic [           2:0] index_i,
    input  logic [          63:0] data_i,
    input  logic                  commit_i,  // it is a store
    input  logic [  AddrBits-1:0] addr_i,
    input  logic [           3:0] words_i,

    output logic               write_valid_o,
    output host_write_t        write_o,
    output logic        [63:0] write_data_o,
    input  logic               write_ready_i,

    output logic [31:0] accepted_o,  // stores, modulo 2**32
    output logic [31:0] taken_o
);

  typedef struct packed {
    logic [AddrBits-1:0] addr;
    logic [3:0]          words;
  } store_t;

  (* ram_style = "distributed" *) logic [63:0] word_mem[8*Lines];
  (* ram_style = "distributed" *) store_t store_mem[Lines];

  // The counts are pointers, too.
  logic [2:0] beat_q;
  logic [LineBits:0] count;
  logic take;
  store_t store;
  logic [LineBits-1:0] fill, oldest;

  assign fill   = accepted_o[LineBits-1:0];
  assign oldest = taken_o[LineBits-1:0];
  assign count  = accepted_o[LineBits:0] - taken_o[LineBits:0];

  // Whose the lines are. Those that are free are nobody's.
  logic [Lines-1:0] in_use_q, its;
  logic [Lines-1:0][SourceBits-1:0] source_q;
  logic [LineBits:0] has;
  always_comb begin
    has = '0;
    for (int unsigned l = 0; l < Lines; l++) begin
      its[l] = in_use_q[l] && source_q[l] == source_i;
      has += (LineBits + 1)'(its[l]);
    end
  end
  assign room_o = !in_use_q[fill] && 8'(has) < share_i;

  assign store = store_mem[oldest];
  assign write_valid_o = count != '0;
  assign write_o = '{
          eop: {1'b0, beat_q} == store.words - 4'd1,
          addr: store.addr,
          len_bytes: {3'b0, store.words, 3'b0}
      };
  assign write_data_o = word_mem[{oldest, beat_q}];
  assign take = write_valid_o && write_ready_i;

  always_ff @(posedge clk_i) begin
    if (word_i) word_mem[{fill, index_i}] <= data_i;
    if (commit_i) store_mem[fill] <= '{addr_i, words_i};
    if (commit_i) source_q[fill] <= source_i;
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      accepted_o <= '0;
      taken_o    <= '0;
      beat_q     <= '0;
      in_use_q   <= '0;
    end else begin
      if (commit_i) begin
        accepted_o     <= accepted_o + 1'b1;
        in_use_q[fill] <= 1'b1;
      end
      if (take && write_o.eop) begin
        taken_o          <= taken_o + 1'b1;
        in_use_q[oldest] <= 1'b0;
      end
      if (take) beat_q <= write_o.eop ? '0 : beat_q + 1'b1;
    end
  end

  // Line l is the (l - oldest)th of those that are in use.
  logic [Lines-1:0] counted;
  for (genvar l = 0; l < Lines; l++) begin : gen_counted
    assign counted[l] = {1'b0, LineBits'(LineBits'(l) - oldest)} < count;
  end
  `VELO_ASSERT(InUseAsCounted, in_use_q == counted)
  `VELO_ASSERT_INIT(LinesIsPowerOfTwo, Lines >= 2 && Lines <= 128 && Lines == 2 ** LineBits)
  `VELO_ASSUME(OnlyIntoRoom, !(word_i || commit_i) || room_o)
  `VELO_ASSERT(CountWithinLines, count <= (LineBits + 1)'(Lines))

endmodule
