// SPDX-License-Identifier: Apache-2.0
//
// Virtual output queues of one input: one queue of packets for each output and virtual channel there,
// so that no packet waits for another that wants something else. Source: case-for-fpga, section 3.
//
// A packet is named by its first buffer unit. The queues are linked lists in LUT RAM: per queue the
// head and the tail, per packet the next one. Two sides write a head, adding to an empty queue and
// removing from a longer one, so each has a memory of its own and a bit tells which one is right.
//
// `add_*`: a packet's first word is being written. `remove_*`: the packet at the head of that queue
// (its unit at `remove_unit_o`, same cycle) is beginning to leave. Both may be the same queue.
// `may_send_i[port][vc]`: that output takes a packet of that channel.
// `some_o[port]`, `pick_o[port]`: something may go there, and the channel whose turn it is.

`include "velo_assert.svh"

module velo_switch_queues
  import velo_link_pkg::*;
#(
    parameter  int unsigned NumPorts = 9,
    parameter  int unsigned NumVcs   = 6,
    parameter  int unsigned NumUnits = 180,
    localparam int unsigned PortBits = $clog2(NumPorts),
    localparam int unsigned UnitBits = $clog2(NumUnits)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                add_i,
    input logic [PortBits-1:0] add_port_i,
    input vc_t                 add_vc_i,
    input logic [UnitBits-1:0] add_unit_i,

    input  logic                remove_i,
    input  logic [PortBits-1:0] remove_port_i,
    input  vc_t                 remove_vc_i,
    output logic [UnitBits-1:0] remove_unit_o,

    input  logic [NumPorts-1:0][NumVcs-1:0] may_send_i,
    output logic [NumPorts-1:0]             some_o,
    output vc_t  [NumPorts-1:0]             pick_o
);

  localparam int unsigned QueueBits = PortBits + VcWidth;
  typedef logic [UnitBits-1:0] unit_t;
  typedef logic [QueueBits-1:0] queue_t;

  unit_t head_added[2**QueueBits];
  unit_t head_removed[2**QueueBits];
  unit_t tail[2**QueueBits];
  unit_t follower[2**UnitBits];

  // The queue has a packet; its head is in head_added.
  logic [NumPorts-1:0][2**VcWidth-1:0] full_d, full_q, added_q;

  queue_t add_queue, remove_queue;
  logic same, leaves_empty, add_to_empty;
  assign add_queue = {add_port_i, add_vc_i};
  assign remove_queue = {remove_port_i, remove_vc_i};
  assign same = add_i && remove_i && add_queue == remove_queue;

  assign remove_unit_o =
      added_q[remove_port_i][remove_vc_i] ? head_added[remove_queue] : head_removed[remove_queue];
  assign leaves_empty = remove_unit_o == tail[remove_queue];
  assign add_to_empty = !full_q[add_port_i][add_vc_i] || (same && leaves_empty);

  always_ff @(posedge clk_i) begin
    if (add_i) tail[add_queue] <= add_unit_i;
    if (add_i && add_to_empty) head_added[add_queue] <= add_unit_i;
    if (add_i && !add_to_empty) follower[tail[add_queue]] <= add_unit_i;
    if (remove_i) head_removed[remove_queue] <= follower[remove_unit_o];
  end

  always_comb begin
    full_d = full_q;
    if (remove_i && leaves_empty) full_d[remove_port_i][remove_vc_i] = 1'b0;
    if (add_i) full_d[add_port_i][add_vc_i] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      full_q  <= '0;
      added_q <= '0;
    end else begin
      full_q <= full_d;
      if (remove_i) added_q[remove_port_i][remove_vc_i] <= 1'b0;
      if (add_i && add_to_empty) added_q[add_port_i][add_vc_i] <= 1'b1;
    end
  end

  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_pick
    velo_switch_pick #(
        .NumVcs(NumVcs)
    ) u_pick (
        .eligible_i(full_d[p][NumVcs-1:0] & may_send_i[p]),
        .served_i  (remove_i && remove_port_i == PortBits'(p)),
        .some_o    (some_o[p]),
        .pick_o    (pick_o[p]),
        .*
    );
  end

  `VELO_ASSERT(RemovesWhatIsThere, !remove_i || full_q[remove_port_i][remove_vc_i])

endmodule
