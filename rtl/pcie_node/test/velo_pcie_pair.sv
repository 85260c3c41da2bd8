// SPDX-License-Identifier: Apache-2.0
//
// Two nodes that are PCI Express functions, `a` and `b`, with one cable between their links 0: a PHY without delay.
// Each side's streams have ports of their own, as velo_pcie has them.

module velo_pcie_pair
  import velo_pcie_pkg::config_t;
  import velo_pcie_pkg::bar_t;
  import velo_pcie_pkg::receive_event_t;
#(
    parameter int unsigned CtxBits = 3
) (
    input logic clk_i,
    input logic rst_ni,


    input logic a_rx_valid_i,
    output logic a_rx_ready_o,
    input logic a_rx_last_i,
    input logic [1:0] a_rx_keep_i,
    input logic [63:0] a_rx_data_i,
    input bar_t a_rx_bar_i,
    output logic a_rx_hold_o,
    output logic a_tx_valid_o,
    input logic a_tx_ready_i,
    output logic a_tx_last_o,
    output logic [1:0] a_tx_keep_o,
    output logic [63:0] a_tx_data_o,
    input logic a_tx_nonposted_ok_i,
    input config_t a_config_i,
    output receive_event_t a_event_o,
    output logic a_unexpected_o,
    output logic a_timeout_o,
    input logic a_flr_i,
    output logic a_flr_done_o,
    output logic [7:0] a_node_id_o,

    input logic b_rx_valid_i,
    output logic b_rx_ready_o,
    input logic b_rx_last_i,
    input logic [1:0] b_rx_keep_i,
    input logic [63:0] b_rx_data_i,
    input bar_t b_rx_bar_i,
    output logic b_rx_hold_o,
    output logic b_tx_valid_o,
    input logic b_tx_ready_i,
    output logic b_tx_last_o,
    output logic [1:0] b_tx_keep_o,
    output logic [63:0] b_tx_data_o,
    input logic b_tx_nonposted_ok_i,
    input config_t b_config_i,
    output receive_event_t b_event_o,
    output logic b_unexpected_o,
    output logic b_timeout_o,
    input logic b_flr_i,
    output logic b_flr_done_o,
    output logic [7:0] b_node_id_o
);

  // By side.
  logic [1:0][0:0][ 1:0] kind;
  logic [1:0][0:0][63:0] data;

  velo_pcie_node_flat #(
      .NumLinks  (1),
      .CtxBits   (CtxBits),
      .CustomUnit(1'b0)
  ) u_a (
      .clk_i,
      .rst_ni,
      .rx_valid_i(a_rx_valid_i),
      .rx_ready_o(a_rx_ready_o),
      .rx_last_i(a_rx_last_i),
      .rx_keep_i(a_rx_keep_i),
      .rx_data_i(a_rx_data_i),
      .rx_bar0_i(a_rx_bar_i.bar0),
      .rx_bar2_i(a_rx_bar_i.bar2),
      .rx_bar4_i(a_rx_bar_i.bar4),
      .rx_hold_o(a_rx_hold_o),
      .tx_valid_o(a_tx_valid_o),
      .tx_ready_i(a_tx_ready_i),
      .tx_last_o(a_tx_last_o),
      .tx_keep_o(a_tx_keep_o),
      .tx_data_o(a_tx_data_o),
      .tx_nonposted_ok_i(a_tx_nonposted_ok_i),
      .config_id_i(a_config_i.id),
      .config_bus_master_i(a_config_i.bus_master),
      .config_relaxed_i(a_config_i.relaxed),
      .config_max_payload_i(a_config_i.max_payload),
      .config_max_read_i(a_config_i.max_read),
      .config_msix_enable_i(a_config_i.msix_enable),
      .config_msix_mask_i(a_config_i.msix_mask),
      .event_poisoned_o(a_event_o.poisoned),
      .event_unsupported_o(a_event_o.unsupported),
      .event_malformed_o(a_event_o.malformed),
      .event_unexpected_o(a_unexpected_o),
      .event_timeout_o(a_timeout_o),
      .flr_i(a_flr_i),
      .flr_done_o(a_flr_done_o),
      .node_id_o(a_node_id_o),
      .phy_up_i(1'b1),
      .phy_kind_i(kind[1]),
      .phy_data_i(data[1]),
      .phy_pause_i(1'b0),
      .phy_kind_o(kind[0]),
      .phy_data_o(data[0])
  );

  velo_pcie_node_flat #(
      .NumLinks  (1),
      .CtxBits   (CtxBits),
      .CustomUnit(1'b0)
  ) u_b (
      .clk_i,
      .rst_ni,
      .rx_valid_i(b_rx_valid_i),
      .rx_ready_o(b_rx_ready_o),
      .rx_last_i(b_rx_last_i),
      .rx_keep_i(b_rx_keep_i),
      .rx_data_i(b_rx_data_i),
      .rx_bar0_i(b_rx_bar_i.bar0),
      .rx_bar2_i(b_rx_bar_i.bar2),
      .rx_bar4_i(b_rx_bar_i.bar4),
      .rx_hold_o(b_rx_hold_o),
      .tx_valid_o(b_tx_valid_o),
      .tx_ready_i(b_tx_ready_i),
      .tx_last_o(b_tx_last_o),
      .tx_keep_o(b_tx_keep_o),
      .tx_data_o(b_tx_data_o),
      .tx_nonposted_ok_i(b_tx_nonposted_ok_i),
      .config_id_i(b_config_i.id),
      .config_bus_master_i(b_config_i.bus_master),
      .config_relaxed_i(b_config_i.relaxed),
      .config_max_payload_i(b_config_i.max_payload),
      .config_max_read_i(b_config_i.max_read),
      .config_msix_enable_i(b_config_i.msix_enable),
      .config_msix_mask_i(b_config_i.msix_mask),
      .event_poisoned_o(b_event_o.poisoned),
      .event_unsupported_o(b_event_o.unsupported),
      .event_malformed_o(b_event_o.malformed),
      .event_unexpected_o(b_unexpected_o),
      .event_timeout_o(b_timeout_o),
      .flr_i(b_flr_i),
      .flr_done_o(b_flr_done_o),
      .node_id_o(b_node_id_o),
      .phy_up_i(1'b1),
      .phy_kind_i(kind[0]),
      .phy_data_i(data[0]),
      .phy_pause_i(1'b0),
      .phy_kind_o(kind[1]),
      .phy_data_o(data[1])
  );

endmodule
