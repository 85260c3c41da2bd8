// SPDX-License-Identifier: Apache-2.0
//
// A node without its network: host bridge, on-chip crossbar, VELO, register file, and the three
// streams, one a traffic class, that a network takes up.
//
// Host port, all valid/ready, each stream with its transaction's address and length beside it:
//   host_write_*  posted writes into the node's window (spec/velo.toml, layout `window`);
//   host_read_*   reads of registers, answered on host_answer_* with their tag;
//   dma_write_*   posted writes to host memory, in order.
// A write has the bytes it announces, rounded up to whole beats; `*_eop` marks its last beat.
// Network: a packet's first beat is the low part of its header; `sop` and `eop` as in velo_requester.
//
// There is no unit for the response and completion classes yet: such a packet is swallowed and
// counted (registers `stray_*`), so it cannot stop the network.
//
// Source: VELO paper, figure 1.

`include "velo_assert.svh"

module velo_node_core
  import velo_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits = 8,
    localparam int unsigned NumClasses = 3
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 host_write_valid_i,
    output logic                 host_write_ready_o,
    input  logic                 host_write_eop_i,
    input  logic [ AddrBits-1:0] host_write_addr_i,
    input  logic [          9:0] host_write_len_bytes_i,
    input  logic [DataWidth-1:0] host_write_data_i,

    input  logic                 host_read_valid_i,
    output logic                 host_read_ready_o,
    input  logic [ AddrBits-1:0] host_read_addr_i,
    input  logic [          9:0] host_read_len_bytes_i,
    input  logic [          7:0] host_read_tag_i,
    output logic                 host_answer_valid_o,
    input  logic                 host_answer_ready_i,
    output logic                 host_answer_eop_o,
    output logic                 host_answer_error_o,
    output logic [          7:0] host_answer_tag_o,
    output logic [DataWidth-1:0] host_answer_data_o,

    output logic                 dma_write_valid_o,
    input  logic                 dma_write_ready_i,
    output logic                 dma_write_eop_o,
    output logic [ AddrBits-1:0] dma_write_addr_o,
    output logic [          9:0] dma_write_len_bytes_o,
    output logic [DataWidth-1:0] dma_write_data_o,

    output logic [NumClasses-1:0]                net_out_valid_o,
    input  logic [NumClasses-1:0]                net_out_ready_i,
    output logic [NumClasses-1:0]                net_out_sop_o,
    output logic [NumClasses-1:0]                net_out_eop_o,
    output logic [NumClasses-1:0][DataWidth-1:0] net_out_data_o,
    input  logic [NumClasses-1:0]                net_in_valid_i,
    output logic [NumClasses-1:0]                net_in_ready_o,
    input  logic [NumClasses-1:0]                net_in_sop_i,
    input  logic [NumClasses-1:0]                net_in_eop_i,
    input  logic [NumClasses-1:0][DataWidth-1:0] net_in_data_i,

    // Settings and state of the network, for the registers.
    output logic             route_we_o,
    output logic [7:0]       route_node_o,
    output logic [3:0]       route_hop_o,
    output logic [7:0]       link_enable_o,
    output logic [7:0]       link_restart_o,
    input  logic [7:0]       link_up_i,
    input  logic [7:0][ 2:0] link_refuse_i,
    input  logic [7:0][ 7:0] link_crc_errors_i,
    input  logic [7:0][ 7:0] link_replays_i,
    input  logic [7:0][ 7:0] link_timeouts_i,
    input  logic [7:0][ 7:0] link_dropped_i,
    input  logic [7:0][47:0] link_credits_i,
    input  logic [2:0][ 7:0] node_port_dropped_i,

    output logic [7:0] node_id_o
);

  // ----- crossbar -------------------------------------------------------------------------------

  localparam int unsigned NumPorts = 3;
  localparam int unsigned Host = 0;
  localparam int unsigned Registers = 1;
  localparam int unsigned Velo = 2;

  // Only VELO has a part of its own; the register file gets the rest and refuses what is not its.
  localparam logic [AddrBits-1:0] UnitMask = {{(AddrBits - 38) {1'b1}}, 2'b11, 36'b0};
  localparam logic [NumPorts-1:0][AddrBits-1:0] WindowMask = {UnitMask, {2{{AddrBits{1'b1}}}}};
  localparam logic [NumPorts-1:0][AddrBits-1:0] WindowBase = '0;  // Unit velo is 0.

  logic [NumPorts-1:0] posted_in_valid, posted_in_ready, posted_in_eop;
  logic [NumPorts-1:0] posted_valid, posted_ready, posted_eop;
  logic [NumPorts-1:0] nonposted_in_valid, nonposted_in_ready;
  logic [NumPorts-1:0] nonposted_valid, nonposted_ready, nonposted_eop;
  logic [NumPorts-1:0] response_in_valid, response_in_ready, response_in_eop;
  logic [NumPorts-1:0] response_valid, response_ready, response_eop;
  htax_header_t [NumPorts-1:0] posted_in_header, posted_header;
  htax_header_t [NumPorts-1:0] nonposted_in_header, nonposted_header;
  htax_header_t [NumPorts-1:0] response_in_header, response_header;
  logic [NumPorts-1:0][DataWidth-1:0] posted_in_data, posted_data;
  logic [NumPorts-1:0][DataWidth-1:0] nonposted_data, response_in_data, response_data;

  htax #(
      .NumPorts   (NumPorts),
      .DataWidth  (DataWidth),
      .HostPort   (Host),
      .DefaultPort(Registers),
      .WindowBase (WindowBase),
      .WindowMask (WindowMask)
  ) u_htax (
      .clk_i,
      .rst_ni,
      .posted_in_valid_i     (posted_in_valid),
      .posted_in_ready_o     (posted_in_ready),
      .posted_in_eop_i       (posted_in_eop),
      .posted_in_header_i    (posted_in_header),
      .posted_in_data_i      (posted_in_data),
      .posted_out_valid_o    (posted_valid),
      .posted_out_ready_i    (posted_ready),
      .posted_out_eop_o      (posted_eop),
      .posted_out_header_o   (posted_header),
      .posted_out_data_o     (posted_data),
      .nonposted_in_valid_i  (nonposted_in_valid),
      .nonposted_in_ready_o  (nonposted_in_ready),
      .nonposted_in_eop_i    ('1),
      .nonposted_in_header_i (nonposted_in_header),
      .nonposted_in_data_i   ('0),
      .nonposted_out_valid_o (nonposted_valid),
      .nonposted_out_ready_i (nonposted_ready),
      .nonposted_out_eop_o   (nonposted_eop),
      .nonposted_out_header_o(nonposted_header),
      .nonposted_out_data_o  (nonposted_data),
      .response_in_valid_i   (response_in_valid),
      .response_in_ready_o   (response_in_ready),
      .response_in_eop_i     (response_in_eop),
      .response_in_header_i  (response_in_header),
      .response_in_data_i    (response_in_data),
      .response_out_valid_o  (response_valid),
      .response_out_ready_i  (response_ready),
      .response_out_eop_o    (response_eop),
      .response_out_header_o (response_header),
      .response_out_data_o   (response_data)
  );

  // ----- host bridge ----------------------------------------------------------------------------

  logic dma_valid, dma_ready, dma_sop, dma_eop;
  logic [DataWidth-1:0] dma_data;
  logic [ AddrBits-1:0] dma_addr;
  logic [          9:0] dma_len_bytes;

  // What the host writes and reads is in the node's window, whatever the address says.
  always_comb begin
    posted_in_header[Host]              = '0;
    posted_in_header[Host].window       = 1'b1;
    posted_in_header[Host].addr         = host_write_addr_i;
    posted_in_header[Host].len_bytes    = host_write_len_bytes_i;
    nonposted_in_header                 = '0;
    nonposted_in_header[Host].window    = 1'b1;
    nonposted_in_header[Host].addr      = host_read_addr_i;
    nonposted_in_header[Host].len_bytes = host_read_len_bytes_i;
    nonposted_in_header[Host].tag       = host_read_tag_i;
    posted_in_header[Registers]         = '0;
    posted_in_header[Velo]              = '0;
    posted_in_header[Velo].addr         = dma_addr;
    posted_in_header[Velo].len_bytes    = dma_len_bytes;
  end

  assign posted_in_valid       = {dma_valid, 1'b0, host_write_valid_i};
  assign posted_in_eop         = {dma_eop, 1'b1, host_write_eop_i};
  assign posted_in_data        = {dma_data, DataWidth'(0), host_write_data_i};
  assign host_write_ready_o    = posted_in_ready[Host];
  assign nonposted_in_valid    = NumPorts'(host_read_valid_i);
  assign host_read_ready_o     = nonposted_in_ready[Host];

  assign dma_write_valid_o     = posted_valid[Host];
  assign dma_write_eop_o       = posted_eop[Host];
  assign dma_write_addr_o      = posted_header[Host].addr;
  assign dma_write_len_bytes_o = posted_header[Host].len_bytes;
  assign dma_write_data_o      = posted_data[Host];

  assign host_answer_valid_o   = response_valid[Host];
  assign host_answer_eop_o     = response_eop[Host];
  assign host_answer_error_o   = response_header[Host].error;
  assign host_answer_tag_o     = response_header[Host].tag;
  assign host_answer_data_o    = response_data[Host];

  // Nobody reads host memory or a unit other than the registers, so nothing comes there.
  assign nonposted_ready[Host] = 1'b1;
  assign nonposted_ready[Velo] = 1'b0;
  assign response_ready        = {2'b11, host_answer_ready_i};
  assign posted_ready[Host]    = dma_write_ready_i;

  // ----- VELO -----------------------------------------------------------------------------------

  logic write_first_q, velo_write_take;
  window_t velo_window;
  assign velo_window     = window_t'({{(64 - AddrBits) {1'b0}}, posted_header[Velo].addr});
  assign velo_write_take = posted_valid[Velo] && posted_ready[Velo];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) write_first_q <= 1'b1;
    else if (velo_write_take) write_first_q <= posted_eop[Velo];
  end

  logic sent, refused, received, dropped, stalled;
  error_e refused_code, dropped_code;
  logic [7:0] refused_source, dropped_ctx, dropped_node, stall_ctx;

  velo_requester #(
      .DataWidth(DataWidth)
  ) u_requester (
      .clk_i,
      .rst_ni,
      .node_id_i        (node_id_o),
      .write_valid_i    (posted_valid[Velo]),
      .write_ready_o    (posted_ready[Velo]),
      .write_sop_i      (write_first_q),
      .write_eop_i      (posted_eop[Velo]),
      .write_data_i     (posted_data[Velo]),
      .write_target_i   (address_t'(velo_window.target)),
      .write_source_i   (velo_window.source),
      .write_len_bytes_i(posted_header[Velo].len_bytes),
      .net_valid_o      (net_out_valid_o[0]),
      .net_ready_i      (net_out_ready_i[0]),
      .net_sop_o        (net_out_sop_o[0]),
      .net_eop_o        (net_out_eop_o[0]),
      .net_data_o       (net_out_data_o[0]),
      .sent_o           (sent),
      .error_valid_o    (refused),
      .error_code_o     (refused_code),
      .error_source_o   (refused_source)
  );

  logic watchdog_enable, cfg_valid, cfg_ready, cfg_enabled, read_pointer_valid;
  logic [19:0] watchdog_cycles;
  logic [CtxBits-1:0] cfg_ctx, read_pointer_ctx;
  logic [AddrBits-1:6] cfg_base;
  logic [14:0] cfg_last_slot;
  logic [15:0] read_pointer;
  assign dma_ready = posted_in_ready[Velo];

  velo_completer #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits),
      .AddrBits (AddrBits)
  ) u_completer (
      .clk_i,
      .rst_ni,
      .node_id_i           (node_id_o),
      .watchdog_enable_i   (watchdog_enable),
      .watchdog_cycles_i   (watchdog_cycles),
      .cfg_valid_i         (cfg_valid),
      .cfg_ready_o         (cfg_ready),
      .cfg_ctx_i           (cfg_ctx),
      .cfg_enabled_i       (cfg_enabled),
      .cfg_base_i          (cfg_base),
      .cfg_last_slot_i     (cfg_last_slot),
      .read_pointer_valid_i(read_pointer_valid),
      .read_pointer_ctx_i  (read_pointer_ctx),
      .read_pointer_i      (read_pointer),
      .net_valid_i         (net_in_valid_i[0]),
      .net_ready_o         (net_in_ready_o[0]),
      .net_sop_i           (net_in_sop_i[0]),
      .net_eop_i           (net_in_eop_i[0]),
      .net_data_i          (net_in_data_i[0]),
      .dma_valid_o         (dma_valid),
      .dma_ready_i         (dma_ready),
      .dma_sop_o           (dma_sop),
      .dma_eop_o           (dma_eop),
      .dma_data_o          (dma_data),
      .dma_addr_o          (dma_addr),
      .dma_len_bytes_o     (dma_len_bytes),
      .received_o          (received),
      .stalled_o           (stalled),
      .stall_ctx_o         (stall_ctx),
      .error_valid_o       (dropped),
      .error_code_o        (dropped_code),
      .error_ctx_o         (dropped_ctx),
      .error_node_o        (dropped_node)
  );

  // ----- the classes that no unit uses ----------------------------------------------------------

  assign net_out_valid_o[2:1] = '0;
  assign net_out_sop_o[2:1]   = '0;
  assign net_out_eop_o[2:1]   = '0;
  assign net_out_data_o[2:1]  = '0;
  assign net_in_ready_o[2:1]  = '1;

  // ----- registers ------------------------------------------------------------------------------

  velo_regfile #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits)
  ) u_regfile (
      .clk_i,
      .rst_ni,
      .posted_valid_i      (posted_valid[Registers]),
      .posted_ready_o      (posted_ready[Registers]),
      .posted_eop_i        (posted_eop[Registers]),
      .posted_header_i     (posted_header[Registers]),
      .posted_data_i       (posted_data[Registers]),
      .nonposted_valid_i   (nonposted_valid[Registers]),
      .nonposted_ready_o   (nonposted_ready[Registers]),
      .nonposted_eop_i     (nonposted_eop[Registers]),
      .nonposted_header_i  (nonposted_header[Registers]),
      .response_valid_o    (response_in_valid[Registers]),
      .response_ready_i    (response_in_ready[Registers]),
      .response_eop_o      (response_in_eop[Registers]),
      .response_header_o   (response_in_header[Registers]),
      .response_data_o     (response_in_data[Registers]),
      .node_id_o,
      .watchdog_enable_o   (watchdog_enable),
      .watchdog_cycles_o   (watchdog_cycles),
      .cfg_valid_o         (cfg_valid),
      .cfg_ready_i         (cfg_ready),
      .cfg_ctx_o           (cfg_ctx),
      .cfg_enabled_o       (cfg_enabled),
      .cfg_base_o          (cfg_base),
      .cfg_last_slot_o     (cfg_last_slot),
      .read_pointer_valid_o(read_pointer_valid),
      .read_pointer_ctx_o  (read_pointer_ctx),
      .read_pointer_o      (read_pointer),
      .route_we_o,
      .route_node_o,
      .route_hop_o,
      .link_enable_o,
      .link_restart_o,
      .link_up_i,
      .link_refuse_i,
      .link_crc_errors_i,
      .link_replays_i,
      .link_timeouts_i,
      .link_dropped_i,
      .link_credits_i,
      .node_port_dropped_i,
      .sent_i              (sent),
      .refused_i           (refused),
      .refused_code_i      (refused_code),
      .refused_source_i    (refused_source),
      .received_i          (received),
      .dropped_i           (dropped),
      .dropped_code_i      (dropped_code),
      .dropped_ctx_i       (dropped_ctx),
      .dropped_node_i      (dropped_node),
      .stray_response_i    (net_in_valid_i[1] && net_in_eop_i[1]),
      .stray_completion_i  (net_in_valid_i[2] && net_in_eop_i[2]),
      .stalled_i           (stalled),
      .stall_ctx_i         (stall_ctx),
      .host_stalled_i      (dma_write_valid_o && !dma_write_ready_i),
      .network_stalled_i   (net_out_valid_o[0] && !net_out_ready_i[0])
  );

  assign response_in_valid[Host]  = 1'b0;
  assign response_in_eop[Host]    = 1'b0;
  assign response_in_header[Host] = '0;
  assign response_in_data[Host]   = '0;
  assign response_in_valid[Velo]  = 1'b0;
  assign response_in_eop[Velo]    = 1'b0;
  assign response_in_header[Velo] = '0;
  assign response_in_data[Velo]   = '0;

  logic unused;
  assign unused = ^{dma_sop, posted_in_ready, posted_header, nonposted_header, nonposted_in_ready,
                    nonposted_valid, nonposted_eop, nonposted_data, response_header, response_valid,
                    response_eop, response_data, response_in_ready, velo_window, net_in_sop_i,
                    net_in_data_i, net_out_ready_i};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth == 32 || DataWidth == 64)

endmodule
