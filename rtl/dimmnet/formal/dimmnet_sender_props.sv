// SPDX-License-Identifier: Apache-2.0
//
// The sender's promises, for every segment and whatever stands in the Write Window: of each
// packet's header, length, sender and group are the segment's, that is the controller's; a packet
// has as many lines as its header says, in order, first and last named; a line stands until it is
// taken; Prefetch Window, Write Window, LLCM and Write Unit are used only for the segment's
// process.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module dimmnet_sender_props
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*; #(
    parameter int unsigned Processes = 2,
    localparam int unsigned WidBits = $clog2(Processes)
)
(
    input logic clk_i,
    input logic rst_ni,
    input logic segment_valid_i,
    input segment_t segment_i,
    input logic [ 63:0] window_data_i,
    input logic list_ready_i,
    input logic [ 63:0] list_data_i,
    input logic data_valid_i,
    input logic [63:0] data_i,
    input logic prefetch_ready_i,
    input logic job_ready_i,
    input logic write_ready_i,
    input logic write_list_i,
    input logic write_bad_i,
    input logic write_done_i,
    input logic status_done_i,
    input logic tx_ready_i,
    input logic [Processes-1:0] renew_i
);

  logic segment_ready_o;
  logic storing_o;
  logic [WidBits-1:0] window_wid_o;
  logic [ 6:0] window_word_o;
  logic list_valid_o;
  logic [WidBits-1:0] list_wid_o;
  logic [ 11:0] list_word_o;
  logic data_ready_o;
  logic prefetch_valid_o;
  logic [WidBits-1:0] prefetch_wid_o;
  logic [ 7:0] prefetch_word_o;
  logic [ 63:0] prefetch_data_o;
  logic job_valid_o;
  job_t job_o;
  logic write_valid_o;
  logic [63:0] write_data_o;
  logic status_valid_o;
  dimmnet_status_t status_o;
  logic tx_valid_o;
  dimmnet_line_e tx_ident_o;
  logic [63:0] tx_line_o;
  logic sent_o;
  logic done_o;
  logic failed_o;
  logic [WidBits-1:0] done_wid_o;

  // As in the unit.
  typedef enum logic [3:0] {
    StIdle, StHead0, StHead1, StReply, StPattern, StList, StReplyPattern, StData, StJob,
      StOffsets, StStored, StStatus
  } state_e;

  dimmnet_sender #(
      .Processes(Processes)
  ) u_dut (.*);

  logic past_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) past_q <= 1'b1;
  always_comb assume (past_q || !rst_ni);

  // What the Window Controller promises of a segment: its length is the sum of its parts.
  logic [7:0] parts;
  always_comb begin
    unique case (segment_i.kind)
      SegmentRead: begin
        parts = 8'd1 + 8'(segment_i.patterned) + 8'(segment_i.reply_patterned) +
            (segment_i.listed ? 8'(list_words(segment_i.job.count)) : '0);
      end
      SegmentPacket: begin
        parts = 8'(segment_i.data_words) + 8'(segment_i.patterned) +
            (segment_i.listed ? 8'(list_words(segment_i.job.count)) : '0);
      end
      default: parts = 8'(segment_i.data_words);
    endcase
  end
  `VELO_ASSUME(LengthIsTheSum, !segment_valid_i || 8'(segment_i.header.words) == parts)
  `VELO_ASSUME(FitsAPacket, !segment_valid_i || (parts <= 8'd62 && segment_i.job.count <= 7'd64))
  `VELO_ASSUME(ListHasAPattern, !segment_valid_i || !segment_i.listed ||
               ((segment_i.patterned || segment_i.kind == SegmentStore) &&
               segment_i.job.count != '0))
  `VELO_ASSUME(PlainBotf, !segment_valid_i || !(segment_i.kind inside {SegmentBotf, SegmentAotf}) ||
               (segment_i.from_window && !segment_i.listed))
  `VELO_ASSUME(SomeData, !segment_valid_i || segment_i.data_words != '0 ||
               segment_i.kind inside {SegmentBotf, SegmentRead})
  `VELO_ASSUME(ListsOfThese, !segment_valid_i || !segment_i.listed ||
               segment_i.kind inside {SegmentPacket, SegmentRead, SegmentStore})
  `VELO_ASSUME(KnownKind, segment_i.kind <= SegmentStore)

  segment_t of_q;  // the segment that was taken last
  always_ff @(posedge clk_i) if (segment_valid_i && segment_ready_o) of_q <= segment_i;

  logic tx_take, open_q, stands_q, first, second;
  logic [65:0] offer_q;
  logic [6:0] lines_q;  // of this packet that have gone
  dimmnet_packet_t low, high;
  assign tx_take = tx_valid_o && tx_ready_i;
  assign first   = tx_valid_o && !open_q;
  assign second  = tx_valid_o && open_q && lines_q == 7'd1;
  assign low     = {64'b0, tx_line_o};
  assign high    = {tx_line_o, 64'b0};
  always_ff @(posedge clk_i) begin
    stands_q <= rst_ni && tx_valid_o && !tx_ready_i;
    offer_q  <= {tx_ident_o, tx_line_o};
    if (!rst_ni) open_q <= 1'b0;
    else if (tx_take) open_q <= tx_ident_o != DimmnetLineLast;
    if (tx_take) lines_q <= open_q ? lines_q + 7'd1 : 7'd1;
  end
  `VELO_ASSERT(TrueLength, !first || low.words == of_q.header.words)
  `VELO_ASSERT(TrueSender, !first || (low.src_wid == of_q.header.src_wid && low.src_lid ==
               of_q.header.src_lid))
  `VELO_ASSERT(TrueGroup, !second || high.pgid == of_q.header.pgid)
  `VELO_ASSERT(FirstIsNamed, !tx_valid_o || (tx_ident_o == DimmnetLineFirst) == !open_q)
  `VELO_ASSERT(AsLongAsItSays, !(tx_valid_o && open_q) ||
               (tx_ident_o == DimmnetLineLast) == (lines_q == of_q.header.words + 7'd1))
  `VELO_ASSERT(NoLineNoName, tx_valid_o || tx_ident_o == DimmnetLineNone)

  // The Write Unit says that a list is there with the list's last word.
  logic [6:0] list_left_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) list_left_q <= '0;
    else if (job_valid_o && job_ready_i) begin
      list_left_q <= of_q.listed ? list_words(of_q.job.count) : '0;
    end else if (write_valid_o && write_ready_i &&
      list_left_q != '0) list_left_q <= list_left_q - 7'd1;
  end
  `VELO_ASSUME(ListIsThereWithItsLastWord,
               write_list_i == (write_valid_o && write_ready_i && list_left_q == 7'd1))

  // What stands: the window's word and the Prefetch Unit's do while they are not taken.
  logic [63:0] window_q, data_q;
  logic [WidBits+6:0] read_q;
  logic data_waits_q;
  always_ff @(posedge clk_i) begin
    {window_q, read_q} <= {window_data_i, window_wid_o, window_word_o};
    data_waits_q <= rst_ni && data_valid_i && !data_ready_o;
    data_q <= data_i;
  end
  logic same_q;
  always_ff @(posedge clk_i) begin
    same_q <= rst_ni && read_q == {window_wid_o, window_word_o};
  end
  `VELO_ASSUME(WindowStands, !(stands_q && same_q) || window_data_i == window_q)
  `VELO_ASSUME(DataStands, !data_waits_q || (data_valid_i && data_i == data_q))
  `VELO_ASSERT(LineStands, !stands_q || (tx_valid_o && offer_q == {tx_ident_o, tx_line_o}))

  `VELO_ASSERT(PrefetchOfItsProcess, !prefetch_valid_o || 4'(prefetch_wid_o) ==
               4'(of_q.wid[WidBits-1:0]))
  `VELO_ASSERT(ListOfItsProcess, !list_valid_o || list_wid_o == of_q.wid[WidBits-1:0])
  `VELO_ASSERT(JobIsTheSegments, !job_valid_o || job_o == of_q.job)
  `VELO_ASSERT(DoneForItsProcess, !done_o || (done_wid_o == of_q.wid[WidBits-1:0] && of_q.own &&
               of_q.last))
  `VELO_ASSERT(OnlyLoadsFillWindows, !prefetch_valid_o || of_q.kind == SegmentLoad)
  `VELO_ASSERT(OnlyStoresWrite, !(job_valid_o || write_valid_o) || of_q.kind == SegmentStore)

  // How the unit's state goes with that: what makes the induction close.
  logic busy, packet;
  logic [7:0] due;
  assign busy = u_dut.state_q != StIdle;
  assign packet = !(of_q.kind inside {SegmentLoad, SegmentStore});
  logic [7:0] of_parts;
  always_comb begin
    of_parts = 8'(of_q.data_words);
    if (of_q.kind == SegmentRead) of_parts = 8'd1 + 8'(of_q.reply_patterned);
    if (of_q.kind inside {SegmentRead, SegmentPacket}) begin
      of_parts = of_parts + 8'(of_q.patterned) +
          (of_q.listed ? 8'(list_words(of_q.job.count)) : '0);
    end
    // Lines behind this one.
    due = '0;
    unique case (u_dut.state_q)
      StHead0: due = of_parts + 8'd1;
      StHead1: due = of_parts;
      StReply: due = of_parts - 8'd1;
      StPattern: due = of_parts - 8'd1 - 8'(of_q.kind == SegmentRead);
      StList: begin
        due = 8'(u_dut.offsets_left_q) - 8'd1 +
            (of_q.kind == SegmentRead ? 8'(of_q.reply_patterned) : 8'(of_q.data_words));
      end
      StData: due = 8'(u_dut.left_q) - 8'd1;
      default: ;
    endcase
  end
  `VELO_ASSERT(SameSegment, !busy || u_dut.s == of_q)
  `VELO_ASSERT(LengthStays, !busy || (8'(of_q.header.words) == of_parts && of_parts <= 8'd62 &&
               of_q.kind <= SegmentStore && of_q.job.count <= 7'd64))
  `VELO_ASSERT(ListStays, !busy || !of_q.listed || (of_q.job.count != '0 &&
               (of_q.patterned || of_q.kind == SegmentStore) &&
               of_q.kind inside {SegmentPacket, SegmentRead, SegmentStore}))
  `VELO_ASSERT(DataStays, !busy || of_q.data_words != '0 || of_q.kind inside {SegmentBotf,
               SegmentRead})
  `VELO_ASSERT(FromWindowStays, !busy || !(of_q.kind inside {SegmentBotf, SegmentAotf}) ||
               of_q.from_window)
  `VELO_ASSERT(LinesAreDue, !(busy && packet) || 8'(u_dut.lines_q) == due)
  `VELO_ASSERT(LinesGone, !(busy && packet && u_dut.state_q != StHead0) ||
               8'(lines_q) + 8'(u_dut.lines_q) == 8'(of_q.header.words) + 8'd1)
  `VELO_ASSERT(OpenInside, open_q == (busy && packet && u_dut.state_q != StHead0))
  `VELO_ASSERT(HeadIsTheSecond, u_dut.state_q != StHead1 || lines_q == 7'd1)
  `VELO_ASSERT(StatesOfKinds, !busy ||
               ((packet || u_dut.state_q inside {StData, StJob, StOffsets, StStored, StStatus}) &&
                (!packet || u_dut.state_q <= StData) &&
                (of_q.kind == SegmentStore || !(u_dut.state_q inside {StJob, StOffsets,
                StStored})) &&
                (of_q.kind == SegmentRead || !(u_dut.state_q inside {StReply, StReplyPattern})) &&
                (u_dut.state_q != StReplyPattern || of_q.reply_patterned) &&
                (u_dut.state_q != StPattern || (of_q.patterned &&
                 of_q.kind inside {SegmentRead, SegmentPacket})) &&
                (!(u_dut.state_q inside {StList, StOffsets}) || of_q.listed) &&
                (u_dut.state_q != StData || of_q.kind != SegmentRead)))
  `VELO_ASSERT(DataIsLeft, u_dut.state_q != StData || (u_dut.left_q <= of_q.data_words &&
               (u_dut.left_q != '0)))
  `VELO_ASSERT(AllDataAtFirst, !(u_dut.state_q inside {StHead0, StHead1, StReply, StPattern,
               StList, StJob,
               StOffsets}) || u_dut.left_q == of_q.data_words)
  `VELO_ASSERT(OffsetsAreLeft, !(u_dut.state_q inside {StList, StOffsets}) ||
               (u_dut.offsets_left_q != '0 &&
               u_dut.offsets_left_q <= list_words(of_q.job.count)))
  `VELO_ASSERT(AllOffsetsAtFirst, !(u_dut.state_q inside {StHead0, StHead1, StReply, StPattern}) ||
               u_dut.offsets_left_q == list_words(of_q.job.count))
  `VELO_ASSERT(OffsetsAtTheJob, u_dut.state_q != StJob || u_dut.offsets_left_q ==
               list_words(of_q.job.count))
  `VELO_ASSERT(ListInStep, (u_dut.state_q == StOffsets ? u_dut.offsets_left_q : '0) == list_left_q)

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      cover (tx_take && tx_ident_o == DimmnetLineLast && of_q.kind == SegmentBotf && lines_q ==
      7'd5);
      cover (tx_take && tx_ident_o == DimmnetLineLast && of_q.kind == SegmentRead &&
      of_q.reply_patterned);
      cover (tx_take && tx_ident_o == DimmnetLineLast && of_q.listed && of_q.kind == SegmentPacket);
      cover (done_o && failed_o);
      cover (done_o && of_q.kind == SegmentLoad && of_q.header.status);
    end
  end

endmodule
