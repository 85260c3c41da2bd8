// SPDX-License-Identifier: Apache-2.0
//
// Of any group: a barrier is complete with the last of its arrivals and not before, each counts once, whatever
// other groups do and whatever comes that must not count.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_barrier_groups_props
  import velo_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned GroupBits = 1
) (
    input logic                      clk_i,
    input logic                      rst_ni,
    input barrier_access_t           access_i,
    input logic                      came_valid_i,
    input logic [GroupBits-1:0]      came_group_i,
    input logic [2:0]                came_slot_i,
    input logic [7:0]                came_number_i,
    input logic                      look_valid_i,
    input logic [GroupBits-1:0]      look_group_i,
    input logic [2**GroupBits-1:0]   sent_i
);

  barrier_state_t state;
  logic came_ready, look_ready, due_valid, refused, late;
  logic [GroupBits-1:0] due_group;
  barrier_setting_t due_setting;
  logic [7:0] late_missing, late_number;

  velo_barrier_groups #(
      .GroupBits(GroupBits)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .access_i,
      .state_o       (state),
      .came_valid_i,
      .came_ready_o  (came_ready),
      .came_group_i,
      .came_slot_i,
      .came_number_i,
      .look_valid_i,
      .look_ready_o  (look_ready),
      .look_group_i,
      .due_valid_o   (due_valid),
      .due_group_o   (due_group),
      .due_setting_o (due_setting),
      .sent_i,
      .refused_o     (refused),
      .late_o        (late),
      .late_missing_o(late_missing),
      .late_number_o (late_number)
  );

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // One group, whichever it is, as a reader of the specification would keep it.
  logic [GroupBits-1:0] group_q;
  barrier_setting_t setting_q;
  logic enabled_q, due_q, other_due_q, old_q;
  logic [7:0] seen_q, number_q;
  logic [1:0] rounds_q;
  always_ff @(posedge clk_i) group_q <= group_q;

  logic mine, came, own_counts, child_counts, counts, complete, look;
  logic [7:0] bits;
  assign mine = access_i.group[GroupBits-1:0] == group_q;
  assign came = came_valid_i && came_ready && came_group_i == group_q;
  assign look = look_valid_i && look_ready && look_group_i == group_q;
  assign own_counts = access_i.arrive && mine && access_i.ctx == setting_q.ctx &&
      setting_q.expected[0] && !seen_q[0] && enabled_q && !due_q;
  assign child_counts = came && came_slot_i != '0 && came_number_i == number_q &&
      setting_q.expected[came_slot_i] && !seen_q[came_slot_i] && enabled_q && !due_q;
  assign counts = own_counts || child_counts;
  assign bits = own_counts ? 8'd1 : 8'd1 << came_slot_i;
  assign complete = counts && (seen_q | bits) == setting_q.expected;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      enabled_q   <= 1'b0;
      due_q       <= 1'b0;
      other_due_q <= 1'b0;
      rounds_q    <= '0;
    end else begin
      if (access_i.set && mine) begin
        setting_q <= access_i.setting;
        enabled_q <= access_i.setting.enabled;
        seen_q    <= '0;
        number_q  <= access_i.setting.number;
        rounds_q  <= '0;
        old_q     <= 1'b0;
      end else if (complete) begin
        seen_q   <= '0;
        number_q <= number_q + 8'd1;
        rounds_q <= rounds_q + 2'd1;
        old_q    <= 1'b0;
      end else if (counts) begin
        seen_q <= seen_q | bits;
      end else if (look) begin
        old_q <= seen_q != '0;
      end
      due_q       <= complete || (due_q && !sent_i[group_q]);
      other_due_q <= (due_valid && due_group != group_q) || (other_due_q && !sent_i[~group_q]);
    end
  end

  `VELO_ASSUME(OneAccess, $countones({access_i.set, access_i.arrive, access_i.read}) <= 1)
  `VELO_ASSUME(SentWasDue, !(sent_i[group_q] && !due_q) && !(sent_i[~group_q] && !other_due_q))

  // The barrier is complete exactly when the last arrival comes.
  `VELO_ASSERT(CompleteWithTheLast, (due_valid && due_group == group_q) == complete)
  // It names what the group was set up with, and barriers are numbered one by one.
  `VELO_ASSERT(DueIsTheGroups,
               !complete || (due_setting.root == setting_q.root &&
               due_setting.parent == setting_q.parent && due_setting.slot == setting_q.slot &&
               due_setting.ctx == setting_q.ctx && due_setting.number == number_q))
  // What does not count is refused, and only that.
  `VELO_ASSERT(RefusedIsNotCounted,
               !((access_i.arrive && mine) || came) || refused == !counts)
  // The registers show what has come.
  `VELO_ASSERT(StateIsShown,
               !(access_i.read && mine && enabled_q) || (state.enabled && state.due == due_q &&
               state.arrived == seen_q && state.number == number_q))
  // A late barrier is begun before the last look and lacks what it says.
  `VELO_ASSERT(LateIsLate,
               !look || late == (enabled_q && old_q && seen_q != '0))
  `VELO_ASSERT(LateSaysWhatIsMissing,
               !(look && late) || (late_missing == (setting_q.expected & ~seen_q) &&
               late_number == number_q))
  // The registers never wait, and arrivals only for them.
  `VELO_ASSERT(ArrivalsWaitForRegistersOnly,
               came_ready || access_i.set || access_i.arrive || access_i.read)

  // Three arrivals, own and children's, twice; then refusals and a late one.
  `VELO_COVER(SecondBarrier, complete && rounds_q == 2'd1 && setting_q.expected == 8'h13)
  `VELO_COVER(Twice, came && refused && enabled_q && !due_q && came_number_i == number_q &&
              seen_q[came_slot_i])
  `VELO_COVER(Early, came && refused && due_q && came_number_i == number_q)
  `VELO_COVER(Late, late && look && rounds_q == 2'd1)
  `VELO_COVER(NumberWraps, complete && rounds_q == 2'd1 && number_q == '0)
  `VELO_COVER(SetInTheMiddle, access_i.set && mine && seen_q != '0)

endmodule
