// SPDX-License-Identifier: Apache-2.0
//
// Receive Controller: judges each whole packet, then puts its payload where it belongs, one packet at a time. Payload
// for Prefetch Windows and LLCM has a short way of its own; that for SO-DIMM goes through the Write Unit. A read goes,
// with its payload, to the queue of reads, which the Window Controller answers; if that is full, it is dropped: what
// comes in never waits for what goes out.
//
// A packet is for a process of this board that is enabled, and of that process's group, or it is dropped; likewise one
// that contradicts itself or does not fit into the memory that it names. All that is known before its first word is
// written. Each is counted once.
//
// Its status, if it asks for one, follows when all its words are written.

`include "velo_assert.svh"

module dimmnet_receive_controller
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
#(
    parameter  int unsigned Processes = 2,
    localparam int unsigned WidBits   = $clog2(Processes)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic     [         15:0] lid_i,     // the board's
    input process_t [Processes-1:0] process_i, // its processes

    input  logic                   head_valid_i,  // a whole packet
    input  dimmnet_packet_t        head_i,        // its header
    output logic                   pop_o,         // it is done with
    output logic            [ 5:0] line_o,        // line of it to read
    input  logic            [63:0] data_i,        // a cycle later

    output logic               prefetch_valid_o,  // a word for a Prefetch Window
    input  logic               prefetch_ready_i,  // it is written
    output logic               llcm_valid_o,      // a word for LLCM
    input  logic               llcm_ready_i,      // it is written
    output logic [WidBits-1:0] wid_o,             // of this process, either
    output logic [       11:0] word_o,            // word there
    output logic [       63:0] data_o,            // data, for all

    output logic job_valid_o,    // a job for the Write Unit
    input  logic job_ready_i,    // it is taken
    output job_t job_o,          // the job
    output logic write_valid_o,  // a word for it
    input  logic write_ready_i,  // it is taken
    input  logic list_done_i,    // its list is there
    input  logic list_bad_i,     // with it: not all in the region
    input  logic write_done_i,   // all is written

    output logic read_valid_o,  // a word of a read
    output logic read_last_o,  // with it: all of it is there
    input logic read_ready_i,  // the queue of reads has room; stands while a read goes in
    output dimmnet_packet_t read_o,  // its header

    output logic            status_valid_o,  // a status
    input  logic            status_done_i,   // it is written or dropped
    output dimmnet_status_t status_o,        // the status

    output events_t events_o  // what became of packets
);

  typedef enum logic [3:0] {
    StIdle,
    StJudge,
    StPattern,   // payload's first word is there
    StCheck,     // what it says
    StDistance,  // the bounds' arithmetic
    StVerdict,
    StJob,
    StList,      // offsets
    StWords,     // data
    StWritten,   // the Write Unit ends
    StStatus,
    StDrop
  } state_e;

  typedef enum logic [1:0] {
    ToPrefetch,
    ToLlcm,
    ToSodimm,
    ToReads
  } target_e;

  state_e state_d, state_q;
  dimmnet_error_e error_d, error_q;
  target_e  target;
  process_t process_q;
  logic exists_q, busy;

  dimmnet_packet_t head;
  assign head = head_i;  // stands until it is popped

  logic [WidBits-1:0] wid;
  assign wid = head.dst_wid[WidBits-1:0];
  always_ff @(posedge clk_i) begin
    if (state_q == StIdle) begin
      process_q <= process_i[wid];
      exists_q  <= 32'(head.dst_wid) < Processes && head.dst_lid == lid_i && lid_i != '0;
    end
  end

  // ----- judgement by the header ----------------------------------------------------------------

  logic contiguous, is_read, malformed, foreign, outside;
  logic [32:0] end_word;
  logic [31:0] size;

  assign is_read = head.kind == DimmnetKindRead;
  assign contiguous = head.access == DimmnetAccessContiguous;

  always_comb begin
    unique case (head.memory)
      DimmnetMemoryPrefetch: target = ToPrefetch;
      DimmnetMemoryLlcm: target = ToLlcm;
      default: target = ToSodimm;
    endcase
    if (is_read) target = ToReads;
  end

  always_comb begin
    malformed = !(head.kind inside {DimmnetKindWrite, DimmnetKindRead, DimmnetKindAnswer}) ||
        head.memory == 2'd3 || head.access == 2'd3;
    // Only SO-DIMM is read, and only there elements have an order.
    if (head.memory != DimmnetMemorySodimm && (is_read || !contiguous)) malformed = 1'b1;
    if (head.words == '0 && (is_read || !contiguous)) malformed = 1'b1;
    if (head.words > 7'(DimmnetPayloadWordsMax)) malformed = 1'b1;
  end
  assign foreign = !exists_q || !process_q.enabled || process_q.pgid != head.pgid;

  always_comb begin
    unique case (target)
      ToPrefetch: size = 32'(PrefetchWords);
      ToLlcm: size = 32'(DimmnetStatusLlcmWord);  // what is above is the ring's
      default: size = process_q.region.words;
    endcase
  end
  assign end_word = {1'b0, head.address} + 33'(head.words);
  // A read's address is judged with its pattern, when it is answered.
  assign outside  = contiguous && !is_read && end_word > {1'b0, size};

  // ----- pattern --------------------------------------------------------------------------------

  dimmnet_pattern_t pattern_q;
  logic [6:0] count, list_count;
  logic [12:0] data_words;
  logic fits, in_bounds, listed;

  always_ff @(posedge clk_i) if (state_q == StPattern) pattern_q <= data_i;
  assign listed = head.access == DimmnetAccessList;
  assign count = pattern_q.count[6:0];
  assign list_count = listed ? list_words(count) : '0;
  assign data_words = count[5:0] * 7'(pattern_q.element_words);
  assign fits = pattern_q.count != '0 && pattern_q.count <= 16'(DimmnetPayloadWordsMax) &&
      pattern_q.element_words != '0 && pattern_q.element_words <= 6'(DimmnetElementWordsMax) &&
      (!listed || pattern_q.step == '0) &&
      14'(data_words) + 14'(list_count) + 14'd1 == 14'(head.words);

  dimmnet_bounds #(
      .CountBits(7)
  ) u_bounds (
      .clk_i,
      .region_words_i (process_q.region.words),
      .address_i      (head.address),
      .element_words_i(7'(pattern_q.element_words)),
      .count_i        (count),
      .step_i         (pattern_q.step),
      .ok_o           (in_bounds)
  );

  always_comb begin
    job_o = '{
        region: process_q.region,
        address: head.address,
        access : dimmnet_access_e'(head.access),
        element_words: 7'(pattern_q.element_words),
        count: count,
        step: pattern_q.step
    };
    if (contiguous) begin
      job_o.element_words = head.words;
      job_o.count         = 7'd1;
    end
  end

  // ----- payload --------------------------------------------------------------------------------

  // The line at `data_i` is the one that `line_q` names.
  logic [5:0] line_d, line_q;
  logic [ 6:0] left_q;  // words
  logic [ 5:0] list_left_q;
  logic [11:0] word_q;
  logic take, last;

  assign line_o = line_d;
  assign last = left_q == 7'd1;
  assign prefetch_valid_o = state_q == StWords && target == ToPrefetch;
  assign llcm_valid_o = state_q == StWords && target == ToLlcm;
  assign write_valid_o = (state_q == StWords && target == ToSodimm) || state_q == StList;
  assign read_valid_o = state_q == StWords && target == ToReads;
  assign read_last_o = read_valid_o && last;
  assign read_o = head;
  assign wid_o = wid;
  assign word_o = word_q;
  assign data_o = data_i;
  assign job_valid_o = state_q == StJob;
  assign take = (prefetch_valid_o && prefetch_ready_i) || (llcm_valid_o && llcm_ready_i) ||
      (write_valid_o && write_ready_i) || read_valid_o || state_q == StPattern;

  always_comb begin
    line_d = line_q;
    if (state_q == StIdle) line_d = 6'(DimmnetHeaderWords);
    else if (take) line_d = line_q + 6'd1;
  end
  always_ff @(posedge clk_i) begin
    line_q <= line_d;
    if (state_q == StIdle) left_q <= head.words;
    else if (take) left_q <= left_q - 7'd1;
    if (state_q == StJob) list_left_q <= list_count[5:0];
    else if (take) list_left_q <= list_left_q - 6'd1;
    if (state_q == StIdle) word_q <= head.address[11:0];
    else if (take) word_q <= word_q + 12'd1;
  end

  // ----- control --------------------------------------------------------------------------------

  state_e after;
  assign after = head.status && !is_read ? StStatus : StIdle;

  always_comb begin
    state_d = state_q;
    error_d = error_q;
    busy    = 1'b0;
    unique case (state_q)
      StIdle: begin
        error_d = DimmnetErrorNone;
        if (head_valid_i) state_d = StJudge;
      end
      StJudge: begin
        if (malformed) error_d = DimmnetErrorMalformed;
        else if (foreign) error_d = DimmnetErrorPgid;
        else if (outside) error_d = DimmnetErrorBounds;
        busy = error_d == DimmnetErrorNone && is_read && !read_ready_i;
        if (busy) error_d = DimmnetErrorBusy;
        if (error_d != DimmnetErrorNone) state_d = StDrop;
        else if (head.words == '0) state_d = after;
        else if (target != ToSodimm) state_d = StWords;
        else state_d = contiguous ? StJob : StPattern;
      end
      StPattern: state_d = StCheck;
      StCheck: begin
        if (!fits) error_d = DimmnetErrorMalformed;
        state_d = fits ? StDistance : StDrop;
      end
      StDistance: state_d = StVerdict;
      StVerdict: begin
        if (!listed && !in_bounds) error_d = DimmnetErrorBounds;
        state_d = error_d == DimmnetErrorNone ? StJob : StDrop;
      end
      StJob: if (job_ready_i) state_d = !contiguous && listed ? StList : StWords;
      StList: begin
        if (list_done_i) begin
          state_d = list_bad_i ? StDrop : StWords;
          if (list_bad_i) error_d = DimmnetErrorBounds;
        end
      end
      StWords: if (take && last) state_d = target == ToSodimm ? StWritten : after;
      StWritten: if (write_done_i) state_d = after;
      StStatus: if (status_done_i) state_d = StIdle;
      StDrop: state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end
  assign pop_o = state_q != StIdle && state_d == StIdle;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      error_q <= DimmnetErrorNone;
    end else begin
      state_q <= state_d;
      error_q <= error_d;
    end
  end

  assign status_valid_o = state_q == StStatus;
  assign status_o = '{
          src_lid: head.src_lid,
          tag: head.tag,
          src_wid: head.src_wid,
          words: head.words,
          memory: head.memory,
          kind: head.kind,
          default: '0
      };

  always_comb begin
    events_o           = '0;
    events_o.pgid      = state_q == StDrop && error_q == DimmnetErrorPgid;
    events_o.malformed = state_q == StDrop && error_q == DimmnetErrorMalformed;
    events_o.bounds    = state_q == StDrop && error_q == DimmnetErrorBounds;
    events_o.busy      = state_q == StDrop && error_q == DimmnetErrorBusy;
  end

  `VELO_ASSERT(ListEndsWhereItsCountSays, !list_done_i || state_q != StList || list_left_q == 6'd1)

  logic unused;
  assign unused = ^pattern_q;

endmodule
