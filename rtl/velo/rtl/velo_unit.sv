// SPDX-License-Identifier: Apache-2.0
//
// The VELO unit: requester and completer behind one address part of the crossbar.
//
// Write side: posted writes of the host, address as in spec/velo.toml, layout `window`. Network side:
// packets of the request class, out and in. DMA side and reports: see velo_requester and
// velo_completer, which also say what is refused and dropped. The two share nothing.
//
// Source: VELO paper, figure 1.

`include "velo_assert.svh"

module velo_unit
  import velo_pkg::*;
  import velo_secded_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits   = 8,
    parameter int unsigned AddrBits  = 48,
    parameter bit          Ecc       = 1'b0,  // check bits in the table of contexts
    parameter bit          Multicast = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    // Settings.
    input logic [ 7:0] node_id_i,               // this node, source of its packets
    input logic        watchdog_enable_i,       // a full ring makes messages wait no longer than
    input logic [19:0] watchdog_cycles_i,       // so many cycles
    input logic        send_watchdog_enable_i,  // nor does the network, than
    input logic [23:0] send_watchdog_cycles_i,  // so many cycles

    // A context's ring, valid/ready: the setting stands until it is taken.
    input logic cfg_valid_i,  // a setting is offered
    output logic cfg_ready_o,  // it is taken, between messages
    input logic [CtxBits-1:0] cfg_ctx_i,  // of this context
    input logic cfg_enabled_i,  // it may receive
    input logic [AddrBits-1:6] cfg_base_i,  // address in host memory, a multiple of its size
    input logic [14:0] cfg_last_slot_i,  // slots of 64 bytes, less one
    // Its read pointer, taken at once.
    input logic read_pointer_valid_i,  // pulse: there is a new one
    input logic [CtxBits-1:0] read_pointer_ctx_i,  // of this context
    input logic [15:0] read_pointer_i,  // slots that software has freed, modulo 2^16

    // Posted writes of the host, valid/ready.
    input  logic                 write_valid_i,      // a beat is offered
    output logic                 write_ready_o,      // it is taken
    input  logic                 write_eop_i,        // it is the write's last
    input  logic [ AddrBits-1:0] write_addr_i,       // holds for the whole write
    input  logic [          9:0] write_len_bytes_i,  // likewise
    input  logic [DataWidth-1:0] write_data_i,       // the beat

    // Packets to the network, valid/ready.
    output logic                 net_out_valid_o,  // a beat is offered
    input  logic                 net_out_ready_i,  // it is taken
    output logic                 net_out_sop_o,    // it is its packet's first
    output logic                 net_out_eop_o,    // it is the last
    output logic [DataWidth-1:0] net_out_data_o,   // the beat
    // Packets from the network, valid/ready.
    input  logic                 net_in_valid_i,   // a beat is offered
    output logic                 net_in_ready_o,   // it is taken
    input  logic                 net_in_sop_i,     // it is its packet's first
    input  logic                 net_in_eop_i,     // it is the last
    input  logic                 net_in_poison_i,  // with the last: the packet is void
    input  logic [DataWidth-1:0] net_in_data_i,    // the beat

    // Posted writes to host memory, valid/ready.
    output logic                 dma_valid_o,     // a beat is offered
    input  logic                 dma_ready_i,     // it is taken
    output logic                 dma_eop_o,       // it is the write's last
    output logic [DataWidth-1:0] dma_data_o,      // the beat
    output logic [ AddrBits-1:0] dma_addr_o,      // holds for the whole write
    output logic [          9:0] dma_len_bytes_o, // likewise

    // Events, for one cycle each, with their codes beside them.
    output logic         sent_o,            // a message left
    output logic         refused_o,         // a write was refused
    output error_e       refused_code_o,    // why
    output logic   [7:0] refused_source_o,  // of this context
    output logic         undelivered_o,     // that was for want of room in the network
    output logic         received_o,        // a message is in its ring
    output logic         stalled_o,         // state: a ring is full
    output logic   [7:0] stall_ctx_o,       // that of this context
    output logic         dropped_o,         // a packet was dropped
    output error_e       dropped_code_o,    // why
    output logic   [7:0] dropped_ctx_o,     // it was for this context
    output logic   [7:0] dropped_node_o,    // it came from this node
    output ecc_t         ecc_o              // words of the table of contexts, see velo_contexts
);

  logic first_q;
  window_t window;
  assign window = window_t'({{(64 - AddrBits) {1'b0}}, write_addr_i});
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) first_q <= 1'b1;
    else if (write_valid_i && write_ready_o) first_q <= write_eop_i;
  end

  velo_requester #(
      .DataWidth(DataWidth)
  ) u_requester (
      .clk_i,
      .rst_ni,
      .node_id_i,
      .watchdog_enable_i(send_watchdog_enable_i),
      .watchdog_cycles_i(send_watchdog_cycles_i),
      .write_valid_i,
      .write_ready_o,
      .write_sop_i      (first_q),
      .write_eop_i,
      .write_data_i,
      .write_target_i   (address_t'(window.target)),
      .write_source_i   (window_source(window)),
      .write_len_bytes_i,
      .net_valid_o      (net_out_valid_o),
      .net_ready_i      (net_out_ready_i),
      .net_sop_o        (net_out_sop_o),
      .net_eop_o        (net_out_eop_o),
      .net_data_o       (net_out_data_o),
      .sent_o,
      .error_valid_o    (refused_o),
      .expired_o        (undelivered_o),
      .error_code_o     (refused_code_o),
      .error_source_o   (refused_source_o)
  );

  logic dma_sop;
  velo_completer #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits),
      .AddrBits (AddrBits),
      .Ecc      (Ecc),
      .Multicast(Multicast)
  ) u_completer (
      .clk_i,
      .rst_ni,
      .net_valid_i  (net_in_valid_i),
      .net_ready_o  (net_in_ready_o),
      .net_sop_i    (net_in_sop_i),
      .net_eop_i    (net_in_eop_i),
      .net_poison_i (net_in_poison_i),
      .net_data_i   (net_in_data_i),
      .dma_sop_o    (dma_sop),
      .error_valid_o(dropped_o),
      .error_code_o (dropped_code_o),
      .error_ctx_o  (dropped_ctx_o),
      .error_node_o (dropped_node_o),
      .node_id_i,
      .watchdog_enable_i,
      .watchdog_cycles_i,
      .cfg_valid_i,
      .cfg_ready_o,
      .cfg_ctx_i,
      .cfg_enabled_i,
      .cfg_base_i,
      .cfg_last_slot_i,
      .read_pointer_valid_i,
      .read_pointer_ctx_i,
      .read_pointer_i,
      .dma_valid_o,
      .dma_ready_i,
      .dma_eop_o,
      .dma_data_o,
      .dma_addr_o,
      .dma_len_bytes_o,
      .received_o,
      .stalled_o,
      .stall_ctx_o,
      .ecc_o
  );

  logic unused;
  assign unused = ^{window, dma_sop};

  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {net_out_valid_o, dma_valid_o, sent_o, refused_o,
                                               undelivered_o, received_o, stalled_o, dropped_o})

endmodule
