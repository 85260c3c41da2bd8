// SPDX-License-Identifier: Apache-2.0
//
// The part of the RMA unit that answers requests: their queue, responder, its reader of memory and its way into
// the network. Ports and errors as those of the four; ErrorMemory for a request that the queue passed over,
// whose context and node are given as 0.

`include "velo_assert.svh"

module velo_rma_serve
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned FragmentBytes = 448,
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input write_count_t writes_begun_i,
    input write_count_t writes_done_i,

    input  logic                 beat_valid_i,
    input  logic                 beat_sop_i,
    input  logic [DataWidth-1:0] beat_data_i,
    input  logic                 keep_i,
    input  logic [          7:0] keep_node_i,
    output logic                 ready_o,
    output logic                 room_o,

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
    input  logic [DataWidth-1:0] response_data_i,

    output logic                 posted_valid_o,
    input  logic                 posted_ready_i,
    output logic                 posted_eop_o,
    output logic [ AddrBits-1:0] posted_addr_o,
    output logic [          9:0] posted_len_bytes_o,
    output logic [DataWidth-1:0] posted_data_o,

    output logic                 net_valid_o,
    input  logic                 net_ready_i,
    output logic                 net_sop_o,
    output logic                 net_eop_o,
    output logic [DataWidth-1:0] net_data_o,

    output logic    notify_valid_o,
    input  logic    notify_ready_i,
    output notify_t notify_o,

    output logic         served_o,
    output logic         error_valid_o,
    output error_e       error_code_o,
    output logic   [7:0] error_ctx_o,
    output logic   [7:0] error_node_o,
    output ecc_t   [1:0] ecc_o           // of the queue and of the reader's buffer
);

  logic read_valid, read_keep, result_valid, read_release, update_release;
  logic memory_valid, memory_ready, memory_bad, memory_void, emit_ready, packet_valid, packet_ready;
  logic [DataWidth-1:0] memory_data;
  logic [AddrBits-1:0] result_addr;
  logic [63:0] packet_operand;
  logic [1:0] packet_operand_words;
  logic [9:0] packet_data_bytes;
  atu_request_t read;
  error_e result_error;
  packet_t packet_header;
  rma_command_t packet_command;

  logic job_valid, job_done, job_void, refused;
  packet_t header;
  rma_command_t command;
  rma_operands_t operands;
  error_e refused_code;
  logic [7:0] refused_ctx, refused_node;

  assign atu_release_o = read_release || update_release;

  velo_rma_asks #(
      .DataWidth(DataWidth),
      .Ecc      (Ecc)
  ) u_asks (
      .clk_i,
      .rst_ni,
      .beat_valid_i,
      .beat_sop_i,
      .beat_data_i,
      .keep_i,
      .keep_node_i,
      .ready_o,
      .room_o,
      .job_valid_o(job_valid),
      .header_o   (header),
      .command_o  (command),
      .operands_o (operands),
      .done_i     (job_done),
      .void_o     (job_void),
      .ecc_o      (ecc_o[0])
  );

  // The responder has no request while one is passed over.
  assign error_valid_o = refused || job_void;
  assign error_code_o  = job_void ? ErrorMemory : refused_code;
  assign error_ctx_o   = job_void ? '0 : refused_ctx;
  assign error_node_o  = job_void ? '0 : refused_node;

  velo_rma_responder #(
      .DataWidth    (DataWidth),
      .FragmentBytes(FragmentBytes)
  ) u_responder (
      .clk_i,
      .rst_ni,
      .job_valid_i           (job_valid),
      .header_i              (header),
      .command_i             (command),
      .operands_i            (operands),
      .done_o                (job_done),
      .error_valid_o         (refused),
      .error_code_o          (refused_code),
      .error_ctx_o           (refused_ctx),
      .error_node_o          (refused_node),
      .read_valid_o          (read_valid),
      .read_o                (read),
      .read_keep_o           (read_keep),
      .result_valid_i        (result_valid),
      .result_error_i        (result_error),
      .result_addr_i         (result_addr),
      .release_o             (update_release),
      .memory_valid_i        (memory_valid),
      .memory_ready_o        (memory_ready),
      .memory_bad_i          (memory_bad),
      .memory_void_i         (memory_void),
      .memory_data_i         (memory_data),
      .packet_valid_o        (packet_valid),
      .packet_ready_i        (packet_ready),
      .packet_header_o       (packet_header),
      .packet_command_o      (packet_command),
      .packet_operand_o      (packet_operand),
      .packet_operand_words_o(packet_operand_words),
      .packet_data_bytes_o   (packet_data_bytes),
      .writes_begun_i,
      .writes_done_i,
      .posted_valid_o,
      .posted_ready_i,
      .posted_eop_o,
      .posted_addr_o,
      .posted_len_bytes_o,
      .posted_data_o,
      .notify_valid_o,
      .notify_ready_i,
      .notify_o,
      .served_o
  );

  velo_rma_reader #(
      .DataWidth(DataWidth),
      .MaxBytes (FragmentBytes),
      .Ecc      (Ecc)
  ) u_reader (
      .clk_i,
      .rst_ni,
      .job_valid_i   (read_valid),
      .job_i         (read),
      .job_keep_i    (read_keep),
      .result_valid_o(result_valid),
      .result_error_o(result_error),
      .result_addr_o (result_addr),
      .data_valid_o  (memory_valid),
      .data_ready_i  (memory_ready || emit_ready),
      .data_bad_o    (memory_bad),
      .data_void_o   (memory_void),
      .data_o        (memory_data),
      .ecc_o         (ecc_o[1]),
      .atu_release_o (read_release),
      .atu_valid_o,
      .atu_ready_i,
      .atu_request_o,
      .atu_answer_valid_i,
      .atu_answer_i,
      .nonposted_valid_o,
      .nonposted_ready_i,
      .nonposted_addr_o,
      .nonposted_len_bytes_o,
      .response_valid_i,
      .response_eop_i,
      .response_error_i,
      .response_data_i
  );

  velo_rma_emit #(
      .DataWidth(DataWidth),
      .MaxOperands(1),
      .Ecc(Ecc)
  ) u_emit (
      .clk_i,
      .rst_ni,
      .hold_i             (1'b0),
      .job_valid_i        (packet_valid),
      .job_ready_o        (packet_ready),
      .job_header_i       (packet_header),
      .job_command_i      (packet_command),
      .job_operands_i     (packet_operand),
      .job_operand_words_i(packet_operand_words),
      .job_data_bytes_i   (packet_data_bytes),
      .data_valid_i       (memory_valid),
      .data_ready_o       (emit_ready),
      .data_bad_i         (memory_bad),
      .data_void_i        (memory_void),
      .data_i             (memory_data),
      .net_valid_o,
      .net_ready_i,
      .net_sop_o,
      .net_eop_o,
      .net_data_o
  );

  // A beat that was read goes to the one or the other.
  `VELO_ASSERT(OneTaker, !(memory_ready && emit_ready))

endmodule
