// SPDX-License-Identifier: Apache-2.0
//
// Free units of an input buffer. After reset all of them, handed out by a counter; later those that
// came back, in a FIFO. `unit_o`, a register, is the next free one; `take_i` uses it. One that comes
// back can be taken three cycles later. A second one waits behind it, so that `take_i`, which comes late, moves
// nothing but these two: what is behind them follows in the next cycle.
// Credits, which are published later than that, keep the switch from taking one that is not there.

`include "velo_assert.svh"

module velo_switch_pool #(
    parameter  int unsigned NumUnits = 180,
    localparam int unsigned UnitBits = $clog2(NumUnits)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                take_i,
    output logic [UnitBits-1:0] unit_o,

    input logic                free_i,
    input logic [UnitBits-1:0] free_unit_i
);

  logic [UnitBits:0] fresh_q;  // units never handed out start here
  logic fresh, valid, ready, there_q, second_there_q, next, get;
  logic [UnitBits-1:0] returned, got, second_q;
  logic [UnitBits:0] count;

  assign fresh = fresh_q != (UnitBits + 1)'(NumUnits);
  assign next  = take_i || !there_q;
  assign get   = !second_there_q && (fresh || valid);
  assign got   = fresh ? fresh_q[UnitBits-1:0] : returned;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      fresh_q        <= (UnitBits + 1)'(2);
      there_q        <= 1'b1;
      second_there_q <= 1'b1;
      unit_o         <= '0;
      second_q       <= UnitBits'(1);
    end else begin
      if (get && fresh) fresh_q <= fresh_q + 1'b1;
      if (next) begin
        there_q <= second_there_q || get;
        unit_o  <= second_there_q ? second_q : got;
      end
      second_there_q <= !next && (second_there_q || get);
      if (!second_there_q) second_q <= got;
    end
  end

  velo_fifo #(
      .Width(UnitBits),
      .Depth(2 ** UnitBits)
  ) u_returned (
      .clk_i,
      .rst_ni,
      .push_valid_i(free_i),
      .push_ready_o(ready),
      .push_data_i (free_unit_i),
      .pop_valid_o (valid),
      .pop_ready_i (get && !fresh),
      .pop_data_o  (returned),
      .count_o     (count)
  );

  logic unused;
  assign unused = &{1'b0, ready, count};

  `VELO_ASSERT(CreditsKeptIt, !take_i || there_q)
  // What has been handed out once is in use, back, or about to be taken.
  logic [UnitBits+1:0] idle;
  assign idle = (UnitBits + 2)'(count) + (UnitBits + 2)'(there_q) + (UnitBits + 2)'(second_there_q);
  `VELO_ASSERT(NoUnitTwice, idle <= (UnitBits + 2)'(fresh_q))

endmodule
