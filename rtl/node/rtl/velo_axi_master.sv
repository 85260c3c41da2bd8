// SPDX-License-Identifier: Apache-2.0
//
// AXI4 master behind the node's DMA: writes and reads of host memory.
//
// A DMA write becomes one INCR burst of one ID, so writes stay in order; the address goes first, the
// data as it comes. A slot of a ring is at most a line, so no burst crosses 4 KiB. To publish a message
// the order of the bus is enough: slaves and interconnects keep writes of one ID in order.
// DMA reads: one burst each, by the reader's tag. Answers carry the tag and may come in any order.
// Errors: `write_errors_o` counts write responses other than OKAY, modulo 256; a read's error is given
// to the reader with its last beat's worth of data swallowed: one beat, no data.
//
// Source: AMBA AXI and ACE Protocol Specification, IHI 0022E, chapters A2, A3 and A5.

`include "velo_assert.svh"

module velo_axi_master #(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned AddrBits  = 48,
    parameter int unsigned IdBits    = 12
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 dma_write_valid_i,
    output logic                 dma_write_ready_o,
    input  logic                 dma_write_eop_i,
    input  logic [ AddrBits-1:0] dma_write_addr_i,
    input  logic [          9:0] dma_write_len_bytes_i,
    input  logic [DataWidth-1:0] dma_write_data_i,
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

    output logic                   awvalid_o,
    input  logic                   awready_i,
    output logic [     IdBits-1:0] awid_o,
    output logic [   AddrBits-1:0] awaddr_o,
    output logic [            7:0] awlen_o,
    output logic [            2:0] awsize_o,
    output logic [            1:0] awburst_o,
    output logic                   wvalid_o,
    input  logic                   wready_i,
    output logic                   wlast_o,
    output logic [  DataWidth-1:0] wdata_o,
    output logic [DataWidth/8-1:0] wstrb_o,
    input  logic                   bvalid_i,
    output logic                   bready_o,
    input  logic [            1:0] bresp_i,

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
    input  logic [DataWidth-1:0] rdata_i,

    output logic [7:0] write_errors_o
);

  localparam int unsigned BeatBytes = DataWidth / 8;
  localparam logic [1:0] BurstIncr = 2'b01;

  function automatic logic [7:0] burst(logic [9:0] len_bytes);
    return 8'((32'(len_bytes) + BeatBytes - 1) / BeatBytes - 1);
  endfunction

  // ----- writes: the address, once; the data, beat by beat ---------------------------------------

  logic address_q;  // the write's address has been taken
  assign awvalid_o = dma_write_valid_i && !address_q;
  assign awid_o = '0;
  assign awaddr_o = dma_write_addr_i;
  assign awlen_o = burst(dma_write_len_bytes_i);
  assign awsize_o = 3'($clog2(BeatBytes));
  assign awburst_o = BurstIncr;
  assign wvalid_o = dma_write_valid_i && address_q;
  assign wlast_o = dma_write_eop_i;
  assign wdata_o = dma_write_data_i;
  assign wstrb_o = '1;
  assign dma_write_ready_o = address_q && wready_i;
  assign bready_o = 1'b1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      address_q      <= 1'b0;
      write_errors_o <= '0;
    end else begin
      if (awvalid_o) address_q <= awready_i;
      else if (wvalid_o && wready_i && wlast_o) address_q <= 1'b0;
      if (bvalid_i && bresp_i[1]) write_errors_o <= write_errors_o + 1'b1;
    end
  end

  // ----- reads ----------------------------------------------------------------------------------

  assign arvalid_o = dma_read_valid_i;
  assign dma_read_ready_o = arready_i;
  assign arid_o = IdBits'(dma_read_tag_i);
  assign araddr_o = dma_read_addr_i;
  assign arlen_o = burst(dma_read_len_bytes_i);
  assign arsize_o = 3'($clog2(BeatBytes));
  assign arburst_o = BurstIncr;

  // An error in any beat spoils the answer from there on: its last beat says so, and ends it.
  logic error_q, error;
  assign error = error_q || rresp_i[1];
  assign dma_answer_valid_o = rvalid_i && (!error || rlast_i);
  assign dma_answer_eop_o = rlast_i;
  assign dma_answer_error_o = error;
  assign dma_answer_tag_o = 12'(rid_i);
  assign dma_answer_data_o = error ? '0 : rdata_i;
  assign rready_o = dma_answer_ready_i || (error && !rlast_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) error_q <= 1'b0;
    else if (rvalid_i && rready_o) error_q <= error && !rlast_i;
  end

  // OKAY and EXOKAY are good, SLVERR and DECERR bad.
  logic unused;
  assign unused = ^{bresp_i[0], rresp_i[0]};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth == 32 || DataWidth == 64)
  `VELO_ASSERT_INIT(TagFitsId, IdBits >= 12)
  // Answers of different reads do not come interleaved: slaves here answer a burst as a whole.
  `VELO_ASSERT(AnswerStands, !(dma_answer_valid_o && dma_answer_error_o) || dma_answer_eop_o)

endmodule
