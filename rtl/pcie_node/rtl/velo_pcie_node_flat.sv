// SPDX-License-Identifier: Apache-2.0
//
// velo_pcie_node with each signal of its streams, its configuration and its events as a port of its own, for programs
// that name ports: a simulator in C++ drives the Verilated model, which shows a struct as bits without names. Wires
// and nothing else. In other hardware take velo_pcie_node.
//
// Meaning of the ports: velo_pcie, velo_pcie_pkg (config_t, bar_t, receive_event_t), velo_node.

module velo_pcie_node_flat
  import velo_pkg::*;
#(
    parameter int unsigned NumLinks = 3,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned CtxBits = 8,
    parameter bit CustomUnit = 1'b1,
    parameter bit DimmnetUnit = 1'b0,
    parameter bit Ecc = 1'b0,
    parameter bit Multicast = 1'b0,
    parameter bit Barrier = 1'b0,
    parameter bit Congestion = 1'b0,
    parameter int unsigned Vectors = 8,
    parameter int unsigned StoreLines = 16,
    parameter int unsigned ReadSlots = 8,
    parameter int unsigned Bar2Bits = WindowUnitLsb + 2
) (
    input logic clk_i,
    input logic rst_ni,

    // Packets from the link, and the base address register that a request came by.
    input  logic        rx_valid_i,
    output logic        rx_ready_o,
    input  logic        rx_last_i,
    input  logic [ 1:0] rx_keep_i,
    input  logic [63:0] rx_data_i,
    input  logic        rx_bar0_i,
    input  logic        rx_bar2_i,
    input  logic        rx_bar4_i,
    output logic        rx_hold_o,

    // Packets to the link.
    output logic        tx_valid_o,
    input  logic        tx_ready_i,
    output logic        tx_last_o,
    output logic [ 1:0] tx_keep_o,
    output logic [63:0] tx_data_o,
    input  logic        tx_nonposted_ok_i,

    // What the configuration space says.
    input logic [15:0] config_id_i,
    input logic        config_bus_master_i,
    input logic        config_relaxed_i,
    input logic [ 2:0] config_max_payload_i,
    input logic [ 2:0] config_max_read_i,
    input logic        config_msix_enable_i,
    input logic        config_msix_mask_i,

    // Pulses.
    output logic event_poisoned_o,
    output logic event_unsupported_o,
    output logic event_malformed_o,
    output logic event_unexpected_o,
    output logic event_timeout_o,

    // Function-level reset.
    input  logic flr_i,
    output logic flr_done_o,

    // By link.
    input  logic [NumLinks-1:0]       phy_up_i,
    input  logic [NumLinks-1:0][ 1:0] phy_kind_i,
    input  logic [NumLinks-1:0][63:0] phy_data_i,
    input  logic [NumLinks-1:0]       phy_pause_i,
    output logic [NumLinks-1:0][ 1:0] phy_kind_o,
    output logic [NumLinks-1:0][63:0] phy_data_o,

    output logic [7:0] node_id_o
);

  velo_pcie_node #(
      .NumLinks(NumLinks),
      .NumVcs(NumVcs),
      .MtuBytes(MtuBytes),
      .CtxBits(CtxBits),
      .CustomUnit(CustomUnit),
      .DimmnetUnit(DimmnetUnit),
      .Ecc(Ecc),
      .Multicast(Multicast),
      .Barrier(Barrier),
      .Congestion(Congestion),
      .Vectors(Vectors),
      .StoreLines(StoreLines),
      .ReadSlots(ReadSlots),
      .Bar2Bits(Bar2Bits)
  ) u_node (
      .clk_i,
      .rst_ni,
      .rx_valid_i,
      .rx_ready_o,
      .rx_last_i,
      .rx_keep_i,
      .rx_data_i,
      .rx_bar_i('{bar4: rx_bar4_i, bar2: rx_bar2_i, bar0: rx_bar0_i}),
      .rx_hold_o,
      .tx_valid_o,
      .tx_ready_i,
      .tx_last_o,
      .tx_keep_o,
      .tx_data_o,
      .tx_nonposted_ok_i,
      .config_i(
      '{
          id: config_id_i,
          bus_master: config_bus_master_i,
          relaxed: config_relaxed_i,
          max_payload: config_max_payload_i,
          max_read: config_max_read_i,
          msix_enable: config_msix_enable_i,
          msix_mask: config_msix_mask_i
      }
      ),
      .event_o({event_poisoned_o, event_unsupported_o, event_malformed_o}),
      .unexpected_o(event_unexpected_o),
      .timeout_o(event_timeout_o),
      .flr_i,
      .flr_done_o,
      .phy_up_i,
      .phy_kind_i,
      .phy_data_i,
      .phy_pause_i,
      .phy_kind_o,
      .phy_data_o,
      .node_id_o
  );

endmodule
