// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a command or a read. `fields_o`: what its fields say by themselves, at once. `judged_o`: whether its
// elements are whole, and all of it inside the process's memory; two cycles after `divided_o`, which comes three to some
// 25 cycles after `start_i`.

module dimmnet_judge
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input logic     [15:0] lid_i,     // the board's
    input process_t        process_i, // the process

    input logic                   is_read_i,        // it is a read, else a command
    input entry_t                 entry_i,          // the command
    input dimmnet_packet_t        read_i,           // the read's header
    input dimmnet_pattern_t       read_pattern_i,   // and patterns
    input dimmnet_pattern_t       reply_pattern_i,
    input transfer_t              transfer_i,       // either, in one form
    input logic             [5:0] element_words_i,  // words of an element

    input  logic                  start_i,    // begin in the next cycle, from when on all stand
    output dimmnet_error_e        fields_o,   // what is wrong at first sight
    output logic                  divided_o,  // the count is there
    output logic           [19:0] count_o,    // elements
    output dimmnet_error_e        judged_o    // what is wrong then
);

  transfer_t t;
  logic local_elements, remote_elements, elements, local_list, remote_list;
  logic [19:0] count;
  assign t               = transfer_i;
  assign local_elements  = t.local_access != DimmnetAccessContiguous;
  assign remote_elements = t.remote_access != DimmnetAccessContiguous;
  assign elements        = local_elements || remote_elements;
  assign local_list      = t.local_access == DimmnetAccessList;
  assign remote_list     = t.remote_access == DimmnetAccessList;
  assign count_o         = count;

  dimmnet_botf_t botf;
  logic able, exact, in_bounds, read_fits, sends;
  logic [32:0] windows_end;
  logic [31:0] windows;

  assign botf = entry_i.command[63:0];
  assign sends = !(t.op inside {DimmnetOpLoad, DimmnetOpStore}) || entry_i.kind != EntryTransfer;
  // To send, a board needs a name.
  assign able  = process_i.enabled && (lid_i != '0 || (!sends && !is_read_i)) &&
      !(is_read_i && process_i.pgid != read_i.pgid);

  always_comb begin
    fields_o = DimmnetErrorNone;
    if (!able) begin
      fields_o = DimmnetErrorDisabled;
    end else if (is_read_i || entry_i.kind == EntryTransfer) begin
      if (!(t.op inside {DimmnetOpPut, DimmnetOpGet, DimmnetOpLoad, DimmnetOpStore}) ||
          t.local_access == 2'd3 || t.remote_access == 2'd3 || t.local_memory[1] ||
          t.remote_memory == 2'd3 ||
          (t.local_memory != DimmnetMemorySodimm && local_elements) ||
          (t.remote_memory != DimmnetMemorySodimm && remote_elements) ||
          (t.op == DimmnetOpGet && local_list) ||
          (is_read_i && (remote_list || t.remote_memory[1]))) begin
        fields_o = DimmnetErrorOp;
      end else if (t.words == '0 || element_words_i == '0 ||
                   element_words_i > 6'(DimmnetElementWordsMax) ||
                   (local_elements && remote_elements &&
                    t.local_shape.element_words != t.remote_shape.element_words)) begin
        fields_o = DimmnetErrorSize;
      end
    end else if (entry_i.kind == EntryBotf) begin
      if (botf.op != DimmnetOpBotf) begin
        fields_o = DimmnetErrorOp;
      end else if (botf.words < 7'(DimmnetHeaderWords) ||
                   8'(botf.first) + 8'(botf.words) > 8'(DimmnetWindowWords)) begin
        fields_o = DimmnetErrorSize;
      end
    end
  end

  dimmnet_divide u_divide (
      .clk_i,
      .rst_ni,
      .start_i,
      .words_i  (t.words),
      .element_i(element_words_i),
      .done_o   (divided_o),
      .count_o  (count),
      .exact_o  (exact)
  );

  dimmnet_bounds #(
      .CountBits(20)
  ) u_bounds (
      .clk_i,
      .region_words_i (process_i.region.words),
      .address_i      (t.local_word),
      .element_words_i(local_elements ? 20'(element_words_i) : t.words),
      .count_i        (local_elements ? count : 20'd1),
      .step_i         (t.local_shape.step),
      .ok_o           (in_bounds)
  );

  // The peer's memory is the peer's to judge; here no address goes round.
  logic peer_fits;
  dimmnet_bounds #(
      .CountBits(20)
  ) u_peer_bounds (
      .clk_i,
      .region_words_i (32'hffff_ffff),
      .address_i      (t.remote_word),
      .element_words_i(remote_elements ? 20'(element_words_i) : t.words),
      .count_i        (remote_elements ? count : 20'd1),
      .step_i         (t.remote_shape.step),
      .ok_o           (peer_fits)
  );

  // The part of the transfer that is in the process's windows.
  logic [31:0] window_first;
  assign window_first = t.op inside {DimmnetOpLoad, DimmnetOpStore} ? t.remote_word : t.local_word;
  assign windows      = t.op inside {DimmnetOpLoad, DimmnetOpGet} ?
      32'(PrefetchWords) : 32'(WindowWords);
  assign windows_end = {1'b0, window_first} + 33'(t.words);

  function automatic logic list_fits(logic [31:0] first, logic [19:0] elements_there);
    return 34'(first) + 34'(elements_there >> 1) + 34'(elements_there[0]) <= 34'(DimmnetLlcmWords);
  endfunction

  // A read's payload: reply, pattern, offsets, pattern of the reply.
  logic [6:0] read_words, read_offsets;
  logic read_counts;
  assign read_offsets = local_list ? list_words(read_pattern_i.count[6:0]) : '0;
  assign read_words = 7'd1 + 7'(local_elements) + 7'(remote_elements) + read_offsets;
  assign read_counts = (!local_elements || 20'(read_pattern_i.count) == count) &&
      (!remote_elements || 20'(reply_pattern_i.count) == count);
  assign read_fits = read_i.words == read_words && read_counts &&
      (!local_list || (read_pattern_i.count[15:7] == '0 && read_pattern_i.step == '0));

  // Its part in the process's windows, if it has one.
  logic in_windows, windows_fit, lists_fit;
  assign in_windows = t.local_memory != DimmnetMemorySodimm || !sends;
  assign windows_fit = !in_windows || windows_end <= {1'b0, windows};
  assign lists_fit = (!local_list || is_read_i || list_fits(
      t.local_shape.step, count
  )) && (!remote_list || list_fits(
      t.remote_shape.step, count
  ));

  always_comb begin
    judged_o = DimmnetErrorNone;
    if (!exact || (is_read_i && !read_fits) ||
        (t.op == DimmnetOpGet && elements && !remote_list && count[19:16] != '0)) begin
      judged_o = DimmnetErrorSize;
    end else if ((t.local_memory == DimmnetMemorySodimm && !local_list && !in_bounds) ||
                 (t.op == DimmnetOpPut && !remote_list && !peer_fits) || !windows_fit ||
                 !lists_fit) begin
      judged_o = DimmnetErrorBounds;
    end
  end

  logic unused;
  assign unused = ^{entry_i, read_i, read_pattern_i, reply_pattern_i, t, botf};

endmodule
