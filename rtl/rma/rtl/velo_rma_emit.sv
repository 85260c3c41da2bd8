// SPDX-License-Identifier: Apache-2.0
//
// Makes a packet: header, command, operand words that come with the job, data from a stream.
//
// `job_*` valid/ready; the packet's `len` counts command, operands and data bytes. Data (valid/ready)
// are taken only while their packet is on its way, as many beats as `job_data_bytes_i` needs; the rest
// of the last word is sent as zeros, whatever the stream holds there. With a beat that is `data_bad_i`
// the stream ends: so does the packet or, if that is its last beat, it has one more, so that it is never
// as long as it says and is refused. The same for a packet of which a beat was `data_void_i`, behind its
// last beat. While `hold_i`, no packet is begun. Network side valid/ready, `sop`
// and `eop` mark the first and last beat; packets follow each other without a gap if jobs do.
// Errors: none.

`include "velo_assert.svh"

module velo_rma_emit
  import velo_pkg::*;
  import velo_rma_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned MaxOperands = 1,
    parameter bit Ecc = 1'b0  // data may be void
) (
    input logic clk_i,
    input logic rst_ni,

    input logic hold_i,

    input  logic                              job_valid_i,
    output logic                              job_ready_o,
    input  packet_t                           job_header_i,
    input  rma_command_t                      job_command_i,
    input  logic         [MaxOperands*64-1:0] job_operands_i,
    input  logic         [               1:0] job_operand_words_i,
    input  logic         [               9:0] job_data_bytes_i,

    input  logic                 data_valid_i,
    output logic                 data_ready_o,
    input  logic                 data_bad_i,
    input  logic                 data_void_i,
    input  logic [DataWidth-1:0] data_i,

    output logic                 net_valid_o,
    input  logic                 net_ready_i,
    output logic                 net_sop_o,
    output logic                 net_eop_o,
    output logic [DataWidth-1:0] net_data_o
);

  localparam int unsigned BeatBytes = DataWidth / 8;
  // On a path of 128 bits header, command and operands begin beats of their own: velo_rma_pack.
  localparam bit WidePath = DataWidth == 128;
  localparam int unsigned WordBeats = WidePath ? 1 : 64 / DataWidth;
  localparam int unsigned HeadBits = WidePath ? 4 * DataWidth : 64 + $bits(
      rma_command_t
  ) + MaxOperands * 64;

  logic [HeadBits-1:0] head_q, job_head;
  logic [3:0] job_head_beats;
  logic [3:0] head_left_q;  // beats
  logic [7:0] body_left_q;  // beats, padding among them
  logic [9:0] bytes_left_q;
  // Facts about those that are needed in each cycle, kept beside them.
  logic in_body_q, head_last_q, body_some_q, body_last_q, padding_q;
  logic sop_q, take, load, bad, void_d;
  logic [DataWidth-1:0] body;
  logic [6:0] job_words;
  logic [7:0] job_beats;

  assign take = net_valid_o && net_ready_i;
  assign net_valid_o = in_body_q ? body_some_q && (padding_q || data_valid_i) : !sop_q || !hold_i;
  assign net_sop_o = sop_q;
  assign bad = (data_bad_i && !padding_q) || (body_last_q && void_d);
  assign net_eop_o = in_body_q ? body_last_q != bad : head_last_q && !body_some_q;
  assign net_data_o = in_body_q ? body : head_q[DataWidth-1:0];
  assign data_ready_o = in_body_q && body_some_q && !padding_q && net_ready_i;
  assign job_ready_o = (in_body_q && !body_some_q) || (take && net_eop_o);
  assign load = job_valid_i && job_ready_o;
  assign job_words = job_data_bytes_i[9:3] + {6'b0, |job_data_bytes_i[2:0]};
  if (WidePath) begin : gen_wide
    assign job_head       = {128'(job_operands_i), 64'b0, job_command_i, 64'b0, job_header_i};
    assign job_head_beats = job_operand_words_i != '0 ? 4'd4 : 4'd3;
    assign job_beats      = 8'(job_words[6:1]) + 8'(job_words[0]);
  end else begin : gen_narrow
    assign job_head       = {job_operands_i, job_command_i, job_header_i};
    assign job_head_beats = 4'((4 + 32'(job_operand_words_i)) * WordBeats);
    assign job_beats      = 8'(32'(job_words) * WordBeats);
  end

  if (Ecc) begin : gen_void
    logic void_q;
    assign void_d = void_q || (data_void_i && in_body_q && !padding_q);
    always_ff @(posedge clk_i) begin
      if (load) void_q <= 1'b0;
      else if (take) void_q <= void_d && !bad;
    end
  end else begin : gen_no_void
    assign void_d = data_void_i;
  end

  always_comb begin
    for (int unsigned b = 0; b < BeatBytes; b++) begin
      body[8*b+:8] = bytes_left_q > 10'(b) ? data_i[8*b+:8] : '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_left_q <= '0;
      body_left_q <= '0;
      in_body_q   <= 1'b1;
      head_last_q <= 1'b0;
      body_some_q <= 1'b0;
      body_last_q <= 1'b0;
    end else if (load) begin
      head_left_q <= job_head_beats;
      body_left_q <= job_beats;
      in_body_q   <= 1'b0;
      head_last_q <= 1'b0;
      body_some_q <= job_data_bytes_i != '0;
      body_last_q <= job_beats == 8'd1;
    end else if (take && !in_body_q) begin
      head_left_q <= head_left_q - 4'd1;
      in_body_q   <= head_last_q;
      head_last_q <= head_left_q == 4'd2;
    end else if (take && bad) begin
      body_left_q <= body_last_q ? 8'd1 : '0;
      body_some_q <= body_last_q;
    end else if (take) begin
      body_left_q <= body_left_q - 8'd1;
      body_some_q <= !body_last_q;
      body_last_q <= body_left_q == 8'd2;
    end
  end

  // These registers may load anything without a job, and the head also while the body is sent, as nobody looks then. So
  // `net_ready_i`, which comes late, is in the enables alone, and with little behind it.
  logic idle, ends;
  assign idle = in_body_q && !body_some_q;
  assign ends = idle || net_eop_o;
  always_ff @(posedge clk_i) begin
    if (in_body_q || take) head_q <= in_body_q || head_last_q ? job_head : head_q >> DataWidth;
    if (idle || take) sop_q <= ends;
    if (idle || (take && (in_body_q || ends))) begin
      bytes_left_q <= ends ? job_data_bytes_i : bytes_left_q > 10'(BeatBytes) ?
          bytes_left_q - 10'(BeatBytes) : '0;
      padding_q <= ends ? job_data_bytes_i == '0 : bytes_left_q <= 10'(BeatBytes);
    end
  end

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(OperandsFit, MaxOperands >= 1 && MaxOperands <= 2)
  logic head_flags_are_true, body_flags_are_true;
  assign head_flags_are_true =
      in_body_q == (head_left_q == '0) && head_last_q == (head_left_q == 4'd1);
  assign body_flags_are_true =
      body_some_q == (body_left_q != '0) && body_last_q == (body_left_q == 8'd1);
  `VELO_ASSERT(FlagsAreTrue, head_flags_are_true && body_flags_are_true)
  `VELO_ASSERT(PaddingIsTrue, !body_some_q || padding_q == (bytes_left_q == '0))
  // An immediate put's only operand may be less than a word.
  logic [9:0] true_len;
  assign true_len = 10'(CommandBytes) + {5'b0, job_operand_words_i, 3'b0} + job_data_bytes_i;
  logic right_len;
  assign right_len = job_header_i.len == true_len ||
      (job_operand_words_i == 2'd1 && true_len - job_header_i.len < 10'd8);
  `VELO_ASSUME(LengthIsTrue, !load || right_len)

endmodule
