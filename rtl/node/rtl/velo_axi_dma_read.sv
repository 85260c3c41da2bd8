// SPDX-License-Identifier: Apache-2.0
//
// DMA reads as AXI4 bursts: takes the bytes out of their lanes.
//
// `dma_read_*` valid/ready, one INCR burst each, of any address and length. `dma_answer_*` valid/ready:
// data begin with the byte at the address. A burst's ID is the reader's tag, its first byte's lane,
// and whether its last beat fills no beat of the answer of its own; so nothing is kept of a read that
// is under way. Answers may come in any order, but not interleaved.
// Errors: an error in any beat spoils the answer from there on: a beat without data that says so ends it.
//
// Source: AMBA AXI and ACE Protocol Specification, IHI 0022E, chapters A3.4 and A5.

`include "velo_assert.svh"

module velo_axi_dma_read #(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned AddrBits  = 48,
    parameter int unsigned IdBits    = 16
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 dma_read_valid_i,
    output logic                 dma_read_ready_o,
    input  logic [ AddrBits-1:0] dma_read_addr_i,
    input  logic [          9:0] dma_read_len_bytes_i,
    input  logic [         11:0] dma_read_tag_i,
    output logic                 dma_answer_valid_o,
    input  logic                 dma_answer_ready_i,
    output logic                 dma_answer_eop_o,
    output logic                 dma_answer_error_o,
    output logic [         11:0] dma_answer_tag_o,
    output logic [DataWidth-1:0] dma_answer_data_o,

    output logic                 arvalid_o,
    input  logic                 arready_i,
    output logic [   IdBits-1:0] arid_o,
    output logic [ AddrBits-1:0] araddr_o,
    output logic [          7:0] arlen_o,
    output logic [          2:0] arsize_o,
    output logic [          1:0] arburst_o,
    input  logic                 rvalid_i,
    output logic                 rready_o,
    input  logic [   IdBits-1:0] rid_i,
    input  logic                 rlast_i,
    input  logic [          1:0] rresp_i,
    input  logic [DataWidth-1:0] rdata_i
);

  localparam int unsigned BeatBytes = DataWidth / 8;
  localparam int unsigned LaneBits = $clog2(BeatBytes);

  typedef struct packed {
    logic                joins;  // the last beat completes the answer's last one
    logic [LaneBits-1:0] lane;
    logic [11:0]         tag;
  } ident_t;

  // ----- requests -------------------------------------------------------------------------------

  ident_t asked, ident, ident_q;
  logic [10:0] last_byte;  // from the first beat's first

  assign last_byte = {1'b0, dma_read_len_bytes_i} + 11'(asked.lane) - 11'd1;
  assign asked.tag = dma_read_tag_i;
  assign asked.lane = dma_read_addr_i[LaneBits-1:0];
  assign asked.joins = last_byte[LaneBits-1:0] < asked.lane;

  assign arvalid_o = dma_read_valid_i;
  assign dma_read_ready_o = arready_i;
  assign arid_o = IdBits'(asked);
  assign araddr_o = {dma_read_addr_i[AddrBits-1:LaneBits], LaneBits'(0)};
  assign arlen_o = 8'(last_byte >> LaneBits);
  assign arsize_o = 3'(LaneBits);
  assign arburst_o = 2'b01;  // INCR

  // ----- answers --------------------------------------------------------------------------------

  // With bytes to move down, a beat waits for the next one, which has its upper bytes; the last
  // beat of a burst that does not join its forerunner is a beat of its own, the tail.
  logic aligned, have_q, tail_q, error_q, error, gives;
  logic [  DataWidth-1:0] data_q;
  logic [2*DataWidth-1:0] both;

  assign ident              = tail_q ? ident_q : ident_t'(rid_i[$bits(ident_t)-1:0]);
  assign aligned            = ident.lane == '0;
  assign error              = error_q || rresp_i[1];
  // Does this beat of the burst give one of the answer?
  assign gives              = error ? rlast_i : aligned || have_q || (rlast_i && !ident.joins);

  assign dma_answer_valid_o = tail_q || (rvalid_i && gives);
  assign dma_answer_tag_o   = ident.tag;
  assign dma_answer_error_o = !tail_q && error;
  assign rready_o           = !tail_q && (dma_answer_ready_i || !gives);

  always_comb begin
    dma_answer_eop_o = tail_q || (rlast_i && (error || aligned || ident.joins || !have_q));
    if (tail_q || !have_q) both = {DataWidth'(0), tail_q ? data_q : rdata_i};
    else both = {rdata_i, data_q};
    both = both >> {ident.lane, 3'b0};
    dma_answer_data_o = dma_answer_error_o ? '0 : both[DataWidth-1:0];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      error_q <= 1'b0;
      have_q  <= 1'b0;
      tail_q  <= 1'b0;
    end else if (tail_q) begin
      tail_q <= !dma_answer_ready_i;
    end else if (rvalid_i && rready_o) begin
      error_q <= error && !rlast_i;
      have_q  <= !error && !aligned && !rlast_i;
      tail_q  <= rlast_i && !dma_answer_eop_o;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rvalid_i && rready_o) begin
      data_q  <= rdata_i;
      ident_q <= ident;
    end
  end

  // OKAY and EXOKAY are good, SLVERR and DECERR bad.
  logic unused;
  assign unused = ^{rresp_i[0], rid_i};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  `VELO_ASSERT_INIT(IdentFits, IdBits >= $bits(ident_t))
  `VELO_ASSERT(ErrorEnds, !(dma_answer_valid_o && dma_answer_error_o) || dma_answer_eop_o)
  `VELO_ASSUME(NotInterleaved, !have_q || !rvalid_i || ident == ident_q)

endmodule
