// SPDX-License-Identifier: Apache-2.0
//
// Physical coding sublayer: between a link port's PHY boundary and the parallel side of serializers.
//
// `link_*` is the `phy_*` of a velo_link, in its clock: a word and a kind in every cycle, both ways.
// `wire_*` are WireBits of each lane in each cycle of its clock, bit 0 on the wire first; the receiving
// ones begin anywhere. 8b/10b lanes carry 32 bits of the word, 64b/66b lanes 64: NumLanes = 1, 2, 4
// and 1, 2. `pause_i` of the link port takes `link_pause_o`.
// Clocks: `clk_i` may be faster than the serializers' word clock by any ratio, not slower than what
// comes in: at least (1 - 1/SkipEvery) of the other side's word clock. If the serializers run from
// `clk_i`, TxCrossing = 0 saves two cycles.
//
// `up_o`: words come in that are right but for errors of bits. Down with the lock of a lane, lanes
// out of step, or nothing but silence for SilenceCycles (a recovered clock may stand still).
// Errors are counted modulo 65536, in the clock of the link port, all lanes together; a word known to
// be wrong goes to the link port as a control word with a wrong CRC.
// Latency in cycles, TxCrossing = 0, one lane: see the README.
// Source: case-for-fpga, sections 3.C (8b/10b, 32 bits, word clock as core clock) and 3.D (two links
// bundled to one of 64 bits); IEEE 802.3, clauses 36, 48 and 49.

`include "velo_assert.svh"

module velo_pcs
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
#(
    parameter coding_e Coding = Coding8b10b,
    parameter int unsigned NumLanes = 1,
    parameter bit TxCrossing = 1'b1,  // `tx_clk_i` is not `clk_i`
    parameter int unsigned SkipEvery = 256,  // cycles from skip set to skip set, a power of two
    parameter int unsigned SkewDepth = 16,  // words; lanes may differ by 5 words with 16
    parameter int unsigned SilenceCycles = 4096,
    localparam int unsigned WireBits = wire_bits(Coding),
    localparam int unsigned DataWidth = lane_bits(Coding) * NumLanes
) (
    input logic clk_i,  // of the link port
    input logic rst_ni, // of the link port; clears all other domains too

    input  kind_e                 link_kind_i,   // word to send: its kind
    input  logic  [DataWidth-1:0] link_data_i,   // word to send
    output logic                  link_pause_o,  // send idle words, there is no room for others
    output kind_e                 link_kind_o,   // word that came: its kind
    output logic  [DataWidth-1:0] link_data_o,   // word that came
    output logic                  up_o,          // words come: `phy_up_i` of the link port

    input  logic                              tx_clk_i,  // of the serializers, a word a cycle
    output logic [NumLanes-1:0][WireBits-1:0] wire_o,    // to the serializers

    input logic [NumLanes-1:0]               rx_clk_i,  // recovered, a word a cycle
    input logic [NumLanes-1:0]               signal_i,  // the receiver sees a signal; asynchronous
    input logic [NumLanes-1:0][WireBits-1:0] wire_i,    // from the deserializers

    output logic [15:0] code_errors_o,       // groups with no symbol, blocks with no header or type
    output logic [15:0] disparity_errors_o,  // groups with a symbol at the wrong disparity
    output logic [15:0] skips_o,             // skip sets that came, over all lanes
    output logic [15:0] lock_losses_o,       // ends of a lane's lock, or of the lanes' step
    output logic [15:0] lost_words_o         // words that found no room, either way: a wrong clock
);

  // ----- Resets -------------------------------------------------------------------------------------

  logic tx_clk, tx_rst_n;
  logic [NumLanes-1:0] rx_rst_n, signal_seen;

  if (TxCrossing) begin : gen_tx_clock
    assign tx_clk = tx_clk_i;
    velo_rst_sync u_tx_rst (
        .clk_i (tx_clk_i),
        .rst_ni(rst_ni),
        .rst_no(tx_rst_n)
    );
  end else begin : gen_link_clock
    assign tx_clk   = clk_i;
    assign tx_rst_n = rst_ni;
    logic unused;
    assign unused = tx_clk_i;
  end
  for (genvar l = 0; l < NumLanes; l++) begin : gen_rx_reset
    velo_rst_sync u_rx_rst (
        .clk_i (rx_clk_i[l]),
        .rst_ni(rst_ni),
        .rst_no(rx_rst_n[l])
    );
    velo_cdc_sync u_signal (
        .clk_i (rx_clk_i[l]),
        .rst_ni(rx_rst_n[l]),
        .d_i   (signal_i[l]),
        .q_o   (signal_seen[l])
    );
  end

  // ----- Sending ------------------------------------------------------------------------------------

  logic send_valid, send_ready, send_lost;
  kind_e send_kind;
  logic [DataWidth-1:0] send_data;

  velo_pcs_send #(
      .DataWidth(DataWidth),
      .Crossing (TxCrossing)
  ) u_send (
      .clk_i      (clk_i),
      .rst_ni     (rst_ni),
      .kind_i     (link_kind_i),
      .data_i     (link_data_i),
      .pause_o    (link_pause_o),
      .lost_o     (send_lost),
      .lane_clk_i (tx_clk),
      .lane_rst_ni(tx_rst_n),
      .valid_o    (send_valid),
      .ready_i    (send_ready),
      .kind_o     (send_kind),
      .data_o     (send_data)
  );
  velo_pcs_tx #(
      .Coding   (Coding),
      .NumLanes (NumLanes),
      .SkipEvery(SkipEvery)
  ) u_tx (
      .clk_i  (tx_clk),
      .rst_ni (tx_rst_n),
      .valid_i(send_valid),
      .ready_o(send_ready),
      .kind_i (send_kind),
      .data_i (send_data),
      .wire_o (wire_o)
  );

  // ----- Receiving ----------------------------------------------------------------------------------

  logic [NumLanes-1:0] locked, code_error, disparity_error, skip, lock_lost;
  logic aligned, skew_lost, type_error, valid, wrong, recv_lost, came;
  kind_e kind;
  logic [DataWidth-1:0] data;

  velo_pcs_rx #(
      .Coding   (Coding),
      .NumLanes (NumLanes),
      .SkewDepth(SkewDepth)
  ) u_rx (
      .clk_i            (rx_clk_i),
      .rst_ni           (rx_rst_n),
      .signal_i         (signal_seen),
      .wire_i           (wire_i),
      .locked_o         (locked),
      .code_error_o     (code_error),
      .disparity_error_o(disparity_error),
      .skip_o           (skip),
      .lost_o           (lock_lost),
      .aligned_o        (aligned),
      .skew_lost_o      (skew_lost),
      .type_error_o     (type_error),
      .valid_o          (valid),
      .wrong_o          (wrong),
      .kind_o           (kind),
      .data_o           (data)
  );
  velo_pcs_elastic #(
      .DataWidth(DataWidth)
  ) u_elastic (
      .clk_i      (rx_clk_i[0]),
      .rst_ni     (rx_rst_n[0]),
      .valid_i    (valid && aligned),
      .wrong_i    (wrong),
      .kind_i     (kind),
      .data_i     (data),
      .lost_o     (recv_lost),
      .link_clk_i (clk_i),
      .link_rst_ni(rst_ni),
      .came_o     (came),
      .kind_o     (link_kind_o),
      .data_o     (link_data_o)
  );

  // ----- Up, and silence ----------------------------------------------------------------------------

  localparam int unsigned SilenceBits = $clog2(SilenceCycles + 1);

  logic [NumLanes:0] fit;
  logic [SilenceBits-1:0] silence_q;
  velo_cdc_sync #(
      .Width(NumLanes + 1)
  ) u_fit (
      .clk_i (clk_i),
      .rst_ni(rst_ni),
      .d_i   ({aligned, locked}),
      .q_o   (fit)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      silence_q <= '0;
      up_o      <= 1'b0;
    end else begin
      if (came) silence_q <= '0;
      else if (silence_q != SilenceBits'(SilenceCycles)) silence_q <= silence_q + 1'b1;
      up_o <= fit == '1 && silence_q != SilenceBits'(SilenceCycles);
    end
  end

  // ----- Counters -----------------------------------------------------------------------------------

  velo_pcs_counters #(
      .NumLanes(NumLanes)
  ) u_counters (
      .clk_i             (clk_i),
      .rst_ni            (rst_ni),
      .rx_clk_i          (rx_clk_i),
      .rx_rst_ni         (rx_rst_n),
      .code_error_i      (code_error),
      .disparity_error_i (disparity_error),
      .skip_i            (skip),
      .lock_lost_i       (lock_lost),
      .type_error_i      (type_error),
      .skew_lost_i       (skew_lost),
      .recv_lost_i       (recv_lost),
      .send_lost_i       (send_lost),
      .code_errors_o     (code_errors_o),
      .disparity_errors_o(disparity_errors_o),
      .skips_o           (skips_o),
      .lock_losses_o     (lock_losses_o),
      .lost_words_o      (lost_words_o)
  );

  `VELO_ASSERT_INIT(WidthOfALink, DataWidth inside {32, 64, 128})
  `VELO_ASSERT(NoWordIsLostOnTheWayOut, !send_lost)

endmodule
