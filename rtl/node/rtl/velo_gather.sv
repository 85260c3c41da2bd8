// SPDX-License-Identifier: Apache-2.0
//
// Takes in a short packet or transaction whole, as 64-bit words, for units that look at it at leisure.
//
// On a path of 128 bits a packet's header has a beat of its own (`Packet`), and a single word is the
// lower half of a beat.
// `in_*` valid/ready, first beat lowest. `valid_o` stands from the last beat until `take_i`. Whoever
// reads has to look at `beats_o`, which stops at one more than fits: the words of a shorter packet are
// not all new, of a longer one the rest is lost. Errors: none of its own.

`include "velo_assert.svh"

module velo_gather
  import velo_node_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned Words = 2,
    parameter bit Packet = Words > 1,
    localparam int unsigned Beats = Packet ? packet_beats(
        DataWidth, Words - 1
    ) : word_beats(
        DataWidth
    ),
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
  if (DataWidth == 128) begin : gen_wide
    logic [2*Beats-1:0][63:0] halves;
    assign halves     = beat_q;
    assign words_o[0] = halves[0];
    // Behind the header, whose beat has another half.
    for (genvar w = 1; w < Words; w++) begin : gen_word
      assign words_o[w] = halves[w+1];
    end
    logic unused;
    assign unused = ^halves;
  end else begin : gen_narrow
    assign words_o = beat_q;
  end

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

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(PacketOrWord, Packet || Words == 1)
  `VELO_ASSERT(TakenWhenThere, !take_i || valid_o)

endmodule
