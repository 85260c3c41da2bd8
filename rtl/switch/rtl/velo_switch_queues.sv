// SPDX-License-Identifier: Apache-2.0
//
// Virtual output queues of one input: one queue of packets for each output and virtual channel there,
// so that no packet waits for another that wants something else. Source: case-for-fpga, section 3.
//
// A packet is named by its first buffer unit. The queues are linked lists: per queue the head (LUT RAM, or
// registers where an output has no more than FewChannels) and the tail, per packet the next one (block RAM). Two
// sides write a head, adding to an empty queue and removing from a longer one, so each has a LUT RAM of its own and
// a bit tells which one is right.
// Two bits a queue, "has one" and "has more", say at once whether removing leaves it empty; everything
// that has to be looked up for that follows in steps, one memory a cycle:
//
//   adding     0 add; head, if empty   1 tail read and written   2 the old tail's follower written
//   removing   0 remove    2 follower read, written as head    3 follower is the tail?   4 no more
//
// The queue is not picked in cycles 0 and 1 of that. A packet of four words hides it.
// The picker sees a queue with a register's delay, except a packet for an empty queue.
// `Exists` says which queues there are: where no packet can come by, there is no logic.
//
// `add_*`: a packet's first word is being written, for `add_to_i` (one-hot); `add_single_i`: it is its
// last word too, `add_size_i` its size. `may_send_i[port][vc]`: by size, that output takes a packet of that
// channel. While the next packet of a queue is looked up, and for a packet that comes to an empty queue and
// would go at once, the longest is assumed. `long_o`: a packet at the head needs more than the smallest.
// `asks_o[port]`: something may go there, and `may_ask_i` said that the input may start a packet in this
// cycle; nothing that `hold_i[port]` forbade. A packet chosen by that in one cycle begins to leave in the
// next: `remove_to_i` (one-hot), and `first_*_o` tells channel, unit and whether it is a single word.
// Not in two cycles running. `first_watched_o`: it is the packet `watch_unit_i` of the cycle before; every head is
// compared with that beside its register, so that nothing is compared behind the choice.
// `waits_o[port]`: a packet is queued for that output, `more_o[port]`: another behind it in its queue; the
// latter is up to four cycles late when one has been removed.

`include "velo_assert.svh"

module velo_switch_queues
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned NumPorts = 9,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned NumUnits = 180,
    parameter bit [NumPorts-1:0][NumVcs-1:0] Exists = '1,
    parameter int unsigned FewChannels = 2,  // so many heads are smaller as registers
    localparam int unsigned UnitBits = $clog2(NumUnits)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                 add_i,
    input logic  [NumPorts-1:0] add_to_i,
    input vc_t                  add_vc_i,
    input logic  [UnitBits-1:0] add_unit_i,
    input logic                 add_single_i,
    input size_t                add_size_i,

    input  logic [NumPorts-1:0] remove_to_i,
    output vc_t                 first_vc_o,
    output logic [UnitBits-1:0] first_unit_o,
    input  logic [UnitBits-1:0] watch_unit_i,
    output logic                first_watched_o,
    output logic                first_single_o,

    input  logic [NumPorts-1:0][NumVcs-1:0][NumSizes-1:0] may_send_i,
    output logic [NumPorts-1:0][NumVcs-1:0]               long_o,

    input  logic                may_ask_i,
    input  logic [NumPorts-1:0] hold_i,
    output logic [NumPorts-1:0] asks_o,

    output logic [NumPorts-1:0] waits_o,
    output logic [NumPorts-1:0] more_o
);

  localparam int unsigned PortBits = $clog2(NumPorts);
  localparam int unsigned QueueBits = PortBits + VcWidth;
  localparam int unsigned VcBits = $clog2(NumVcs);  // of the channels that there are
  typedef logic [PortBits-1:0] port_t;
  typedef logic [QueueBits-1:0] queue_t;
  typedef logic [NumPorts-1:0][NumVcs-1:0] queues_t;
  typedef struct packed {
    logic single;
    size_t size;
    logic [UnitBits-1:0] unit;
  } packet_t;

  function automatic queues_t only(logic [NumPorts-1:0] to, vc_t vc);
    for (int p = 0; p < int'(NumPorts); p++) begin
      for (int v = 0; v < int'(NumVcs); v++) only[p][v] = to[p] && vc == vc_t'(v);
    end
  endfunction
  function automatic int unsigned lowest(logic [NumVcs-1:0] exists);
    lowest = 0;
    for (int v = int'(NumVcs) - 1; v >= 0; v--) if (exists[v]) lowest = v;
  endfunction
  function automatic port_t index(logic [NumPorts-1:0] to);
    index = '0;
    for (int p = 0; p < int'(NumPorts); p++) if (to[p]) index |= port_t'(p);
  endfunction

  queues_t full_q;  // has a packet
  queues_t more, more_q;  // has another behind it
  queues_t queued_q;  // had a packet that might go, and was not losing one
  queues_t open_q;  // had none, and one might go
  queues_t added_q;  // its head is the one in head_added
  queues_t where, adding, removing, empty, written;
  queues_t fits, fits_longest;  // there are credits for its head, for the longest packet
  // A removal's later steps: the output, and in step 2 and 4 the channel, one-hot.
  logic [NumPorts-1:0] move1_to_q, move2_to_q, move3_to_q, move4_to_q;
  logic [NumVcs-1:0] move2_is_q, move4_is_q;
  packet_t add_packet, first, next_packet;
  packet_t [NumPorts-1:0] head, head_q;
  logic [NumPorts-1:0] watched_q;  // head_q was the packet to be watched
  vc_t [NumPorts-1:0] pick, head_vc_q;
  logic [NumPorts-1:0][NumVcs-1:0] head_is_q;  // head_vc_q, one-hot

  assign add_packet = '{single: add_single_i, size: add_size_i, unit: add_unit_i};
  // Whether a packet is added is known last.
  assign where = only(add_to_i, add_vc_i) & Exists;
  assign adding = add_i ? where : '0;
  always_comb begin
    for (int p = 0; p < int'(NumPorts); p++) begin
      for (int v = 0; v < int'(NumVcs); v++) begin
        removing[p][v] = remove_to_i[p] && head_is_q[p][v];
      end
    end
  end
  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_steps
    assign written[p] = move2_to_q[p] ? move2_is_q : '0;
    assign more[p]    = more_q[p] & ~(move4_to_q[p] ? move4_is_q : '0);
    assign waits_o[p] = |full_q[p];
    assign more_o[p]  = |more_q[p];
  end
  assign empty = ~full_q | (removing & ~more);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      full_q   <= '0;
      more_q   <= '0;
      queued_q <= '0;
      open_q   <= '0;
      added_q  <= '0;
    end else begin
      full_q   <= (adding | ~empty) & Exists;
      more_q   <= ((adding & ~empty) | more) & Exists;
      queued_q <= full_q & ~removing & fits;
      open_q   <= ~full_q & fits_longest & Exists;
      added_q  <= ((adding & empty) | (added_q & ~written)) & Exists;
    end
  end

  // The size of each queue's head.
  size_t [NumPorts-1:0][NumVcs-1:0] size_q;
  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_size
    for (genvar v = 0; v < int'(NumVcs); v++) begin : gen_queue
      if (Exists[p][v]) begin : gen_exists
        always_ff @(posedge clk_i) begin
          if (adding[p][v] && empty[p][v]) size_q[p][v] <= add_size_i;
          else if (written[p][v]) size_q[p][v] <= next_packet.size;
          else if (removing[p][v]) size_q[p][v] <= SizeLongest;
        end
      end else begin : gen_none
        assign size_q[p][v] = '0;
      end
      assign fits[p][v] = may_send_i[p][v][size_q[p][v]];
      assign fits_longest[p][v] = may_send_i[p][v][SizeLongest];
      assign long_o[p][v] = full_q[p][v] && size_q[p][v] != '0;
    end
  end

  // ----- Adding -----------------------------------------------------------------------------------

  // What is read for a cycle is asked for in the one before, with what is written there.
  logic add1_q, append2_q;
  logic [NumPorts-1:0] append1_q;
  queue_t add1_queue_q;
  packet_t add1_packet_q, add2_packet_q;
  logic [UnitBits-1:0] behind, behind_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      add1_q    <= 1'b0;
      append1_q <= '0;
      append2_q <= 1'b0;
    end else begin
      add1_q    <= add_i;
      append2_q <= append1_q != '0;
      for (int p = 0; p < int'(NumPorts); p++) begin
        append1_q[p] <= add_i && (where[p] & ~empty[p]) != '0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    add1_queue_q  <= {index(add_to_i), add_vc_i};
    add1_packet_q <= add_packet;
    add2_packet_q <= add1_packet_q;
    behind_q      <= behind;
  end

  velo_ram_through #(
      .Width(UnitBits),
      .Depth(2 ** QueueBits)
  ) u_tail_to_add (
      .clk_i,
      .we_i   (add1_q),
      .waddr_i(add1_queue_q),
      .wdata_i(add1_packet_q.unit),
      .raddr_i({index(add_to_i), add_vc_i}),
      .rdata_o(behind)
  );

  // ----- Removing ---------------------------------------------------------------------------------

  logic is_tail, behind_moves;
  vc_t move1_vc_q, move2_vc_q, move3_vc_q;
  logic [UnitBits-1:0] move1_unit_q, move3_unit_q, tail;
  queue_t move3_queue, move3_queue_q;

  velo_ram_through #(
      .Width($bits(packet_t)),
      .Depth(2 ** UnitBits)
  ) u_follower (
      .clk_i,
      .we_i   (append2_q),
      .waddr_i(behind_q),
      .wdata_i(add2_packet_q),
      .raddr_i(move1_unit_q),
      .rdata_o(next_packet)
  );
  velo_ram_through #(
      .Width(UnitBits),
      .Depth(2 ** QueueBits)
  ) u_tail_to_move (
      .clk_i,
      .we_i   (add1_q),
      .waddr_i(add1_queue_q),
      .wdata_i(add1_packet_q.unit),
      .raddr_i(move3_queue),
      .rdata_o(tail)
  );
  assign move3_queue = {index(move2_to_q), move2_vc_q};

  // A packet that was added in the last cycle, or is added in this one, has not reached the tail's memory.
  // It stands behind the others.
  assign is_tail = tail == move3_unit_q && !(add1_q && add1_queue_q == move3_queue_q);
  assign behind_moves = add_i && (add_to_i & move3_to_q) != '0 && add_vc_i == move3_vc_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      move1_to_q <= '0;
      move2_to_q <= '0;
      move3_to_q <= '0;
      move4_to_q <= '0;
    end else begin
      for (int p = 0; p < int'(NumPorts); p++) move1_to_q[p] <= (removing[p] & more[p]) != '0;
      move2_to_q <= move1_to_q;
      move3_to_q <= move2_to_q;
      move4_to_q <= is_tail && !behind_moves ? move3_to_q : '0;
    end
  end
  always_ff @(posedge clk_i) begin
    {move1_vc_q, move1_unit_q} <= {first_vc_o, first_unit_o};
    move2_vc_q <= move1_vc_q;
    {move3_vc_q, move3_unit_q} <= {move2_vc_q, next_packet.unit};
    move3_queue_q <= move3_queue;
    for (int v = 0; v < int'(NumVcs); v++) begin
      move2_is_q[v] <= move1_vc_q == vc_t'(v);
      move4_is_q[v] <= move3_vc_q == vc_t'(v);
    end
  end

  // ----- Per output: heads, and the choice of a channel -------------------------------------------

  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_port
    if ($countones(Exists[p]) <= FewChannels) begin : gen_few_channels
      // One channel needs no choice.
      localparam int unsigned Lowest = lowest(Exists[p]);
      packet_t [NumVcs-1:0] heads_q;
      for (genvar v = 0; v < int'(NumVcs); v++) begin : gen_head
        if (Exists[p][v]) begin : gen_exists
          always_ff @(posedge clk_i) begin
            if (add_i && where[p][v] && empty[p][v]) heads_q[v] <= add_packet;
            else if (written[p][v]) heads_q[v] <= next_packet;
          end
        end else begin : gen_none
          assign heads_q[v] = '0;
        end
      end
      always_comb begin
        head[p] = heads_q[Lowest];
        for (int v = 0; v < int'(NumVcs); v++) begin
          if (v > int'(Lowest) && Exists[p][v] && pick[p] == vc_t'(v)) head[p] = heads_q[v];
        end
      end
    end else begin : gen_channels
      logic adds, moves;
      assign adds  = add_i && (where[p] & empty[p]) != '0;
      assign moves = move2_to_q[p];

      (* ram_style = "distributed" *)
      packet_t head_added[2**VcWidth];
      (* ram_style = "distributed" *)
      packet_t head_moved[2**VcWidth];

      assign head[p] = added_q[p][VcBits'(pick[p])] ? head_added[pick[p]] : head_moved[pick[p]];
      always_ff @(posedge clk_i) begin
        if (adds) head_added[add_vc_i] <= add_packet;
        if (moves) head_moved[move2_vc_q] <= next_packet;
      end
    end

    always_ff @(posedge clk_i) begin
      head_q[p]    <= head[p];
      watched_q[p] <= head[p].unit == watch_unit_i;
      head_vc_q[p] <= pick[p];
      for (int v = 0; v < int'(NumVcs); v++) head_is_q[p][v] <= pick[p] == vc_t'(v);
    end

    velo_switch_pick #(
        .NumVcs(NumVcs)
    ) u_pick (
        .clk_i,
        .rst_ni,
        .queued_i    (queued_q[p]),
        .hold_i      (remove_to_i[p] || hold_i[p]),
        .arrives_i   (add_i && add_to_i[p] && open_q[p][VcBits'(add_vc_i)]),
        .arrives_vc_i(add_vc_i),
        .served_i    (remove_to_i[p]),
        .served_vc_i (head_vc_q[p]),
        .asks_o      (asks_o[p]),
        .pick_o      (pick[p]),
        .may_ask_i
    );
  end

  always_comb begin
    first = '0;
    first_vc_o = '0;
    for (int p = 0; p < int'(NumPorts); p++) begin
      if (remove_to_i[p]) begin
        first |= head_q[p];
        first_vc_o |= head_vc_q[p];
      end
    end
  end
  assign first_unit_o = first.unit;
  assign first_single_o = first.single;
  assign first_watched_o = |(remove_to_i & watched_q);

  logic removed_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) removed_q <= 1'b0;
    else removed_q <= remove_to_i != '0;
  end
  `VELO_ASSERT(RemovesWhatIsThere, (removing & ~full_q) == '0)
  `VELO_ASSUME(NotTwiceRunning, !(remove_to_i != '0 && removed_q))
  `VELO_ASSUME(OnlyWhereAQueueIs, (only(add_i ? add_to_i : '0, add_vc_i) & ~Exists) == '0)
  `VELO_ASSUME(EachHasAQueue, !add_i || adding != '0)

endmodule
