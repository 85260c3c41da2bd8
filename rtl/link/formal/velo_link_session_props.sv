// SPDX-License-Identifier: Apache-2.0
//
// Two sides, either of which may be reset alone, go down or be told to forget, at any time and as often as
// one likes, over a cable of CableCycles that may lose any word and keeps those that were under way.
//
// An epoch of a side is the time between two losses of its sequence numbers and credits: a reset, or the end
// of a session. Each word that is sent by a side that is up carries its sender's epoch, and the epoch
// of the other side that the sender has to do with, if it knows that yet. A side that is up takes words of one
// epoch of the other side only, and only such as were meant for its own epoch: no two sides ever count
// from different starts. And both sides are up within CalmCycles of the last disturbance, whatever was before: no
// session hangs. A side that was reset may be another one, with larger or smaller buffers: the other side comes up
// with what it offers, and with less than before only after all that waited to be sent has been given up. That is
// what a link's numbers and credits need after a one-sided reset; velo_link_retry and velo_link prove the rest within
// one session and across one restart.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_link_session_props
  import velo_link_pkg::*;
#(
    parameter int unsigned CableCycles = 2,
    parameter int unsigned InitWords = 2,
    // A round trip, InitWords, and a cycle for a side to come up and one to say so.
    parameter int unsigned QuietCycles = 2 * CableCycles + InitWords + 2,
    // A quiet time, and some round trips in which both sides begin anew and drain.
    parameter int unsigned CalmCycles = 32
) (
    input logic clk_i,
    input logic rst_ni,
    input logic [1:0] reset_i,
    input logic [1:0] forget_i,
    input logic [1:0] down_i,
    input logic [1:0] keep_i,
    input logic [1:0] other_side_i,  // with a reset: another one, with other buffers
    input logic [1:0] wants_i  // something waits to be sent
);

  localparam ability_t Able = '{version: 0, width: 0, last_vc: 5, mtu: 3, credits: 30};

  localparam logic [CountWidth-2:0] Large = 30, Small = 25;

  typedef logic [1:0] epoch_t;
  typedef struct packed {
    logic   there;
    logic   few;
    logic   up;  // sent by a side that is up; else a CtlInit
    init_t  init;
    epoch_t epoch;
    logic   known;
    epoch_t other;
  } word_t;

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q == rst_ni);

  logic [1:0] up, anew, came_up, fresh, ever_q;
  logic [1:0][31:0] init_word;
  word_t [1:0] sent, heard;
  word_t [1:0][CableCycles-1:0] cable_q;  // to side s
  epoch_t [1:0] epoch_q, other_q;
  logic [1:0] known_q, was_bad_q, few_q, moved;

  for (genvar s = 0; s < 2; s++) begin : gen_side
    logic bad;  // what the side knows is gone
    logic drain, drop, waits_q;  // sent on the old credits, and kept
    count_t credits, had_q;
    velo_link_init #(
        .Ability(Able),
        .MinCredits(5),
        .InitWords(InitWords),
        .QuietCycles(QuietCycles)
    ) u_side (
        .clk_i,
        .rst_ni(rst_ni && !reset_i[s]),
        .enable_i(1'b1),
        .link_reset_i(down_i[s]),
        .forget_i(forget_i[s]),
        .phy_up_i(!moved[s]),
        .init_valid_i(heard[s].there && !heard[s].up),
        .init_i(heard[s].init),
        .other_word_i(heard[s].there && heard[s].up),
        .unsent_i(waits_q),
        .drain_o(drain),
        .drop_o(drop),
        .up_o(up[s]),
        .came_up_o(came_up[s]),
        .anew_o(anew[s]),
        .fresh_o(fresh[s]),
        .refuse_o(),
        .credits_o(credits),
        .init_word_o(init_word[s])
    );

    assign heard[s] = cable_q[s][CableCycles-1];
    always_comb begin
      sent[s] = '0;
      sent[s].there = keep_i[s] && rst_ni && !reset_i[s];
      sent[s].up = up[s];
      sent[s].init = init_t'(init_word[s]);
      sent[s].init.crc = '0;
      sent[s].init.ability.credits = few_q[s] ? Small : Large;
      sent[s].few = few_q[s];
      sent[s].epoch = epoch_q[s];
      sent[s].known = known_q[s];
      sent[s].other = other_q[s];
    end

    assign moved[s] = reset_i[1-s] && other_side_i[1-s];
    assign bad = reset_i[s] || (forget_i[s] && !up[s]);
    always_ff @(posedge clk_i) begin
      cable_q[s] <= {cable_q[s][CableCycles-2:0], sent[1-s]};
      if (moved[s]) cable_q[s] <= '0;
      was_bad_q[s] <= bad;
      if (!rst_ni) begin
        epoch_q[s] <= '0;
        known_q[s] <= 1'b0;
        was_bad_q[s] <= 1'b0;
        cable_q[s] <= '0;
        ever_q[s] <= 1'b0;
      end else if ((bad && !was_bad_q[s]) || (anew[s] && !was_bad_q[s])) begin
        epoch_q[s] <= epoch_q[s] + 1'b1;
        known_q[s] <= 1'b0;
        if (up[1-s]) ever_q[s] <= 1'b1;
      end else if (up[s] && heard[s].there && heard[s].up) begin
        known_q[s] <= 1'b1;
        other_q[s] <= heard[s].epoch;
      end
    end

    // The switch sends while the link is up in a session; what it sent may wait for ever, but for a drain.
    always_ff @(posedge clk_i) begin
      if (!rst_ni) few_q[s] <= 1'b0;
      else if (reset_i[s]) few_q[s] <= few_q[s] ^ other_side_i[s];
      if (!rst_ni || reset_i[s]) begin
        waits_q <= 1'b0;
        had_q   <= '0;
      end else begin
        if (drain) waits_q <= 1'b0;
        else if (wants_i[s] && !fresh[s]) waits_q <= 1'b1;
        if (up[s]) had_q <= credits;
      end
    end
    logic takes;
    assign takes = rst_ni && !reset_i[s] && up[s] && heard[s].there && heard[s].up;
    count_t offered;
    assign offered = heard[s].few ? count_t'(Small) : count_t'(Large);
    `VELO_ASSERT(CreditsAsOffered, !takes || credits == offered)
    `VELO_ASSERT(NothingOfMoreCredits, !came_up[s] || credits >= had_q || !waits_q)
    `VELO_ASSERT(DrainsForCause, !drop || credits < had_q)
    `VELO_COVER(UpWithFewer, came_up[s] && credits < had_q)
    `VELO_ASSERT(OneOtherSide, !(takes && known_q[s]) || heard[s].epoch == other_q[s])
    `VELO_ASSERT(MeantForThis, !(takes && heard[s].known) || heard[s].other == epoch_q[s])
    `VELO_COVER(MeetsAgain, takes && heard[s].known && ever_q == 2'(1 << s) && epoch_q[1-s] != '0)
    `VELO_COVER(MeetsAfterTwo, takes && heard[s].known && epoch_q[s] == 2'd3)
  end

  logic [$clog2(CalmCycles+1)-1:0] calm_q;
  logic disturbed;
  assign disturbed = reset_i != '0 || forget_i != '0 || down_i != '0 || keep_i != '1;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || disturbed) calm_q <= '0;
    else if (calm_q != $bits(calm_q)'(CalmCycles)) calm_q <= calm_q + 1'b1;
  end
  `VELO_ASSERT(ComesUpInTheEnd,
               disturbed || calm_q != $bits(calm_q)'(CalmCycles) || up == '1)
  `VELO_COVER(UpAfterReset, calm_q == $bits(calm_q)'(CalmCycles) && ever_q != '0)

  logic unused;
  assign unused = ^{came_up, fresh};

endmodule
