// SPDX-License-Identifier: Apache-2.0
//
// velo_widen and velo_narrow behind it give back every half, in order, once, with its marks, and put
// two halves in a beat unless one is alone.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_width_props #(
    parameter int unsigned HalfWidth = 2
) (
    input logic                 clk_i,
    input logic                 rst_ni,
    input logic                 in_valid_i,
    input logic                 in_sop_i,
    input logic                 in_eop_i,
    input logic                 in_single_i,
    input logic [HalfWidth-1:0] in_data_i,
    input logic                 out_ready_i
);

  logic in_ready, mid_valid, mid_ready, mid_sop, mid_eop, mid_single;
  logic out_valid, out_sop, out_eop, take, pop;
  logic [2*HalfWidth-1:0] mid_data;
  logic [  HalfWidth-1:0] out_data;

  velo_widen #(
      .Width    (2 * HalfWidth),
      .HalfWidth(HalfWidth)
  ) u_widen (
      .in_ready_o (in_ready),
      .out_valid_o(mid_valid),
      .out_ready_i(mid_ready),
      .out_sop_o  (mid_sop),
      .out_eop_o  (mid_eop),
      .out_data_o (mid_data),
      .*
  );

  velo_narrow #(
      .Width    (2 * HalfWidth),
      .HalfWidth(HalfWidth)
  ) u_narrow (
      .in_valid_i (mid_valid),
      .in_ready_o (mid_ready),
      .in_sop_i   (mid_sop),
      .in_eop_i   (mid_eop),
      .in_single_i(mid_single),
      .in_data_i  (mid_data),
      .out_valid_o(out_valid),
      .out_sop_o  (out_sop),
      .out_eop_o  (out_eop),
      .out_data_o (out_data),
      .*
  );

  assign take = in_valid_i && in_ready;
  assign pop  = out_valid && out_ready_i;

  // The half that has gone in and is not out yet; whether the next one is a beat's second.
  typedef struct packed {
    logic                 sop;
    logic                 eop;
    logic [HalfWidth-1:0] data;
  } half_t;
  half_t in_half, out_half, inside_q, out_q, in_q;
  logic is_inside_q, second_q, past_q, in_waits_q, out_waits_q, in_single_q;

  assign in_half    = {in_sop_i, in_eop_i, in_data_i};
  assign out_half   = {out_sop, out_eop, out_data};
  assign mid_single = !second_q;

  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      is_inside_q <= 1'b0;
      second_q    <= 1'b0;
      in_waits_q  <= 1'b0;
      out_waits_q <= 1'b0;
    end else begin
      is_inside_q <= (is_inside_q && !pop) || (take && !pop);
      if (take) second_q <= !second_q && !in_single_i && !in_eop_i;
      in_waits_q  <= in_valid_i && !in_ready;
      out_waits_q <= out_valid && !out_ready_i;
    end
    if (take) inside_q <= in_half;
    in_q        <= in_half;
    in_single_q <= in_single_i;
    out_q       <= out_half;
  end

  // An offer stands; neither a packet's first half nor a half of its own is the second one of a beat.
  `VELO_ASSUME(OfferStands,
               !in_waits_q || (in_valid_i && in_half == in_q && in_single_i == in_single_q))
  `VELO_ASSUME(SingleIsFirst, !(in_valid_i && (in_sop_i || in_single_i) && second_q))

  `VELO_ASSERT(NotLost, !(take && is_inside_q))
  `VELO_ASSERT(NotMadeUp, !pop || is_inside_q || take)
  `VELO_ASSERT(NotChanged, !out_valid || out_half == (is_inside_q ? inside_q : in_half))
  `VELO_ASSERT(Stands, !out_waits_q || (out_valid && out_half == out_q))
  `VELO_ASSERT(TwoInABeat, !mid_valid || second_q || in_single_i || in_eop_i)
  `VELO_ASSERT(GoesOn, !(in_valid_i && out_ready_i) || take || pop)
  `VELO_COVER(TwoGoThrough, pop && out_eop && second_q)

endmodule
