// SPDX-License-Identifier: Apache-2.0
//
// From a link port, which has a word in every cycle, to lanes that cannot take one in every cycle: control
// symbols and skip sets need time of their own, and the serializer may have another clock.
//
// A FIFO is between. Idle words (and those of bring-up) are states, of which any may be left out; they go in
// only while the FIFO holds IdleFill words at most. They come in pairs, and the other side believes only
// pairs; so the second goes the way of the first. All other words go in. `pause_o` asks the link port
// for idle words, and so for room; it has PauseSlack cycles to obey.
// Without crossing, the FIFO has one clock and a latency of 1 cycle; with crossing, `clk_i` may have
// any rate and velo_cdc_fifo's latency.
//
// Errors: `lost_o`, one pulse for each word that found no room. It does not happen to a link port that
// obeys `pause_o`; if it did, the link would repeat the word's frame.

`include "velo_assert.svh"

module velo_pcs_send
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter bit Crossing = 1'b1,  // the lanes have a clock of their own
    parameter int unsigned DepthWords = 16,
    parameter int unsigned IdleFill = Crossing ? 4 : 1,
    parameter int unsigned PauseFill = Crossing ? 10 : 6,
    parameter int unsigned PauseSlack = 6
) (
    input logic clk_i,  // of the link port
    input logic rst_ni,

    input  kind_e                 kind_i,   // a word in each cycle: its kind
    input  logic  [DataWidth-1:0] data_i,   // the word
    output logic                  pause_o,  // send idle words
    output logic                  lost_o,   // a word found no room

    input  logic                  lane_clk_i,   // of the lanes; `clk_i` without crossing
    input  logic                  lane_rst_ni,
    output logic                  valid_o,      // a word waits
    input  logic                  ready_i,      // it is taken
    output kind_e                 kind_o,       // its kind
    output logic  [DataWidth-1:0] data_o        // the word
);

  localparam int unsigned CountBits = $clog2(DepthWords) + 1;

  logic idle, again, first_q, went_q, push, ready;
  kind_e kind_q;
  logic [DataWidth-1:0] data_q;
  logic [CountBits-1:0] count;

  assign idle  = kind_i == KindCtl;
  // The second of a pair.
  assign again = idle && first_q && kind_q == kind_i && data_q == data_i;
  assign push  = !idle || (again ? went_q : count <= CountBits'(IdleFill));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q <= 1'b0;
      went_q  <= 1'b0;
      pause_o <= 1'b0;
      lost_o  <= 1'b0;
    end else begin
      first_q <= idle && !again;
      went_q  <= push;
      pause_o <= count >= CountBits'(PauseFill);
      lost_o  <= push && !ready;
    end
  end
  always_ff @(posedge clk_i) begin
    kind_q <= kind_i;
    data_q <= data_i;
  end

  logic [1:0] kind;
  assign kind_o = kind_e'(kind);
  if (Crossing) begin : gen_crossing
    velo_cdc_fifo #(
        .Width(DataWidth + 2),
        .Depth(DepthWords)
    ) u_fifo (
        .clk_i       (clk_i),
        .rst_ni      (rst_ni),
        .push_valid_i(push),
        .push_ready_o(ready),
        .push_data_i ({kind_i, data_i}),
        .push_count_o(count),
        .pop_clk_i   (lane_clk_i),
        .pop_rst_ni  (lane_rst_ni),
        .pop_valid_o (valid_o),
        .pop_ready_i (ready_i),
        .pop_data_o  ({kind, data_o})
    );
  end else begin : gen_same
    velo_fifo #(
        .Width(DataWidth + 2),
        .Depth(DepthWords)
    ) u_fifo (
        .clk_i       (clk_i),
        .rst_ni      (rst_ni),
        .push_valid_i(push),
        .push_ready_o(ready),
        .push_data_i ({kind_i, data_i}),
        .count_o     (count),
        .pop_valid_o (valid_o),
        .pop_ready_i (ready_i),
        .pop_data_o  ({kind, data_o})
    );
    logic unused;
    assign unused = &{1'b0, lane_clk_i, lane_rst_ni};
  end

  `VELO_ASSERT_INIT(RoomForThePause, PauseFill + PauseSlack <= DepthWords && IdleFill < PauseFill)
  `VELO_COVER(AsksForAPause, pause_o)

endmodule
