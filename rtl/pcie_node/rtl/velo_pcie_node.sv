// SPDX-License-Identifier: Apache-2.0
//
// A node that is a PCI Express endpoint function: velo_pcie and velo_node at 64 bits, on one clock.
//
// Packets, configuration, events and function-level reset: see velo_pcie. `phy_*`: see velo_link. A function-level
// reset is one of the node, too: its links go down and its registers are as after `rst_ni`; what it was about to send
// is gone, and its neighbours' links come up again once software has enabled them here.
//
// Order, answers, errors: those of the two. The node's packets need not wait to be whole (`WholeRequests` = 0): the
// function begins a store to it, and an answer to its read, when it has all of it.
// Latency: an 8-byte message from packet in at one host to packet out at the other one, one hop, PHY without delay: see
// README.md.
//
// Source: VELO white paper (host interface); case-for-fpga, section 3.C.

`include "velo_assert.svh"

module velo_pcie_node
  import velo_pkg::*;
  import velo_host_pkg::*;
  import velo_pcie_pkg::config_t;
  import velo_pcie_pkg::bar_t;
  import velo_pcie_pkg::receive_event_t;
#(
    parameter int unsigned NumLinks = 3,  // this and what follows: see velo_node
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned CtxBits = 8,
    parameter bit CustomUnit = 1'b1,
    parameter bit DimmnetUnit = 1'b0,
    parameter bit Ecc = 1'b0,
    parameter bit Multicast = 1'b0,
    parameter bit Barrier = 1'b0,
    parameter bit Congestion = 1'b0,
    parameter int unsigned Vectors = 8,  // this and what follows: see velo_pcie
    parameter int unsigned StoreLines = 16,
    parameter int unsigned ReadSlots = 8,
    parameter int unsigned Bar2Bits = WindowUnitLsb + 2,
    localparam int unsigned DataWidth = velo_pcie_pkg::DataWidth
) (
    input logic clk_i,
    input logic rst_ni,

    // Packets from the link.
    input  logic        rx_valid_i,
    output logic        rx_ready_o,
    input  logic        rx_last_i,
    input  logic [ 1:0] rx_keep_i,
    input  logic [63:0] rx_data_i,
    input  bar_t        rx_bar_i,
    output logic        rx_hold_o,

    // Packets to the link.
    output logic        tx_valid_o,
    input  logic        tx_ready_i,
    output logic        tx_last_o,
    output logic [ 1:0] tx_keep_o,
    output logic [63:0] tx_data_o,
    input  logic        tx_nonposted_ok_i,

    input  config_t        config_i,
    output receive_event_t event_o,
    output logic           unexpected_o,
    output logic           timeout_o,
    input  logic           flr_i,
    output logic           flr_done_o,

    // By link: words to and from its PHY, one in each cycle.
    input  logic [NumLinks-1:0]                phy_up_i,
    input  logic [NumLinks-1:0][          1:0] phy_kind_i,
    input  logic [NumLinks-1:0][DataWidth-1:0] phy_data_i,
    input  logic [NumLinks-1:0]                phy_pause_i,
    output logic [NumLinks-1:0][          1:0] phy_kind_o,
    output logic [NumLinks-1:0][DataWidth-1:0] phy_data_o,

    output logic [7:0] node_id_o
);

  logic node_rst_n;
  host_request_t host_request, control_request;
  host_response_t host_response, control_response;
  dma_request_t  dma_request;
  dma_response_t dma_response;
  logic [DataWidth-1:0] host_write_data, host_answer_data;
  logic [DataWidth-1:0] control_write_data, control_answer_data;
  logic [DataWidth-1:0] dma_write_data, dma_answer_data;

  velo_pcie #(
      .Vectors   (Vectors),
      .StoreLines(StoreLines),
      .ReadSlots (ReadSlots),
      .Bar2Bits  (Bar2Bits)
  ) u_pcie (
      .clk_i,
      .rst_ni,
      .rx_valid_i,
      .rx_ready_o,
      .rx_last_i,
      .rx_keep_i,
      .rx_data_i,
      .rx_bar_i,
      .rx_hold_o,
      .tx_valid_o,
      .tx_ready_i,
      .tx_last_o,
      .tx_keep_o,
      .tx_data_o,
      .tx_nonposted_ok_i,
      .config_i,
      .event_o,
      .unexpected_o,
      .timeout_o,
      .flr_i,
      .flr_done_o,
      .function_rst_no      (node_rst_n),
      .host_request_o       (host_request),
      .host_write_data_o    (host_write_data),
      .host_response_i      (host_response),
      .host_answer_data_i   (host_answer_data),
      .control_request_o    (control_request),
      .control_write_data_o (control_write_data),
      .control_response_i   (control_response),
      .control_answer_data_i(control_answer_data),
      .dma_request_i        (dma_request),
      .dma_write_data_i     (dma_write_data),
      .dma_response_o       (dma_response),
      .dma_answer_data_o    (dma_answer_data)
  );

  velo_node #(
      .DataWidth  (DataWidth),
      .NumLinks   (NumLinks),
      .NumVcs     (NumVcs),
      .MtuBytes   (MtuBytes),
      .CtxBits    (CtxBits),
      .CustomUnit (CustomUnit),
      .DimmnetUnit(DimmnetUnit),
      .Ecc        (Ecc),
      .Multicast  (Multicast),
      .Barrier    (Barrier),
      .Congestion (Congestion)
  ) u_node (
      .clk_i,
      .rst_ni               (node_rst_n),
      .host_request_i       (host_request),
      .host_write_data_i    (host_write_data),
      .host_response_o      (host_response),
      .host_answer_data_o   (host_answer_data),
      .control_request_i    (control_request),
      .control_write_data_i (control_write_data),
      .control_response_o   (control_response),
      .control_answer_data_o(control_answer_data),
      .dma_request_o        (dma_request),
      .dma_write_data_o     (dma_write_data),
      .dma_response_i       (dma_response),
      .dma_answer_data_i    (dma_answer_data),
      .phy_up_i,
      .phy_kind_i,
      .phy_data_i,
      .phy_pause_i,
      .phy_kind_o,
      .phy_data_o,
      .node_id_o
  );

endmodule
