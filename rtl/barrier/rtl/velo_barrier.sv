// SPDX-License-Identifier: Apache-2.0
//
// Barriers: the unit of a node that counts arrivals and sends its own one, or the release.
//
// Of each group that the registers have set up (spec/velo.toml, layout barrier_setting) the node expects some
// arrivals: that of its own context, by a write to the registers (`access_i.arrive`), and those of children, by
// packets of kind barrier of the class of completions (`in_*`). When all have come, it sends one to its parent,
// in the same class (`arrival_*`); the root sends a message without payload to the group instead, in the class of
// requests (`release_*`), which the switches copy to all members. Its tag is the barrier's number.
//
// All streams valid/ready, whole packets of one header. What comes in is always taken, at most a cycle late
// for each access of the registers. From the last beat of the last arrival to the first beat out: two cycles.
// Each class has its own queue with room for all groups, so neither waits for the other.
//
// Errors: arrivals that are refused (velo_barrier_groups), and packets that are not of one header or are another
// node's, change nothing and are counted. A barrier that is begun and not complete for longer than `access_i.watchdog`
// allows is reported each time that it is looked at (`report_o.late`); it goes on waiting.

`include "velo_assert.svh"

module velo_barrier
  import velo_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,  // clock of the core
    input logic rst_ni, // asynchronous reset

    input  logic            [7:0] node_id_i,  // this node
    input  barrier_access_t       access_i,   // from the registers
    output barrier_report_t       report_o,

    input  logic                 in_valid_i,  // arrivals that come
    output logic                 in_ready_o,
    input  logic                 in_eop_i,
    input  logic [DataWidth-1:0] in_data_i,

    output logic                 arrival_valid_o,  // arrivals that leave
    input  logic                 arrival_ready_i,
    output logic                 arrival_sop_o,
    output logic                 arrival_eop_o,
    output logic [DataWidth-1:0] arrival_data_o,

    output logic                 release_valid_o,  // messages to groups
    input  logic                 release_ready_i,
    output logic                 release_sop_o,
    output logic                 release_eop_o,
    output logic [DataWidth-1:0] release_data_o
);

  localparam int unsigned GroupBits = 5;
  localparam int unsigned NumGroups = 2 ** GroupBits;
  localparam int unsigned HeaderBeats = DataWidth == 32 ? 2 : 1;
  typedef logic [GroupBits-1:0] group_t;

  // ----- in -----------------------------------------------------------------------------------

  logic gathered, take, whole, came_ready;
  logic [$clog2(HeaderBeats+2)-1:0] beats;
  packet_t came;

  velo_gather #(
      .DataWidth(DataWidth),
      .Words    (1),
      .Packet   (1'b1)
  ) u_gather (
      .clk_i,
      .rst_ni,
      .in_valid_i(in_valid_i),
      .in_ready_o(in_ready_o),
      .in_eop_i  (in_eop_i),
      .in_data_i (in_data_i),
      .valid_o   (gathered),
      .take_i    (take),
      .beats_o   (beats),
      .words_o   (came)
  );

  assign whole = 32'(beats) == HeaderBeats && came.len == '0 && came.dst_node == node_id_i;
  assign take  = gathered && (came_ready || !whole);

  // ----- groups -------------------------------------------------------------------------------

  logic due, refused, late, look, look_ready;
  group_t due_group, look_group_q;
  barrier_setting_t due_setting;
  logic [1:0] sent;  // release, arrival
  packet_t release_header, arrival_header;
  logic [NumGroups-1:0] sent_groups;

  always_comb begin
    sent_groups = '0;
    if (sent[1]) sent_groups[release_header.dst_node[GroupBits-1:0]] = 1'b1;
    if (sent[0]) sent_groups[arrival_header.dst_ctx[GroupBits-1:0]] = 1'b1;
  end

  velo_barrier_groups #(
      .GroupBits(GroupBits)
  ) u_groups (
      .clk_i,
      .rst_ni,
      .access_i,
      .state_o       (report_o.state),
      .came_valid_i  (gathered && whole),
      .came_ready_o  (came_ready),
      .came_group_i  (came.dst_ctx[GroupBits-1:0]),
      .came_slot_i   (came.dst_ctx[7:5]),
      .came_number_i (came.tag),
      .look_valid_i  (look),
      .look_ready_o  (look_ready),
      .look_group_i  (look_group_q),
      .due_valid_o   (due),
      .due_group_o   (due_group),
      .due_setting_o (due_setting),
      .sent_i        (sent_groups),
      .refused_o     (refused),
      .late_o        (late),
      .late_missing_o(report_o.late_missing),
      .late_number_o (report_o.late_number)
  );

  // ----- out ----------------------------------------------------------------------------------

  velo_barrier_send #(
      .DataWidth(DataWidth),
      .Depth    (NumGroups),
      .Class    (TrafficClassCompletion),
      .Kind     (PacketKindBarrier)
  ) u_arrival (
      .clk_i,
      .rst_ni,
      .node_id_i,
      .push_valid_i(due && !due_setting.root),
      .push_node_i (due_setting.parent),
      .push_ctx_i  ({due_setting.slot, due_group}),
      .push_tag_i  (due_setting.number),
      .out_valid_o (arrival_valid_o),
      .out_ready_i (arrival_ready_i),
      .out_sop_o   (arrival_sop_o),
      .out_eop_o   (arrival_eop_o),
      .out_data_o  (arrival_data_o),
      .sent_o      (sent[0]),
      .header_o    (arrival_header)
  );

  velo_barrier_send #(
      .DataWidth(DataWidth),
      .Depth    (NumGroups),
      .Class    (TrafficClassRequest),
      .Kind     (PacketKindVelo)
  ) u_release (
      .clk_i,
      .rst_ni,
      .node_id_i,
      .push_valid_i(due && due_setting.root),
      .push_node_i (8'(GroupNodeMin) | 8'(due_group)),
      .push_ctx_i  (due_setting.ctx),
      .push_tag_i  (due_setting.number),
      .out_valid_o (release_valid_o),
      .out_ready_i (release_ready_i),
      .out_sop_o   (release_sop_o),
      .out_eop_o   (release_eop_o),
      .out_data_o  (release_data_o),
      .sent_o      (sent[1]),
      .header_o    (release_header)
  );

  // ----- looks for late ones ------------------------------------------------------------------

  logic [23:0] left_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      look         <= 1'b0;
      look_group_q <= '0;
      left_q       <= '0;
    end else if (!access_i.watchdog.enable) begin
      // The first look is at once.
      look   <= 1'b0;
      left_q <= '0;
    end else if (look) begin
      if (look_ready) begin
        look         <= look_group_q != '1;
        look_group_q <= look_group_q + 1'b1;
      end
    end else begin
      look   <= left_q == '0;
      left_q <= left_q == '0 ? access_i.watchdog.cycles : left_q - 1'b1;
    end
  end

  // ----- reports ------------------------------------------------------------------------------

  assign report_o.present    = 1'b1;
  assign report_o.late       = late;
  assign report_o.late_group = look_group_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      report_o.complete <= '0;
      report_o.refused  <= '0;
      report_o.lates    <= '0;
    end else begin
      report_o.complete <= report_o.complete + 16'(due);
      report_o.refused  <= report_o.refused + 16'(refused) + 16'(take && !whole);
      report_o.lates    <= report_o.lates + 16'(late);
    end
  end

  logic unused;
  assign unused = ^{came, due_setting, release_header, arrival_header};

  `VELO_ASSERT_INIT(GroupsAreHighestNodes, 256 - GroupNodeMin == NumGroups)

endmodule
