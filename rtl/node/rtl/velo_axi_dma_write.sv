// SPDX-License-Identifier: Apache-2.0
//
// DMA writes as AXI4 bursts: puts the bytes into their lanes.
//
// `dma_write_*` valid/ready: data begin with the byte at the address, whatever its alignment; address
// and length stand for the whole write. Each becomes one INCR burst from the beat its first byte is in
// to that of its last, strobes saying which bytes are written; all of one ID, so they stay in order.
// Data are offered from the cycle after the address on, whether it was taken or not, as they come; a beat more than
// the data have takes a cycle more. The last beat of a write is taken with the last one of its burst, so what was
// taken has left. The next write begins when both address and data were taken.
// Errors: none here.
//
// Source: AMBA AXI and ACE Protocol Specification, IHI 0022E, chapters A3.4 and A5.

`include "velo_assert.svh"

module velo_axi_dma_write #(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned AddrBits  = 48,
    parameter int unsigned IdBits    = 16
) (
    input logic clk_i,
    input logic rst_ni,

    input logic hold_i,  // begin no burst

    input  logic                 dma_write_valid_i,
    output logic                 dma_write_ready_o,
    input  logic                 dma_write_eop_i,
    input  logic [ AddrBits-1:0] dma_write_addr_i,
    input  logic [          9:0] dma_write_len_bytes_i,
    input  logic [DataWidth-1:0] dma_write_data_i,

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
    output logic [DataWidth/8-1:0] wstrb_o
);

  localparam int unsigned BeatBytes = DataWidth / 8;
  localparam int unsigned LaneBits = $clog2(BeatBytes);
  typedef logic [LaneBits-1:0] lane_t;

  // Data of the write that is under way are to be sent; its address is; only the beat more than its data is.
  logic open_q, asks_q, first_q, tail_q;
  lane_t first_lane, last_lane;
  logic [10:0] last_byte;  // from the first beat's first
  logic spills, spills_q, begins, last, sends;
  logic [AddrBits-1:0] addr, addr_q;
  logic [7:0] beats, beats_q;
  logic [DataWidth-1:0] rest_q, rest;
  logic [2*DataWidth-1:0] shifted;

  assign first_lane = dma_write_addr_i[LaneBits-1:0];
  assign last_byte = {1'b0, dma_write_len_bytes_i} + 11'(first_lane) - 11'd1;
  assign last_lane = last_byte[LaneBits-1:0];
  // The last byte moves to a beat of its own.
  assign spills = last_lane < first_lane;

  // An address that waits stands, whatever becomes of the data.
  assign begins = dma_write_valid_i && !open_q && !asks_q && !hold_i;
  assign addr = {dma_write_addr_i[AddrBits-1:LaneBits], lane_t'(0)};
  assign beats = 8'(last_byte >> LaneBits);
  assign awvalid_o = begins || asks_q;
  assign awid_o = '0;
  assign awaddr_o = asks_q ? addr_q : addr;
  assign awlen_o = asks_q ? beats_q : beats;
  assign awsize_o = 3'(LaneBits);
  assign awburst_o = 2'b01;  // INCR

  // A beat's bytes move up by `first_lane`; those that fall out come first in the next.
  assign shifted = (2 * DataWidth)'(dma_write_data_i) << {first_lane, 3'b0};
  assign last = dma_write_eop_i && !spills_q;
  assign wvalid_o = open_q && dma_write_valid_i;
  assign wlast_o = tail_q || last;
  assign wdata_o = tail_q ? rest_q : shifted[DataWidth-1:0] | rest;
  assign sends = wvalid_o && wready_i;
  assign dma_write_ready_o = open_q && wready_i && (tail_q || !dma_write_eop_i || !spills_q);

  always_comb begin
    for (int unsigned b = 0; b < BeatBytes; b++) begin
      wstrb_o[b] = tail_q ? lane_t'(b) <= last_lane :
          (!first_q || lane_t'(b) >= first_lane) && (!wlast_o || lane_t'(b) <= last_lane);
    end
  end

  assign rest = first_q ? '0 : rest_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      open_q <= 1'b0;
      asks_q <= 1'b0;
      tail_q <= 1'b0;
    end else begin
      asks_q <= awvalid_o && !awready_i;
      if (begins) open_q <= 1'b1;
      else if (sends && wlast_o) open_q <= 1'b0;
      if (sends) tail_q <= !tail_q && dma_write_eop_i && spills_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (begins) begin
      first_q  <= 1'b1;
      addr_q   <= addr;
      beats_q  <= beats;
      spills_q <= spills;
    end else if (sends) begin
      first_q <= 1'b0;
    end
    if (sends) rest_q <= shifted[2*DataWidth-1:DataWidth];
  end

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})
  // A write that the block has taken leaves it: the last word of one is taken only as the last word goes out.
  `VELO_ASSERT(NothingLeftBehind,
               !(dma_write_valid_i && dma_write_ready_o && dma_write_eop_i) || (sends && wlast_o))
  // No burst crosses a boundary of 4 KiB.
  `VELO_ASSUME(
      WithinAPage,
      !begins || {1'b0, dma_write_addr_i[11:0]} + {3'b0, dma_write_len_bytes_i} <= 13'd4096)

endmodule
