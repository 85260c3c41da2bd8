// SPDX-License-Identifier: Apache-2.0
//
// Promises of velo_pcie_msix with two vectors, for every write to its registers, every event, and whenever the stream
// takes a beat; looked at for one vector of one's choice:
//
//   * No interrupt without an event since the last one, and no event without an interrupt or a pending bit.
//   * None begins while the vector, the function or bus mastering is closed, nor before the moderation's time.
//   * It goes to the address, and has the data, that its entry has as it begins. What has begun stands.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_pcie_msix_props
  import htax_pkg::*;
  import pcie_pkg::*;
  import velo_pcie_pkg::*;
(
    input logic                       clk_i,
    input logic                       rst_ni,
    input config_t                    config_i,
    input logic                       open_i,
    input logic        [        15:0] moderation_i,
    input logic                       own_write_i,
    input logic        [PcieBar4Bits-1:0] own_write_addr_i,
    input logic        [        63:0] own_write_data_i,
    input logic        [         7:0] own_write_be_i,
    input logic        [PcieBar4Bits-1:0] own_addr_i,
    input logic                       event_valid_i,
    input logic        [AddrBits-1:0] event_addr_i,
    input logic                       tx_ready_i
);

  logic [63:0] own_data;
  tlp_beat_t tx;
  logic idle;
  velo_pcie_msix #(
      .Vectors(2)
  ) u_dut (
      .own_data_o(own_data),
      .tx_o      (tx),
      .idle_o    (idle),
      .*
  );

  logic past_q, vector_q;  // and the vector
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  always_ff @(posedge clk_i) begin
    past_q   <= 1'b1;
    vector_q <= vector_q;
  end
  // Few bits of long numbers, and no function that changes its number: all bits of a field are treated alike.
  `VELO_ASSUME(FewBits, {own_write_data_i[63:34], own_write_data_i[31:4],
               event_addr_i[47:13]} == '0 && config_i.id == '0)
  `VELO_ASSUME(ShortTimes, moderation_i <= 16'd3)

  // Its entry and watch, as they were written.
  logic entry_write, watch_write, mask_q;
  logic [1:0][63:0] entry_q;
  logic [63:0] watch_q;
  assign entry_write = own_write_i &&
      own_write_addr_i[PcieBar4Bits-1:4] == (PcieBar4Bits - 4)'(vector_q);
  assign watch_write = own_write_i &&
      own_write_addr_i[PcieBar4Bits-1:3] ==
      (PcieBar4Bits - 3)'(PcieRegWatch / 8) + (PcieBar4Bits - 3)'(vector_q);
  logic [1:0][1:0] written_q;  // halves of words that are known
  logic known_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned half = 0; half < 2; half++) begin
      if (!rst_ni) written_q[half] <= '0;
      else if (entry_write && own_write_be_i[4*half]) written_q[half][own_write_addr_i[3]] <= 1'b1;
      if (entry_write && own_write_be_i[4*half]) begin
        entry_q[own_write_addr_i[3]][32*half+:32] <= own_write_data_i[32*half+:32];
      end
      if (!rst_ni) watch_q[32*half+:32] <= '0;
      else if (watch_write && own_write_be_i[4*half]) begin
        watch_q[32*half+:32] <= own_write_data_i[32*half+:32];
      end
    end
    if (!rst_ni) mask_q <= 1'b1;
    else if (entry_write && own_write_addr_i[3] && own_write_be_i[4]) begin
      mask_q <= own_write_data_i[32];
    end
  end

  // An event reaches the pending bits a cycle after it came.
  pcie_watch_t watch;
  logic event_q, raised;
  logic [AddrBits-1:0] event_addr_q;
  assign watch = watch_q;
  always_ff @(posedge clk_i) begin
    event_q      <= rst_ni && event_valid_i && event_addr_i[3:0] == '0;
    event_addr_q <= event_addr_i;
  end
  assign raised = event_q && watch.enable &&
      ((event_addr_q[AddrBits-1:12] ^ watch.base) >> watch.size) == '0;

  // A packet of the vector begins: its first beat is taken.
  logic within_q, begins, its_begins, its_q;
  logic [63:0] sent_addr_q;
  logic [31:0] sent_data_q;
  assign begins = tx.valid && tx_ready_i && !within_q;
  assign its_begins = begins && u_dut.index_q == vector_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) within_q <= 1'b0;
    else if (tx.valid && tx_ready_i) within_q <= !tx.last;
    if (begins) begin
      its_q       <= its_begins;
      known_q     <= written_q[0] == '1 && written_q[1][0];
      sent_addr_q <= {entry_q[0][63:2], 2'b0};
      sent_data_q <= entry_q[1][31:0];
    end
  end

  velo_prop_caused u_caused (
      .clk_i,
      .rst_ni,
      .cause_i (raised),
      .effect_i(its_begins),
      .kept_i  (u_dut.pending_q[vector_q])
  );
  velo_prop_lasts u_lasts (
      .clk_i,
      .rst_ni,
      .begins_i(its_begins),
      .cycles_i(moderation_i),
      .fires_i (its_begins)
  );
  velo_prop_stands #(
      .Width(67)
  ) u_stands (
      .clk_i,
      .rst_ni,
      .valid_i   (tx.valid),
      .ready_i   (tx_ready_i),
      .withdraw_i(!within_q),
      .data_i    ({tx.last, tx.keep, tx.data})
  );
  `VELO_ASSERT(NotWhileClosed, !begins || (open_i && config_i.bus_master &&
               config_i.msix_enable && !config_i.msix_mask))
  `VELO_ASSERT(NotWhileMasked, !its_begins || !mask_q)
  `VELO_ASSERT(GoesOn, !within_q || tx.valid)
  logic short_address;
  assign short_address = sent_addr_q[63:32] == '0;
  logic second_q;  // the second beat is at hand
  always_ff @(posedge clk_i) begin
    if (!rst_ni) second_q <= 1'b0;
    else if (tx.valid && tx_ready_i) second_q <= begins;
  end
  `VELO_ASSERT(ToItsAddress, !(within_q && its_q && known_q && second_q) || (short_address ?
               tx.data == {sent_data_q, sent_addr_q[31:0]} :
               tx.data == {sent_addr_q[31:0], sent_addr_q[63:32]}))
  `VELO_ASSERT(WithItsData, !(within_q && its_q && known_q && !second_q) ||
               tx.data[31:0] == sent_data_q)

  `VELO_COVER(Long, its_q && known_q && tx.valid && tx.last && !second_q && within_q)
  `VELO_COVER(Again, its_begins && its_q && moderation_i == 16'd3)

endmodule
