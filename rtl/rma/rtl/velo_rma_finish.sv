// SPDX-License-Identifier: Apache-2.0
//
// The part of the RMA unit that answers to its own requests come to. Where two share a port, responses
// are 0, completions 1. A completion is a notification, and nothing else.
//
// `answer_*`: the answer that came last, for velo_rma_pending, which says whether it is known.
// Other ports and errors as those of velo_rma_accept and velo_rma_take.

`include "velo_assert.svh"

module velo_rma_finish
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned MtuBytes  = 512,
    parameter bit          Ecc       = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [7:0] node_id_i,

    input  logic [1:0]                in_valid_i,
    output logic [1:0]                in_ready_o,
    input  logic [1:0]                in_sop_i,
    input  logic [1:0]                in_eop_i,
    input  logic [1:0][DataWidth-1:0] in_data_i,

    output packet_t      answer_header_o,
    output rma_command_t answer_command_o,
    input  logic         answer_known_i,
    output logic         answer_busy_o,
    output logic         answer_ended_o,

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

    output logic    [1:0] notify_valid_o,
    input  logic    [1:0] notify_ready_i,
    input  error_e        notify_error_i,
    output notify_t [1:0] notify_o,

    output logic              completed_o,
    output logic   [1:0]      error_valid_o,
    output error_e [1:0]      error_code_o,
    output logic   [1:0][7:0] error_ctx_o,
    output logic   [1:0][7:0] error_node_o,
    output ecc_t              ecc_o           // see velo_rma_accept
);

  logic no_keep, no_reply;
  packet_t no_reply_header;
  rma_command_t no_reply_command;

  velo_rma_accept #(
      .DataWidth(DataWidth),
      .MtuBytes (MtuBytes),
      .Answers  (1'b1),
      .Ecc      (Ecc)
  ) u_finish (
      .clk_i,
      .rst_ni,
      .net_valid_i       (in_valid_i[0]),
      .net_ready_o       (in_ready_o[0]),
      .net_sop_i         (in_sop_i[0]),
      .net_eop_i         (in_eop_i[0]),
      .net_data_i        (in_data_i[0]),
      .header_o          (answer_header_o),
      .command_o         (answer_command_o),
      .keep_o            (no_keep),
      .asks_ready_i      (1'b1),
      .room_i            (1'b0),
      .known_i           (answer_known_i),
      .busy_o            (answer_busy_o),
      .ended_o           (answer_ended_o),
      .atu_valid_o       (atu_valid_o),
      .atu_ready_i       (atu_ready_i),
      .atu_request_o     (atu_request_o),
      .atu_answer_valid_i(atu_answer_valid_i),
      .atu_answer_i      (atu_answer_i),
      .atu_release_o     (atu_release_o),
      .posted_valid_o    (posted_valid_o),
      .posted_ready_i    (posted_ready_i),
      .posted_eop_o      (posted_eop_o),
      .posted_addr_o     (posted_addr_o),
      .posted_len_bytes_o(posted_len_bytes_o),
      .posted_data_o     (posted_data_o),
      .notify_valid_o    (notify_valid_o[0]),
      .notify_ready_i    (notify_ready_i[0]),
      .notify_error_i    (notify_error_i),
      .notify_o          (notify_o[0]),
      .reply_valid_o     (no_reply),
      .reply_ready_i     (1'b0),
      .reply_header_o    (no_reply_header),
      .reply_command_o   (no_reply_command),
      .completed_o       (completed_o),
      .error_valid_o     (error_valid_o[0]),
      .error_code_o      (error_code_o[0]),
      .error_ctx_o       (error_ctx_o[0]),
      .error_node_o      (error_node_o[0]),
      .ecc_o             (ecc_o),
      .node_id_i
  );

  packet_t notice_header;
  rma_command_t notice;
  logic notice_data_valid, notice_data_last, notice_data_bad;
  logic [9:0] notice_bytes;
  logic [DataWidth-1:0] notice_data;
  error_e notice_error;
  assign notice_error = error_e'(notice.error);

  velo_rma_take #(
      .DataWidth(DataWidth),
      .MtuBytes (MtuBytes),
      .Class    (TrafficClassCompletion),
      .Kinds    (16'd1 << PacketKindNotification)
  ) u_notices (
      .clk_i,
      .rst_ni,
      .net_valid_i  (in_valid_i[1]),
      .net_ready_o  (in_ready_o[1]),
      .net_sop_i    (in_sop_i[1]),
      .net_eop_i    (in_eop_i[1]),
      .net_data_i   (in_data_i[1]),
      .job_valid_o  (notify_valid_o[1]),
      .header_o     (notice_header),
      .command_o    (notice),
      .data_bytes_o (notice_bytes),
      .done_i       (notify_ready_i[1]),
      .data_valid_o (notice_data_valid),
      .data_ready_i (1'b0),
      .data_last_o  (notice_data_last),
      .data_bad_o   (notice_data_bad),
      .data_o       (notice_data),
      .error_valid_o(error_valid_o[1]),
      .error_code_o (error_code_o[1]),
      .node_id_i
  );

  assign error_ctx_o[1] = notice_header.dst_ctx;
  assign error_node_o[1] = notice_header.src_node;
  assign notify_o[1] = notification(
      notice_header.dst_ctx,
      {
        notice_header.src_node, notice_header.src_ctx
      },
      notice.op,
      notice_header.tag,
      notice.len,
      notice_error == ErrorNone ? RmaPlaceRequester : RmaPlaceError,
      notice_error,
      notice.local_address
  );

  logic unused;
  assign unused = ^{no_reply_header, no_reply_command, notice_header, notice, notice_data_valid,
                    notice_data_last, notice_data_bad, notice_bytes, notice_data};

  `VELO_ASSERT(NothingButAnswers, !no_keep && !no_reply)

endmodule
