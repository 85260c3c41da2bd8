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
#(
    parameter int unsigned NumPorts = 2,
    parameter int unsigned NumVcs   = 2,
    parameter int unsigned NumUnits = 4
) (
    input logic                            clk_i,
    input logic                            rst_ni,
    input logic                            add_i,
    input logic                            add_port_i,
    input logic                            add_vc_i,
    input logic                            remove_i,
    input logic                            remove_port_i,
    input logic [NumPorts-1:0][NumVcs-1:0] may_send_i,
    input logic                            watch_i
);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  logic [1:0] fresh_unit, first_unit;
  logic [NumPorts-1:0] some;
  vc_t [NumPorts-1:0] pick;
  logic add, remove;
  logic [2:0] inside_q;  // packets in all queues

  // A packet comes only while there is a unit, and leaves only if its queue was picked.
  assign add    = add_i && inside_q != 3'(NumUnits);
  assign remove = remove_i && some[remove_port_i];

  velo_switch_queues #(
      .NumPorts(NumPorts),
      .NumVcs  (NumVcs),
      .NumUnits(NumUnits)
  ) u_dut (
      .add_i        (add),
      .add_port_i   (add_port_i),
      .add_vc_i     (vc_t'(add_vc_i)),
      .add_unit_i   (fresh_unit),
      .remove_i     (remove),
      .remove_port_i(remove_port_i),
      .remove_vc_i  (pick[remove_port_i]),
      .remove_unit_o(first_unit),
      .some_o       (some),
      .pick_o       (pick),
      .*
  );

  velo_switch_pool #(
      .NumUnits(NumUnits)
  ) u_pool (
      .take_i     (add),
      .unit_o     (fresh_unit),
      .free_i     (remove),
      .free_unit_i(first_unit),
      .*
  );

  logic watching_q, port_q, vc_q, leaves_queue;
  logic [1:0] unit_q;
  logic [2:0] ahead_q;  // packets before it in its queue
  logic [1:0][1:0][2:0] count_q;
  assign leaves_queue = remove && remove_port_i == port_q && pick[remove_port_i] == vc_t'(vc_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q   <= '0;
      watching_q <= 1'b0;
      count_q    <= '0;
    end else begin
      inside_q <= inside_q + 3'(add) - 3'(remove);
      for (int p = 0; p < 2; p++) begin
        for (int v = 0; v < 2; v++) begin
          count_q[p][v] <= count_q[p][v] +
              3'(add && add_port_i == 1'(p) && add_vc_i == 1'(v)) -
              3'(remove && remove_port_i == 1'(p) && pick[remove_port_i] == vc_t'(v));
        end
      end
      if (!watching_q && add && watch_i) begin
        watching_q <= 1'b1;
        ahead_q <= count_q[add_port_i][add_vc_i] - 3'(remove && remove_port_i == add_port_i &&
                                                       pick[remove_port_i] == vc_t'(add_vc_i));
      end else if (watching_q && leaves_queue) begin
        ahead_q <= ahead_q - 1'b1;
        if (ahead_q == '0) watching_q <= 1'b0;
      end
    end
    if (!watching_q) begin
      port_q <= add_port_i;
      vc_q   <= add_vc_i;
      unit_q <= fresh_unit;
    end
  end

  // It leaves when those before it have left, and nothing else has its name meanwhile.
  `VELO_ASSERT(InOrder, !(watching_q && leaves_queue) || (ahead_q == '0) == (first_unit == unit_q))
  `VELO_ASSERT(NowhereElse, !(watching_q && remove && !leaves_queue) || first_unit != unit_q)
  `VELO_ASSERT(NameNotGivenTwice, !(watching_q && add) || fresh_unit != unit_q)
  // What may go is shown a cycle later at most: nothing waits for ever in a queue that is not empty.
  logic waits_q;
  always_ff @(posedge clk_i) begin
    waits_q <= rst_ni && count_q[0] != '0 && may_send_i[0] == '1 && !remove;
  end
  `VELO_ASSERT(Shown, !waits_q || some[0])
  `VELO_COVER(Full, inside_q == 3'(NumUnits) && count_q[0][0] == 3'd3)
  `VELO_COVER(LastInLine, watching_q && ahead_q == 3'd3)

endmodule
