// SPDX-License-Identifier: Apache-2.0
//
// Tells requesters, by packets of the completion class, what became of their puts.
//
// `reply_*` valid/ready; the packet leaves when every posted write that had begun by then has left the
// node, so a requester is not told of data that cannot be seen yet. Errors: none.

module velo_rma_reply
  import velo_pkg::*;
  import velo_rma_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,
    input logic rst_ni,

    input write_count_t writes_begun_i,
    input write_count_t writes_done_i,

    input  logic         reply_valid_i,
    output logic         reply_ready_o,
    input  packet_t      reply_header_i,
    input  rma_command_t reply_command_i,

    output logic                 net_valid_o,
    input  logic                 net_ready_i,
    output logic                 net_sop_o,
    output logic                 net_eop_o,
    output logic [DataWidth-1:0] net_data_o
);

  logic hold_q, take, unused_ready;
  write_count_t mark_q;

  assign take = reply_valid_i && reply_ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) hold_q <= 1'b0;
    else if (take) hold_q <= 1'b1;
    else if (!is_behind(writes_done_i, mark_q)) hold_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (take) mark_q <= writes_begun_i;
  end

  velo_rma_emit #(
      .DataWidth  (DataWidth),
      .MaxOperands(1)
  ) u_emit (
      .clk_i,
      .rst_ni,
      .hold_i             (hold_q),
      .job_valid_i        (reply_valid_i),
      .job_ready_o        (reply_ready_o),
      .job_header_i       (reply_header_i),
      .job_command_i      (reply_command_i),
      .job_operands_i     ('0),
      .job_operand_words_i('0),
      .job_data_bytes_i   ('0),
      .data_valid_i       (1'b0),
      .data_ready_o       (unused_ready),
      .data_bad_i         (1'b0),
      .data_void_i        (1'b0),
      .data_i             ('0),
      .net_valid_o,
      .net_ready_i,
      .net_sop_o,
      .net_eop_o,
      .net_data_o
  );

endmodule
