// SPDX-License-Identifier: Apache-2.0
//
// Two lanes of different length, of one clock, with three disturbances at any time (one loses its lock,
// or finds it; a skip set arrives as something else): in step, what goes out together was sent
// together, and follows what was sent before it. The proof takes for granted that no other word turns
// into a skip set; the set's complement and the link's CRC notice such a word. velo_cdc_fifo's proof has the crossing of clocks.

`include "velo_assert.svh"

module velo_pcs_deskew_props
  import velo_pcs_pkg::*;
#(
    parameter int unsigned Late = 3,  // cycles that lane 1 is behind
    parameter int unsigned Every = 8  // cycles from set to set
) (
    input logic clk_i,
    input logic rst_ni,

    input logic       locked_i,  // of lane 1
    input logic [1:0] broken_i   // a skip set arrives as something else
);

  localparam int unsigned TimeBits = 5;
  typedef logic [TimeBits-1:0] time_t;  // of sending, modulo

  logic aligned, valid, lost;
  time_t now_q;
  time_t [1:0] word, sent;
  logic [1:0] set;
  number_t [1:0] number;

  assign sent[0] = now_q;
  assign sent[1] = now_q - time_t'(Late);
  for (genvar l = 0; l < 2; l++) begin : gen_lane
    assign set[l] = sent[l][$clog2(Every)-1:0] == '0 && !broken_i[l];
    assign number[l] = number_t'(sent[l][TimeBits-1:$clog2(Every)]);
  end

  velo_pcs_deskew #(
      .NumLanes(2),
      .Width   (TimeBits),
      .EmptyCycles(20)
  ) u_dut (
      .clk_i    ({2{clk_i}}),
      .rst_ni   ({2{rst_ni}}),
      .locked_i ({locked_i, 1'b1}),
      .word_i   (sent),
      .set_i    (set),
      .number_i (number),
      .aligned_o(aligned),
      .valid_o  (valid),
      .word_o   (word),
      .lost_o   (lost)
  );

  logic past_q, was_q;
  time_t last_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // Few disturbances, at any time, or the proof does not get far.
  logic [1:0] events_q;
  logic was_locked_q, disturbed;
  assign disturbed = (locked_i != was_locked_q) || (broken_i != '0);
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      events_q     <= '0;
      was_locked_q <= 1'b1;
    end else begin
      events_q     <= events_q + 2'(disturbed);
      was_locked_q <= locked_i;
    end
  end
  always_comb assume (events_q != 2'd3 || !disturbed);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      now_q  <= '0;
      was_q  <= 1'b0;
      last_q <= '0;
    end else begin
      now_q <= now_q + 1'b1;
      if (valid) last_q <= word[0];
      was_q <= (was_q || valid) && !u_dut.broken;
      if (u_dut.broken || u_dut.empty_q) was_q <= 1'b0;
    end
  end

  `VELO_ASSERT(SentTogether, !valid || word[0] == word[1])
  `VELO_ASSERT(InOrder, !valid || !was_q || word[0] == last_q + 1'b1)
  `VELO_COVER(Aligned, aligned && valid)
  `VELO_COVER(StepIsLost, lost)

endmodule
