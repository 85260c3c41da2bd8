// SPDX-License-Identifier: Apache-2.0
//
// The Window Controller's promises: a segment that it hands on bears the board's name and the
// process's number and group as they were while its process was enabled, since the segment before;
// a process's command makes segments of that process, with windows and lists of its own; a fetch
// has the region of that process.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_window_controller_props
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*; #(
    parameter int unsigned Processes = 2,
    localparam int unsigned WidBits = $clog2(Processes)
)
(
    input logic clk_i,
    input logic rst_ni,
    input logic [ 15:0] lid_i,
    input process_t [Processes-1:0] process_i,
    input logic [Processes-1:0] renew_i,
    input logic [Processes-1:0] waiting_i,
    input entry_t entry_i,
    input logic read_valid_i,
    input dimmnet_packet_t read_i,
    input logic [63:0] read_data_i,
    input logic list_ready_i,
    input logic [ 63:0] list_data_i,
    input logic job_ready_i,
    input logic list_done_i,
    input logic list_bad_i,
    input logic segment_ready_i,
    input logic storing_i
);

  logic [ WidBits-1:0] wid_o;
  logic pop_o;
  logic read_pop_o;
  logic [ 5:0] read_word_o;
  logic list_valid_o;
  logic [WidBits-1:0] list_wid_o;
  logic [ 11:0] list_word_o;
  logic job_valid_o;
  job_t job_o;
  logic offset_valid_o;
  logic [63:0] offset_o;
  logic segment_valid_o;
  segment_t segment_o;
  logic refuse_valid_o;
  logic [WidBits-1:0] refuse_wid_o;
  dimmnet_error_e refuse_error_o;
  events_t events_o;

  // As in the unit.
  typedef enum logic [3:0] {
    StPick, StStart, StReply, StPattern, StReplyAt, StReplyPattern, StFields, StDivide,
      StDistance, StVerdict, StSegment, StJob, StList, StPush, StRefuse
  } state_e;

  dimmnet_window_controller #(
      .Processes(Processes)
  ) u_dut (.*);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // Heads stand until they are popped, or the process begins anew.
  logic past_reset_q, read_waits_q;
  dimmnet_packet_t read_q;
  always_ff @(posedge clk_i) begin
    past_reset_q <= rst_ni;
    read_waits_q <= rst_ni && read_valid_i && !read_pop_o;
    read_q       <= read_i;
  end
  `VELO_ASSUME(ReadStands, !read_waits_q || (read_valid_i && read_i == read_q))
  `VELO_ASSUME(ReadsOfProcessesThatExist, !read_valid_i || read_i.dst_wid < 4'(Processes))

  `VELO_ASSUME(KnownEntry, entry_i.kind <= EntryTransfer)

  // Any process and any name: was it so, and was the process enabled, since the last segment?
  logic [3:0] w_q;
  logic [31:0] name_q;  // LID and PGID
  region_t region_q;
  logic named_q, region_seen_q, taken;
  process_t owner;
  assign owner = process_i[w_q[WidBits-1:0]];
  assign taken = segment_valid_o && segment_ready_i;
  always_ff @(posedge clk_i) begin
    {w_q, name_q, region_q} <= {w_q, name_q, region_q};
    if (!rst_ni || taken) {named_q, region_seen_q} <= '0;
    else begin
      if (owner.enabled && {lid_i, owner.pgid} == name_q) named_q <= 1'b1;
      if (owner.region == region_q) region_seen_q <= 1'b1;
    end
  end
  logic ours;
  assign ours = segment_o.wid == w_q && w_q < 4'(Processes);
  `VELO_ASSERT(OfAProcess, !segment_valid_o || segment_o.wid < 4'(Processes))
  `VELO_ASSERT(TrueSender, !segment_valid_o || segment_o.header.src_wid == segment_o.wid)
  `VELO_ASSERT(NameAndGroupOfAnEnabledProcess, !(segment_valid_o && ours &&
               {segment_o.header.src_lid, segment_o.header.pgid} == name_q) || named_q)
  // A load and a store stay on the board; what leaves has a name.
  `VELO_ASSERT(NamedIfItLeaves, !segment_valid_o || segment_o.header.src_lid != '0 ||
               segment_o.kind inside {SegmentLoad, SegmentStore})
  `VELO_ASSERT(FetchInTheRegion, !(job_valid_o && 4'(wid_o) == w_q && w_q < 4'(Processes) &&
               job_o.region == region_q) || region_seen_q || owner.region == region_q)
  `VELO_ASSERT(ListsOfItsOwn, !list_valid_o || 4'(list_wid_o) == segment_o.wid)
  `VELO_ASSERT(BotfHasItsLength, !(segment_valid_o && segment_o.kind == SegmentBotf) ||
               (segment_o.header.words == segment_o.data_words && segment_o.data_words <= 7'd62))
  `VELO_ASSERT(BotfInItsWindow, !(segment_valid_o && segment_o.kind == SegmentBotf) ||
               7'(segment_o.window_word[5:0]) + segment_o.data_words + 7'd2 <= 7'd64)
  `VELO_ASSERT(NoPacketOfNothing, !(segment_valid_o && segment_o.kind inside
               {SegmentPacket, SegmentLoad, SegmentStore}) || segment_o.own || segment_o.kind ==
               SegmentPacket)

  // A command is popped or refused for the process that is looked at; refused and handed on
  // exclude each other.
  `VELO_ASSERT(RefusedIsPopped, !refuse_valid_o || (pop_o && refuse_wid_o == wid_o &&
               !segment_valid_o))

  // How the unit's state goes with that: what makes the induction close.
  logic able;
  assign able = u_dut.state_q inside {StDivide, StDistance, StVerdict,
                                      StSegment, StJob, StList, StPush};
  `VELO_ASSERT(StampedWhenAble, !able || 4'(u_dut.wid_q) != w_q ||
               {u_dut.lid_q, u_dut.pgid_q} != name_q || named_q)
  `VELO_ASSERT(NamedIfItSends, !able || u_dut.lid_q != '0 ||
               (!u_dut.u_judge.sends && !u_dut.is_read_q))
  `VELO_ASSERT(KnownKind, u_dut.state_q == StPick || u_dut.entry_q.kind <= EntryTransfer)
  `VELO_ASSERT(ReadIsThere, u_dut.state_q == StPick || !u_dut.is_read_q || read_valid_i)
  `VELO_ASSERT(BotfWasLookedAt, u_dut.state_q != StPush || u_dut.is_read_q ||
               u_dut.entry_q.kind != EntryBotf ||
               (u_dut.u_judge.botf.words >= 7'd2 &&
                8'(u_dut.u_judge.botf.first) + 8'(u_dut.u_judge.botf.words) <= 8'd64))
  `VELO_ASSERT(ReadsAreParsed, !(u_dut.state_q inside {StReply, StPattern, StReplyAt,
               StReplyPattern, StFields}) || u_dut.is_read_q)
  `VELO_ASSERT(OnlyTransfersTakeLong, !able || u_dut.state_q == StPush || u_dut.is_read_q ||
               u_dut.entry_q.kind == EntryTransfer)
  `VELO_ASSERT(ReadOfThatProcess, u_dut.state_q == StPick || !u_dut.is_read_q ||
               4'(u_dut.wid_q) == read_i.dst_wid)

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (taken && segment_o.kind == SegmentBotf && segment_o.data_words == 7'd62);
      cover (taken && segment_o.kind == SegmentRead);
      cover (taken && segment_o.kind == SegmentPacket && !segment_o.own);
      cover (refuse_valid_o && refuse_error_o == DimmnetErrorSize);
    end
  end

endmodule
