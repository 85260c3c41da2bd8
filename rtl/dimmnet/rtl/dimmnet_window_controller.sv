// SPDX-License-Identifier: Apache-2.0
//
// Window Controller: commands and reads become segments, of a packet each or as many words, for dimmnet_sender. The
// processes and the board's reads take turns, a segment each time; a process's own commands stay in order.
//
// A command that a field of it contradicts, or that reaches out of its process's memory, is refused before anything
// of it is sent, and so is one of a process that is not enabled. Two things show only on the way: an offset of a list,
// and that a process was disabled; then whole segments before it have been sent. A read that is wrong is dropped.
//
// A transfer is first judged, some 25 cycles if it has elements, else four: whole elements (dimmnet_divide), then all of
// it in the region. How far each is stands in `progress_q`, so that others may come between its segments.

`include "velo_assert.svh"

module dimmnet_window_controller
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
#(
    parameter  int unsigned Processes = 2,
    localparam int unsigned WidBits   = $clog2(Processes)
) (
    input logic clk_i,
    input logic rst_ni,

    input logic     [         15:0] lid_i,      // the board's
    input process_t [Processes-1:0] process_i,  // its processes
    input logic     [Processes-1:0] renew_i,    // these begin anew

    input  logic   [Processes-1:0] waiting_i,  // these have a command
    output logic   [  WidBits-1:0] wid_o,      // whose is looked at
    input  entry_t                 entry_i,    // its first
    output logic                   pop_o,      // it is done with

    input  logic                   read_valid_i,  // a read waits
    input  dimmnet_packet_t        read_i,        // its header
    output logic                   read_pop_o,    // it is done with
    output logic            [ 5:0] read_word_o,   // word of its payload
    input  logic            [63:0] read_data_i,   // a cycle later

    output logic               list_valid_o,  // read offsets in LLCM
    input  logic               list_ready_i,  // taken
    output logic [WidBits-1:0] list_wid_o,    // process
    output logic [       11:0] list_word_o,   // word
    input  logic [       63:0] list_data_i,   // a cycle later

    output logic        job_valid_o,     // a job for the Prefetch Unit
    input  logic        job_ready_i,     // it is taken
    output job_t        job_o,           // the job
    output logic        offset_valid_o,  // two offsets for it
    output logic [63:0] offset_o,        // the offsets
    input  logic        list_done_i,     // its list is there
    input  logic        list_bad_i,      // with it: not all in the region

    output logic     segment_valid_o,  // a segment
    input  logic     segment_ready_i,  // it is taken
    output segment_t segment_o,        // the segment
    input  logic     storing_i,        // a store has not yet reached SO-DIMM

    output logic                         refuse_valid_o,  // a command is refused
    output logic           [WidBits-1:0] refuse_wid_o,    // of this process
    output dimmnet_error_e               refuse_error_o,  // why
    output events_t                      events_o         // what became of reads
);

  localparam int unsigned Contexts = Processes + 1;
  localparam int unsigned ContextBits = $clog2(Contexts);

  typedef enum logic [3:0] {
    StPick,
    StStart,
    StReply,         // of a read: its payload's words come, one each
    StPattern,
    StReplyAt,
    StReplyPattern,
    StFields,        // what they say
    StDivide,        // the count of elements
    StDistance,      // the bounds' arithmetic
    StVerdict,
    StSegment,       // how much goes now
    StJob,           // the Prefetch Unit begins
    StList,          // offsets go there
    StPush,          // the segment goes
    StRefuse
  } state_e;

  state_e state_d, state_q;
  dimmnet_error_e error_d, error_q;

  // ----- who is next ----------------------------------------------------------------------------

  logic [Contexts-1:0] asking, grant;
  logic [ContextBits-1:0] context_d, context_q;
  logic [WidBits-1:0] wid, wid_d, wid_q;
  logic is_read_q, picks, gone_q;
  entry_t entry_q;
  progress_t [Contexts-1:0] progress_q;
  progress_t progress, progress_next;
  logic [Contexts-1:0] started_q;
  logic started;
  process_t owner;

  assign asking = {read_valid_i, waiting_i};
  assign picks  = state_q == StPick && |asking;
  velo_rr_arb #(
      .NumReq(Contexts)
  ) u_arb (
      .clk_i,
      .rst_ni,
      .req_i  (asking),
      .grant_o(grant),
      .take_i (picks)
  );
  always_comb begin
    context_d = '0;
    for (int unsigned i = 0; i < Contexts; i++) if (grant[i]) context_d = ContextBits'(i);
  end

  // Of a read, the process that it is for: Receive Controller let none pass that does not exist.
  assign wid_d = grant[Processes] ? read_i.dst_wid[WidBits-1:0] : WidBits'(context_d);
  assign wid_o = state_q == StPick ? WidBits'(context_d) : wid_q;
  always_ff @(posedge clk_i) begin
    if (picks) begin
      context_q <= context_d;
      is_read_q <= grant[Processes];
      wid_q     <= wid_d;
      entry_q   <= entry_i;
    end
  end
  assign wid      = wid_q;
  assign progress = progress_q[context_q];
  assign started  = started_q[context_q];
  assign owner    = process_i[wid];

  // A process that began anew has no such command any more.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) gone_q <= 1'b0;
    else if (picks) gone_q <= renew_i[wid_d];
    else if (renew_i[wid]) gone_q <= 1'b1;
  end

  // ----- one form for commands and reads --------------------------------------------------------

  dimmnet_reply_t reply_q;
  dimmnet_pattern_t read_pattern_q, reply_pattern_q;
  dimmnet_command_t command;
  transfer_t t;

  assign command = entry_q.command;
  always_comb begin
    if (is_read_q) begin
      t = '{
          op: DimmnetOpPut,
          local_access: dimmnet_access_e'(read_i.access),
          remote_access: dimmnet_access_e'(reply_q.access),
          local_memory: DimmnetMemorySodimm,
          remote_memory: dimmnet_memory_e'(reply_q.memory),
          status: read_i.status,
          wid: read_i.src_wid,
          lid: read_i.src_lid,
          tag: read_i.tag,
          words: reply_q.words,
          local_word: read_i.address,
          remote_word: reply_q.address,
          local_shape: {read_pattern_q.step, read_pattern_q.element_words},
          remote_shape: {reply_pattern_q.step, reply_pattern_q.element_words}
      };
    end else begin
      t = '{
          op: dimmnet_op_e'(command.op),
          local_access: dimmnet_access_e'(command.local_access),
          remote_access: dimmnet_access_e'(command.remote_access),
          local_memory: dimmnet_memory_e'(command.local_memory),
          remote_memory: dimmnet_memory_e'(command.remote_memory),
          status: command.status,
          wid: command.wid,
          lid: command.lid,
          tag: command.tag,
          words: command.words,
          local_word: command.local_word,
          remote_word: command.remote_word,
          local_shape: entry_q.local_shape,
          remote_shape: entry_q.remote_shape
      };
      // Both have one side in SO-DIMM, which is the local one, and one in the windows.
      if (command.op inside {DimmnetOpLoad, DimmnetOpStore}) begin
        t.local_memory  = DimmnetMemorySodimm;
        t.remote_memory = DimmnetMemoryPrefetch;
      end
      if (command.op == DimmnetOpGet) t.remote_memory = DimmnetMemorySodimm;
    end
  end

  logic local_elements, remote_elements, elements, local_list;
  logic [5:0] element_words;
  assign local_elements = t.local_access != DimmnetAccessContiguous;
  assign remote_elements = t.remote_access != DimmnetAccessContiguous;
  assign elements = local_elements || remote_elements;
  assign local_list = t.local_access == DimmnetAccessList;
  assign element_words   = !elements ? 6'd1 :
      local_elements ? t.local_shape.element_words : t.remote_shape.element_words;

  // ----- judgement, and what goes now -----------------------------------------------------------

  dimmnet_error_e fields, judged;
  logic divided, from_sodimm, odd;
  logic [19:0] count;
  logic [ 6:0] offset_words;

  dimmnet_judge u_judge (
      .clk_i,
      .rst_ni,
      .lid_i,
      .process_i      (owner),
      .is_read_i      (is_read_q),
      .entry_i        (entry_q),
      .read_i         (read_i),
      .read_pattern_i (read_pattern_q),
      .reply_pattern_i(reply_pattern_q),
      .transfer_i     (t),
      .element_words_i(element_words),
      .start_i        (state_q == StStart || state_q == StReplyPattern),
      .fields_o       (fields),
      .divided_o      (divided),
      .count_o        (count),
      .judged_o       (judged)
  );

  // Who sends: as it was when the command was found able to.
  logic [15:0] lid_q, pgid_q;
  always_ff @(posedge clk_i)
    if (state_q inside {StStart, StFields})
      {lid_q, pgid_q} <= {lid_i, owner.pgid};

  dimmnet_segment u_segment (
      .clk_i,
      .wid_i          (4'(wid)),
      .lid_i          (lid_q),
      .pgid_i         (pgid_q),
      .region_i       (owner.region),
      .is_read_i      (is_read_q),
      .entry_i        (entry_q),
      .transfer_i     (t),
      .element_words_i(element_words),
      .progress_i     (progress),
      .take_i         (state_q == StSegment),
      .from_sodimm_o  (from_sodimm),
      .job_o,
      .offset_words_o (offset_words),
      .segment_o,
      .progress_o     (progress_next)
  );
  assign odd = progress.done[0];
  assign job_valid_o = state_q == StJob && !storing_i;

  // ----- a list on its way to the Prefetch Unit -------------------------------------------------

  logic [6:0] asked_q;
  logic asks, comes_q;
  logic [63:0] list_data;
  assign asks = state_q == StList && asked_q < offset_words;
  assign list_valid_o = asks && !is_read_q;
  assign list_wid_o = wid;
  assign list_word_o = 12'(t.local_shape.step) + 12'(progress.done >> 1) + 12'(asked_q);
  assign list_data = is_read_q ? read_data_i : list_data_i;
  assign offset_valid_o = comes_q;
  assign offset_o = odd ? {32'b0, list_data[63:32]} : list_data;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) comes_q <= 1'b0;
    else comes_q <= asks && (is_read_q || list_ready_i);
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StJob) asked_q <= '0;
    else if (asks && (is_read_q || list_ready_i)) asked_q <= asked_q + 7'd1;
  end

  always_comb begin
    unique case (state_q)
      StStart: read_word_o = 6'd0;
      StReply: read_word_o = 6'd1;
      StReplyAt: begin
        read_word_o = 6'd1 + 6'(local_elements) +
            (local_list ? 6'(list_words(read_pattern_q.count[6:0])) : '0);
      end
      default: read_word_o = 6'd2 + 6'(progress.done >> 1) + asked_q[5:0];
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (state_q == StReply) reply_q <= read_data_i;
    if (state_q == StPattern) read_pattern_q <= read_data_i;
    if (state_q == StReplyPattern) reply_pattern_q <= read_data_i;
  end

  // ----- control --------------------------------------------------------------------------------

  logic moves, ends;
  assign segment_valid_o = state_q == StPush;

  always_comb begin
    state_d = state_q;
    error_d = error_q;
    moves   = 1'b0;
    ends    = 1'b0;
    unique case (state_q)
      StPick: begin
        error_d = DimmnetErrorNone;
        if (picks) state_d = StStart;
      end
      StStart: begin
        if (is_read_q && !started) begin
          state_d = StReply;
        end else if (fields != DimmnetErrorNone) begin
          state_d = StRefuse;
          error_d = fields;
        end else if (!is_read_q && entry_q.kind != EntryTransfer) begin
          state_d = StPush;
        end else begin
          state_d = started ? StSegment : StDivide;
        end
      end
      StReply: state_d = StPattern;
      StPattern: state_d = StReplyAt;
      StReplyAt: state_d = StReplyPattern;
      StReplyPattern: state_d = StFields;
      StFields: begin
        if (fields != DimmnetErrorNone) error_d = fields;
        state_d = fields != DimmnetErrorNone ? StRefuse : StDivide;
      end
      StDivide: if (divided) state_d = StDistance;
      StDistance: state_d = StVerdict;
      StVerdict: begin
        if (judged != DimmnetErrorNone) error_d = judged;
        state_d = judged != DimmnetErrorNone ? StRefuse : StSegment;
      end
      StSegment: state_d = from_sodimm ? StJob : StPush;
      StJob: if (job_valid_o && job_ready_i) state_d = local_list ? StList : StPush;
      StList: begin
        if (list_done_i) begin
          if (list_bad_i) error_d = DimmnetErrorBounds;
          state_d = list_bad_i ? StRefuse : StPush;
        end
      end
      StPush: begin
        if (segment_ready_i) begin
          state_d = StPick;
          moves   = 1'b1;
          ends    = segment_o.last;
        end
      end
      StRefuse: begin
        state_d = StPick;
        ends    = 1'b1;
      end
      default: state_d = StPick;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StPick;
      error_q <= DimmnetErrorNone;
    end else begin
      state_q <= state_d;
      error_q <= error_d;
    end
  end

  assign pop_o          = ends && !is_read_q && !gone_q;
  assign read_pop_o     = ends && is_read_q;
  assign refuse_valid_o = state_q == StRefuse && !is_read_q && !gone_q;
  assign refuse_wid_o   = wid;
  assign refuse_error_o = error_q;

  always_comb begin
    events_o = '0;
    if (state_q == StRefuse && is_read_q) begin
      events_o.pgid      = error_q == DimmnetErrorDisabled;
      events_o.bounds    = error_q == DimmnetErrorBounds;
      events_o.malformed = error_q inside {DimmnetErrorOp, DimmnetErrorSize};
    end
  end

  // A read goes on: its process's name is looked at again with each segment.
  logic [Contexts-1:0] renews;
  assign renews = {1'b0, renew_i};

  for (genvar i = 0; i < Contexts; i++) begin : gen_progress
    logic mine;
    assign mine = context_q == ContextBits'(i);
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        started_q[i] <= 1'b0;
      end else begin
        if (mine && state_q == StVerdict && judged == DimmnetErrorNone) started_q[i] <= 1'b1;
        if (mine && (ends || (gone_q && !is_read_q))) started_q[i] <= 1'b0;
        if (renews[i]) started_q[i] <= 1'b0;
      end
    end
    always_ff @(posedge clk_i) begin
      if (mine && state_q == StVerdict) begin
        progress_q[i].left        <= elements ? count : t.words;
        progress_q[i].done        <= '0;
        progress_q[i].local_word  <= t.local_word;
        progress_q[i].remote_word <= t.remote_word;
      end
      if (mine && moves) begin
        progress_q[i].left        <= progress_next.left;
        progress_q[i].done        <= progress_next.done;
        progress_q[i].local_word  <= progress_next.local_word;
        progress_q[i].remote_word <= progress_next.remote_word;
      end
    end
  end

  logic unused;
  assign unused = ^{reply_q, command};

endmodule
