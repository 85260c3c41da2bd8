// SPDX-License-Identifier: Apache-2.0
//
// The part of the RMA unit that others' requests come to: what is put goes to memory, what is asked
// for is served, and requesters are told. Where two share a port, the responder is 0.
//
// `in_*` the request class; `out_*` the response and the completion class. Ports and errors as those of
// velo_rma_accept, velo_rma_serve and velo_rma_reply.

module velo_rma_target
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import velo_atu_pkg::*;
  import velo_rma_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned FragmentBytes = 448,
    parameter bit Ecc = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input logic         [7:0] node_id_i,
    input write_count_t       writes_begun_i,
    input write_count_t       writes_done_i,

    input  logic                 in_valid_i,
    output logic                 in_ready_o,
    input  logic                 in_sop_i,
    input  logic                 in_eop_i,
    input  logic [DataWidth-1:0] in_data_i,

    output logic [1:0]                out_valid_o,
    input  logic [1:0]                out_ready_i,
    output logic [1:0]                out_sop_o,
    output logic [1:0]                out_eop_o,
    output logic [1:0][DataWidth-1:0] out_data_o,

    output logic         [1:0] atu_valid_o,
    input  logic         [1:0] atu_ready_i,
    output atu_request_t [1:0] atu_request_o,
    input  logic         [1:0] atu_answer_valid_i,
    input  atu_answer_t        atu_answer_i,
    output logic         [1:0] atu_release_o,

    output logic [1:0]                posted_valid_o,
    input  logic [1:0]                posted_ready_i,
    output logic [1:0]                posted_eop_o,
    output logic [1:0][ AddrBits-1:0] posted_addr_o,
    output logic [1:0][          9:0] posted_len_bytes_o,
    output logic [1:0][DataWidth-1:0] posted_data_o,

    output logic                 read_valid_o,
    input  logic                 read_ready_i,
    output logic [ AddrBits-1:0] read_addr_o,
    output logic [          9:0] read_len_bytes_o,
    input  logic                 response_valid_i,
    input  logic                 response_eop_i,
    input  logic                 response_error_i,
    input  logic [DataWidth-1:0] response_data_i,

    output logic    [1:0] notify_valid_o,
    input  logic    [1:0] notify_ready_i,
    input  error_e        notify_error_i,
    output notify_t [1:0] notify_o,

    output logic              completed_o,
    output logic              served_o,
    output logic   [1:0]      error_valid_o,
    output error_e [1:0]      error_code_o,
    output logic   [1:0][7:0] error_ctx_o,
    output logic   [1:0][7:0] error_node_o,
    output ecc_t   [2:0]      ecc_o           // see velo_rma_serve, velo_rma_accept
);

  localparam int unsigned Serve = 0;
  localparam int unsigned Accept = 1;

  logic asks_ready, keep, room, unused_busy, unused_ended;
  packet_t header;
  rma_command_t unused_command;
  logic reply_valid, reply_ready;
  packet_t reply_header;
  rma_command_t reply_command;

  velo_rma_accept #(
      .DataWidth(DataWidth),
      .MtuBytes (MtuBytes),
      .Answers  (1'b0),
      .Ecc      (Ecc)
  ) u_accept (
      .clk_i,
      .rst_ni,
      .net_valid_i       (in_valid_i),
      .net_ready_o       (in_ready_o),
      .net_sop_i         (in_sop_i),
      .net_eop_i         (in_eop_i),
      .net_data_i        (in_data_i),
      .header_o          (header),
      .command_o         (unused_command),
      .asks_ready_i      (asks_ready),
      .keep_o            (keep),
      .room_i            (room),
      .known_i           (1'b1),
      .busy_o            (unused_busy),
      .ended_o           (unused_ended),
      .atu_valid_o       (atu_valid_o[Accept]),
      .atu_ready_i       (atu_ready_i[Accept]),
      .atu_request_o     (atu_request_o[Accept]),
      .atu_answer_valid_i(atu_answer_valid_i[Accept]),
      .atu_answer_i      (atu_answer_i),
      .atu_release_o     (atu_release_o[Accept]),
      .posted_valid_o    (posted_valid_o[Accept]),
      .posted_ready_i    (posted_ready_i[Accept]),
      .posted_eop_o      (posted_eop_o[Accept]),
      .posted_addr_o     (posted_addr_o[Accept]),
      .posted_len_bytes_o(posted_len_bytes_o[Accept]),
      .posted_data_o     (posted_data_o[Accept]),
      .notify_valid_o    (notify_valid_o[Accept]),
      .notify_ready_i    (notify_ready_i[Accept]),
      .notify_error_i    (notify_error_i),
      .notify_o          (notify_o[Accept]),
      .reply_valid_o     (reply_valid),
      .reply_ready_i     (reply_ready),
      .reply_header_o    (reply_header),
      .reply_command_o   (reply_command),
      .completed_o       (completed_o),
      .error_valid_o     (error_valid_o[Accept]),
      .error_code_o      (error_code_o[Accept]),
      .error_ctx_o       (error_ctx_o[Accept]),
      .error_node_o      (error_node_o[Accept]),
      .ecc_o             (ecc_o[2]),
      .node_id_i
  );

  velo_rma_serve #(
      .DataWidth    (DataWidth),
      .FragmentBytes(FragmentBytes),
      .Ecc          (Ecc)
  ) u_serve (
      .clk_i,
      .rst_ni,
      .writes_begun_i       (writes_begun_i),
      .writes_done_i        (writes_done_i),
      .beat_valid_i         (in_valid_i && in_ready_o),
      .beat_sop_i           (in_sop_i),
      .beat_data_i          (in_data_i),
      .keep_i               (keep),
      .keep_node_i          (header.src_node),
      .ready_o              (asks_ready),
      .room_o               (room),
      .atu_valid_o          (atu_valid_o[Serve]),
      .atu_ready_i          (atu_ready_i[Serve]),
      .atu_request_o        (atu_request_o[Serve]),
      .atu_answer_valid_i   (atu_answer_valid_i[Serve]),
      .atu_answer_i         (atu_answer_i),
      .atu_release_o        (atu_release_o[Serve]),
      .nonposted_valid_o    (read_valid_o),
      .nonposted_ready_i    (read_ready_i),
      .nonposted_addr_o     (read_addr_o),
      .nonposted_len_bytes_o(read_len_bytes_o),
      .response_valid_i     (response_valid_i),
      .response_eop_i       (response_eop_i),
      .response_error_i     (response_error_i),
      .response_data_i      (response_data_i),
      .posted_valid_o       (posted_valid_o[Serve]),
      .posted_ready_i       (posted_ready_i[Serve]),
      .posted_eop_o         (posted_eop_o[Serve]),
      .posted_addr_o        (posted_addr_o[Serve]),
      .posted_len_bytes_o   (posted_len_bytes_o[Serve]),
      .posted_data_o        (posted_data_o[Serve]),
      .net_valid_o          (out_valid_o[0]),
      .net_ready_i          (out_ready_i[0]),
      .net_sop_o            (out_sop_o[0]),
      .net_eop_o            (out_eop_o[0]),
      .net_data_o           (out_data_o[0]),
      .notify_valid_o       (notify_valid_o[Serve]),
      .notify_ready_i       (notify_ready_i[Serve]),
      .notify_o             (notify_o[Serve]),
      .error_valid_o        (error_valid_o[Serve]),
      .error_code_o         (error_code_o[Serve]),
      .error_ctx_o          (error_ctx_o[Serve]),
      .error_node_o         (error_node_o[Serve]),
      .ecc_o                (ecc_o[1:0]),
      .served_o
  );

  velo_rma_reply #(
      .DataWidth(DataWidth)
  ) u_reply (
      .clk_i,
      .rst_ni,
      .writes_begun_i (writes_begun_i),
      .writes_done_i  (writes_done_i),
      .reply_valid_i  (reply_valid),
      .reply_ready_o  (reply_ready),
      .reply_header_i (reply_header),
      .reply_command_i(reply_command),
      .net_valid_o    (out_valid_o[1]),
      .net_ready_i    (out_ready_i[1]),
      .net_sop_o      (out_sop_o[1]),
      .net_eop_o      (out_eop_o[1]),
      .net_data_o     (out_data_o[1])
  );

  logic unused;
  assign unused = ^{unused_busy, unused_ended, header, unused_command};

endmodule
