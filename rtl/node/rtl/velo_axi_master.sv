// SPDX-License-Identifier: Apache-2.0
//
// AXI4 master behind the node's DMA: writes and reads of host memory.
//
// `dma_*` as in velo_node_core; see velo_axi_dma_write and velo_axi_dma_read for the bursts. Writes stay
// in order: slaves and interconnects keep those of one ID so, which is enough to publish a message.
// A read waits until the writes that were taken before it have been answered, since AXI keeps no order
// between the two; writes that come later do not delay it. At most 63 writes are under way: `writes_o` are those
// that were taken and not answered, `write_answered_o` pulses as one is.
// All reads have one ID, so their beats come in the order of the reads, and never interleaved. At most `Reads` are
// under way.
// Errors: `write_errors_o` counts write responses other than OKAY, modulo 256; a read's error goes to
// the reader.
//
// Source: AMBA AXI and ACE Protocol Specification, IHI 0022E, chapters A2, A3 and A5.

`include "velo_assert.svh"

module velo_axi_master #(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned AddrBits  = 48,
    parameter int unsigned IdBits    = 16,
    parameter int unsigned Reads     = 16,

    localparam int unsigned PendingBits = 6
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

    output logic [PendingBits-1:0] writes_o,
    output logic                   write_answered_o,
    output logic [            7:0] write_errors_o
);

  // Writes that were taken, the last of their data with them, and that are not answered.
  logic [PendingBits-1:0] pending_q;
  logic read_valid, read_ready, write_taken;

  assign bready_o = 1'b1;
  assign write_taken = dma_write_valid_i && dma_write_ready_o && dma_write_eop_i;
  assign writes_o = pending_q;
  assign write_answered_o = bvalid_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      pending_q      <= '0;
      write_errors_o <= '0;
    end else begin
      pending_q <= pending_q + PendingBits'(write_taken) - PendingBits'(bvalid_i);
      if (bvalid_i && bresp_i[1]) write_errors_o <= write_errors_o + 1'b1;
    end
  end

  velo_axi_dma_write #(
      .DataWidth(DataWidth),
      .AddrBits (AddrBits),
      .IdBits   (IdBits)
  ) u_write (
      .clk_i,
      .rst_ni,
      .hold_i(&pending_q),
      .dma_write_valid_i,
      .dma_write_ready_o,
      .dma_write_eop_i,
      .dma_write_addr_i,
      .dma_write_len_bytes_i,
      .dma_write_data_i,
      .awvalid_o,
      .awready_i,
      .awid_o,
      .awaddr_o,
      .awlen_o,
      .awsize_o,
      .awburst_o,
      .wvalid_o,
      .wready_i,
      .wlast_o,
      .wdata_o,
      .wstrb_o
  );

  htax_order #(
      .Depth(2 ** (PendingBits - 1))
  ) u_order (
      .clk_i,
      .rst_ni,
      .posted_count_i(pending_q),
      .posted_taken_i(bvalid_i),
      .in_valid_i    (dma_read_valid_i),
      .in_ready_o    (dma_read_ready_o),
      .out_valid_o   (read_valid),
      .out_ready_i   (read_ready)
  );

  // Which read the beats are of that come next.
  logic [IdBits-1:0] asked_id, answered_id;
  logic reads_valid, room, asks, asked;
  logic [$clog2(Reads):0] unused_count;
  assign arvalid_o = reads_valid && room;
  assign asks = arvalid_o && arready_i;
  assign arid_o = '0;
  velo_fifo #(
      .Width(IdBits),
      .Depth(Reads)
  ) u_reads (
      .clk_i,
      .rst_ni,
      .push_valid_i(asks),
      .push_ready_o(room),
      .push_data_i (asked_id),
      .pop_valid_o (asked),
      .pop_ready_i (rvalid_i && rready_o && rlast_i),
      .pop_data_o  (answered_id),
      .count_o     (unused_count)
  );

  velo_axi_dma_read #(
      .DataWidth(DataWidth),
      .AddrBits (AddrBits),
      .IdBits   (IdBits)
  ) u_read (
      .clk_i,
      .rst_ni,
      .dma_read_valid_i(read_valid),
      .dma_read_ready_o(read_ready),
      .dma_read_addr_i,
      .dma_read_len_bytes_i,
      .dma_read_tag_i,
      .dma_answer_valid_o,
      .dma_answer_ready_i,
      .dma_answer_eop_o,
      .dma_answer_error_o,
      .dma_answer_tag_o,
      .dma_answer_data_o,
      .arvalid_o       (reads_valid),
      .arready_i       (asks),
      .arid_o          (asked_id),
      .araddr_o,
      .arlen_o,
      .arsize_o,
      .arburst_o,
      .rvalid_i,
      .rready_o,
      .rid_i           (answered_id),
      .rlast_i,
      .rresp_i,
      .rdata_i
  );

  // OKAY and EXOKAY are good, SLVERR and DECERR bad.
  logic unused;
  assign unused = ^{bresp_i[0], rid_i, asked, unused_count};

  `VELO_ASSUME(AnswerToAWrite, !bvalid_i || pending_q != '0)
  `VELO_ASSUME(AnswerToARead, !rvalid_i || asked)

endmodule
