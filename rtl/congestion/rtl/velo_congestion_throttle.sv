// SPDX-License-Identifier: Apache-2.0
//
// At the source: holds packets back that go where the network said that it is congested.
//
// Packets pass from `in_*` to `out_*` (both valid/ready) without a cycle more, except those to a
// destination of level one and above: such a packet waits until the gap after the packet before it
// to that destination is over. All packets stay in order, so those behind a packet that waits wait
// too; what other nodes send is not held up by it, which is the purpose.
//
// A notice (`notice_valid_i`, one cycle) raises its destination's level by `increase_i`, unless fewer than
// RaiseUnits units went there since, and no time to lower it came: such a notice may be for what was sent
// before that. One
// notice waits here; one that finds another waiting is dropped, since a network that stays congested
// sends more. A walk over all destinations lowers a level by one every 256 * (`recover_cycles_i` + 1) cycles, a level
// above 28 every second time, one above 36 every fourth.
// While `enable_i` is low all packets pass and all levels are zero.
// A packet's first beat may be taken back while it waits (the requester's watchdog). While all levels are
// zero, no clock runs here.
//
// Times are 18 bits wide. No gap is longer than half their range, and the walk puts times that have
// passed to the present, once in 2**16 cycles at the latest, so that none can seem to come again.
//
// `held_o`: a packet waits, to be counted. Errors: none.
// Source: VELO paper, section 3, "Buffer requirements and flow control", which names congestion management
// and does not say how it is done.

`include "velo_assert.svh"

module velo_congestion_throttle
  import velo_congestion_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,  // clock of the core
    input logic rst_ni, // asynchronous reset

    input logic       enable_i,
    input logic [3:0] increase_i,       // of a level, for each notice
    input logic [7:0] recover_cycles_i, // and one more: the walk's pace

    input logic       notice_valid_i,  // the way to this node is congested
    input logic [7:0] notice_node_i,

    input  logic                 in_valid_i,  // packets, without route words
    output logic                 in_ready_o,
    input  logic                 in_sop_i,
    input  logic                 in_eop_i,
    input  logic [DataWidth-1:0] in_data_i,

    output logic                 out_valid_o,  // the same packets
    input  logic                 out_ready_i,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic [DataWidth-1:0] out_data_o,

    output logic held_o  // a packet waits for its destination's gap to end
);

  localparam int unsigned NodeBits = 8;
  localparam int unsigned NumNodes = 2 ** NodeBits;
  localparam int unsigned TimeBits = 18;
  localparam int unsigned UnitWords = 8;  // a gap's measure, as in the switch
  typedef logic [NodeBits-1:0] node_t;
  typedef logic [TimeBits-1:0] time_t;

  // ----- The packet at hand -----------------------------------------------------------------------

  typedef enum logic [1:0] {
    StHead,  // the next packet's first word, or nothing
    StRead,  // its destination's tables are being read
    StWait,  // for the end of the gap
    StBody   // its other words
  } state_e;

  state_e state_q, state_d;
  logic [NumNodes-1:0] slow_q;  // level above zero
  node_t head_node, node_q;
  logic slow, due, pass, moves, ticks, counts_q, offered_q;
  time_t now_q;
  logic [$clog2(UnitWords)-1:0] place_q;

  assign head_node = in_data_i[15:8];
  // A packet that was offered stays offered, although a notice for its destination comes meanwhile.
  assign slow = enable_i && slow_q[head_node] && !offered_q;
  assign moves = out_valid_o && out_ready_i;
  // Times are compared with each other only where a level is above zero, and for a packet that waits.
  assign ticks = |slow_q || state_q == StWait;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StHead: begin
        if (in_valid_i && slow) state_d = StRead;
        else if (moves && !in_eop_i) state_d = StBody;
      end
      StRead:  state_d = in_valid_i ? StWait : StHead;
      StWait: begin
        if (!in_valid_i) state_d = StHead;
        else if (moves) state_d = in_eop_i ? StHead : StBody;
      end
      StBody:  if (moves && in_eop_i) state_d = StHead;
      default: state_d = StHead;
    endcase
  end

  assign pass = state_q == StBody || (state_q == StHead && !slow) ||
      (state_q == StWait && (due || offered_q));
  assign in_ready_o = pass && out_ready_i;
  assign out_valid_o = pass && in_valid_i;
  assign out_sop_o = in_sop_i;
  assign out_eop_o = in_eop_i;
  assign out_data_o = in_data_i;
  assign held_o = in_valid_i && !pass;

  // ----- Tables: level and end of the gap, by destination -----------------------------------------

  node_t read_node, write_node, work_node_q;
  level_t level, level_q, work_level_q, work_level;
  time_t gap_end, gap_end_q, work_end_q;
  sent_t sent, sent_q, work_sent_q;  // units since the level was raised
  logic head_reads, write_level, write_end, raises;
  time_t written_end;
  sent_t written_sent;

  logic [3:0] unused_ecc;
  velo_ram #(
      .Width(LevelBits),
      .Depth(2 ** NodeBits),
      .ReadsOld(1'b1)
  ) u_levels (
      .clk_i,
      .we_i(write_level),
      .waddr_i(work_node_q),
      .wdata_i(work_level),
      .raddr_i(read_node),
      .rdata_o(level),
      .corrected_o(unused_ecc[0]),
      .broken_o(unused_ecc[1])
  );

  velo_ram #(
      .Width($bits(sent_t) + TimeBits),
      .Depth(2 ** NodeBits),
      .ReadsOld(1'b1)
  ) u_ends (
      .clk_i,
      .we_i(write_end),
      .waddr_i(write_node),
      .wdata_i({written_sent, written_end}),
      .raddr_i(read_node),
      .rdata_o({sent, gap_end}),
      .corrected_o(unused_ecc[2]),
      .broken_o(unused_ecc[3])
  );

  // The gap so far ends at `gap_end_q`; each unit of the packet that passes puts it off further, from
  // the packet's end on, but not beyond half the range of times.
  localparam int unsigned SumBits = TimeBits - 1;
  logic [SumBits-1:0] sum_q, sum;
  logic [SumBits:0] sum_wide;
  logic unit_begins, ends;
  sent_t sent_next;

  assign due = $signed(now_q - gap_end_q) >= 0;
  assign unit_begins = moves && (state_q == StWait || (state_q == StBody && place_q == '0));
  assign sum_wide = {1'b0, state_q == StWait ? SumBits'(0) : sum_q} +
      (unit_begins ? (SumBits + 1)'(gap(
      level_q
  )) : '0);
  assign sum = sum_wide[SumBits] ? '1 : sum_wide[SumBits-1:0];
  assign sent_next = sent_q + sent_t'(unit_begins && sent_q < sent_t'(RaiseUnits));
  assign ends = moves && in_eop_i && (state_q == StWait || (state_q == StBody && counts_q));

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q   <= StHead;
      offered_q <= 1'b0;
      now_q     <= '0;
    end else begin
      state_q   <= state_d;
      offered_q <= out_valid_o && !out_ready_i;
      if (ticks) now_q <= now_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StHead) begin
      node_q   <= head_node;
      counts_q <= slow;
    end
    if (state_q == StRead) {level_q, gap_end_q, sent_q} <= {level, gap_end, sent};
    else sent_q <= sent_next;
    if (write_level && work_node_q == node_q) sent_q <= written_sent;
    if (moves) begin
      place_q <= in_sop_i ? $clog2(UnitWords)'(1) : place_q + 1'b1;
      sum_q   <= sum;
    end
  end

  // ----- Notices and the walk ---------------------------------------------------------------------

  // Each is one piece of work: read the destination's entries, put them right, write them back. The
  // packet at hand goes first at either port of the tables.
  typedef enum logic [1:0] {
    WorkNone,
    WorkRead,
    WorkTake,
    WorkWrite
  } work_e;

  work_e work_q;
  logic notice_q, work_notice_q, tick, tick_q, was_slow_q, passed;
  node_t notice_node_q, walk_q;
  round_t round_q;  // of the walk
  logic falls;
  logic [7:0] pace_q;

  assign head_reads = state_q == StHead && in_valid_i && slow;
  assign read_node = head_reads ? head_node : work_node_q;
  assign tick = pace_q >= recover_cycles_i;
  assign passed = $signed(now_q - work_end_q) >= 0;
  assign raises = work_notice_q && (!was_slow_q || work_sent_q == sent_t'(RaiseUnits));

  assign falls = !work_notice_q && work_level_q != '0 && (round_q & rounds(work_level_q)) == '0;

  always_comb begin
    if (falls) begin
      work_level = work_level_q - 1'b1;
    end else if (!raises) begin
      work_level = work_level_q;
    end else if (work_level_q > level_t'(LevelMax) - level_t'(increase_i)) begin
      work_level = level_t'(LevelMax);
    end else begin
      work_level = work_level_q + level_t'(increase_i);
    end
  end

  // The end of a gap is put right if it has passed, and set where none was kept before. A packet that looks its
  // tables up would not see what is written in the same cycle.
  assign write_level = work_q == WorkWrite && !ends && !head_reads;
  assign write_end   = ends || write_level;
  assign write_node  = ends ? node_q : work_node_q;

  // A level that was lowered may be raised by the next notice: slow senders could not hold it else.
  always_comb begin
    if (ends) written_sent = sent_next;
    else if (falls) written_sent = sent_t'(RaiseUnits);
    else if (raises) written_sent = '0;
    else written_sent = work_sent_q;
  end

  always_comb begin
    if (ends) written_end = now_q + time_t'(sum);
    else if (!was_slow_q || passed) written_end = now_q;
    else written_end = work_end_q;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      work_q   <= WorkNone;
      notice_q <= 1'b0;
      tick_q   <= 1'b0;
      pace_q   <= '0;
      walk_q   <= '0;
      round_q  <= '0;
      slow_q   <= '0;
    end else if (!enable_i) begin
      work_q   <= WorkNone;
      notice_q <= 1'b0;
      tick_q   <= 1'b0;
      slow_q   <= '0;
    end else begin
      if (ticks) begin
        pace_q <= tick ? '0 : pace_q + 1'b1;
        if (tick) tick_q <= 1'b1;
      end
      if (notice_valid_i) notice_q <= 1'b1;
      unique case (work_q)
        WorkNone: begin
          if (notice_q) begin
            notice_q <= notice_valid_i;
            work_q   <= WorkRead;
          end else if (tick_q) begin
            tick_q <= 1'b0;
            walk_q <= walk_q + 1'b1;
            if (&walk_q) round_q <= round_q + 1'b1;
            // A level of zero is not in the table.
            if (slow_q[walk_q]) work_q <= WorkRead;
          end
        end
        // What a packet writes in the cycle of the reading would not be seen.
        WorkRead: if (!head_reads && !ends) work_q <= WorkTake;
        WorkTake: work_q <= WorkWrite;
        default: begin
          if (write_level) begin
            work_q              <= WorkNone;
            slow_q[work_node_q] <= work_level != '0;
          end
        end
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    // One that comes as the one before it is taken has its place.
    if (notice_valid_i && (!notice_q || work_q == WorkNone)) notice_node_q <= notice_node_i;
    if (work_q == WorkNone) begin
      work_notice_q <= notice_q;
      work_node_q   <= notice_q ? notice_node_q : walk_q;
    end
    if (work_q == WorkTake) begin
      was_slow_q   <= slow_q[work_node_q];
      work_level_q <= slow_q[work_node_q] ? level : '0;
      work_end_q   <= gap_end;
      work_sent_q  <= sent;
    end
    if (ends && node_q == work_node_q) {work_sent_q, work_end_q} <= {written_sent, written_end};
  end

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  // The valid/ready rule: an offered word stays until it is taken.
  `VELO_ASSERT(OfferStands, !offered_q || out_valid_o || !in_valid_i)
  `VELO_ASSERT(LevelInRange, work_q != WorkWrite || work_level <= level_t'(LevelMax))
  `VELO_ASSUME(PacketStartsWithSop, !(in_valid_i && state_q == StHead) || in_sop_i)

endmodule
