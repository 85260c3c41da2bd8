// SPDX-License-Identifier: Apache-2.0
//
// A node that is a PCI Express function, with clocks of its own for the function, the core and the links: velo_pcie
// and velo_node_clocks, PCS included, at 64 bits. The function runs on the hard block's clock, which is the host
// clock of velo_node_clocks.
//
// Packets, configuration, events, function-level reset: see velo_pcie, all on `pcie_clk_i`. Wires and clocks of the
// links: see velo_node_clocks. A function-level reset resets core and links, too, at once and without their
// clocks; each leaves it by its own.
//
// Order, answers, errors: those of the two. What crosses the clocks may pause, so the node's packets wait until they
// are whole (`WholeRequests` = 1).
// Latency: as velo_pcie_node; whole packets, and four cycles of the slower clock for each crossing, besides.
//
// Source: VELO white paper (host interface); case-for-fpga, section 3.C.

`include "velo_assert.svh"

module velo_pcie_node_clocks
  import velo_pkg::*;
  import velo_host_pkg::*;
  import velo_pcs_pkg::*;
  import velo_pcie_pkg::config_t;
  import velo_pcie_pkg::bar_t;
  import velo_pcie_pkg::receive_event_t;
#(
    parameter int unsigned NumLinks = 3,  // this and what follows: see velo_node_clocks
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned CtxBits = 8,
    parameter bit CustomUnit = 1'b1,
    parameter bit DimmnetUnit = 1'b0,
    parameter bit Ecc = 1'b0,
    parameter bit Multicast = 1'b0,
    parameter bit Barrier = 1'b0,
    parameter bit Congestion = 1'b0,
    parameter int unsigned HostDepth = 16,
    parameter coding_e Coding = Coding8b10b,
    parameter int unsigned Vectors = 8,  // this and what follows: see velo_pcie
    parameter int unsigned StoreLines = 16,
    parameter int unsigned ReadSlots = 8,
    parameter int unsigned Bar2Bits = WindowUnitLsb + 2,
    localparam int unsigned DataWidth = velo_pcie_pkg::DataWidth,
    localparam int unsigned NumLanes = DataWidth / lane_bits(Coding),
    localparam int unsigned WireBits = wire_bits(Coding)
) (
    input logic rst_ni,  // asynchronous, of all domains

    input logic pcie_clk_i,  // of the packets, the hard block's
    input logic core_clk_i,  // of units, switch and link ports
    input logic link_clk_i,  // of the serializers, a word a cycle

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

    // Links, lane by lane; bit 0 is on the wire first.
    output logic [NumLinks-1:0][NumLanes-1:0][WireBits-1:0] wire_o,    // link clock
    input  logic [NumLinks-1:0][NumLanes-1:0]               rx_clk_i,  // recovered
    input  logic [NumLinks-1:0][NumLanes-1:0]               signal_i,  // a signal is seen
    input  logic [NumLinks-1:0][NumLanes-1:0][WireBits-1:0] wire_i,    // recovered clocks

    output logic [NumLinks-1:0]       pcs_up_o,                // core clock; see velo_pcs
    output logic [NumLinks-1:0][15:0] pcs_code_errors_o,
    output logic [NumLinks-1:0][15:0] pcs_disparity_errors_o,
    output logic [NumLinks-1:0][15:0] pcs_skips_o,
    output logic [NumLinks-1:0][15:0] pcs_lock_losses_o,
    output logic [NumLinks-1:0][15:0] pcs_lost_words_o,

    output logic [7:0] node_id_o
);

  logic pcie_rst_n, node_rst_n;
  host_request_t host_request, control_request;
  host_response_t host_response, control_response;
  dma_request_t  dma_request;
  dma_response_t dma_response;
  logic [DataWidth-1:0] host_write_data, host_answer_data;
  logic [DataWidth-1:0] control_write_data, control_answer_data;
  logic [DataWidth-1:0] dma_write_data, dma_answer_data;

  velo_rst_sync u_pcie_rst (
      .clk_i (pcie_clk_i),
      .rst_ni,
      .rst_no(pcie_rst_n)
  );

  velo_pcie #(
      .Vectors   (Vectors),
      .StoreLines(StoreLines),
      .ReadSlots (ReadSlots),
      .Bar2Bits  (Bar2Bits)
  ) u_pcie (
      .clk_i                (pcie_clk_i),
      .rst_ni               (pcie_rst_n),
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

  velo_node_clocks #(
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
      .Congestion (Congestion),
      .HostDepth  (HostDepth),
      .Coding     (Coding)
  ) u_node (
      .rst_ni               (node_rst_n),
      .host_clk_i           (pcie_clk_i),
      .core_clk_i,
      .link_clk_i,
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
      .wire_o,
      .rx_clk_i,
      .signal_i,
      .wire_i,
      .pcs_up_o,
      .pcs_code_errors_o,
      .pcs_disparity_errors_o,
      .pcs_skips_o,
      .pcs_lock_losses_o,
      .pcs_lost_words_o,
      .node_id_o
  );

endmodule
