// SPDX-License-Identifier: Apache-2.0
//
// The promises of velo_patience, for any waits, any budgets that change in any cycle, and two contexts: what each has
// used is kept here a second time, in registers, by the words of the module's header.
//
//   * `expired_o` tells two cycles later whether the context has used its budget: never before, never later.
//     As a budget may be anything in each cycle, this also proves the sum of what is used.
//   * The sweep gives back only while nothing waits, only what was used, not before its time, and goes round.
//   * A wait whose user sees `expired_o` lasts no longer than what the context had left, and three cycles.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_patience_props #(
    parameter int unsigned Width = 3,
    parameter int unsigned GiveEvery = 4,
    // The user ends a wait when it sees `expired_o`, and the budget stays.
    parameter bit Bound = 1'b0
) (
    input logic             clk_i,
    input logic             rst_ni,
    input logic             enable_i,
    input logic [Width-1:0] cycles_i,
    input logic             ctx_i,
    input logic             waiting_i
);

  logic ready, expired;
  velo_patience #(
      .CtxBits  (1),
      .Width    (Width),
      .GiveEvery(GiveEvery)
  ) u_dut (
      .ready_o  (ready),
      .expired_o(expired),
      .*
  );

  // ----- the environment ------------------------------------------------------------------------

  logic past_q, waiting_q, ctx_q;
  logic [1:0] stood_q;  // cycles that the context has stood, and the memory has been cleared
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  always_ff @(posedge clk_i) begin
    past_q    <= 1'b1;
    waiting_q <= rst_ni && waiting_i;
    ctx_q     <= ctx_i;
    if (!rst_ni || !ready || ctx_i != ctx_q) stood_q <= '0;
    else if (stood_q != '1) stood_q <= stood_q + 2'd1;
  end
  // A wait's context may change in its last cycle: `waiter` is the one that began it.
  logic waiter, waiter_q, changed_q;
  always_ff @(posedge clk_i) begin
    waiter_q  <= waiter;
    changed_q <= rst_ni && waiting_i && ctx_i != waiter;
  end
  assign waiter = waiting_q ? waiter_q : ctx_q;
  `VELO_ASSUME(StandsBefore, !waiting_i || waiting_q || (stood_q == 2'd3 && ctx_i == ctx_q))
  `VELO_ASSUME(ChangesInTheLast, !changed_q || !waiting_i)

  // ----- what each has used, a second time ------------------------------------------------------

  logic [1:0][Width-1:0] used_q;
  logic turn_q, owing_q, found_q, looked_q, count, gives, looks;
  logic [$clog2(GiveEvery)-1:0] phase_q;  // of cycles in which nothing waits

  assign count = waiting_i && enable_i && used_q[waiter] < cycles_i;
  assign looks = owing_q && !waiting_i && !waiting_q && !gives &&
                 phase_q >= ($bits(phase_q))'(GiveEvery - 2);
  assign gives = looked_q && !waiting_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || !ready) begin
      used_q   <= '0;
      turn_q   <= 1'b0;
      owing_q  <= 1'b0;
      found_q  <= 1'b0;
      looked_q <= 1'b0;
      phase_q  <= '0;
    end else begin
      looked_q <= looks;
      if (count) begin
        used_q[waiter] <= used_q[waiter] + 1'b1;
        owing_q        <= 1'b1;
        found_q        <= 1'b1;
      end
      if (gives) begin
        turn_q <= !turn_q;
        if (used_q[turn_q] != '0) used_q[turn_q] <= used_q[turn_q] - 1'b1;
        found_q <= !turn_q && (found_q || used_q[turn_q] != '0);
        if (turn_q) owing_q <= found_q || used_q[turn_q] != '0;
      end
      if (owing_q && !waiting_i && (gives || phase_q != '1)) phase_q <= phase_q + 1'b1;
    end
  end

  // The sweep rests only when nothing is owed.
  `VELO_ASSERT(RestsWhenAllIsBack, owing_q || used_q == '0)

  // ----- promises -------------------------------------------------------------------------------

  // While a context waits, and in the cycle before, it is known what it has used.
  // A user looks earlier: from the third cycle of a context on nothing is told of the one before.
  logic told_q, looks_q, enable_q;
  logic [Width-1:0] cycles_q, had_q;
  always_ff @(posedge clk_i) begin
    told_q   <= rst_ni && ready && (waiting_i || (stood_q == 2'd3 && ctx_i == ctx_q));
    looks_q  <= rst_ni && ready && (waiting_i || (stood_q != '0 && ctx_i == ctx_q));
    enable_q <= enable_i;
    cycles_q <= cycles_i;
    had_q    <= used_q[waiting_i ? waiter : ctx_i];
  end
  `VELO_ASSERT(NeverEarly, !(looks_q && expired) || (enable_q && had_q >= cycles_q))
  `VELO_ASSERT(NeverLate, !(told_q && enable_q && had_q >= cycles_q) || expired)

  // Cycles without a wait since the last gift, as far as they count.
  logic [3:0] quiet_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) quiet_q <= '0;
    else if (gives) quiet_q <= 4'd0;
    else if (!waiting_i && quiet_q != '1) quiet_q <= quiet_q + 4'd1;
  end
  logic gave_q;
  always_ff @(posedge clk_i) gave_q <= rst_ni && (gave_q || gives);
  `VELO_ASSERT(NotBeforeItsTime, !(gives && gave_q) || quiet_q >= 4'(GiveEvery - 1))

  if (Bound) begin : gen_bound
    logic [Width-1:0] budget_q;
    logic [Width+1:0] lasted_q, left_q;
    always_ff @(posedge clk_i) begin
      budget_q <= budget_q;
      if (!waiting_i) begin
        lasted_q <= '0;
        left_q   <= used_q[ctx_i] < budget_q ? (Width + 2)'(budget_q - used_q[ctx_i]) : '0;
      end else begin
        lasted_q <= lasted_q + 1'b1;
      end
    end
    `VELO_ASSUME(BudgetStays, enable_i && cycles_i == budget_q)
    `VELO_ASSUME(EndsWhenExpired, !(waiting_q && expired) || !waiting_i)
    `VELO_ASSERT(NoLongerThanIsLeft, !waiting_i || lasted_q < left_q + (Width + 2)'(3))
  end

  // The proof is not empty.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (waiting_i && expired && cycles_q == 3'd5 && waiter);
      cover (gives && used_q[0] == 3'd1 && used_q[1] != '0);
      cover (past_q && ready && gave_q && !owing_q);
      cover (looked_q && waiting_i && turn_q == waiter);
      cover (changed_q);
    end
  end

endmodule
