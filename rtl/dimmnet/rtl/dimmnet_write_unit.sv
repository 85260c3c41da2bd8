// SPDX-License-Identifier: Apache-2.0
//
// Write Unit: puts a stream of words into SO-DIMM, contiguous, strided or by a list of offsets, which then goes ahead
// of the words. Words that are next to each other in one row become one request.
//
// A job: `job_valid_i` until `job_ready_o`; of a list, its offsets; then exactly the job's words. `list_done_o` says
// that the list has come; with `list_bad_o` an element is outside the region, nothing was written, and the job is over.
// `done_o`: the last request was taken. What the guard does not let pass is not written.

`include "velo_assert.svh"

module dimmnet_write_unit
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic job_valid_i,  // a job
    output logic job_ready_o,  // it is taken
    input  job_t job_i,        // the job

    input  logic        data_valid_i,  // a word: two offsets, or data
    output logic        data_ready_o,  // it is taken
    input  logic [63:0] data_i,        // the word
    output logic        list_done_o,   // the list is there
    output logic        list_bad_o,    // with it: not all in the region, and the job is over
    output logic        done_o,        // the job is over

    output logic         write_valid_o,  // a request
    input  logic         write_ready_i,  // it is taken
    output logic [ 31:1] write_row_o,    // row
    output logic [  1:0] write_mask_o,   // its words
    output logic [127:0] write_data_o    // data
);

  typedef enum logic [1:0] {
    StIdle,
    StList,   // offsets come
    StWords,  // data come
    StDrain   // the last request leaves
  } state_e;

  state_e state_q;
  job_t   job_q;
  logic start, listed, list_valid;
  logic walk_busy, row_valid, row_ready, row_two, row_last, allowed, low_there_q, complete;
  logic signed [39:0] word;
  logic [31:1] row;
  logic [63:0] low_q;
  logic [5:0] index;
  logic [31:0] offset;

  assign job_ready_o = state_q == StIdle;
  assign listed = job_i.access == DimmnetAccessList;
  assign list_valid = state_q == StList && data_valid_i;

  dimmnet_list u_list (
      .clk_i,
      .rst_ni,
      .start_i (job_valid_i && job_ready_o),
      .job_i   (job_q),
      .valid_i (list_valid),
      .data_i  (data_i),
      .done_o  (list_done_o),
      .bad_o   (list_bad_o),
      .index_i (index),
      .offset_o(offset)
  );

  // A cycle after the job, or the list, has come.
  logic starts_q;
  assign start = starts_q;
  dimmnet_walk u_walk (
      .clk_i,
      .rst_ni,
      .start_i (start),
      .busy_o  (walk_busy),
      .job_i   (job_q),
      .index_o (index),
      .offset_i(offset),
      .valid_o (row_valid),
      .ready_i (row_ready),
      .word_o  (word),
      .two_o   (row_two),
      .last_o  (row_last)
  );

  dimmnet_guard u_guard (
      .region_i(job_q.region),
      .word_i  (word),
      .inside_o(allowed),
      .row_o   (row)
  );

  // A row is complete with its only or its second word; the request register must have room for it.
  logic room;
  assign room = !write_valid_o || write_ready_i;
  assign complete = !row_two || low_there_q;
  assign data_ready_o = state_q == StList ||
      (state_q == StWords && row_valid && (!complete || room));
  assign row_ready = data_valid_i && state_q == StWords && complete && room;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q       <= StIdle;
      starts_q      <= 1'b0;
      low_there_q   <= 1'b0;
      write_valid_o <= 1'b0;
    end else begin
      starts_q <= 1'b0;
      unique case (state_q)
        StIdle: begin
          if (job_valid_i) begin
            state_q  <= listed ? StList : StWords;
            starts_q <= !listed;
          end
        end
        StList: begin
          if (list_done_o) begin
            state_q  <= list_bad_o ? StIdle : StWords;
            starts_q <= !list_bad_o;
          end
        end
        StWords: if (row_ready && row_valid && row_last) state_q <= StDrain;
        StDrain: if (room) state_q <= StIdle;
        default: state_q <= StIdle;
      endcase
      if (row_valid && state_q == StWords && data_valid_i && data_ready_o) low_there_q <= !complete;
      if (room) write_valid_o <= row_ready && row_valid && allowed;
    end
  end
  assign done_o = state_q == StDrain && room;

  always_ff @(posedge clk_i) begin
    if (job_valid_i && job_ready_o) job_q <= job_i;
    if (data_valid_i && !complete) low_q <= data_i;
    if (room) begin
      write_row_o  <= row;
      write_mask_o <= row_two ? 2'b11 : {word[0], !word[0]};
      write_data_o <= {data_i, row_two ? low_q : data_i};
    end
  end

  `VELO_ASSERT(DataOnlyOfAJob, !data_valid_i || state_q != StIdle)
  `VELO_ASSERT(WalkOnlyWithWords, !walk_busy || state_q == StWords)

endmodule
