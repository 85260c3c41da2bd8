// SPDX-License-Identifier: Apache-2.0
//
// CoreLogic's SO-DIMM is a part of host memory, from `base_i` on: its reads are reads of 16 bytes, its writes
// are writes of one word or two, by the crossbar. Requests are passed on in their order; a read is offered when the
// writes before it have been taken, and the crossbar keeps it behind them.
//
// Four reads are under way at a time, each with a tag of its own, and come back in any order; CoreLogic gets them in
// that of its requests. A response comes in the cycle after its answer's last beat, or later.
// Errors: an answer with an error, or of another length, gives words of zero, and `failed_o` pulses.

`include "velo_assert.svh"

module dimmnet_unit_memory
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [AddrBits-1:0] base_i,   // where word 0 is
    output logic                failed_o, // a read failed

    // From CoreLogic, see dimmnet_core.
    input  logic         sodimm_valid_i,
    output logic         sodimm_ready_o,
    input  logic         sodimm_write_i,
    input  logic [ 31:0] sodimm_address_i,
    input  logic [  1:0] sodimm_mask_i,
    input  logic [127:0] sodimm_data_i,
    output logic         sodimm_response_valid_o,
    output logic [127:0] sodimm_response_o,

    // To the crossbar.
    output htax_stream_t                 write_o,
    output logic         [DataWidth-1:0] write_data_o,
    input  logic                         write_ready_i,
    output htax_read_t                   read_o,
    input  logic                         read_ready_i,
    input  htax_stream_t                 answer_i,
    input  logic         [DataWidth-1:0] answer_data_i,
    output logic                         answer_ready_o
);

  localparam int unsigned Reads = 4;
  localparam int unsigned Beats = 128 / DataWidth;  // of an answer
  typedef logic [1:0] tag_t;

  logic [AddrBits-1:0] row;
  assign row = base_i + {{(AddrBits - 35) {1'b0}}, sodimm_address_i, 3'b0};

  // ----- writes ---------------------------------------------------------------------------------

  logic word_valid, word_ready, word_last, second_q, write_done, write_valid, write_eop, unused_sop;
  logic [63:0] word;

  assign word_valid = sodimm_valid_i && sodimm_write_i && sodimm_mask_i != '0;
  assign word_last = second_q || sodimm_mask_i != 2'b11;
  assign word = second_q || !sodimm_mask_i[0] ? sodimm_data_i[127:64] : sodimm_data_i[63:0];
  assign write_done = sodimm_mask_i == '0 || (word_ready && word_last);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) second_q <= 1'b0;
    else if (word_valid && word_ready) second_q <= !word_last;
  end

  if (DataWidth == 32) begin : gen_narrow
    velo_narrow #(
        .Width    (64),
        .HalfWidth(32)
    ) u_beats (
        .clk_i,
        .rst_ni,
        .in_valid_i (word_valid),
        .in_ready_o (word_ready),
        .in_sop_i   (1'b0),
        .in_eop_i   (word_last),
        .in_single_i(1'b0),
        .in_data_i  (word),
        .out_valid_o(write_valid),
        .out_ready_i(write_ready_i),
        .out_sop_o  (unused_sop),
        .out_eop_o  (write_eop),
        .out_data_o (write_data_o)
    );
  end else begin : gen_wide
    velo_widen #(
        .Width    (DataWidth),
        .HalfWidth(64)
    ) u_beats (
        .clk_i,
        .rst_ni,
        .in_valid_i (word_valid),
        .in_ready_o (word_ready),
        .in_sop_i   (1'b0),
        .in_eop_i   (word_last),
        .in_single_i(1'b0),
        .in_data_i  (word),
        .out_valid_o(write_valid),
        .out_ready_i(write_ready_i),
        .out_sop_o  (unused_sop),
        .out_eop_o  (write_eop),
        .out_data_o (write_data_o)
    );
  end

  always_comb begin
    write_o                  = '0;
    write_o.valid            = write_valid;
    write_o.eop              = write_eop;
    // Of a row's upper word alone, that word's address.
    write_o.header.addr      = {row[AddrBits-1:4], row[3] || !sodimm_mask_i[0], row[2:0]};
    write_o.header.len_bytes = &sodimm_mask_i ? 10'd16 : 10'd8;
  end

  // ----- reads ----------------------------------------------------------------------------------

  logic [2:0] asked_q, given_q;  // one bit more than a tag
  logic [Reads-1:0] done_q, void_q;
  logic [Reads-1:0][127:0] row_q;
  logic [Reads-1:0][  2:0] beat_q;
  logic free, ask, ends, bad;
  tag_t given, at;

  assign free = asked_q - given_q != 3'(Reads);
  assign ask  = read_o.valid && read_ready_i;
  always_comb begin
    read_o                  = '0;
    read_o.valid            = sodimm_valid_i && !sodimm_write_i && free;
    read_o.header.addr      = row;
    read_o.header.len_bytes = 10'd16;
    read_o.header.tag       = 8'(asked_q[1:0]);
  end
  assign sodimm_ready_o = sodimm_write_i ? write_done : free && read_ready_i;

  assign answer_ready_o = 1'b1;
  assign at = answer_i.header.tag[1:0];
  assign ends = answer_i.valid && answer_i.eop;
  assign bad = answer_i.header.error || beat_q[at] != 3'(Beats - 1);
  assign failed_o = ends && bad;

  assign given = given_q[1:0];
  assign sodimm_response_valid_o = done_q[given];
  assign sodimm_response_o = void_q[given] ? '0 : row_q[given];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      asked_q <= '0;
      given_q <= '0;
      done_q  <= '0;
      beat_q  <= '0;
    end else begin
      if (ask) asked_q <= asked_q + 1'b1;
      if (done_q[given]) begin
        given_q       <= given_q + 1'b1;
        done_q[given] <= 1'b0;
      end
      if (answer_i.valid) begin
        if (answer_i.eop) begin
          beat_q[at] <= '0;
          done_q[at] <= 1'b1;
        end else if (beat_q[at] != 3'(Beats)) beat_q[at] <= beat_q[at] + 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned b = 0; b < Beats; b++) begin
      if (answer_i.valid && beat_q[at] == 3'(b)) begin
        row_q[at][DataWidth*b+:DataWidth] <= answer_data_i;
      end
    end
    if (ends) void_q[at] <= bad;
  end

  logic unused;
  assign unused = ^answer_i;

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  // The guard before the crossbar passes on answers to reads that wait, and no others.
  `VELO_ASSUME(AnswerIsAwaited,
               !answer_i.valid || (3'(tag_t'(at - given)) < asked_q - given_q && !done_q[at]))

endmodule
