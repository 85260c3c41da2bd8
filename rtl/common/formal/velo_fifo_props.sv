// SPDX-License-Identifier: Apache-2.0
//
// The FIFO delivers what it took, in order, once. Followed is one entry, pushed at any time with any
// value: the proof holds for all of them.

`include "velo_assert.svh"

module velo_fifo_props #(
    parameter int unsigned Width = 2,
    parameter int unsigned Depth = 8,
    parameter bit InBlockRam = 1'b0
) (
    input logic             clk_i,
    input logic             rst_ni,
    input logic             follow_i,
    input logic             push_valid_i,
    input logic [Width-1:0] push_data_i,
    input logic             pop_ready_i
);

  localparam int unsigned CountWidth = $clog2(Depth) + 1;

  logic push_ready, pop_valid, push, pop;
  logic [Width-1:0] pop_data;
  logic [CountWidth-1:0] count;

  velo_fifo #(
      .Width(Width),
      .Depth(Depth),
      .InBlockRam(InBlockRam)
  ) u_dut (
      .push_ready_o(push_ready),
      .pop_valid_o (pop_valid),
      .pop_data_o  (pop_data),
      .count_o     (count),
      .*
  );

  assign push = push_valid_i && push_ready;
  assign pop  = pop_valid && pop_ready_i;

  logic past_q, followed_q, left_q;
  logic [CountWidth-1:0] ahead_q;  // entries in front of the followed one
  logic [Width-1:0] value_q;

  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  logic start, arrives;
  assign start   = follow_i && !followed_q && push;
  assign arrives = followed_q && !left_q && ahead_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      followed_q <= 1'b0;
      left_q <= 1'b0;
      ahead_q <= '0;
      value_q <= '0;
    end else begin
      if (start) begin
        followed_q <= 1'b1;
        value_q <= push_data_i;
        ahead_q <= count - CountWidth'(pop);
      end else if (followed_q && pop) begin
        if (ahead_q == '0) left_q <= 1'b1;
        else ahead_q <= ahead_q - 1'b1;
      end
    end
  end

  // Nothing is in it that was not pushed.
  logic [CountWidth-1:0] held_q;
  logic [CountWidth:0] pushed_q;  // counts twice as far as the places go, so covers see them wrap
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q   <= '0;
      pushed_q <= '0;
    end else begin
      held_q   <= held_q + CountWidth'(push) - CountWidth'(pop);
      pushed_q <= pushed_q + (CountWidth + 1)'(push);
    end
  end
  `VELO_ASSERT(CountIsTrue, count == held_q)
  `VELO_ASSERT(FollowedIsInside, !followed_q || left_q || ahead_q < count)
  `VELO_ASSERT(NotLost, !arrives || pop_valid)
  `VELO_ASSERT(NotChanged, !arrives || pop_data == value_q)
  `VELO_ASSERT(FullRefuses, push_ready == (count != CountWidth'(Depth)))
  `VELO_ASSERT(EmptyOffersNothing, pop_valid == (count != '0))
  `VELO_COVER(FollowedLeavesAFullFifo, left_q && count == CountWidth'(Depth))
  `VELO_COVER(PointersWrap, pushed_q == (CountWidth + 1)'(2 * Depth + 1) && count == CountWidth'(2))

endmodule
