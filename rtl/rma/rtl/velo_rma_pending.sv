// SPDX-License-Identifier: Apache-2.0
//
// The gets and updates of this node that are not over: how many may be sent, which answers are ours, and which
// operation waits too long.
//
// An entry an operation, given in turn: its number (`number_o`, in the packet's command) names its entry, and the
// answers bring it back. `ask_ready_o`: an operation with node `ask_node_i` may be sent, for the node asked for
// in the cycle before: the next entry is free, and fewer than PerNode of that node's operations are unanswered.
// So the target has a slot for each (velo_rma_asks). At the pulse `ask_valid_i` it is sent, with header and command.
//
// An operation is overdue when no packet of it was written for half of `time_cycles_i`, or up to twice that half. Its
// entry is passed over, so that others go on. `ask_late_o`, like `ask_ready_o`: all of that node's are overdue,
// or all entries are, so that who asks need not wait for them.
//
// `epoch_o` counts the operations that ended for want of an answer, and is part of the command: an answer that comes
// after its operation has ended is not that of a later one that is alike in all else, until 2^EpochBits ended so.
//
// `known_o`, a cycle after an answer's header and command: they fit an operation that is not over, in every field
// that names memory, user or node. An answer that is not known is dropped unwritten, so memory changes only where
// this node asked for it. `busy_i`: an answer that is known is written; with it the operation counts as begun, and
// its time starts anew. `ended_i`: the last one was.
//
// A node of which an operation ended for want of an answer is silent until a packet of an answer of it is written: then
// it is asked for one operation at a time, a probe, and at most half of the entries are for probes. A probe is overdue
// after 2 ** ProbeBits to twice as many cycles, or, if that is sooner, as any operation is. So a node that does not
// answer holds up who asks others for no longer than `time_cycles_i`, once. Which nodes are silent is forgotten at a
// reset: `ask_ready_o` and `ask_late_o` are low for a cycle a node then.
//
// With `time_enable_i` an operation of which no packet was written for `time_cycles_i` cycles, 2 at least, ends: at
// most 1.5 times as long, and a look at each entry, after its last one. Then there is a notification of ErrorLost, and a
// pulse on `late_o`. What comes later of it is unknown. No operation ends so while a packet of it is being written.
//
// No deadlock: an operation waits here for answers alone, and these wait for the host alone.
// Errors: ErrorLost.

`include "velo_assert.svh"

module velo_rma_pending
  import velo_pkg::*;
  import velo_rma_pkg::*;
#(
    parameter int unsigned Entries = 16,
    parameter int unsigned PerNode = AsksPerNode,
    parameter int unsigned TimeBits = 32,
    parameter int unsigned NumberBits = 6,  // of the operations' numbers
    parameter int unsigned NodeBits = 8,  // of node numbers in use
    parameter int unsigned ProbeBits = 12
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                time_enable_i,
    input logic [TimeBits-1:0] time_cycles_i,

    input  logic         [          7:0] ask_node_i,
    output logic                         ask_ready_o,
    output logic                         ask_late_o,
    input  logic                         ask_valid_i,
    input  packet_t                      ask_header_i,
    input  rma_command_t                 ask_command_i,
    output logic         [          5:0] number_o,
    output logic         [EpochBits-1:0] epoch_o,

    input  packet_t      answer_header_i,
    input  rma_command_t answer_command_i,
    output logic         known_o,
    input  logic         busy_i,
    input  logic         ended_i,

    output logic    notify_valid_o,
    input  logic    notify_ready_i,
    output notify_t notify_o,

    output logic       late_o,
    output logic [7:0] late_ctx_o,
    output logic [7:0] late_node_o
);

  localparam int unsigned IndexBits = $clog2(Entries);
  typedef logic [IndexBits-1:0] index_t;

  // What an answer must bring back, and what a notification tells.
  typedef struct packed {
    logic [7:0]  ctx;
    logic [7:0]  node;
    logic [7:0]  node_ctx;
    logic [7:0]  tag;
    logic [3:0]  op;
    logic [22:0] len;
    logic [63:0] address;
    logic [5:0]  number;
  } operation_t;

  (* no_rw_check *)
  operation_t mem[Entries];
  operation_t asked, answered, late;
  logic [Entries-1:0] open_q, unanswered_q, probe_q, of_node, overdue;
  logic [Entries-1:0][7:0] node_q;
  logic [Entries-1:0][1:0] age_q, probe_age_q;
  logic [NumberBits-1:0] number_q;
  index_t next, index, look_q;

  assign number_o = 6'(number_q);
  assign next     = number_q[IndexBits-1:0];
  assign index    = answer_command_i.number[IndexBits-1:0];

  // ----- asking ---------------------------------------------------------------------------------

  typedef logic [$clog2(Entries+1)-1:0] count_t;
  count_t waits, probes_q;
  logic no_place, no_probe, pass, clearing_q, is_silent, is_probe, is_heard;
  always_comb begin
    waits = '0;
    for (int unsigned e = 0; e < Entries; e++) begin
      of_node[e] = unanswered_q[e] && node_q[e] == ask_node_i;
      waits += {{$bits(waits) - 1{1'b0}}, of_node[e]};
      overdue[e] = open_q[e] && (age_q[e][1] || (probe_q[e] && probe_age_q[e][1]));
    end
  end
  assign no_probe = is_silent && 32'(probes_q) >= Entries / 2;
  assign no_place = 32'(waits) >= PerNode || (is_silent && waits != '0) || no_probe;
  assign pass     = overdue[next] && overdue != '1;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ask_ready_o <= 1'b0;
      ask_late_o  <= 1'b0;
    end else begin
      ask_ready_o <= !ask_valid_i && !clearing_q && !open_q[next] &&
          !(notify_valid_o && look_q == next) && !no_place;
      ask_late_o <= !ask_valid_i && !clearing_q &&
          (overdue == '1 || no_probe || (no_place && (of_node & ~overdue) == '0));
    end
  end

  assign asked = '{
          ctx: ask_header_i.src_ctx,
          node: ask_header_i.dst_node,
          node_ctx: ask_header_i.dst_ctx,
          tag: ask_header_i.tag,
          op: ask_command_i.op,
          len: ask_command_i.len,
          address: ask_command_i.local_address,
          number: ask_command_i.number
      };
  always_ff @(posedge clk_i) begin
    if (ask_valid_i) begin
      mem[next]    <= asked;
      node_q[next] <= ask_header_i.dst_node;
    end
  end

  // ----- answers --------------------------------------------------------------------------------

  operation_t brought;
  logic same_q;
  assign answered = mem[index];
  assign brought = '{
          ctx: answer_header_i.dst_ctx,
          node: answer_header_i.src_node,
          node_ctx: answer_header_i.src_ctx,
          tag: answer_header_i.tag,
          op: answer_command_i.op,
          len: answer_command_i.len,
          address: answer_command_i.local_address,
          number: answer_command_i.number
      };
  // Open in both cycles: the entry may be given to another operation in the first of them.
  always_ff @(posedge clk_i) same_q <= brought == answered && open_q[index];
  assign known_o = same_q && open_q[index];

  // ----- time -----------------------------------------------------------------------------------

  typedef enum logic {
    StLook,
    StTell
  } state_e;
  state_e state_q;
  logic [TimeBits-2:0] cycles_q;
  logic tick_q, is_late;

  // An age is half the time. Late is an operation that saw three ages begin, so two whole ones.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      cycles_q <= '0;
      tick_q   <= 1'b0;
    end else begin
      tick_q <= 1'b0;
      if (!time_enable_i || open_q == '0) cycles_q <= '0;
      else if (cycles_q >= time_cycles_i[TimeBits-1:1]) begin
        cycles_q <= (TimeBits - 1)'(1);
        tick_q   <= 1'b1;
      end else cycles_q <= cycles_q + (TimeBits - 1)'(1);
    end
  end

  // The entries are looked at in turn, and time passes, while one is open: an idle node has the same state in each cycle,
  // which the simulator need not evaluate.
  assign is_late = state_q == StLook && open_q[look_q] && age_q[look_q] == '1 && time_enable_i &&
      !(busy_i && index == look_q) && !is_heard;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StLook;
      look_q  <= '0;
    end else if (state_q == StTell) begin
      if (notify_ready_i) state_q <= StLook;
    end else if (is_late) state_q <= StTell;
    else if (open_q != '0) look_q <= look_q + 1'b1;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q       <= '0;
      unanswered_q <= '0;
      number_q     <= '0;
      epoch_o      <= '0;
    end else begin
      if (ask_valid_i || pass) number_q <= number_q + 1'b1;
      if (is_late) epoch_o <= epoch_o + 1'b1;
      for (int unsigned e = 0; e < Entries; e++) begin
        if (ask_valid_i && next == index_t'(e)) begin
          open_q[e]       <= 1'b1;
          unanswered_q[e] <= 1'b1;
        end else begin
          if (busy_i && index == index_t'(e)) unanswered_q[e] <= 1'b0;
          if (ended_i && index == index_t'(e)) open_q[e] <= 1'b0;
          if (is_late && look_q == index_t'(e)) begin
            open_q[e]       <= 1'b0;
            unanswered_q[e] <= 1'b0;
          end
        end
      end
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned e = 0; e < Entries; e++) begin
      if (!open_q[e] || !time_enable_i || (busy_i && index == index_t'(e))) age_q[e] <= '0;
      else if (tick_q && age_q[e] != '1) age_q[e] <= age_q[e] + 2'd1;
    end
  end

  // ----- silent nodes ---------------------------------------------------------------------------

  typedef logic [NodeBits-1:0] node_t;
  (* ram_style = "distributed" *)
  logic  silent  [2**NodeBits];
  node_t clear_q;

  assign is_silent = silent[node_t'(ask_node_i)];
  assign is_probe  = is_silent || (is_late && late.node == ask_node_i);
  assign is_heard  = busy_i && probe_q[index];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q    <= '0;
    end else if (clearing_q) begin
      clearing_q <= clear_q != '1;
      clear_q    <= clear_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (clearing_q) silent[clear_q] <= 1'b0;
    else if (is_late) silent[node_t'(late.node)] <= 1'b1;
    else if (is_heard) silent[node_t'(answered.node)] <= 1'b0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      probe_q  <= '0;
      probes_q <= '0;
    end else begin
      for (int unsigned e = 0; e < Entries; e++) begin
        if (ask_valid_i && next == index_t'(e)) probe_q[e] <= is_probe;
        else if (is_heard && index == index_t'(e)) probe_q[e] <= 1'b0;
        else if (is_late && look_q == index_t'(e)) probe_q[e] <= 1'b0;
      end
      probes_q <= probes_q + count_t'(ask_valid_i && is_probe) -
          count_t'(is_heard || (is_late && probe_q[look_q]));
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned e = 0; e < Entries; e++) begin
      if (!open_q[e]) probe_age_q[e] <= '0;
      else if (cycles_q[ProbeBits-1:0] == '1 && !probe_age_q[e][1])
        probe_age_q[e] <= probe_age_q[e] + 2'd1;
    end
  end

  assign late = mem[look_q];
  assign notify_valid_o = state_q == StTell;
  assign notify_o = notification(
      late.ctx,
      {
        late.node, late.node_ctx
      },
      late.op,
      late.tag,
      '0,
      RmaPlaceError,
      ErrorLost,
      local_address(
          late.address)
  );
  assign late_o = is_late;
  assign late_ctx_o = late.ctx;
  assign late_node_o = late.node;

  logic unused;
  assign unused = ^{ask_header_i, ask_command_i, answer_header_i, answer_command_i, late,
                    time_cycles_i};

  `VELO_ASSERT_INIT(NumberNamesAnEntry,
                    Entries == 2 ** IndexBits && IndexBits <= NumberBits && NumberBits <= 6)
  `VELO_ASSERT(NothingPassedThatWasGiven, !(ask_valid_i && pass))
  `VELO_ASSERT(NoneIsForgotten, !ask_valid_i || !open_q[next])
  `VELO_ASSERT_INIT(ProbesAreInTime, ProbeBits < TimeBits - 1 && NodeBits <= 8)
  `VELO_ASSERT(ProbesAreUnanswered, (probe_q & ~unanswered_q) == '0)
  `VELO_ASSERT(ProbesAreCounted, 32'(probes_q) == $countones(probe_q))
  `VELO_ASSERT(UnansweredAreOpen, (unanswered_q & ~open_q) == '0)
  `VELO_ASSUME(OnlyWhenReady, !ask_valid_i || ask_ready_o)
  `VELO_ASSUME(AskedForThatNode, !ask_valid_i || ask_node_i == ask_header_i.dst_node)
  `VELO_ASSUME(OnlyKnownAreWritten, !(busy_i || ended_i) || open_q[index])

endmodule
