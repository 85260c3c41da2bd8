// SPDX-License-Identifier: Apache-2.0
//
// Reads registered memory of this node: asks for the translation, reads by one non-posted read, and
// buffers what comes.
//
// `job_*` holds until the pulse `result_valid_o`, which comes with the first data or an error and the
// translation; then as many beats as the length takes, at `data_*` (valid/ready). The read begins
// only when the buffer has room for all of it, so the crossbar's response channel never waits here.
// The next job may be given then: its read is under way while the last one's data still come, so that
// the host's latency is hidden behind them. An answer is whole (`response_eop_i`) before the next one
// begins, and the next read is asked for behind the last one's first beat, so answers are in order.
// With `job_keep_i` the access is not given back to the translation when the data are in: the giver of
// the job does that, before the next one.
//
// Data begin with the byte at the address, whatever its alignment. Errors: those of velo_atu;
// ErrorHost if the host refuses. If it fails only after the first beat, the data end with a beat that is
// `data_bad_o`, and the access is given back. With `Ecc` the buffer is protected: a beat with
// `data_void_o` cannot be read any more, and the others come all the same.

`include "velo_assert.svh"

module velo_rma_reader
  import velo_pkg::*;
  import velo_atu_pkg::*;
  import velo_secded_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned BufferBytes = 2048,
    parameter int unsigned MaxBytes = 448,
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                        job_valid_i,
    input  atu_request_t                job_i,
    input  logic                        job_keep_i,
    output logic                        result_valid_o,
    output error_e                      result_error_o,
    output logic         [AddrBits-1:0] result_addr_o,

    output logic                 data_valid_o,
    input  logic                 data_ready_i,
    output logic                 data_bad_o,
    output logic                 data_void_o,
    output logic [DataWidth-1:0] data_o,
    output ecc_t                 ecc_o,         // of the buffer; see velo_rma_buffer

    output logic         atu_valid_o,
    input  logic         atu_ready_i,
    output atu_request_t atu_request_o,
    input  logic         atu_answer_valid_i,
    input  atu_answer_t  atu_answer_i,
    output logic         atu_release_o,

    output logic                 nonposted_valid_o,
    input  logic                 nonposted_ready_i,
    output logic [ AddrBits-1:0] nonposted_addr_o,
    output logic [          9:0] nonposted_len_bytes_o,
    input  logic                 response_valid_i,
    input  logic                 response_eop_i,
    input  logic                 response_error_i,
    input  logic [DataWidth-1:0] response_data_i
);

  localparam int unsigned Depth = BufferBytes * 8 / DataWidth;
  localparam int unsigned MaxBeats = (MaxBytes * 8 + DataWidth - 1) / DataWidth;
  localparam int unsigned CountBits = $clog2(Depth) + 1;

  typedef enum logic [1:0] {
    StIdle,
    StAnswer,  // of the translation
    StAsk,
    StFirst    // data or an error
  } state_e;

  state_e state_q;
  // The last answer's rest comes: `rest_q`, and whether its access is kept.
  logic rest_q, rest_keep_q, keep_q, room_q, first, over, push_ready, marked;
  logic [CountBits-1:0] count;

  assign first = state_q == StFirst && !rest_q && response_valid_i;
  assign over  = (rest_q || state_q == StFirst) && response_valid_i && response_eop_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= StIdle;
      rest_q  <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle:  if (atu_valid_o && atu_ready_i) state_q <= StAnswer;
        StAnswer: begin
          if (atu_answer_valid_i) state_q <= atu_answer_i.error == ErrorNone ? StAsk : StIdle;
        end
        StAsk:   if (nonposted_ready_i) state_q <= StFirst;
        default: if (first) state_q <= StIdle;
      endcase
      if (first) rest_q <= !response_eop_i;
      else if (over) rest_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (first) rest_keep_q <= keep_q;
    // A rest counts as the longest until all of it is in, so what was room stays room.
    room_q <= state_q == StIdle && !marked && count <= (rest_q ? CountBits'(Depth - 2 * MaxBeats) :
                                                      CountBits'(Depth - MaxBeats));
    if (state_q == StAnswer && atu_answer_valid_i) nonposted_addr_o <= atu_answer_i.addr;
    if (state_q == StIdle) begin
      nonposted_len_bytes_o <= job_i.len_bytes;
      keep_q                <= job_keep_i;
    end
  end

  assign atu_valid_o = state_q == StIdle && room_q && job_valid_i;
  assign atu_request_o = job_i;
  assign nonposted_valid_o = state_q == StAsk;

  assign result_valid_o = first ||
      (state_q == StAnswer && atu_answer_valid_i && atu_answer_i.error != ErrorNone);
  assign result_error_o = state_q == StAnswer ? atu_answer_i.error :
      response_error_i ? ErrorHost : ErrorNone;
  assign result_addr_o = nonposted_addr_o;

  // A read that failed is given back in any case.
  assign atu_release_o = over && (response_error_i || !(rest_q ? rest_keep_q : keep_q));

  velo_rma_buffer #(
      .Width(DataWidth),
      .Depth(Depth),
      .Ecc  (Ecc)
  ) u_buffer (
      .clk_i,
      .rst_ni,
      .push_valid_i(response_valid_i && !(first && response_error_i)),
      .push_ready_o(push_ready),
      .push_mark_i (response_error_i),
      .push_data_i (response_data_i),
      .pop_valid_o (data_valid_o),
      .pop_ready_i (data_ready_i),
      .pop_mark_o  (data_bad_o),
      .pop_void_o  (data_void_o),
      .pop_data_o  (data_o),
      .ecc_o       (ecc_o),
      .count_o     (count),
      .marked_o    (marked)
  );

  `VELO_ASSERT_INIT(BufferHoldsTwoJobs, 2 * MaxBeats <= Depth)
  `VELO_ASSERT(RoomWasReserved, !response_valid_i || push_ready)
  `VELO_ASSUME(ErrorEnds, !(response_valid_i && response_error_i) || response_eop_i)
  `VELO_ASSUME(ResponseToARead, !response_valid_i || state_q == StFirst || rest_q)

endmodule
