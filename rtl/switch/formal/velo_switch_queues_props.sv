// SPDX-License-Identifier: Apache-2.0
//
// The queues of one input, with the pool of units that name the packets: any packets for any queue,
// in any order, leaving whenever they may. Each packet leaves the queue that it was put into, once,
// after those that were there before it and before those that came later; no unit is given twice.
//
// One packet and its queue are watched, whichever it is: `watch_i` picks it when it comes.

`include "velo_assert.svh"

module velo_switch_queues_props
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned NumPorts = 2,
    parameter int unsigned NumVcs   = 2,
    parameter int unsigned NumUnits = 4,
    parameter int unsigned FewChannels = 1,  // heads in LUT RAM; 2: in registers
    parameter bit          Deep     = 1'b0  // what only the deeper proof reaches
) (
    input logic                            clk_i,
    input logic                            rst_ni,
    input logic                            add_i,
    input logic                            add_port_i,
    input logic                            add_vc_i,
    input logic                            add_single_i,
    input size_t                           add_size_i,
    input logic                            remove_i,
    input logic                            remove_port_i,
    input logic [NumPorts-1:0][NumVcs-1:0][NumSizes-1:0] may_send_i,
    input logic [NumPorts-1:0]             hold_i,
    input logic                            watch_i,
    input logic [1:0]                      look_unit_i
);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  logic [1:0] fresh_unit, first_unit;
  logic [NumPorts-1:0] some, remove_to_q;
  vc_t first_vc;
  logic add, remove, remove_q, first_single, first_watched;
  logic [2:0] inside_q;  // packets in all queues or just gone
  logic [2:0] gone_q;  // one that left one, two, three cycles ago
  logic [1:0] gone_unit_q;

  // A packet comes only while there is a unit. One is chosen by what `some` shows, and leaves in the
  // next cycle, in which no other is chosen.
  assign add = add_i && inside_q != 3'(NumUnits);
  assign remove = remove_i && some[remove_port_i] && !remove_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      remove_q    <= 1'b0;
      remove_to_q <= '0;
      gone_q      <= '0;
    end else begin
      remove_q    <= remove;
      remove_to_q <= remove ? NumPorts'(1) << remove_port_i : '0;
      gone_q      <= {gone_q[1:0], remove_q};
    end
    gone_unit_q <= first_unit;
  end

  // Deeper with one channel only: a queue for each output.
  always_comb assume (!Deep || !add_vc_i);

  velo_switch_queues #(
      .NumPorts(NumPorts),
      .NumVcs  (NumVcs),
      .NumUnits(NumUnits),
      .FewChannels(FewChannels)
  ) u_dut (
      .add_i         (add),
      .add_to_i      (NumPorts'(1) << add_port_i),
      .add_vc_i      (vc_t'(add_vc_i)),
      .add_unit_i    (fresh_unit),
      .add_single_i  (add_single_i),
      .remove_to_i   (remove_to_q),
      .first_vc_o    (first_vc),
      .first_unit_o  (first_unit),
      .watch_unit_i  (look_unit_i),
      .first_watched_o(first_watched),
      .first_single_o(first_single),
      .may_ask_i     (1'b1),
      .hold_i        (hold_i),
      .asks_o        (some),
      .long_o        (),
      .waits_o       (),
      .more_o        (),
      .*
  );

  velo_switch_pool #(
      .NumUnits(NumUnits)
  ) u_pool (
      .take_i     (add),
      .unit_o     (fresh_unit),
      .free_i     (gone_q[0]),
      .free_unit_i(gone_unit_q),
      .*
  );

  logic watching_q, port_q, vc_q, single_q, leaves_queue;
  size_t size_q;
  logic [3:0][NumPorts-1:0][NumVcs-1:0][NumSizes-1:0] may_send_q;  // one, two, ... cycles ago
  logic [1:0] unit_q;
  logic [2:0] ahead_q;  // packets before it in its queue
  logic [1:0][1:0][2:0] count_q;
  assign leaves_queue = remove_q && remove_to_q[port_q] && first_vc == vc_t'(vc_q);

  // Credits for a packet are credits for every smaller one.
  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_port
    for (genvar v = 0; v < int'(NumVcs); v++) begin : gen_vc
      for (genvar s = 1; s < int'(NumSizes); s++) begin : gen_size
        always_comb assume (!may_send_i[p][v][s] || may_send_i[p][v][s-1]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q   <= '0;
      watching_q <= 1'b0;
      count_q    <= '0;
    end else begin
      inside_q <= inside_q + 3'(add) - 3'(gone_q[2]);
      for (int p = 0; p < 2; p++) begin
        for (int v = 0; v < 2; v++) begin
          count_q[p][v] <= count_q[p][v] +
              3'(add && add_port_i == 1'(p) && add_vc_i == 1'(v)) -
              3'(remove_q && remove_to_q[p] && first_vc == vc_t'(v));
        end
      end
      if (!watching_q && add && watch_i) begin
        watching_q <= 1'b1;
        ahead_q <= count_q[add_port_i][add_vc_i] -
            3'(remove_q && remove_to_q[add_port_i] && first_vc == vc_t'(add_vc_i));
      end else if (watching_q && leaves_queue) begin
        ahead_q <= ahead_q - 1'b1;
        if (ahead_q == '0) watching_q <= 1'b0;
      end
    end
    if (!watching_q) begin
      port_q   <= add_port_i;
      vc_q     <= add_vc_i;
      unit_q   <= fresh_unit;
      single_q <= add_single_i;
      size_q   <= add_size_i;
    end
    may_send_q <= {may_send_q[2:0], may_send_i};
  end

  // It leaves when those before it have left, and nothing else has its name meanwhile.
  `VELO_ASSERT(InOrder, !(watching_q && leaves_queue) || (ahead_q == '0) == (first_unit == unit_q))
  `VELO_ASSERT(AsItCame, !(watching_q && leaves_queue && ahead_q == '0) || first_single == single_q)
  logic [1:0] look_unit_q;
  always_ff @(posedge clk_i) look_unit_q <= look_unit_i;
  `VELO_ASSERT(WatchedIsFirst, !remove_q || first_watched == (first_unit == look_unit_q))
  // Three cycles: into a register, the choice, the request; one more for a packet that has just come.
  `VELO_ASSERT(OnlyWithCredits, !(watching_q && leaves_queue && ahead_q == '0) ||
      may_send_q[2][port_q][vc_q][size_q] || may_send_q[3][port_q][vc_q][size_q])
  `VELO_ASSERT(NowhereElse, !(watching_q && remove_q && !leaves_queue) || first_unit != unit_q)
  `VELO_ASSERT(NameNotGivenTwice, !(watching_q && add) || fresh_unit != unit_q)
  // A packet that may go is shown, except in three cycles behind another: none waits for ever.
  logic waits, waits_q, waits_on_q;
  assign waits = count_q[0] != '0 && may_send_i[0] == '1 && !remove_q && !gone_q[0] &&
      !hold_i[0];
  always_ff @(posedge clk_i) begin
    waits_q    <= rst_ni && waits;
    waits_on_q <= rst_ni && waits && waits_q;
  end
  `VELO_ASSERT(Shown, !waits_on_q || some[0])
  // Nothing is asked for that is kept for another input.
  logic [NumPorts-1:0] held_q;
  always_ff @(posedge clk_i) held_q <= hold_i;
  `VELO_ASSERT(NotWhatIsHeld, (some & held_q) == '0)
  `VELO_COVER(Full, inside_q == 3'(NumUnits) && count_q[0][0] == 3'd3)
  `VELO_COVER(LastInLine, watching_q && ahead_q == 3'd3)
  // The second and third of a queue leave it; a unit has a second packet.
  logic [2:0] ahead_first_q, given_q;
  always_ff @(posedge clk_i) begin
    if (!watching_q) ahead_first_q <= count_q[add_port_i][add_vc_i];
    if (!rst_ni) given_q <= '0;
    else if (add) given_q <= given_q + 3'd1;
  end
  `VELO_COVER(LeavesBehindOthers, watching_q && leaves_queue && ahead_q == '0 &&
              ahead_first_q == (Deep ? 3'd2 : 3'd1))
  `VELO_COVER(UnitGivenAgain, given_q == 3'(NumUnits + 1))

endmodule
