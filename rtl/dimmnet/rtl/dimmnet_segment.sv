// SPDX-License-Identifier: Apache-2.0
//
// How much of a transfer goes now, as a packet or as many words, and what that is as a segment. `now_o` and what follows
// from it are there two cycles after the transfer; the products are registered in between.

module dimmnet_segment
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
(
    input logic clk_i,

    input logic    [ 3:0] wid_i,    // the process
    input logic    [15:0] lid_i,    // who sends: the board
    input logic    [15:0] pgid_i,   // and the group
    input region_t        region_i, // the process's part of SO-DIMM

    input logic            is_read_i,        // it is a read, else a command
    input entry_t          entry_i,          // the command
    input transfer_t       transfer_i,       // either, in one form
    input logic      [5:0] element_words_i,  // words of an element
    input progress_t       progress_i,       // how far it is
    input logic            take_i,           // its size is settled in this cycle

    output logic            from_sodimm_o,   // the Prefetch Unit fetches its data
    output job_t            job_o,           // by this job
    output logic      [6:0] offset_words_o,  // words of offsets, if it has a list
    output segment_t        segment_o,       // the segment
    output progress_t       progress_o       // how far the transfer is behind it
);

  transfer_t t;
  progress_t progress, progress_next;
  dimmnet_botf_t botf;
  logic local_elements, remote_elements, local_list, remote_list;
  assign t               = transfer_i;
  assign progress        = progress_i;
  assign progress_o      = progress_next;
  assign botf            = entry_i.command[63:0];
  assign local_elements  = t.local_access != DimmnetAccessContiguous;
  assign remote_elements = t.remote_access != DimmnetAccessContiguous;
  assign local_list      = t.local_access == DimmnetAccessList;
  assign remote_list     = t.remote_access == DimmnetAccessList;

  // Most elements of a packet, by their size: words for data, less the pattern's and those of a list. Where there is a
  // list, an even number, so that its words are not torn, or one.
  typedef logic [DimmnetElementWordsMax:0][6:0] table_t;
  function automatic table_t most(int unsigned pattern, int unsigned list, bit even);
    table_t result;
    int unsigned n;
    result = '0;
    for (int unsigned e = 1; e <= DimmnetElementWordsMax; e++) begin
      n = 0;
      for (int unsigned i = 1; i <= DimmnetPayloadWordsMax; i++) begin
        if (pattern + list * ((i + 1) / 2) + i * e <= DimmnetPayloadWordsMax) n = i;
      end
      if (even && n > 1) n = n - n % 2;
      result[e] = 7'(n);
    end
    return result;
  endfunction
  localparam table_t MostPlain = most(0, 0, 1'b0);
  localparam table_t MostPlainEven = most(0, 0, 1'b1);
  localparam table_t MostStrided = most(1, 0, 1'b0);
  localparam table_t MostStridedEven = most(1, 0, 1'b1);
  localparam table_t MostListed = most(1, 1, 1'b1);

  logic gets, last;
  logic [19:0] most_now, now, now_q, words_q;
  logic [31:0] local_step_q, remote_step_q;
  logic [6:0] data_words, offset_words, overhead;
  assign offset_words_o = offset_words;
  logic odd;

  assign gets = t.op == DimmnetOpGet;
  always_comb begin
    if (gets) most_now = remote_list ? 20'd64 : '1;
    else if (remote_list) most_now = 20'(MostListed[element_words_i]);
    else if (remote_elements) begin
      most_now = 20'(local_list ? MostStridedEven[element_words_i] : MostStrided[element_words_i]);
    end else
      most_now = 20'(local_list ? MostPlainEven[element_words_i] : MostPlain[element_words_i]);
  end
  assign now = progress.left < most_now ? progress.left : most_now;

  always_ff @(posedge clk_i) begin
    if (take_i) begin
      now_q <= now;
      words_q <= gets && !remote_list ? t.words : 20'(now[6:0] * element_words_i);
      // What the places move by, if they move by elements.
      local_step_q <= 32'(now[6:0]) * t.local_shape.step;
      remote_step_q <= 32'(now[6:0]) * t.remote_shape.step;
    end
  end
  assign last = now_q == progress.left;
  assign from_sodimm_o = t.op inside {DimmnetOpPut, DimmnetOpLoad} &&
      t.local_memory == DimmnetMemorySodimm;
  assign data_words = words_q[6:0];
  assign offset_words = list_words(now_q[6:0]);
  assign odd = progress.done[0];

  function automatic logic [31:0] moved(dimmnet_access_e access, logic [31:0] place,
                                        logic [31:0] step, logic [19:0] words);
    unique case (access)
      DimmnetAccessContiguous: return place + 32'(words);
      DimmnetAccessStrided: return place + step;
      default: return place;
    endcase
  endfunction

  always_comb begin
    progress_next = progress;
    progress_next.left = progress.left - now_q;
    progress_next.done = progress.done + now_q;
    progress_next.local_word = moved(t.local_access, progress.local_word, local_step_q, words_q);
    progress_next.remote_word =
        moved(t.remote_access, progress.remote_word, remote_step_q, words_q);
  end

  job_t job;
  always_comb begin
    job = '{
        region: region_i,
        address: progress.local_word,
        access : t.local_access,
        element_words: local_elements ? 7'(element_words_i) : data_words,
        count: local_elements ? now_q[6:0] : 7'd1,
        step: t.local_shape.step
    };
  end
  assign job_o = job;

  function automatic dimmnet_pattern_t pattern(shape_t shape, logic [15:0] elements_there,
                                               logic list);
    return
    '{
        step: list ? '0 : shape.step,
        count: elements_there,
        element_words: shape.element_words,
        default: '0
    }
    ;
  endfunction

  assign overhead = (gets ? 7'd1 + 7'(local_elements) : data_words) + 7'(remote_elements) +
      (remote_list ? offset_words : '0);

  always_comb begin
    segment_o = '{
        wid: wid_i,
        own: !is_read_i,
        last: last,
        from_window: t.local_memory != DimmnetMemorySodimm,
        window_word: t.op == DimmnetOpStore ? progress.remote_word[6:0] : progress.local_word[6:0],
        prefetch_word: progress.remote_word[7:0],
        patterned: remote_elements,
        pattern: pattern(t.remote_shape, now_q[15:0], remote_list),
        listed: remote_list,
        list_word: 12'(t.remote_shape.step) + 12'(progress.done >> 1),
        list_odd: odd,
        reply_patterned: local_elements,
        reply_pattern: pattern(t.local_shape, now_q[15:0], 1'b0),
        reply: '{
            address: progress.local_word,
            words: words_q,
            access : t.local_access,
            memory: t.local_memory,
            default: '0
        },
        header: '{
            address: progress.remote_word,
            tag: t.tag,
            pgid: pgid_i,
            src_lid: lid_i,
            dst_lid: t.lid,
            src_wid: wid_i,
            dst_wid: t.wid,
            words: overhead,
            status: t.status && last,
            access : t.remote_access,
            memory: t.remote_memory,
            kind: gets ? DimmnetKindRead : is_read_i ? DimmnetKindAnswer : DimmnetKindWrite,
            default: '0
        },
        job: job,
        data_words: data_words,
        kind: SegmentPacket
    };
    segment_o.job.count = local_elements || remote_elements ? now_q[6:0] : 7'd1;
    unique case (t.op)
      DimmnetOpGet:  segment_o.kind = SegmentRead;
      DimmnetOpLoad: segment_o.kind = SegmentLoad;
      DimmnetOpStore: begin
        segment_o.kind        = SegmentStore;
        segment_o.listed      = local_list;
        segment_o.list_word   = 12'(t.local_shape.step) + 12'(progress.done >> 1);
        segment_o.from_window = 1'b1;
      end
      default:       ;
    endcase
    if (!is_read_i && entry_i.kind != EntryTransfer) begin
      segment_o.kind        = SegmentBotf;
      segment_o.last        = 1'b1;
      segment_o.from_window = 1'b1;
      segment_o.listed      = 1'b0;
      segment_o.patterned   = 1'b0;
      segment_o.window_word = {botf.window, botf.first};
      segment_o.data_words  = botf.words - 7'(DimmnetHeaderWords);
      if (entry_i.kind == EntryAotf) begin
        segment_o.kind        = SegmentAotf;
        segment_o.window_word = {1'b1, entry_i.command[68:64], 1'b0};
        segment_o.data_words  = 7'd1;
        segment_o.reply       = entry_i.command[63:0];
      end
      segment_o.header.words = segment_o.data_words;
    end
  end

  logic unused;
  assign unused = ^{entry_i, t, botf};

endmodule
