// SPDX-License-Identifier: Apache-2.0
//
// AXI4 write slave of 128 bits in front of a stream of posted writes: velo_axi_write for a bus whose beat
// has two words.
//
// A burst (INCR) of at most 128 bytes becomes one write of the 64-bit words that its strobes name. They
// follow each other: the first may be the upper one of its beat, the last the lower one. So a register is
// written by one beat, of full size or of 8 bytes. How long a write is shows only at its end, so the
// burst is taken in whole first; then its words leave from a beat's start, and its response comes with
// the last of them: that the write is on its way, not that it has arrived. Bursts may follow each other
// without a gap; IDs come back in order. Latency: the burst's beats, and one.
//
// Errors: any other burst is swallowed whole and answered with SLVERR; one that turns out bad behind its
// first beat is passed on, and answered so.
//
// Source: AMBA AXI and ACE Protocol Specification, IHI 0022E, chapters A2 and A3.

`include "velo_assert.svh"

module velo_axi_write_wide #(
    parameter  int unsigned AddrBits  = 48,
    parameter  int unsigned IdBits    = 8,
    localparam int unsigned DataWidth = 128
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

  localparam logic [1:0] BurstIncr = 2'b01, RespOkay = 2'b00, RespSlaveError = 2'b10;
  localparam logic [2:0] SizeWord = 3'd3, SizeBeat = 3'd4;
  localparam int unsigned MaxBeats = 8;  // and one more, of words that moved down

  typedef struct packed {
    logic                pass;   // there is data of it
    logic                error;
    logic [IdBits-1:0]   id;
    logic [AddrBits-1:0] addr;
    logic [5:0]          words;
  } burst_t;

  // ----- what comes in --------------------------------------------------------------------------

  logic lower, upper, partial, burst_good, first_good, later_good;
  logic first_q, swallow, swallow_q, error, error_q, moved, moved_q, flush_q, take;
  logic [5:0] words_q, words;
  logic [63:0] carry_q;

  assign lower = &wstrb_i[7:0];
  assign upper = &wstrb_i[15:8];
  assign partial = (|wstrb_i[7:0] && !lower) || (|wstrb_i[15:8] && !upper);
  assign burst_good = awburst_i == BurstIncr && awaddr_i[2:0] == '0 && awlen_i < 8'(MaxBeats) &&
      (awsize_i == SizeBeat || (awsize_i == SizeWord && awlen_i == '0));
  // A first beat has its upper word alone, both words, or its lower one if it is the last, too; one of
  // 8 bytes, and one whose address says so, the word that the address names.
  assign first_good = !partial && (upper || (lower && wlast_i)) &&
      (!awaddr_i[3] || !lower) && (awsize_i == SizeBeat || lower != upper) &&
      (awsize_i == SizeBeat || lower == !awaddr_i[3]);
  assign later_good = !partial && lower && (upper || wlast_i);

  assign swallow = first_q ? !(burst_good && first_good) : swallow_q;
  assign error = first_q ? swallow : error_q || !later_good;
  assign moved = first_q ? !lower : moved_q;
  // A bad beat counts as a whole one.
  assign words = (first_q ? '0 : words_q) +
      (first_q ? (lower && upper ? 6'd2 : 6'd1) : later_good && !upper ? 6'd1 : 6'd2);

  logic data_push, data_room, data_eop, data_valid, data_last, burst_room, burst_valid, burst_end;
  logic [DataWidth-1:0] data;
  logic [4:0] unused_data_count;
  logic [2:0] unused_burst_count;
  burst_t burst, head;

  assign wready_o = awvalid_i && data_room && burst_room && !flush_q;
  assign awready_o = wready_o && wvalid_i && wlast_i;
  assign take = wvalid_i && wready_o;
  assign data_push = flush_q || (take && !swallow && !(first_q && moved && !wlast_i));
  assign data_eop = flush_q || (wlast_i && !(moved && !first_q && !(later_good && !upper)));

  always_comb begin
    data = wdata_i;
    if (flush_q) data = {64'b0, carry_q};
    else if (moved) data = first_q ? {64'b0, wdata_i[127:64]} : {wdata_i[63:0], carry_q};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      first_q <= 1'b1;
      flush_q <= 1'b0;
    end else begin
      if (take) first_q <= wlast_i;
      if (take) flush_q <= wlast_i && !swallow && !data_eop;
      else if (data_room) flush_q <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      swallow_q <= swallow;
      error_q   <= error;
      moved_q   <= moved;
      words_q   <= words;
      carry_q   <= wdata_i[127:64];
    end
  end

  assign burst = '{
          pass: !swallow,
          error: error,
          id: awid_i,
          addr: {awaddr_i[AddrBits-1:4], first_q ? moved : moved_q, 3'b0},
          words: words
      };

  velo_fifo #(
      .Width(DataWidth + 1),
      .Depth(2 * MaxBeats)
  ) u_data (
      .clk_i,
      .rst_ni,
      .push_valid_i(data_push),
      .push_ready_o(data_room),
      .push_data_i ({data_eop, data}),
      .pop_valid_o (data_valid),
      .pop_ready_i (write_valid_o && write_ready_i),
      .pop_data_o  ({data_last, write_data_o}),
      .count_o     (unused_data_count)
  );

  velo_fifo #(
      .Width($bits(burst_t)),
      .Depth(4)
  ) u_bursts (
      .clk_i,
      .rst_ni,
      .push_valid_i(awready_o),
      .push_ready_o(burst_room),
      .push_data_i (burst),
      .pop_valid_o (burst_valid),
      .pop_ready_i (burst_end),
      .pop_data_o  (head),
      .count_o     (unused_burst_count)
  );

  // ----- what goes out --------------------------------------------------------------------------

  // The response register has to be free before a burst ends.
  logic response_free, leaves;
  assign response_free = !bvalid_o || bready_i;
  assign write_valid_o = burst_valid && head.pass && data_valid && (!data_last || response_free);
  assign write_eop_o = data_last;
  assign write_addr_o = head.addr;
  assign write_len_bytes_o = {1'b0, head.words, 3'b0};
  assign leaves = write_valid_o && write_ready_i && data_last;
  assign burst_end = burst_valid && (head.pass ? leaves : response_free);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) bvalid_o <= 1'b0;
    else if (burst_end) bvalid_o <= 1'b1;
    else if (bready_i) bvalid_o <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (burst_end) begin
      bid_o   <= head.id;
      bresp_o <= head.error ? RespSlaveError : RespOkay;
    end
  end

  logic unused;
  assign unused = ^{unused_data_count, unused_burst_count};

  // AXI: data of a burst has as many beats as its address says.
  logic [7:0] beats_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) beats_q <= '0;
    else if (take) beats_q <= wlast_i ? '0 : beats_q + 1'b1;
  end
  `VELO_ASSUME(LastIsLast, !take || wlast_i == (beats_q == awlen_i))

endmodule
