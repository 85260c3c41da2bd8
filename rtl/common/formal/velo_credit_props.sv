// SPDX-License-Identifier: Apache-2.0
//
// Conservation: units in use at the receiver plus units on the way plus units left are the capacity,
// for a receiver that frees at any time and credit messages that come late, twice or not at all; also when another
// receiver with a smaller capacity takes its place.

`include "velo_assert.svh"

module velo_credit_props #(
    parameter int unsigned Width = 4,
    parameter int unsigned Total = 6,
    parameter int unsigned Smaller = 4,
    parameter int unsigned Threshold = 2
) (
    input logic clk_i,
    input logic rst_ni,
    input logic want_i,    // the sender would like to send a unit
    input logic free_i,    // the receiver would like to free one
    input logic publish_i,  // a credit message gets through
    input logic shrink_i  // another receiver, with a smaller capacity
);

  logic past_q, take, free;
  logic [1:0] ok;
  logic [Width-1:0] avail;
  logic [Width-1:0] held_q, freed_q, freed_seen_q;  // receiver's units, count, and count seen

  logic [Width-1:0] total, total_late_q, total_later_q;  // capacity, and as the counter knows it
  logic shrunk_q, shrinks, settling;

  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  assign take = want_i && avail != '0 && !settling;
  assign free = free_i && held_q != '0;

  velo_credit #(
      .Width(Width),
      .Thresholds({Width'(Threshold), Width'(1)}),
      .NumSizes(2)
  ) u_dut (
      .total_i(total),
      .freed_i(freed_seen_q),
      .take_i (take),
      .avail_o(avail),
      .ok_o   (ok),
      .*
  );

  // The counter knows the capacity after two cycles, and what was freed as late.
  logic [Width-1:0] freed_late_q, freed_later_q;
  assign settling = shrinks || total_late_q != total || total_later_q != total;
  assign total    = shrunk_q ? Width'(Smaller) : Width'(Total);
  assign shrinks  = shrink_i && held_q + (freed_q - freed_later_q) <= Width'(Smaller);
  always_ff @(posedge clk_i) begin
    shrunk_q <= rst_ni && (shrunk_q || shrinks);
    total_late_q  <= rst_ni ? total : '0;
    total_later_q <= rst_ni ? total_late_q : '0;
    if (!rst_ni) begin
      held_q <= '0;
      freed_q <= '0;
      freed_seen_q <= '0;
      freed_late_q <= '0;
      freed_later_q <= '0;
    end else begin
      held_q  <= held_q + Width'(take) - Width'(free);
      freed_q <= freed_q + Width'(free);
      if (publish_i) freed_seen_q <= freed_q;
      freed_late_q <= freed_seen_q;
      freed_later_q <= freed_late_q;
    end
  end

  logic wrapped_q;
  logic [Width-1:0] taken_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wrapped_q <= 1'b0;
      taken_q <= '0;
    end else if (take) begin
      taken_q <= taken_q + 1'b1;
      if (&taken_q) wrapped_q <= 1'b1;
    end
  end

  `VELO_ASSERT(
      Conserved,
      avail + held_q + (freed_q - freed_later_q) == total_later_q)
  `VELO_ASSERT(
      WithinCapacity,
      held_q <= total && avail <= total_later_q &&
      freed_q - freed_later_q <= Width'(Total) &&
      freed_q - freed_late_q <= freed_q - freed_later_q &&
      freed_q - freed_seen_q <= freed_q - freed_late_q)
  `VELO_ASSERT(NeverOverrun, !take || held_q < total)
  `VELO_ASSERT(OkIsEnough, ok == {avail >= Width'(Threshold), avail >= Width'(1)})
  `VELO_COVER(UsedWraps, wrapped_q)
  `VELO_COVER(AllInUse, held_q == Width'(Total))
  `VELO_COVER(AllInUseOfSmaller, total == Width'(Smaller) && held_q == Width'(Smaller))

endmodule
