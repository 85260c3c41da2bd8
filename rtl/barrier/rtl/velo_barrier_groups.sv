// SPDX-License-Identifier: Apache-2.0
//
// The state of all groups' barriers at one node: which of the expected arrivals have come.
//
// An arrival sets its bit. When all expected ones are set, the bits are cleared, the barrier's number goes up by
// one, and the group is due (`due_valid_o`, with its setting and the number of the barrier that is complete): the
// node has to send its own arrival or the release. There is no ready: who takes it has room for each group once,
// and until `sent_i` names the group no arrival for it is taken.
//
// One access a cycle, in this order: the registers (`access_i`), an arrival that came (`came_*`, valid/ready), a
// look for late barriers (`look_*`, valid/ready). `state_o`, combinational: of the group of `access_i.read`.
// An arrival is there in the state a cycle later, and makes its group due in its own cycle.
//
// Errors: `refused_o` pulses for an arrival that changes nothing: of a group that is not enabled or due, of a
// bit that is not expected or already set, of another context than the group's, or for another barrier than
// the next one. `late_o` pulses, with what is missing, if a group's barrier was already begun and not complete
// at the last look, and still is not. Source: none of the papers describes a barrier.

`include "velo_assert.svh"

module velo_barrier_groups
  import velo_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned GroupBits = 5
) (
    input logic clk_i,  // clock of the core
    input logic rst_ni, // asynchronous reset

    input  barrier_access_t access_i,  // from the registers
    output barrier_state_t  state_o,

    input  logic                 came_valid_i,  // an arrival from a child
    output logic                 came_ready_o,
    input  logic [GroupBits-1:0] came_group_i,
    input  logic [          2:0] came_slot_i,
    input  logic [          7:0] came_number_i,

    input  logic                 look_valid_i,  // is the group late?
    output logic                 look_ready_o,
    input  logic [GroupBits-1:0] look_group_i,

    output logic                                due_valid_o,    // a barrier is complete here
    output logic             [   GroupBits-1:0] due_group_o,
    output barrier_setting_t                    due_setting_o,
    input  logic             [2**GroupBits-1:0] sent_i,         // what was due has left, by group

    output logic       refused_o,
    output logic       late_o,
    output logic [7:0] late_missing_o,
    output logic [7:0] late_number_o
);

  // A group's setting, as it is kept, and how far its barrier is.
  typedef struct packed {
    logic       root;
    logic [7:0] expected;
    logic [7:0] parent;
    logic [2:0] slot;
    logic [7:0] ctx;
  } part_t;
  typedef struct packed {
    logic [7:0] arrived;
    logic [7:0] number;
    logic       old;      // begun before the last look
  } progress_t;

  (* ram_style = "distributed" *)
  part_t parts[2**GroupBits];
  (* ram_style = "distributed" *)
  progress_t progresses[2**GroupBits];
  logic [2**GroupBits-1:0] enabled_q, due_q;

  // ----- the access of this cycle ---------------------------------------------------------------

  logic access, came, look;
  logic [GroupBits-1:0] group;
  part_t part;
  progress_t progress, progress_d;

  assign access = access_i.set || access_i.arrive || access_i.read;
  assign came_ready_o = !access;
  assign look_ready_o = !access && !came_valid_i;
  assign came = came_valid_i && came_ready_o;
  assign look = look_valid_i && look_ready_o;
  assign group        = access ? access_i.group[GroupBits-1:0] :
                        came_valid_i ? came_group_i : look_group_i;
  assign part = parts[group];
  assign progress = progresses[group];

  // ----- arrivals -------------------------------------------------------------------------------

  logic [7:0] bits, arrived;
  logic open, taken, complete;

  assign open = enabled_q[group] && !due_q[group];
  assign bits = access ? 8'd1 : 8'd1 << came_slot_i;
  // A child has no slot 0: that is the node's own.
  assign taken = open && (part.expected & ~progress.arrived & bits) != '0 &&
      (access ? access_i.arrive && part.ctx == access_i.ctx :
       came && came_slot_i != '0 && progress.number == came_number_i);
  assign arrived = progress.arrived | bits;
  assign complete = taken && arrived == part.expected;
  assign refused_o = (access_i.arrive || came) && !taken;

  always_comb begin
    progress_d = progress;
    if (access_i.set) begin
      progress_d = '{arrived: '0, number: access_i.setting.number, old: 1'b0};
    end else if (complete) begin
      progress_d = '{arrived: '0, number: progress.number + 8'd1, old: 1'b0};
    end else if (taken) begin
      progress_d.arrived = arrived;
    end else if (look) begin
      progress_d.old = progress.arrived != '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (access_i.set || taken || look) progresses[group] <= progress_d;
    if (access_i.set) begin
      parts[group] <= '{
          root: access_i.setting.root,
          expected: access_i.setting.expected,
          parent: access_i.setting.parent,
          slot: access_i.setting.slot,
          ctx: access_i.setting.ctx
      };
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      enabled_q <= '0;
      due_q     <= '0;
    end else begin
      if (access_i.set) enabled_q[group] <= access_i.setting.enabled;
      due_q <= due_q & ~sent_i;
      if (complete) due_q[group] <= 1'b1;
    end
  end

  // ----- to the outside -------------------------------------------------------------------------

  assign due_valid_o = complete;
  assign due_group_o = group;
  assign due_setting_o = '{
          enabled: 1'b1,
          root: part.root,
          expected: part.expected,
          parent: part.parent,
          slot: part.slot,
          ctx: part.ctx,
          number: progress.number,
          default: '0
      };
  assign state_o = '{
          enabled: enabled_q[group],
          due: due_q[group],
          expected: part.expected,
          arrived: progress.arrived,
          number: progress.number,
          default: '0
      };

  assign late_o = look && enabled_q[group] && progress.old && progress.arrived != '0;
  assign late_missing_o = part.expected & ~progress.arrived;
  assign late_number_o = progress.number;

  logic unused;
  assign unused = ^access_i;

  `VELO_ASSERT_INIT(GroupsFitAccess, GroupBits <= 5)
  `VELO_ASSUME(OneAccess, $countones({access_i.set, access_i.arrive, access_i.read}) <= 1)
  `VELO_ASSUME(SentWasDue, (sent_i & ~due_q) == '0)
  `VELO_ASSERT(DueOnce, !due_valid_o || !due_q[due_group_o])
  `VELO_ASSERT(LateMissesSome, !late_o || late_missing_o != '0)

endmodule
