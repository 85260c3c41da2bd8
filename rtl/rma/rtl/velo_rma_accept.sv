// SPDX-License-Identifier: Apache-2.0
//
// The part of the RMA unit that takes in one traffic class and writes memory: requests (`Answers` = 0)
// or responses (1).
//
// Requests that ask for something are not for the completer: velo_rma_asks has their beats, and keeps them at
// the pulse `keep_o`, if it has room (`room_i`). They are taken whatever the responder does, so they hold up nobody
// once that queue is ready after a reset (`asks_ready_i`).
// Of answers only those are written that are known (`known_i`, a cycle after `header_o` and `command_o`, and
// velo_rma_pending says which those are); `busy_o`: one is with the completer, `ended_o` pulses with the last one
// of its operation.
//
// Other ports as those of velo_rma_take and velo_rma_completer. Errors: theirs; ErrorMalformed for a get with data, an
// update without its operands, and an answer that nobody asked for; ErrorStall for a request without room.

`include "velo_assert.svh"

module velo_rma_accept
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned MtuBytes = 512,
    parameter bit Answers = 1'b0,
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [7:0] node_id_i,

    input  logic                 net_valid_i,
    output logic                 net_ready_o,
    input  logic                 net_sop_i,
    input  logic                 net_eop_i,
    input  logic [DataWidth-1:0] net_data_i,

    output packet_t      header_o,
    output rma_command_t command_o,
    input  logic         asks_ready_i,
    output logic         keep_o,
    input  logic         room_i,
    input  logic         known_i,
    output logic         busy_o,
    output logic         ended_o,

    output logic         atu_valid_o,
    input  logic         atu_ready_i,
    output atu_request_t atu_request_o,
    input  logic         atu_answer_valid_i,
    input  atu_answer_t  atu_answer_i,
    output logic         atu_release_o,

    output logic                 posted_valid_o,
    input  logic                 posted_ready_i,
    output logic                 posted_eop_o,
    output logic [ AddrBits-1:0] posted_addr_o,
    output logic [          9:0] posted_len_bytes_o,
    output logic [DataWidth-1:0] posted_data_o,

    output logic    notify_valid_o,
    input  logic    notify_ready_i,
    input  error_e  notify_error_i,
    output notify_t notify_o,

    output logic         reply_valid_o,
    input  logic         reply_ready_i,
    output packet_t      reply_header_o,
    output rma_command_t reply_command_o,

    output logic         completed_o,
    output logic         error_valid_o,
    output error_e       error_code_o,
    output logic   [7:0] error_ctx_o,
    output logic   [7:0] error_node_o,
    output ecc_t         ecc_o           // see velo_rma_completer
);

  localparam logic [15:0] Asking = 16'd1 << PacketKindGetRequest |
      16'd1 << PacketKindFetchCompareAddRequest;
  localparam logic [15:0] Kinds = Answers ?
      16'd1 << PacketKindGetResponse | 16'd1 << PacketKindFetchCompareAddResponse :
      Asking | 16'd1 << PacketKindPut | 16'd1 << PacketKindPutImmediate |
      16'd1 << PacketKindNotification;

  logic valid, job_valid, done, complete_done, data_ready, complete_ready;
  logic data_valid, data_last, data_bad, passed_over;
  logic take_error_valid, complete_error_valid, own_error_valid;
  error_e take_error_code, complete_error_code, own_error_code;
  logic [9:0] data_bytes;
  logic [DataWidth-1:0] data;

  velo_rma_take #(
      .DataWidth(DataWidth),
      .MtuBytes (MtuBytes),
      .Class    (Answers ? TrafficClassResponse : TrafficClassRequest),
      .Kinds    (Kinds)
  ) u_take (
      .clk_i,
      .rst_ni,
      .job_valid_o  (valid),
      .done_i       (done),
      .data_bytes_o (data_bytes),
      .data_valid_o (data_valid),
      .data_ready_i (data_ready),
      .data_last_o  (data_last),
      .data_bad_o   (data_bad),
      .data_o       (data),
      .error_valid_o(take_error_valid),
      .error_code_o (take_error_code),
      .node_id_i,
      .net_valid_i,
      .net_ready_o,
      .net_sop_i,
      .net_eop_i,
      .net_data_i,
      .header_o,
      .command_o
  );

  // ----- which packets are for the completer ------------------------------------------------------

  if (Answers) begin : gen_answers
    assign passed_over     = !known_i;
    assign keep_o          = 1'b0;
    assign own_error_valid = valid && passed_over;
    assign own_error_code  = ErrorMalformed;
    assign done            = passed_over ? valid : complete_done;
    assign data_ready      = !passed_over && complete_ready;
    logic unused;
    assign unused = room_i || asks_ready_i;
  end else begin : gen_requests
    // The header stands for a cycle before it is a job.
    logic asks, update, sized, ended;
    assign asks   = valid && passed_over && asks_ready_i;
    assign update = header_o.kind == PacketKindFetchCompareAddRequest;
    assign sized  = data_bytes == (update ? 10'd16 : 10'd0) && (!update || command_o.len == 23'd8);
    always_ff @(posedge clk_i) passed_over <= Asking[header_o.kind];
    // An update's operands have been taken; velo_rma_take reports those that are too short or too long.
    assign ended           = data_valid && data_ready && data_last;
    assign keep_o          = asks && sized && (!update || (ended && !data_bad));
    assign own_error_valid = asks && (!sized || (keep_o && !room_i));
    assign own_error_code  = sized ? ErrorStall : ErrorMalformed;
    assign done            = passed_over ? asks && (!sized || !update || ended) : complete_done;
    assign data_ready      = passed_over ? asks && sized : complete_ready;
    logic unused;
    assign unused = known_i;
  end

  assign job_valid = valid && !passed_over;
  assign busy_o    = job_valid;

  velo_rma_completer #(
      .DataWidth(DataWidth),
      .Answers  (Answers),
      .Ecc      (Ecc)
  ) u_completer (
      .clk_i,
      .rst_ni,
      .job_valid_i  (job_valid),
      .header_i     (header_o),
      .command_i    (command_o),
      .data_bytes_i (data_bytes),
      .done_o       (complete_done),
      .data_valid_i (data_valid),
      .data_ready_o (complete_ready),
      .data_last_i  (data_last),
      .data_bad_i   (data_bad),
      .data_i       (data),
      .error_valid_o(complete_error_valid),
      .error_code_o (complete_error_code),
      .atu_valid_o,
      .atu_ready_i,
      .atu_request_o,
      .atu_answer_valid_i,
      .atu_answer_i,
      .atu_release_o,
      .posted_valid_o,
      .posted_ready_i,
      .posted_eop_o,
      .posted_addr_o,
      .posted_len_bytes_o,
      .posted_data_o,
      .notify_valid_o,
      .notify_ready_i,
      .notify_error_i,
      .notify_o,
      .reply_valid_o,
      .reply_ready_i,
      .reply_header_o,
      .reply_command_o,
      .completed_o,
      .ended_o,
      .ecc_o
  );

  // Never two together: while a packet is being judged, the completer has none, and it has none of those passed over.
  assign error_valid_o = take_error_valid || complete_error_valid || own_error_valid;
  assign error_code_o = take_error_valid ? take_error_code :
      complete_error_valid ? complete_error_code : own_error_code;
  assign error_ctx_o = header_o.dst_ctx;
  assign error_node_o = header_o.src_node;

  `VELO_ASSERT(OneErrorAtATime,
               32'(take_error_valid) + 32'(complete_error_valid) + 32'(own_error_valid) <= 1)

endmodule
