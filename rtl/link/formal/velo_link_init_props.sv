// SPDX-License-Identifier: Apache-2.0
//
// Bring-up of two sides over a cable that may lose any word. Differ names what they differ in:
// 0 nothing, 1 version, 2 width, 3 channels, 4 MTU, 5 one side's credits too few. If anything, the side
// that has to refuse never comes up, and when it gives a reason, it is that one. If nothing, they refuse nothing, take the offered credits, and both can come up.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_link_init_props
  import velo_link_pkg::*;
#(
    parameter int unsigned Differ = 0
) (
    input logic clk_i,
    input logic rst_ni,
    input logic keep_ab_i,
    input logic keep_ba_i,
    input logic down_b_i
);

  localparam ability_t A = '{version: 1, width: 0, last_vc: 5, mtu: 3, credits: 30};
  localparam ability_t B = '{
      version: Differ == 1 ? 2 : 1,
      width: Differ == 2 ? 1 : 0,
      last_vc: Differ == 3 ? 2 : 5,
      mtu: Differ == 4 ? 0 : 3,
      credits: Differ == 5 ? 4 : 25
  };

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  logic up_a, up_b, came_a, came_b;
  logic [1:0] idle_q, init_q;
  refuse_e refuse_a, refuse_b;
  count_t credits_a, credits_b;
  logic [31:0] word_a, word_b;
  init_t at_a_q, at_b_q;

  velo_link_init #(
      .Ability(A),
      .MinCredits(5),
      .InitWords(2),
      .QuietCycles(1)
  ) u_a (
      .enable_i(1'b1),
      .link_reset_i(1'b0),
      .forget_i(1'b0),
      .phy_up_i(1'b1),
      .init_valid_i(init_q[0]),
      .init_i(at_a_q),
      .other_word_i(idle_q[0]),
      .unsent_i(1'b0),
      .drain_o(),
      .drop_o(),
      .up_o(up_a),
      .came_up_o(came_a),
      .anew_o(),
      .fresh_o(),
      .refuse_o(refuse_a),
      .credits_o(credits_a),
      .init_word_o(word_a),
      .*
  );
  velo_link_init #(
      .Ability(B),
      .MinCredits(5),
      .InitWords(2),
      .QuietCycles(1)
  ) u_b (
      .enable_i(1'b1),
      .link_reset_i(1'b0),
      .forget_i(1'b0),
      .phy_up_i(!down_b_i),
      .init_valid_i(init_q[1]),
      .init_i(at_b_q),
      .other_word_i(idle_q[1]),
      .unsent_i(1'b0),
      .drain_o(),
      .drop_o(),
      .up_o(up_b),
      .came_up_o(came_b),
      .anew_o(),
      .fresh_o(),
      .refuse_o(refuse_b),
      .credits_o(credits_b),
      .init_word_o(word_b),
      .*
  );

  // The check of the words is velo_link_rx's; here a word is lost or it is right.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      init_q <= '0;
      idle_q <= '0;
    end else begin
      init_q <= {keep_ab_i && !up_a, keep_ba_i && !up_b};
      idle_q <= {keep_ab_i && up_a, keep_ba_i && up_b};
    end
    at_a_q <= init_t'(word_b);
    at_b_q <= init_t'(word_a);
  end

  localparam refuse_e Reason = refuse_e'(Differ);
  if (Differ == 0) begin : gen_agree
    // Sides that go down and come again: velo_link_session_props.
    `VELO_ASSUME(StaysPlugged, !down_b_i)
    `VELO_ASSERT(NothingRefused, refuse_a == RefuseNone && refuse_b == RefuseNone)
    `VELO_ASSERT(OfferedCredits, (!up_a || credits_a == 25) && (!up_b || credits_b == 30))
    `VELO_COVER(BothUp, up_a && up_b)
  end else if (Differ == 5) begin : gen_one_refuses
    `VELO_ASSERT(RefuserStaysDown, !up_a)
    `VELO_ASSERT(OtherStaysDown, !up_b)
    `VELO_ASSERT(ReasonIsRight, refuse_a inside {RefuseNone, Reason})
    `VELO_COVER(ReasonIsGiven, refuse_a == Reason)
  end else begin : gen_refuse
    `VELO_ASSERT(BothStayDown, !up_a && !up_b)
    `VELO_ASSERT(ReasonsAreRight,
                 refuse_a inside {RefuseNone, Reason} && refuse_b inside {RefuseNone, Reason})
    `VELO_COVER(ReasonsAreGiven, refuse_a == Reason && refuse_b == Reason)
  end

  logic unused;
  assign unused = &{1'b0, came_a, came_b};

endmodule
