// SPDX-License-Identifier: Apache-2.0
//
// AXI4 write slave in front of a stream of posted writes (host_write_* or control_write_* of the node).
//
// A burst of whole, contiguous beats (INCR, full width) becomes one write; its first beat leaves in the
// cycle in which address and data are both there. The response comes with the last beat that the node
// took: that the write is on its way, not that it has arrived, which is what "posted" means.
// One burst at a time; IDs come back in order. Beats narrower than the bus only as the last one, which
// a message's length cannot need: lines are whole 64-bit words.
//
// So on buses of 32 and 64 bits; one of 128, whose beat has two words, has velo_axi_write_wide.
//
// Errors: anything else (FIXED, WRAP, narrow, longer than 1008 bytes, bytes that are not written) is
// swallowed whole and answered with SLVERR. The node's registers count writes that the node refuses.
//
// Source: AMBA AXI and ACE Protocol Specification, IHI 0022E, chapters A2 and A3.

`include "velo_assert.svh"

module velo_axi_write #(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned AddrBits  = 48,
    parameter int unsigned IdBits    = 8
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                   awvalid_i,
    output logic                   awready_o,
    input  logic [     IdBits-1:0] awid_i,
    input  logic [   AddrBits-1:0] awaddr_i,
    input  logic [            7:0] awlen_i,
    input  logic [            2:0] awsize_i,
    input  logic [            1:0] awburst_i,
    input  logic                   wvalid_i,
    output logic                   wready_o,
    input  logic                   wlast_i,
    input  logic [  DataWidth-1:0] wdata_i,
    input  logic [DataWidth/8-1:0] wstrb_i,
    output logic                   bvalid_o,
    input  logic                   bready_i,
    output logic [     IdBits-1:0] bid_o,
    output logic [            1:0] bresp_o,

    output logic                 write_valid_o,
    input  logic                 write_ready_i,
    output logic                 write_eop_o,
    output logic [ AddrBits-1:0] write_addr_o,
    output logic [          9:0] write_len_bytes_o,
    output logic [DataWidth-1:0] write_data_o
);

  if (DataWidth == 128) begin : gen_wide
    velo_axi_write_wide #(
        .AddrBits(AddrBits),
        .IdBits  (IdBits)
    ) u_write (
        .clk_i,
        .rst_ni,
        .awvalid_i,
        .awready_o,
        .awid_i,
        .awaddr_i,
        .awlen_i,
        .awsize_i,
        .awburst_i,
        .wvalid_i,
        .wready_o,
        .wlast_i,
        .wdata_i,
        .wstrb_i,
        .bvalid_o,
        .bready_i,
        .bid_o,
        .bresp_o,
        .write_valid_o,
        .write_ready_i,
        .write_eop_o,
        .write_addr_o,
        .write_len_bytes_o,
        .write_data_o
    );
  end else begin : gen_beats
    localparam int unsigned BeatBytes = DataWidth / 8;
    localparam int unsigned SizeBits = $clog2(BeatBytes);
    localparam logic [1:0] BurstIncr = 2'b01, RespOkay = 2'b00, RespSlaveError = 2'b10;

    logic burst_good, pass, swallow, bad_q, begun_q, beat_good;

    assign burst_good = awburst_i == BurstIncr && awsize_i == 3'(SizeBits) &&
        32'(awlen_i) * BeatBytes + BeatBytes <= 1008 && awaddr_i[SizeBits-1:0] == '0;
    // Bytes that are not written cannot be told to the node: a burst that begins with such a beat is
    // not passed on, later ones only spoil the response.
    assign beat_good = wstrb_i == '1;
    assign swallow = !burst_good || (begun_q ? bad_q : !beat_good);
    // The response register has to be free before the first beat leaves.
    assign pass = awvalid_i && wvalid_i && (!bvalid_o || bready_i || begun_q);

    assign write_valid_o = pass && !swallow;
    assign write_eop_o = wlast_i;
    assign write_addr_o = awaddr_i;
    assign write_len_bytes_o = 10'(32'(awlen_i) * BeatBytes + BeatBytes);
    assign write_data_o = wdata_i;
    assign wready_o = pass && (swallow || write_ready_i);
    // The address stays at the input until the burst's last beat has left.
    assign awready_o = wready_o && wlast_i;

    logic spoilt_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        begun_q  <= 1'b0;
        bvalid_o <= 1'b0;
      end else begin
        if (wvalid_i && wready_o) begun_q <= !wlast_i;
        if (awready_o) bvalid_o <= 1'b1;
        else if (bready_i) bvalid_o <= 1'b0;
      end
    end
    always_ff @(posedge clk_i) begin
      if (wvalid_i && wready_o) begin
        bad_q    <= swallow;
        spoilt_q <= (begun_q && spoilt_q) || !beat_good;
      end
      if (awready_o) begin
        bid_o   <= awid_i;
        bresp_o <= swallow || !beat_good || (begun_q && spoilt_q) ? RespSlaveError : RespOkay;
      end
    end

    // AXI: data of a burst has as many beats as its address says.
    logic [7:0] beats_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) beats_q <= '0;
      else if (wvalid_i && wready_o) beats_q <= wlast_i ? '0 : beats_q + 1'b1;
    end
    `VELO_ASSUME(LastIsLast, !(wvalid_i && wready_o) || wlast_i == (beats_q == awlen_i))
  end

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})

endmodule
