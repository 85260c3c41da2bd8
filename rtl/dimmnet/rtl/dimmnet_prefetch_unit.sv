// SPDX-License-Identifier: Apache-2.0
//
// Prefetch Unit: reads words of SO-DIMM, contiguous, strided or by a list of offsets, into one stream of words in the
// order of the jobs. It asks for a row a cycle, and for no more than there is room for: 64 rows are under way or wait
// to be taken. The list of the next job comes in while the rows of this one are asked for.
//
// A job: `job_valid_i` until `job_ready_o`; of a list, its offsets, each of which is taken at once. `list_done_o` says
// that the list has come; with `list_bad_o` an element is outside the region, nothing is read, and the job is over.
// A word that the guard does not let pass is not asked for; in its place zero comes.

`include "velo_assert.svh"

module dimmnet_prefetch_unit
  import dimmnet_pkg::*;
  import dimmnet_core_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input  logic job_valid_i,  // a job
    output logic job_ready_o,  // it is taken
    input  job_t job_i,        // the job

    input  logic        list_valid_i,  // two offsets
    input  logic [63:0] list_i,        // the lower one first
    output logic        list_done_o,   // the list is there
    output logic        list_bad_o,    // with it: not all in the region, and the job is over

    output logic        read_valid_o,  // a request
    input  logic        read_ready_i,  // it is taken
    output logic [31:1] read_row_o,    // row

    input logic         response_valid_i,  // a row comes, in the order of requests
    input logic [127:0] response_i,        // the row

    output logic        data_valid_o,  // a word
    input  logic        data_ready_i,  // it is taken
    output logic [63:0] data_o         // the word
);

  localparam int unsigned Rows = 64;

  // ----- the next job, then the one that walks --------------------------------------------------

  job_t next_q, walks_q;
  logic next_there_q, next_whole_q, start, start_q, half_q;
  logic walk_busy, row_valid, row_ready, row_two, row_last, allowed;
  logic signed [39:0] word;
  logic [31:1] row;
  logic [5:0] index;
  logic [1:0][31:0] offsets;
  logic [1:0] done, bad;

  assign job_ready_o = !next_there_q;
  assign start = next_there_q && next_whole_q && !walk_busy && !start_q;
  assign list_done_o = done[half_q];
  assign list_bad_o = bad[half_q];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_there_q <= 1'b0;
      next_whole_q <= 1'b0;
      start_q      <= 1'b0;
      half_q       <= 1'b0;
    end else begin
      start_q <= start;
      if (job_valid_i && job_ready_o) begin
        next_there_q <= 1'b1;
        next_whole_q <= job_i.access != DimmnetAccessList;
      end else if (start || (list_done_o && list_bad_o)) begin
        next_there_q <= 1'b0;
        next_whole_q <= 1'b0;
      end else if (list_done_o) begin
        next_whole_q <= 1'b1;
      end
      if (start) half_q <= !half_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (job_valid_i && job_ready_o) next_q <= job_i;
    if (start) walks_q <= next_q;
  end

  // One list comes in, the other one is walked.
  for (genvar i = 0; i < 2; i++) begin : gen_list
    dimmnet_list u_list (
        .clk_i,
        .rst_ni,
        .start_i (job_valid_i && job_ready_o && half_q == 1'(i)),
        .job_i   (next_q),
        .valid_i (list_valid_i && half_q == 1'(i)),
        .data_i  (list_i),
        .done_o  (done[i]),
        .bad_o   (bad[i]),
        .index_i (index),
        .offset_o(offsets[i])
    );
  end

  dimmnet_walk u_walk (
      .clk_i,
      .rst_ni,
      .start_i (start_q),
      .busy_o  (walk_busy),
      .job_i   (walks_q),
      .index_o (index),
      .offset_i(offsets[!half_q]),
      .valid_o (row_valid),
      .ready_i (row_ready),
      .word_o  (word),
      .two_o   (row_two),
      .last_o  (row_last)
  );

  dimmnet_guard u_guard (
      .region_i(walks_q.region),
      .word_i  (word),
      .inside_o(allowed),
      .row_o   (row)
  );

  // ----- requests -------------------------------------------------------------------------------

  // What becomes of each row that was walked: which words, and whether a response brings them.
  typedef struct packed {
    logic asked;
    logic two;
    logic upper;
  } due_t;
  due_t due_in, due;
  logic due_ready, due_valid, due_pop, room, row_there, row_pop, upper_q, unused_ready;
  logic [127:0] oldest;
  logic [6:0] unused_due, unused_rows;

  assign room = !read_valid_o || read_ready_i;
  assign row_ready = room && due_ready;
  assign due_in = '{asked: allowed, two: row_two, upper: word[0]};

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) read_valid_o <= 1'b0;
    else if (room) read_valid_o <= row_valid && row_ready && allowed;
  end
  always_ff @(posedge clk_i) if (room) read_row_o <= row;

  velo_fifo #(
      .Width($bits(due_t)),
      .Depth(Rows)
  ) u_due (
      .clk_i,
      .rst_ni,
      .push_valid_i(row_valid && row_ready),
      .push_ready_o(due_ready),
      .push_data_i (due_in),
      .pop_valid_o (due_valid),
      .pop_ready_i (due_pop),
      .pop_data_o  (due),
      .count_o     (unused_due)
  );

  // Each row in here has its entry above, so there is always room.
  velo_fifo #(
      .Width(128),
      .Depth(Rows)
  ) u_rows (
      .clk_i,
      .rst_ni,
      .push_valid_i(response_valid_i),
      .push_ready_o(unused_ready),
      .push_data_i (response_i),
      .pop_valid_o (row_there),
      .pop_ready_i (row_pop),
      .pop_data_o  (oldest),
      .count_o     (unused_rows)
  );

  // ----- words ----------------------------------------------------------------------------------

  assign data_valid_o = due_valid && (row_there || !due.asked);
  assign due_pop = data_valid_o && data_ready_i && (!due.two || upper_q);
  assign row_pop = due_pop && due.asked;
  assign data_o = !due.asked ? '0 : (due.upper || upper_q) ? oldest[127:64] : oldest[63:0];
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) upper_q <= 1'b0;
    else if (data_valid_o && data_ready_i) upper_q <= due.two && !upper_q;
  end

  `VELO_ASSERT(RoomForResponses, !response_valid_i || unused_ready)
  `VELO_ASSERT(ListOnlyOfAJob, !list_valid_i || (next_there_q && !next_whole_q))

  logic unused_last;
  assign unused_last = row_last;

endmodule
