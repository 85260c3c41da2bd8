// SPDX-License-Identifier: Apache-2.0
//
// A node without its network: host bridge, on-chip crossbar, VELO, a custom unit, register file, and
// the three streams, one a traffic class, that a network takes up.
//
// Host port, all valid/ready, each stream with its transaction's address and length beside it:
//   host_write_*    posted writes into the node's window (spec/velo.toml, layout `window`);
//   host_read_*     reads from it, answered on host_answer_* with their tag;
//   control_write_*, control_read_*, control_answer_*   the same for registers only, a way of its own;
//   dma_write_*     posted writes to host memory, in order;
//   dma_read_*      reads of host memory, answered in any order on dma_answer_* with their tag.
// A write has the bytes it announces, rounded up to whole beats; `*_eop` marks its last beat.
//
// What the host has to do so that nothing waits for ever: take DMA writes whatever else it waits for,
// and not hold back control writes for host writes. A message may wait until a ring far away has room;
// whoever makes room writes a read pointer, and that must not wait for messages. Registers can be
// reached by host_write_*, too, but behind messages.
//
// Network: a packet's first beat is the low part of its header; `sop` and `eop` as in velo_requester.
// Packets of the response and completion classes that are for no unit are swallowed and counted
// (registers `stray_*`), so they cannot stop the network.
//
// The custom unit is velo_gsm; another with its ports may take its place. CustomUnit = 0: none.
//
// Source: VELO paper, figure 1.

`include "velo_assert.svh"

module velo_node_core
  import velo_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits = 8,
    parameter bit CustomUnit = 1'b1,
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

    input  logic                 control_write_valid_i,
    output logic                 control_write_ready_o,
    input  logic                 control_write_eop_i,
    input  logic [ AddrBits-1:0] control_write_addr_i,
    input  logic [          9:0] control_write_len_bytes_i,
    input  logic [DataWidth-1:0] control_write_data_i,

    input  logic                 control_read_valid_i,
    output logic                 control_read_ready_o,
    input  logic [ AddrBits-1:0] control_read_addr_i,
    input  logic [          9:0] control_read_len_bytes_i,
    input  logic [          7:0] control_read_tag_i,
    output logic                 control_answer_valid_o,
    input  logic                 control_answer_ready_i,
    output logic                 control_answer_eop_o,
    output logic                 control_answer_error_o,
    output logic [          7:0] control_answer_tag_o,
    output logic [DataWidth-1:0] control_answer_data_o,

    output logic                 dma_write_valid_o,
    input  logic                 dma_write_ready_i,
    output logic                 dma_write_eop_o,
    output logic [ AddrBits-1:0] dma_write_addr_o,
    output logic [          9:0] dma_write_len_bytes_o,
    output logic [DataWidth-1:0] dma_write_data_o,

    output logic                 dma_read_valid_o,
    input  logic                 dma_read_ready_i,
    output logic [ AddrBits-1:0] dma_read_addr_o,
    output logic [          9:0] dma_read_len_bytes_o,
    output logic [         11:0] dma_read_tag_o,
    input  logic                 dma_answer_valid_i,
    output logic                 dma_answer_ready_o,
    input  logic                 dma_answer_eop_i,
    input  logic                 dma_answer_error_i,
    input  logic [         11:0] dma_answer_tag_i,
    input  logic [DataWidth-1:0] dma_answer_data_i,

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

  localparam int unsigned NumPorts = 5;
  localparam int unsigned Host = 0;
  localparam int unsigned Registers = 1;
  localparam int unsigned Velo = 2;
  localparam int unsigned Custom = 3;
  localparam int unsigned Control = 4;

  // Units have parts of their own; the register file gets the rest and refuses what is not its. So
  // what comes in by the control port, which reaches nothing else, cannot wait for a unit.
  typedef logic [AddrBits-1:0] addr_t;
  localparam addr_t UnitMask = {{(AddrBits - 38) {1'b1}}, 2'b11, 36'b0};
  localparam addr_t NoPart = '1;
  localparam addr_t [NumPorts-1:0] WindowMask = {
    NoPart, CustomUnit ? UnitMask : NoPart, UnitMask, NoPart, NoPart
  };
  localparam addr_t [NumPorts-1:0] WindowBase = {
    addr_t'(0), addr_t'(UnitCustom) << 36, addr_t'(UnitVelo) << 36, addr_t'(0), addr_t'(0)
  };

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
      .WindowMask (WindowMask),
      .DefaultOnly(NumPorts'(1) << Control)
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

  logic dma_valid, dma_eop;
  logic [DataWidth-1:0] dma_data;
  addr_t dma_addr;
  logic [9:0] dma_len_bytes;
  logic custom_write_valid, custom_write_eop, custom_read_valid;
  htax_header_t custom_write_header, custom_read_header, velo_write_header;
  htax_header_t custom_answer_header, register_answer_header, memory_header;
  logic [DataWidth-1:0] custom_write_data, custom_answer_data, register_answer_data;
  logic custom_answer_valid, custom_answer_eop, register_answer_valid, register_answer_eop;
  htax_header_t [1:0] host_write_header, host_read_header;  // 1: control

  velo_host_bridge #(
      .Reader(Custom),
      .Nobody(Registers)
  ) u_bridge (
      .write_header_o   (host_write_header),
      .read_header_o    (host_read_header),
      .answer_header_i  ({response_header[Control], response_header[Host]}),
      .dma_header_i     (posted_header[Host]),
      .dma_read_header_i(nonposted_header[Host]),
      .memory_header_o  (memory_header),
      .*
  );

  assign velo_write_header = '{addr: dma_addr, len_bytes: dma_len_bytes, default: '0};

  // By port, the highest first: Control, Custom, Velo, Registers, Host.
  localparam htax_header_t NoHeader = '0;
  localparam logic [DataWidth-1:0] NoData = '0;
  assign posted_in_valid = {
    control_write_valid_i, custom_write_valid, dma_valid, 1'b0, host_write_valid_i
  };
  assign posted_in_eop = {control_write_eop_i, custom_write_eop, dma_eop, 1'b1, host_write_eop_i};
  assign posted_in_header = {
    host_write_header[1], custom_write_header, velo_write_header, NoHeader, host_write_header[0]
  };
  assign posted_in_data = {
    control_write_data_i, custom_write_data, dma_data, NoData, host_write_data_i
  };
  assign nonposted_in_valid = {control_read_valid_i, custom_read_valid, 2'b00, host_read_valid_i};
  assign nonposted_in_header = {
    host_read_header[1], custom_read_header, NoHeader, NoHeader, host_read_header[0]
  };
  assign response_in_valid = {
    1'b0, custom_answer_valid, 1'b0, register_answer_valid, dma_answer_valid_i
  };
  assign response_in_eop = {1'b1, custom_answer_eop, 1'b1, register_answer_eop, dma_answer_eop_i};
  assign response_in_header = {
    NoHeader, custom_answer_header, NoHeader, register_answer_header, memory_header
  };
  assign response_in_data = {
    NoData, custom_answer_data, NoData, register_answer_data, dma_answer_data_i
  };

  assign {host_write_ready_o, control_write_ready_o} = {
    posted_in_ready[Host], posted_in_ready[Control]
  };
  assign {host_read_ready_o, control_read_ready_o} = {
    nonposted_in_ready[Host], nonposted_in_ready[Control]
  };
  assign {host_answer_valid_o, host_answer_eop_o, host_answer_data_o} = {
    response_valid[Host], response_eop[Host], response_data[Host]
  };
  assign {control_answer_valid_o, control_answer_eop_o, control_answer_data_o} = {
    response_valid[Control], response_eop[Control], response_data[Control]
  };
  assign {dma_write_valid_o, dma_write_eop_o, dma_write_data_o} = {
    posted_valid[Host], posted_eop[Host], posted_data[Host]
  };
  assign dma_read_valid_o = nonposted_valid[Host];
  assign dma_answer_ready_o = response_in_ready[Host];

  // Nothing is sent to the ports that are not here: no address leads there, no read came from there.
  // An answer of the host that nobody asked for goes to the registers, which take no answers.
  assign {posted_ready[Host], nonposted_ready[Host], response_ready[Host]} = {
    dma_write_ready_i, dma_read_ready_i, host_answer_ready_i
  };
  assign {posted_ready[Control], nonposted_ready[Control]} = '0;
  assign response_ready[Control] = control_answer_ready_i;
  assign {nonposted_ready[Velo], response_ready[Velo], response_ready[Registers]} = 3'b011;

  // Of the request class: VELO and the custom unit.
  localparam int unsigned NumUnits = 2;
  logic [NumUnits-1:0] request_out_valid, request_out_ready, request_out_sop, request_out_eop;
  logic [NumUnits-1:0][DataWidth-1:0] request_out_data;
  logic [NumUnits-1:0] request_in_valid, request_in_ready;

  // ----- VELO -----------------------------------------------------------------------------------

  logic sent, refused, received, dropped, stalled;
  error_e refused_code, dropped_code;
  logic [7:0] refused_source, dropped_ctx, dropped_node, stall_ctx;
  logic watchdog_enable, cfg_valid, cfg_ready, cfg_enabled, read_pointer_valid;
  logic [19:0] watchdog_cycles;
  logic [CtxBits-1:0] cfg_ctx, read_pointer_ctx;
  logic [AddrBits-1:6] cfg_base;
  logic [14:0] cfg_last_slot;
  logic [15:0] read_pointer;

  velo_unit #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits),
      .AddrBits (AddrBits)
  ) u_velo (
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
      .write_valid_i       (posted_valid[Velo]),
      .write_ready_o       (posted_ready[Velo]),
      .write_eop_i         (posted_eop[Velo]),
      .write_addr_i        (posted_header[Velo].addr),
      .write_len_bytes_i   (posted_header[Velo].len_bytes),
      .write_data_i        (posted_data[Velo]),
      .net_out_valid_o     (request_out_valid[0]),
      .net_out_ready_i     (request_out_ready[0]),
      .net_out_sop_o       (request_out_sop[0]),
      .net_out_eop_o       (request_out_eop[0]),
      .net_out_data_o      (request_out_data[0]),
      .net_in_valid_i      (request_in_valid[0]),
      .net_in_ready_o      (request_in_ready[0]),
      .net_in_sop_i        (net_in_sop_i[0]),
      .net_in_eop_i        (net_in_eop_i[0]),
      .net_in_data_i       (net_in_data_i[0]),
      .dma_valid_o         (dma_valid),
      .dma_ready_i         (posted_in_ready[Velo]),
      .dma_eop_o           (dma_eop),
      .dma_data_o          (dma_data),
      .dma_addr_o          (dma_addr),
      .dma_len_bytes_o     (dma_len_bytes),
      .sent_o              (sent),
      .refused_o           (refused),
      .refused_code_o      (refused_code),
      .refused_source_o    (refused_source),
      .received_o          (received),
      .stalled_o           (stalled),
      .stall_ctx_o         (stall_ctx),
      .dropped_o           (dropped),
      .dropped_code_o      (dropped_code),
      .dropped_ctx_o       (dropped_ctx),
      .dropped_node_o      (dropped_node),
      .*
  );

  // ----- custom unit ----------------------------------------------------------------------------

  logic [63:0] custom_setting, custom_status;
  logic response_out_valid, response_out_ready, response_out_sop, response_out_eop;
  logic response_to_unit, response_unit_ready;
  logic [ DataWidth-1:0] response_out_data;
  logic [NumClasses-1:1] stray;

  velo_custom_slot #(
      .DataWidth(DataWidth),
      .Occupied (CustomUnit),
      .HostPort (Host)
  ) u_custom (
      .node_id_i      (node_id_o),
      .setting_i      (custom_setting),
      .status_o       (custom_status),
      .store_valid_i  (posted_valid[Custom]),
      .store_ready_o  (posted_ready[Custom]),
      .store_eop_i    (posted_eop[Custom]),
      .store_header_i (posted_header[Custom]),
      .store_data_i   (posted_data[Custom]),
      .load_valid_i   (nonposted_valid[Custom]),
      .load_ready_o   (nonposted_ready[Custom]),
      .load_header_i  (nonposted_header[Custom]),
      .answer_valid_o (custom_answer_valid),
      .answer_ready_i (response_in_ready[Custom]),
      .answer_eop_o   (custom_answer_eop),
      .answer_header_o(custom_answer_header),
      .answer_data_o  (custom_answer_data),
      .write_valid_o  (custom_write_valid),
      .write_ready_i  (posted_in_ready[Custom]),
      .write_eop_o    (custom_write_eop),
      .write_header_o (custom_write_header),
      .write_data_o   (custom_write_data),
      .read_valid_o   (custom_read_valid),
      .read_ready_i   (nonposted_in_ready[Custom]),
      .read_header_o  (custom_read_header),
      .memory_valid_i (response_valid[Custom]),
      .memory_ready_o (response_ready[Custom]),
      .memory_eop_i   (response_eop[Custom]),
      .memory_header_i(response_header[Custom]),
      .memory_data_i  (response_data[Custom]),
      .net_out_valid_o({response_out_valid, request_out_valid[1]}),
      .net_out_ready_i({response_out_ready, request_out_ready[1]}),
      .net_out_sop_o  ({response_out_sop, request_out_sop[1]}),
      .net_out_eop_o  ({response_out_eop, request_out_eop[1]}),
      .net_out_data_o ({response_out_data, request_out_data[1]}),
      .net_in_valid_i ({response_to_unit, request_in_valid[1]}),
      .net_in_ready_o ({response_unit_ready, request_in_ready[1]}),
      .net_in_eop_i   (net_in_eop_i[1:0]),
      .net_in_data_i  (net_in_data_i[1:0]),
      .*
  );

  // ----- the classes -----------------------------------------------------------------------------

  // A packet that no unit takes: of requests the completer refuses it, of others nobody is there.
  localparam logic [15:0] CustomKinds = CustomUnit ? 16'd1 << PacketKindCustom : '0;

  velo_unit_net #(
      .DataWidth   (DataWidth),
      .RequestKinds({CustomKinds, 16'd0}),
      .ResponseKinds(CustomKinds)
  ) u_net (
      .request_out_valid_i (request_out_valid),
      .request_out_ready_o (request_out_ready),
      .request_out_sop_i   (request_out_sop),
      .request_out_eop_i   (request_out_eop),
      .request_out_data_i  (request_out_data),
      .request_in_valid_o  (request_in_valid),
      .request_in_ready_i  (request_in_ready),
      .response_out_valid_i(response_out_valid),
      .response_out_ready_o(response_out_ready),
      .response_out_sop_i  (response_out_sop),
      .response_out_eop_i  (response_out_eop),
      .response_out_data_i (response_out_data),
      .response_in_valid_o (response_to_unit),
      .response_in_ready_i (response_unit_ready),
      .stray_o             (stray),
      .*
  );

  // ----- registers ------------------------------------------------------------------------------

  velo_regfile #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits)
  ) u_regfile (
      .posted_valid_i      (posted_valid[Registers]),
      .posted_ready_o      (posted_ready[Registers]),
      .posted_eop_i        (posted_eop[Registers]),
      .posted_header_i     (posted_header[Registers]),
      .posted_data_i       (posted_data[Registers]),
      .nonposted_valid_i   (nonposted_valid[Registers]),
      .nonposted_ready_o   (nonposted_ready[Registers]),
      .nonposted_eop_i     (nonposted_eop[Registers]),
      .nonposted_header_i  (nonposted_header[Registers]),
      .response_valid_o    (register_answer_valid),
      .response_ready_i    (response_in_ready[Registers]),
      .response_eop_o      (register_answer_eop),
      .response_header_o   (register_answer_header),
      .response_data_o     (register_answer_data),
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
      .custom_setting_o    (custom_setting),
      .custom_status_i     (custom_status),
      .sent_i              (sent),
      .refused_i           (refused),
      .refused_code_i      (refused_code),
      .refused_source_i    (refused_source),
      .received_i          (received),
      .dropped_i           (dropped),
      .dropped_code_i      (dropped_code),
      .dropped_ctx_i       (dropped_ctx),
      .dropped_node_i      (dropped_node),
      .stray_response_i    (stray[1]),
      .stray_completion_i  (stray[2]),
      .stalled_i           (stalled),
      .stall_ctx_i         (stall_ctx),
      .host_stalled_i      (dma_write_valid_o && !dma_write_ready_i),
      .network_stalled_i   (net_out_valid_o[0] && !net_out_ready_i[0]),
      .*
  );

  logic unused;
  assign unused = ^{posted_in_ready, posted_header, posted_valid, posted_eop,
                    posted_data, nonposted_header, nonposted_in_ready, nonposted_valid,
                    nonposted_eop, nonposted_data, response_header, response_valid, response_eop,
                    response_data, response_in_ready, net_in_sop_i};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth == 32 || DataWidth == 64)

endmodule
