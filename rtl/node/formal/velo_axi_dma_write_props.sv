// SPDX-License-Identifier: Apache-2.0
//
// Promises of velo_axi_dma_write, for every slave, and writes of up to 11 bytes at any of 64 places:
//
//   * Data do not wait for the address to be taken, nor the address for data (AXI4, A3.3.1); what is offered stands.
//   * A burst has as many beats as its address says, `wlast` with the last; each write is one burst, in order.
//   * A write is taken with the last beat of its burst: what was taken has left.
//   * One byte of one's choice is written with its value if it is in the write, and by no other write.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_axi_dma_write_props (
    input logic        clk_i,
    input logic        rst_ni,
    input logic        hold_i,
    input logic        dma_write_valid_i,
    input logic        dma_write_eop_i,
    input logic [11:0] dma_write_addr_i,
    input logic [ 9:0] dma_write_len_bytes_i,
    input logic [31:0] dma_write_data_i,
    input logic        awready_i,
    input logic        wready_i
);

  logic ready, awvalid, wvalid, wlast;
  logic [15:0] awid;
  logic [11:0] awaddr;
  logic [7:0] awlen;
  logic [2:0] awsize;
  logic [1:0] awburst;
  logic [31:0] wdata;
  logic [3:0] wstrb;
  velo_axi_dma_write #(
      .AddrBits(12)
  ) u_dut (
      .dma_write_ready_o(ready),
      .awvalid_o        (awvalid),
      .awid_o           (awid),
      .awaddr_o         (awaddr),
      .awlen_o          (awlen),
      .awsize_o         (awsize),
      .awburst_o        (awburst),
      .wvalid_o         (wvalid),
      .wlast_o          (wlast),
      .wdata_o          (wdata),
      .wstrb_o          (wstrb),
      .*
  );

  // ----- the writer -------------------------------------------------------------------------------

  logic past_q, open_q, stands_q, hold_q, asks_q, take;
  logic [54:0] offer, offer_q;
  logic [21:0] write_q;  // its address and length
  logic [2:0] beat_q, last_beat;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  assign take = dma_write_valid_i && ready;
  assign offer = {dma_write_eop_i, dma_write_len_bytes_i, dma_write_addr_i, dma_write_data_i};
  assign last_beat = 3'((dma_write_len_bytes_i - 10'd1) >> 2);
  always_ff @(posedge clk_i) begin
    past_q   <= 1'b1;
    stands_q <= rst_ni && dma_write_valid_i && !ready;
    offer_q  <= offer;
    if (take && !open_q) write_q <= offer[53:32];
    hold_q   <= hold_i;
    asks_q   <= rst_ni && awvalid && !awready_i;
    if (!rst_ni) begin
      open_q <= 1'b0;
      beat_q <= '0;
    end else if (take) begin
      open_q <= !dma_write_eop_i;
      beat_q <= dma_write_eop_i ? '0 : beat_q + 3'd1;
    end
  end
  `VELO_ASSUME(OfferStands, !stands_q || (dma_write_valid_i && offer == offer_q))
  `VELO_ASSUME(OneWrite, !open_q || !dma_write_valid_i || offer[53:32] == write_q)
  `VELO_ASSUME(FewBytes, dma_write_len_bytes_i inside {[10'd1 : 10'd11]})
  `VELO_ASSUME(FewPlaces, dma_write_addr_i[11:6] == '0)
  `VELO_ASSUME(EndsAtItsEnd, dma_write_eop_i == (beat_q == last_beat))
  // velo_axi_master holds while 63 writes are under way; a burst that has begun is one of them.
  `VELO_ASSUME(HoldNotWhileAsking, !asks_q || !hold_i)

  // ----- promises ---------------------------------------------------------------------------------

  logic asked, ended;
  assign asked = awvalid && awready_i;
  assign ended = wvalid && wready_i && wlast;
  velo_prop_stands #(
      .Width(20)
  ) u_address_stands (
      .clk_i,
      .rst_ni,
      .valid_i   (awvalid),
      .ready_i   (awready_i),
      .withdraw_i(1'b0),
      .data_i    ({awaddr, awlen})
  );
  velo_prop_stands #(
      .Width(37)
  ) u_data_stand (
      .clk_i,
      .rst_ni,
      .valid_i   (wvalid),
      .ready_i   (wready_i),
      .withdraw_i(1'b0),
      .data_i    ({wlast, wstrb, wdata})
  );
  `VELO_ASSERT(TakenHasLeft, (take && dma_write_eop_i) == ended)

  // Bursts whose address was taken and whose data were not all, or the reverse: one is under way.
  logic address_due_q, data_due_q, begins;  // of the burst that is under way
  logic [7:0] left_q;  // beats, less one
  assign begins = awvalid && !asks_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      address_due_q <= 1'b0;
      data_due_q    <= 1'b0;
    end else begin
      if (begins) data_due_q <= 1'b1;
      else if (ended) data_due_q <= 1'b0;
      address_due_q <= awvalid && !awready_i;
    end
    if (begins) left_q <= awlen;
    else if (wvalid && wready_i) left_q <= left_q - 8'd1;
  end
  `VELO_ASSERT(OneAtATime, !begins || (!data_due_q && !address_due_q))
  `VELO_ASSERT(DataOfABurst, !wvalid || data_due_q)
  `VELO_ASSERT(AsManyAsSaid, !wvalid || wlast == (left_q == '0))
  velo_prop_ends #(
      .Cycles(1)
  ) u_data_do_not_wait (
      .clk_i,
      .rst_ni,
      .waits_i(dma_write_valid_i && !wvalid && !hold_i && !(address_due_q && !data_due_q))
  );

  // One byte of one's choice.
  logic [11:0] place_q, at, at_q;
  logic [7:0] value;
  logic [11:0] from_start;
  logic mine, given_q;
  always_ff @(posedge clk_i) place_q <= place_q;
  assign at = begins ? awaddr : at_q;
  always_ff @(posedge clk_i) begin
    if (begins) at_q <= awaddr;
    else if (wvalid && wready_i) at_q <= at_q + 12'd4;
  end
  assign from_start = place_q - dma_write_addr_i;
  assign mine = place_q >= dma_write_addr_i && from_start < 12'(dma_write_len_bytes_i);
  logic hits;
  assign hits = wvalid && at[11:2] == place_q[11:2];
  // Its value, from the beat of the writer that has it.
  logic [7:0] value_q, here;
  logic has;
  assign has  = dma_write_valid_i && mine && from_start[11:2] == 10'(beat_q);
  assign here = 8'(dma_write_data_i >> {from_start[1:0], 3'b0});
  assign value = has ? here : value_q;
  always_ff @(posedge clk_i) if (has) value_q <= here;
  `VELO_ASSERT(WrittenIfItsOwn, !hits || wstrb[place_q[1:0]] == mine)
  `VELO_ASSERT(WithItsValue, !hits || !mine || 8'(wdata >> {place_q[1:0], 3'b0}) == value)

  // ----- all of this happens ----------------------------------------------------------------------

  `VELO_COVER(DataFirst, ended && address_due_q)
  `VELO_COVER(Spills, ended && awlen == 8'd3 && hits && mine)

endmodule
