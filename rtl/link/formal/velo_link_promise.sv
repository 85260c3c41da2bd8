// SPDX-License-Identifier: Apache-2.0
//
// What a link promises of the packets that it gives on, in one place: the proofs of the link assert it, the proof of
// the switch behind it (macro VELO_LINK_IS_TRUSTED) takes it for granted.
//
// The words that were sent have numbers, and `word_i`, `ends_i`, `poisoned_i` say what word `place_o` is. Each packet comes
// whole once, in order. Before that, copies of it may come that were cut off; they begin as the packet does.
// `lost_i`: memories have lost words, so that a packet may come poisoned, or void, that was not.

`ifdef VELO_LINK_IS_TRUSTED
`define VELO_ASSUME_HERE
`endif
`include "velo_assert.svh"

module velo_link_promise
  import velo_link_pkg::*;
#(
    parameter int unsigned DataWidth = 64,
    parameter int unsigned NumBits = 5
) (
    input logic clk_i,
    input logic rst_ni,

    // Given on.
    input logic                 valid_i,
    input logic                 sop_i,
    input logic                 eop_i,
    input logic                 poison_i,
    input logic                 again_i,
    input vc_t                  vc_i,
    input logic [DataWidth-1:0] data_i,

    // Sent.
    output logic [  NumBits-1:0] place_o,
    input  logic [DataWidth-1:0] word_i,
    input  logic                 ends_i,
    input  logic                 poisoned_i,
    input  vc_t                  sent_vc_i,
    input  logic                 lost_i,

    output logic [NumBits-1:0] came_o,    // words of packets that came whole
    output logic               whole_o,   // with this word one has
    output logic               repeats_o  // the last copy was cut off
);

  typedef logic [NumBits-1:0] num_t;
  num_t place_q;
  logic right_q, right, ends_q, ends, open_q, void_word;
  assign place_o = sop_i ? came_o : place_q;
  assign right = (sop_i || right_q) && data_i == word_i && (!eop_i || poison_i == poisoned_i);
  assign ends = (sop_i || ends_q) && eop_i == ends_i;
  assign void_word = lost_i && data_i == {DataWidth / 4{VoidNibble}};
  assign whole_o = valid_i && eop_i && !again_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      came_o    <= '0;
      place_q   <= '0;
      right_q   <= 1'b1;
      ends_q    <= 1'b1;
      open_q    <= 1'b0;
      repeats_o <= 1'b0;
    end else if (valid_i) begin
      if (whole_o) came_o <= place_o + 1'b1;
      place_q <= place_o + 1'b1;
      right_q <= right;
      ends_q  <= ends;
      open_q  <= !eop_i;
      if (eop_i) repeats_o <= again_i;
    end
  end

  `VELO_ASSUME(InOrderOnce, !whole_o || (ends && (right || (lost_i && poison_i))))
  `VELO_ASSUME(HeaderIsRight, !(valid_i && sop_i) || data_i == word_i || void_word)
  `VELO_ASSUME(BeginningsKept, !valid_i || sop_i == !open_q)
  `VELO_ASSUME(CutOffIsPoisoned, !(valid_i && eop_i && again_i) || (poison_i && !sop_i))
  // The switch must not keep a place for a packet that does not take it.
  `VELO_ASSUME(RepeatIsTold, !(valid_i && sop_i && !eop_i) ||
               again_i == repeats_o || (repeats_o && void_word))
  // No copy goes on beyond its packet.
  `VELO_ASSUME(NotLonger, !valid_i || sop_i || ends_q || eop_i)
  `VELO_ASSUME(ChannelKept, !valid_i || vc_i == sent_vc_i)

endmodule
