// SPDX-License-Identifier: Apache-2.0
//
// AXI4 read slave in front of a stream of reads with tags (host_read_* or control_read_* of the node).
//
// A burst (INCR, full width) becomes one read of as many bytes. On a bus of 128 bits one of a single
// beat of 8 bytes, which is what registers have, becomes a read of one word, shown in both halves. Up to
// 2**IdBits - 1 are under way: the tag is the ID, so two reads of the same ID wait for each other, as AXI wants it,
// and others come back as they like. Answers are not interleaved.
// Errors: any other burst is answered with SLVERR in each beat, and so is what the node refuses, whose
// answer has one beat only.
//
// Source: AMBA AXI and ACE Protocol Specification, IHI 0022E, chapters A2, A3 and A5.

`include "velo_assert.svh"

module velo_axi_read #(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned AddrBits  = 48,
    parameter int unsigned IdBits    = 4
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 arvalid_i,
    output logic                 arready_o,
    input  logic [   IdBits-1:0] arid_i,
    input  logic [ AddrBits-1:0] araddr_i,
    input  logic [          7:0] arlen_i,
    input  logic [          2:0] arsize_i,
    input  logic [          1:0] arburst_i,
    output logic                 rvalid_o,
    input  logic                 rready_i,
    output logic [   IdBits-1:0] rid_o,
    output logic                 rlast_o,
    output logic [          1:0] rresp_o,
    output logic [DataWidth-1:0] rdata_o,

    output logic                 read_valid_o,
    input  logic                 read_ready_i,
    output logic [ AddrBits-1:0] read_addr_o,
    output logic [          9:0] read_len_bytes_o,
    output logic [          7:0] read_tag_o,
    input  logic                 answer_valid_i,
    output logic                 answer_ready_o,
    input  logic                 answer_eop_i,
    input  logic                 answer_error_i,
    input  logic [          7:0] answer_tag_i,
    input  logic [DataWidth-1:0] answer_data_i
);

  localparam int unsigned BeatBytes = DataWidth / 8;
  localparam logic [1:0] BurstIncr = 2'b01, RespOkay = 2'b00, RespSlaveError = 2'b10;

  // Per ID: a read is under way, and how many beats its burst has, less one.
  logic [2**IdBits-1:0] open_q;
  logic [7:0] length_q[2**IdBits];
  logic good, wait_bad_q, ask;
  logic [IdBits-1:0] bad_id_q, id;

  // A single word of a wider bus.
  logic single;
  logic [2**IdBits-1:0] single_q;
  assign single = DataWidth == 128 && arsize_i == 3'd3 && arlen_i == '0 && araddr_i[2:0] == '0;
  assign good = arburst_i == BurstIncr && (single || (arsize_i == 3'($clog2(
      BeatBytes
  )) && 32'(arlen_i) * BeatBytes + BeatBytes <= 1008));
  assign ask = arvalid_i && !open_q[arid_i] && !wait_bad_q;
  assign read_valid_o = ask && good;
  assign read_addr_o = araddr_i;
  assign read_len_bytes_o = single ? 10'd8 : 10'(32'(arlen_i) * BeatBytes + BeatBytes);
  assign read_tag_o = 8'(arid_i);
  assign arready_o = ask && (!good || read_ready_i);

  // ----- answers: the node's, or made up here for a burst that it never saw ----------------------

  logic made_up, made_up_q, busy_q, answer_end;
  logic [7:0] beat_q;

  // Once an answer has begun, its kind stands until its last beat.
  assign made_up = busy_q ? made_up_q : (wait_bad_q && !answer_valid_i);
  assign id = made_up ? bad_id_q : IdBits'(answer_tag_i);
  assign rvalid_o = made_up ? wait_bad_q : answer_valid_i;
  assign rid_o = id;
  assign rlast_o = beat_q == length_q[id];
  assign rresp_o = made_up || answer_error_i ? RespSlaveError : RespOkay;
  always_comb begin
    rdata_o = answer_data_i;
    if (made_up || answer_error_i) rdata_o = '0;
    else if (single_q[id]) rdata_o = DataWidth'({2{64'(answer_data_i)}});
  end
  // The one beat of a refusal stands until all beats of the burst have been given.
  assign answer_ready_o = !made_up && rready_i && (answer_error_i ? rlast_o : 1'b1);
  assign answer_end = rvalid_o && rready_i && rlast_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q     <= '0;
      wait_bad_q <= 1'b0;
      busy_q     <= 1'b0;
      beat_q     <= '0;
    end else begin
      if (arvalid_i && arready_o) begin
        open_q[arid_i] <= 1'b1;
        if (!good) wait_bad_q <= 1'b1;
      end
      if (answer_end) begin
        open_q[id] <= 1'b0;
        if (made_up) wait_bad_q <= 1'b0;
      end
      if (rvalid_o) busy_q <= !answer_end;
      if (rvalid_o && rready_i) beat_q <= rlast_o ? '0 : beat_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!busy_q) made_up_q <= made_up;
    if (arvalid_i && arready_o) begin
      length_q[arid_i] <= arlen_i;
      single_q[arid_i] <= single;
      if (!good) bad_id_q <= arid_i;
    end
  end

  logic unused;
  assign unused = ^{answer_eop_i, answer_tag_i};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(IdFitsTag, IdBits >= 1 && IdBits <= 8)
  `VELO_ASSUME(AnswersWhatWasAsked, !answer_valid_i || open_q[IdBits'(answer_tag_i)])
  `VELO_ASSUME(AnswerAsLongAsAsked,
               !(answer_valid_i && answer_ready_o && !answer_error_i) || answer_eop_i == rlast_o)

endmodule
