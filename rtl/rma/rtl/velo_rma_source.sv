// SPDX-License-Identifier: Apache-2.0
//
// The part of the RMA unit that makes requests: queue of descriptors, requester, its reader of memory,
// its way into the network, and what is not answered yet. Descriptors are queued by words of at most 64 bits; memory and
// packets have the whole path. `late_*`: notification and error of an operation that nobody answers. Other ports and
// errors as those of the five.

module velo_rma_source
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

    input logic [7:0] node_id_i,

    input  logic                 write_valid_i,
    output logic                 write_ready_o,
    input  logic                 write_eop_i,
    input  logic [          7:0] write_source_i,
    input  logic                 write_at_start_i,
    input  logic [          9:0] write_len_bytes_i,
    input  logic [DataWidth-1:0] write_data_i,

    input  logic                answer_enable_i,
    input  logic         [31:0] answer_cycles_i,
    input  packet_t             answer_header_i,
    input  rma_command_t        answer_command_i,
    output logic                answer_known_o,
    input  logic                answer_busy_i,
    input  logic                answer_ended_i,

    output logic [7:0] way_node_o,
    input  logic       way_none_i,

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

    output logic                 net_valid_o,
    input  logic                 net_ready_i,
    output logic                 net_sop_o,
    output logic                 net_eop_o,
    output logic [DataWidth-1:0] net_data_o,

    output logic    notify_valid_o,
    input  logic    notify_ready_i,
    output notify_t notify_o,
    output logic    late_valid_o,
    input  logic    late_ready_i,
    output notify_t late_notify_o,

    output logic posted_o,
    output logic error_valid_o,
    output error_e error_code_o,
    output logic [7:0] error_ctx_o,
    output logic late_error_valid_o,
    output logic [7:0] late_error_ctx_o,
    output logic [7:0] late_error_node_o,
    output ecc_t [1:0] ecc_o  // of the descriptors' queue and of the reader's buffer
);

  localparam int unsigned WordWidth = DataWidth > 64 ? 64 : DataWidth;

  logic
      beat_valid, beat_ready, beat_eop, read_valid, result_valid, data_valid, data_ready, data_bad;
  logic data_void, beat_first, beat_void;
  logic packet_valid, packet_ready;
  logic word_valid, word_ready, word_eop, unused_sop;
  logic [WordWidth-1:0] word, beat_data;
  logic [DataWidth-1:0] data;
  logic [1:0] packet_operand_words;
  logic [9:0] packet_data_bytes;
  logic [127:0] packet_operands;
  logic [AddrBits-1:0] unused_addr;
  atu_request_t read;
  error_e result_error;
  packet_t packet_header;
  rma_command_t packet_command;
  logic ask_ready, ask_valid, ask_late;
  logic [7:0] ask_node;
  logic [5:0] ask_number;
  logic [EpochBits-1:0] ask_epoch;

  velo_narrow #(
      .Width    (DataWidth),
      .HalfWidth(WordWidth)
  ) u_words (
      .clk_i,
      .rst_ni,
      .in_valid_i (write_valid_i),
      .in_ready_o (write_ready_o),
      .in_sop_i   (1'b0),
      .in_eop_i   (write_eop_i),
      .in_single_i(write_eop_i && odd_words(write_len_bytes_i[3:0])),
      .in_data_i  (write_data_i),
      .out_valid_o(word_valid),
      .out_ready_i(word_ready),
      .out_sop_o  (unused_sop),
      .out_eop_o  (word_eop),
      .out_data_o (word)
  );

  velo_rma_intake #(
      .DataWidth(WordWidth),
      .Ecc      (Ecc)
  ) u_intake (
      .clk_i,
      .rst_ni,
      .out_valid_o(beat_valid),
      .out_ready_i(beat_ready),
      .out_eop_o(beat_eop),
      .out_first_o(beat_first),
      .out_void_o(beat_void),
      .out_data_o(beat_data),
      .ecc_o(ecc_o[0]),
      .write_valid_i(word_valid),
      .write_ready_o(word_ready),
      .write_eop_i(word_eop),
      .write_data_i(word),
      .write_source_i,
      .write_at_start_i,
      .write_len_bytes_i
  );

  velo_rma_requester #(
      .DataWidth    (WordWidth),
      .FragmentBytes(FragmentBytes),
      .Ecc          (Ecc)
  ) u_requester (
      .clk_i,
      .rst_ni,
      .ask_node_o            (ask_node),
      .ask_ready_i           (ask_ready),
      .ask_late_i            (ask_late),
      .way_none_i            (way_none_i),
      .ask_valid_o           (ask_valid),
      .ask_number_i          (ask_number),
      .ask_epoch_i           (ask_epoch),
      .beat_valid_i          (beat_valid),
      .beat_ready_o          (beat_ready),
      .beat_eop_i            (beat_eop),
      .beat_first_i          (beat_first),
      .beat_void_i           (beat_void),
      .beat_data_i           (beat_data),
      .read_valid_o          (read_valid),
      .read_o                (read),
      .result_valid_i        (result_valid),
      .result_error_i        (result_error),
      .packet_valid_o        (packet_valid),
      .packet_ready_i        (packet_ready),
      .packet_header_o       (packet_header),
      .packet_command_o      (packet_command),
      .packet_operands_o     (packet_operands),
      .packet_operand_words_o(packet_operand_words),
      .packet_data_bytes_o   (packet_data_bytes),
      .node_id_i,
      .notify_valid_o,
      .notify_ready_i,
      .notify_o,
      .posted_o,
      .error_valid_o,
      .error_code_o,
      .error_ctx_o
  );

  assign way_node_o = ask_node;

  velo_rma_pending u_pending (
      .clk_i,
      .rst_ni,
      .time_enable_i   (answer_enable_i),
      .time_cycles_i   (answer_cycles_i),
      .ask_node_i      (ask_node),
      .ask_ready_o     (ask_ready),
      .ask_late_o      (ask_late),
      .ask_valid_i     (ask_valid),
      .ask_header_i    (packet_header),
      .ask_command_i   (packet_command),
      .number_o        (ask_number),
      .epoch_o         (ask_epoch),
      .answer_header_i (answer_header_i),
      .answer_command_i(answer_command_i),
      .known_o         (answer_known_o),
      .busy_i          (answer_busy_i),
      .ended_i         (answer_ended_i),
      .notify_valid_o  (late_valid_o),
      .notify_ready_i  (late_ready_i),
      .notify_o        (late_notify_o),
      .late_o          (late_error_valid_o),
      .late_ctx_o      (late_error_ctx_o),
      .late_node_o     (late_error_node_o)
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
      .job_keep_i    (1'b0),
      .result_valid_o(result_valid),
      .result_error_o(result_error),
      .result_addr_o (unused_addr),
      .data_valid_o  (data_valid),
      .data_ready_i  (data_ready),
      .data_bad_o    (data_bad),
      .data_void_o   (data_void),
      .data_o        (data),
      .ecc_o         (ecc_o[1]),
      .atu_valid_o,
      .atu_ready_i,
      .atu_request_o,
      .atu_answer_valid_i,
      .atu_answer_i,
      .atu_release_o,
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
      .DataWidth  (DataWidth),
      .MaxOperands(2),
      .Ecc        (Ecc)
  ) u_emit (
      .clk_i,
      .rst_ni,
      .hold_i             (1'b0),
      .job_valid_i        (packet_valid),
      .job_ready_o        (packet_ready),
      .job_header_i       (packet_header),
      .job_command_i      (packet_command),
      .job_operands_i     (packet_operands),
      .job_operand_words_i(packet_operand_words),
      .job_data_bytes_i   (packet_data_bytes),
      .data_valid_i       (data_valid),
      .data_ready_o       (data_ready),
      .data_bad_i         (data_bad),
      .data_void_i        (data_void),
      .data_i             (data),
      .net_valid_o,
      .net_ready_i,
      .net_sop_o,
      .net_eop_o,
      .net_data_o
  );

endmodule
