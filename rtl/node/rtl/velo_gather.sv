// SPDX-License-Identifier: Apache-2.0
//
// Takes in a short packet or transaction whole, as 64-bit words, for units that look at it at leisure.
//
// `in_*` valid/ready, first beat lowest. `valid_o` stands from the last beat until `take_i`. Whoever
// reads has to look at `beats_o`, which stops at one more than fits: the words of a shorter packet are
// not all new, of a longer one the rest is lost. Errors: none of its own.

`include "velo_assert.svh"

module velo_gather #(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned Words = 2,
    localparam int unsigned Beats = Words * 64 / DataWidth,
    localparam int unsigned CountBits = $clog2(Beats + 2)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 in_valid_i,
    output logic                 in_ready_o,
    input  logic                 in_eop_i,
    input  logic [DataWidth-1:0] in_data_i,

    output logic                       valid_o,
    input  logic                       take_i,
    output logic [CountBits-1:0]       beats_o,
    output logic [    Words-1:0][63:0] words_o
);

  logic [Beats-1:0][DataWidth-1:0] beat_q;
  logic take_beat;

  assign in_ready_o = !valid_o;
  assign take_beat  = in_valid_i && in_ready_o;
  assign words_o    = beat_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_o <= 1'b0;
      beats_o <= '0;
    end else if (take_i) begin
      valid_o <= 1'b0;
      beats_o <= '0;
    end else if (take_beat) begin
      valid_o <= in_eop_i;
      if (beats_o <= CountBits'(Beats)) beats_o <= beats_o + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned b = 0; b < Beats; b++) begin
      if (take_beat && beats_o == CountBits'(b)) beat_q[b] <= in_data_i;
    end
  end

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth == 32 || DataWidth == 64)
  `VELO_ASSERT(TakenWhenThere, !take_i || valid_o)

endmodule
