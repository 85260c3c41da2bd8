// SPDX-License-Identifier: Apache-2.0
//
// Carries out one segment at a time: a packet to SWIF, words from the Prefetch Unit to Prefetch Windows, words from a
// Write Window to the Write Unit. In a packet of BOTF or AOTF the header's user wrote all but the length, the sender
// and its group, which come from the segment, so from the controller, whatever stands in the window.
//
// The first line of a packet is there in the cycle after the segment. A status of a load or store, if asked for,
// follows its last word; then the command is done.

`include "velo_assert.svh"

module dimmnet_sender
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
#(
    parameter  int unsigned Processes = 2,
    localparam int unsigned WidBits   = $clog2(Processes)
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic     segment_valid_i,  // a segment
    output logic     segment_ready_o,  // it is taken
    input  segment_t segment_i,        // the segment
    output logic     storing_o,        // a store has not yet reached SO-DIMM

    output logic [WidBits-1:0] window_wid_o,   // Write Window to read: process
    output logic [        6:0] window_word_o,  // word
    input  logic [       63:0] window_data_i,  // a cycle later

    output logic               list_valid_o,  // read offsets in LLCM
    input  logic               list_ready_i,  // taken
    output logic [WidBits-1:0] list_wid_o,    // process
    output logic [       11:0] list_word_o,   // word
    input  logic [       63:0] list_data_i,   // a cycle later

    input  logic        data_valid_i,  // a word from the Prefetch Unit
    output logic        data_ready_o,  // it is taken
    input  logic [63:0] data_i,        // the word

    output logic               prefetch_valid_o,  // a word for a Prefetch Window
    input  logic               prefetch_ready_i,  // it is written
    output logic [WidBits-1:0] prefetch_wid_o,    // process
    output logic [        7:0] prefetch_word_o,   // word
    output logic [       63:0] prefetch_data_o,   // data

    output logic        job_valid_o,    // a job for the Write Unit
    input  logic        job_ready_i,    // it is taken
    output job_t        job_o,          // the job
    output logic        write_valid_o,  // a word for it
    input  logic        write_ready_i,  // it is taken
    output logic [63:0] write_data_o,   // the word
    input  logic        write_list_i,   // its list is there
    input  logic        write_bad_i,    // with it: not all in the region
    input  logic        write_done_i,   // all is written

    output logic            status_valid_o,  // a status
    input  logic            status_done_i,   // it is written or dropped
    output dimmnet_status_t status_o,        // the status

    output logic                 tx_valid_o,  // a line
    input  logic                 tx_ready_i,  // it is taken
    output dimmnet_line_e        tx_ident_o,  // which of its packet's
    output logic          [63:0] tx_line_o,   // the line

    output logic sent_o,  // a packet was sent
    output logic done_o,  // a command is done
    output logic failed_o,  // with it: an offset of a store was outside the region
    output logic [WidBits-1:0] done_wid_o,  // of this process
    input logic [Processes-1:0] renew_i  // these begin anew
);

  typedef enum logic [3:0] {
    StIdle,
    StHead0,
    StHead1,
    StReply,
    StPattern,
    StList,
    StReplyPattern,
    StData,
    StJob,           // a store begins
    StOffsets,       // its list goes to the Write Unit
    StStored,        // its last word leaves
    StStatus
  } state_e;

  state_e state_d, state_q;
  segment_t s;
  logic take, line, packet, from_user;
  // A segment of a process's store has failed: the command's others are left out, and the last one tells.
  logic [Processes-1:0] failed_q;
  logic left_out;
  assign left_out = segment_i.kind == SegmentStore && failed_q[segment_i.wid[WidBits-1:0]];

  assign segment_ready_o = state_q == StIdle;
  always_ff @(posedge clk_i) if (segment_valid_i && segment_ready_o) s <= segment_i;

  logic [WidBits-1:0] wid;
  assign wid = s.wid[WidBits-1:0];
  assign from_user = s.kind inside {SegmentBotf, SegmentAotf};
  assign packet = !(s.kind inside {SegmentLoad, SegmentStore});

  // ----- Write Window: `window_data_i` is the word at `window_q` --------------------------------

  logic [6:0] window_d, window_q;
  logic window_take;
  assign window_take = take && s.from_window &&
      (state_q == StData || (from_user && state_q inside {StHead0, StHead1}));
  always_comb begin
    window_d = window_q;
    if (segment_ready_o) window_d = segment_i.window_word;
    else if (window_take) window_d = window_q + 7'd1;
  end
  always_ff @(posedge clk_i) window_q <= window_d;
  assign window_word_o = window_d;
  assign window_wid_o  = segment_ready_o ? segment_i.wid[WidBits-1:0] : wid;

  // ----- offsets, read ahead --------------------------------------------------------------------

  logic [6:0] offsets_q, offsets_left_q;  // to ask for; to hand on
  logic list_comes_q, offset_valid, offset_pop, unused_ready;
  logic [63:0] offset, offset_in;
  logic [2:0] waiting;
  assign list_valid_o = offsets_q != '0 && state_q != StIdle &&
      4'(waiting) + 4'(list_comes_q) < 4'd4;
  assign list_wid_o = wid;
  assign list_word_o = s.list_word + 12'(list_words(s.job.count) - offsets_q);
  // The upper one of the last word is no offset if their number is odd.
  logic last_offsets_q;
  always_comb begin
    offset_in = list_data_i;
    if (s.list_odd) offset_in = list_data_i >> 32;
    if (last_offsets_q && s.job.count[0]) offset_in[63:32] = '0;
  end
  velo_fifo #(
      .Width(64),
      .Depth(4)
  ) u_offsets (
      .clk_i,
      .rst_ni,
      .push_valid_i(list_comes_q),
      .push_ready_o(unused_ready),
      .push_data_i (offset_in),
      .pop_valid_o (offset_valid),
      .pop_ready_i (offset_pop),
      .pop_data_o  (offset),
      .count_o     (waiting)
  );
  assign offset_pop = take && state_q inside {StList, StOffsets};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      offsets_q    <= '0;
      list_comes_q <= 1'b0;
    end else begin
      list_comes_q <= list_valid_o && list_ready_i;
      if (segment_valid_i && segment_ready_o) begin
        // Nothing is read ahead for what is left out.
        offsets_q <= segment_i.listed && !left_out ? list_words(segment_i.job.count) : '0;
      end else if (list_valid_o && list_ready_i) begin
        offsets_q <= offsets_q - 7'd1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    last_offsets_q <= offsets_q == 7'd1;
    if (segment_ready_o) offsets_left_q <= list_words(segment_i.job.count);
    else if (offset_pop) offsets_left_q <= offsets_left_q - 7'd1;
  end

  // ----- lines and words ------------------------------------------------------------------------

  dimmnet_packet_t header, user;
  logic [6:0] left_q;  // words of data
  logic [7:0] place_q;
  logic there, goes, data_last, last_line;
  logic [63:0] word;

  // Word 0 and word 1 come in turn; each is looked at in its own state.
  assign user = {window_data_i, window_data_i};
  always_comb begin
    header = s.header;
    if (from_user) begin
      header         = user;
      header.words   = s.header.words;
      header.src_wid = s.header.src_wid;
      header.src_lid = s.header.src_lid;
      header.pgid    = s.header.pgid;
    end
  end

  assign data_last = left_q == 7'd1;
  // The word that is due in this state, and whether it is there.
  always_comb begin
    there = 1'b1;
    word  = header[63:0];
    unique case (state_q)
      StHead1: word = header[127:64];
      StReply: word = s.reply;
      StPattern: word = s.pattern;
      StReplyPattern: word = s.reply_pattern;
      StList, StOffsets: begin
        word  = offset;
        there = offset_valid;
      end
      StData: begin
        word = s.kind == SegmentAotf ? s.reply : window_data_i;
        if (!s.from_window) begin
          word  = data_i;
          there = data_valid_i;
        end
      end
      default: ;
    endcase
  end

  assign line = packet && state_q inside
      {StHead0, StHead1, StReply, StPattern, StList, StReplyPattern, StData};
  assign tx_valid_o = line && there;
  assign tx_line_o = word;
  assign prefetch_valid_o = s.kind == SegmentLoad && state_q == StData && there;
  assign prefetch_wid_o = wid;
  assign prefetch_word_o = place_q;
  assign prefetch_data_o = word;
  assign write_valid_o = s.kind == SegmentStore && state_q inside {StOffsets, StData} && there;
  assign write_data_o = word;
  assign goes = packet ? tx_ready_i : s.kind == SegmentLoad ? prefetch_ready_i : write_ready_i;
  assign take = there && goes && (line || prefetch_valid_o || write_valid_o);
  assign data_ready_o = state_q == StData && !s.from_window && goes;

  always_ff @(posedge clk_i) begin
    if (segment_ready_o) begin
      left_q  <= segment_i.data_words;
      place_q <= segment_i.prefetch_word;
    end else if (take && state_q == StData) begin
      left_q  <= left_q - 7'd1;
      place_q <= place_q + 8'd1;
    end
  end

  // Where the packet ends.
  logic [6:0] lines_q;  // behind this one
  assign last_line = lines_q == '0;
  always_ff @(posedge clk_i) begin
    if (segment_ready_o) lines_q <= segment_i.header.words + 7'd1;
    else if (take) lines_q <= lines_q - 7'd1;
  end
  always_comb begin
    tx_ident_o = DimmnetLineMiddle;
    if (last_line) tx_ident_o = DimmnetLineLast;
    if (state_q == StHead0) tx_ident_o = DimmnetLineFirst;
    if (!tx_valid_o) tx_ident_o = DimmnetLineNone;
  end

  // ----- control --------------------------------------------------------------------------------

  state_e after_pattern, after_head, finished;
  assign after_pattern = s.listed ? StList : s.kind == SegmentRead ?
      (s.reply_patterned ? StReplyPattern : StIdle) : StData;
  assign after_head = s.kind == SegmentRead ? StReply :
      s.kind == SegmentPacket && s.patterned ? StPattern : StData;
  assign finished = !packet && s.header.status ? StStatus : StIdle;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: begin
        if (segment_valid_i) begin
          unique case (segment_i.kind)
            SegmentLoad: state_d = StData;
            SegmentStore: state_d = StJob;
            default: state_d = StHead0;
          endcase
        end
      end
      StHead0: if (take) state_d = StHead1;
      StHead1: if (take) state_d = last_line ? StIdle : after_head;
      StReply: if (take) state_d = s.patterned ? StPattern : after_pattern;
      StPattern: if (take) state_d = after_pattern;
      StList: begin
        if (take && offsets_left_q == 7'd1) begin
          state_d = s.kind != SegmentRead ? StData : s.reply_patterned ? StReplyPattern : StIdle;
        end
      end
      StReplyPattern: if (take) state_d = StIdle;
      StData: if (take && data_last) state_d = s.kind == SegmentStore ? StStored : finished;
      StJob: begin
        if (failed_q[wid]) state_d = StIdle;
        else if (job_ready_i) state_d = s.listed ? StOffsets : StData;
      end
      StOffsets: if (write_list_i) state_d = write_bad_i ? StIdle : StData;
      StStored: if (write_done_i) state_d = finished;
      StStatus: if (status_done_i) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) state_q <= StIdle;
    else state_q <= state_d;
  end

  assign job_valid_o = state_q == StJob && !failed_q[wid];
  assign job_o = s.job;
  assign storing_o = state_q != StIdle && s.kind == SegmentStore;
  assign status_valid_o = state_q == StStatus;
  assign status_o = '{
          src_lid: s.header.src_lid,
          tag: s.header.tag,
          src_wid: s.header.src_wid,
          words: s.data_words,
          memory: s.kind == SegmentLoad ? DimmnetMemoryPrefetch : DimmnetMemorySodimm,
          kind: 4'd0,
          default: '0
      };

  logic ends, failure;
  assign ends = state_q != StIdle && state_d == StIdle;
  assign failure = ends && state_q inside {StJob, StOffsets};
  assign failed_o = failure;
  assign done_o = ends && s.own && s.last;
  assign done_wid_o = wid;
  assign sent_o = tx_valid_o && tx_ready_i && last_line;

  for (genvar p = 0; p < Processes; p++) begin : gen_failed
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) failed_q[p] <= 1'b0;
      else if (renew_i[p]) failed_q[p] <= 1'b0;
      else if (failure && wid == WidBits'(p)) failed_q[p] <= !s.last;
    end
  end

  `VELO_ASSERT(PacketEndsWithItsLastLine, !(ends && packet) || last_line)
  `VELO_ASSERT(NoOffsetsLeft, state_q != StIdle || !(offset_valid || list_comes_q))
  `VELO_ASSERT(RoomForOffsets, !list_comes_q || unused_ready)

  logic unused;
  assign unused = ^s;

endmodule
