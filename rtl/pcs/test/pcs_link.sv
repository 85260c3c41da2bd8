// SPDX-License-Identifier: Apache-2.0
//
// A link port over its PCS: what bench_link.cc builds two of.

module pcs_link
  import velo_pcs_pkg::*;
  import velo_link_pkg::*;
#(
    parameter coding_e Coding = Coding8b10b,
    parameter int unsigned NumLanes = 1,
    localparam int unsigned WireBits = wire_bits(Coding),
    localparam int unsigned DataWidth = lane_bits(Coding) * NumLanes
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 in_valid_i,
    input  logic                 in_sop_i,
    input  logic                 in_eop_i,
    input  logic [DataWidth-1:0] in_data_i,
    output logic                 in_stop_o,
    output logic                 out_valid_o,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic                 out_poison_o,
    output logic                 out_again_o,
    output logic [DataWidth-1:0] out_data_o,
    output logic                 up_o,
    output logic                 phy_up_o,
    output logic [          2:0] refuse_o,
    output logic [          7:0] crc_errors_o,
    output logic [          7:0] replays_o,
    output logic [          7:0] timeouts_o,

    input  logic                              tx_clk_i,
    output logic [NumLanes-1:0][WireBits-1:0] wire_o,
    input  logic [NumLanes-1:0]               rx_clk_i,
    input  logic [NumLanes-1:0]               signal_i,
    input  logic [NumLanes-1:0][WireBits-1:0] wire_i,
    output logic [        15:0]               code_errors_o,
    output logic [        15:0]               disparity_errors_o,
    output logic [        15:0]               lock_losses_o,
    output logic [        15:0]               lost_words_o
);

  logic phy_up, pause;
  kind_e to_wire, from_wire;
  logic [DataWidth-1:0] word_to_wire, word_from_wire;
  logic [15:0] skips;
  vc_t vc;
  count_t credits;
  count_t [0:0] freed;
  refuse_e refuse;
  logic [7:0] in_doubt, restarts;
  velo_secded_pkg::ecc_t ecc;
  assign phy_up_o = phy_up;
  assign refuse_o = refuse;

  velo_link #(
      .DataWidth(DataWidth),
      .NumVcs   (1)
  ) u_link (
      .clk_i       (clk_i),
      .rst_ni      (rst_ni),
      .enable_i    (1'b1),
      .link_reset_i(1'b0),
      .forget_i    (1'b0),
      .phy_up_i    (phy_up),
      .phy_kind_i  (from_wire),
      .phy_data_i  (word_from_wire),
      .phy_pause_i (pause),
      .phy_kind_o  (to_wire),
      .phy_data_o  (word_to_wire),
      .in_valid_i  (in_valid_i),
      .in_sop_i    (in_sop_i),
      .in_eop_i    (in_eop_i),
      .in_poison_i (1'b0),
      .in_vc_i     ('0),
      .in_data_i   (in_data_i),
      .in_stop_o   (in_stop_o),
      .out_valid_o (out_valid_o),
      .out_sop_o   (out_sop_o),
      .out_eop_o   (out_eop_o),
      .out_poison_o(out_poison_o),
      .out_again_o (out_again_o),
      .out_vc_o    (vc),
      .out_data_o  (out_data_o),
      .out_freed_i ('0),
      .credits_o   (credits),
      .freed_o     (freed),
      .up_o        (up_o),
      .refuse_o    (refuse),
      .crc_errors_o(crc_errors_o),
      .replays_o   (replays_o),
      .timeouts_o  (timeouts_o),
      .in_doubt_o  (in_doubt),
      .restarts_o  (restarts),
      .ecc_o       (ecc)
  );

  velo_pcs #(
      .Coding  (Coding),
      .NumLanes(NumLanes)
  ) u_pcs (
      .clk_i             (clk_i),
      .rst_ni            (rst_ni),
      .link_kind_i       (to_wire),
      .link_data_i       (word_to_wire),
      .link_pause_o      (pause),
      .link_kind_o       (from_wire),
      .link_data_o       (word_from_wire),
      .up_o              (phy_up),
      .tx_clk_i          (tx_clk_i),
      .wire_o            (wire_o),
      .rx_clk_i          (rx_clk_i),
      .signal_i          (signal_i),
      .wire_i            (wire_i),
      .code_errors_o     (code_errors_o),
      .disparity_errors_o(disparity_errors_o),
      .skips_o           (skips),
      .lock_losses_o     (lock_losses_o),
      .lost_words_o      (lost_words_o)
  );

  logic unused;
  assign unused = ^{vc, credits, freed, skips, in_doubt, restarts, ecc};

endmodule
