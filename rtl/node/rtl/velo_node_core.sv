// SPDX-License-Identifier: Apache-2.0
//
// A node without its network: host bridge, on-chip crossbar, VELO, RMA, a custom unit, register
// file, and the three streams, one a traffic class, that a network takes up.
//
// Host port, all valid/ready, each stream with its transaction's address and length beside it:
//   host_write_*    posted writes into the node's window (spec/velo.toml, layout `window`);
//   host_read_*     reads from it, answered on host_answer_* with their tag;
//   control_write_*, control_read_*, control_answer_*   the same for registers only, a way of its own;
//   dma_write_*     posted writes to host memory, in order;
//   dma_read_*      reads of host memory, answered in any order on dma_answer_* with their tag.
// A write has the bytes it announces, rounded up to whole beats; `*_eop` marks its last beat. VELO's
// and the custom unit's accesses to host memory are of aligned 64-bit words. The RMA unit's have any
// address and length, none crosses a page of 4 KiB, and their data begin with the byte at the address.
//
// The host must follow these rules, so that nothing waits for ever. It takes DMA writes and answers DMA
// reads even while it waits for something else, and does not hold back control writes for host writes. A
// read that is offered shows the data of all writes taken before it; an answer that has begun goes on. A
// message may wait until a ring far away has room. To make room a host writes a read pointer, and that
// write must not wait for messages. The same holds for notification queues. Registers can be reached by
// host_write_*, too, but behind messages.
//
// On a path of 128 bits a packet's header has a beat of its own, and RMA and custom unit move at most 8
// bytes a cycle; see velo_net_width and velo_port_width.
//
// Network: a packet's first beat is the low part of its header; `sop` and `eop` as in velo_requester.
// Packets of the response and completion classes that are for no unit are swallowed and counted
// (registers `stray_*`), so they cannot stop the network.
//
// The custom unit is velo_gsm; another with its ports may take its place. CustomUnit = 0: none.
//
// Source: VELO paper, figure 1; case-for-fpga, figure 1.

`include "velo_assert.svh"

module velo_node_core
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_node_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits = 8,
    parameter int unsigned MtuBytes = 512,
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

  // ----- host bridge and crossbar ---------------------------------------------------------------

  // By port: what a unit sends has `_in`, what comes to it has not.
  logic [LastUnit:FirstUnit] posted_in_valid, posted_in_ready, posted_in_eop, write_done;
  logic [LastUnit:FirstUnit] posted_valid, posted_ready, posted_eop;
  logic [LastUnit:FirstUnit] nonposted_in_valid, nonposted_in_ready;
  logic [LastUnit:FirstUnit] nonposted_valid, nonposted_ready;
  logic [LastUnit:FirstUnit] response_in_valid, response_in_ready, response_in_eop;
  logic [LastUnit:FirstUnit] response_valid, response_ready, response_eop;
  htax_header_t [LastUnit:FirstUnit] posted_in_header, posted_header;
  htax_header_t [LastUnit:FirstUnit] nonposted_in_header, nonposted_header;
  htax_header_t [LastUnit:FirstUnit] response_in_header, response_header;
  logic [LastUnit:FirstUnit][DataWidth-1:0] posted_in_data, posted_data;
  logic [LastUnit:FirstUnit][DataWidth-1:0] response_in_data, response_data;

  velo_node_fabric #(
      .DataWidth (DataWidth),
      .CustomUnit(CustomUnit)
  ) u_fabric (
      .posted_in_valid_i    (posted_in_valid),
      .posted_in_ready_o    (posted_in_ready),
      .posted_in_eop_i      (posted_in_eop),
      .posted_in_header_i   (posted_in_header),
      .posted_in_data_i     (posted_in_data),
      .write_done_o         (write_done),
      .posted_valid_o       (posted_valid),
      .posted_ready_i       (posted_ready),
      .posted_eop_o         (posted_eop),
      .posted_header_o      (posted_header),
      .posted_data_o        (posted_data),
      .nonposted_in_valid_i (nonposted_in_valid),
      .nonposted_in_ready_o (nonposted_in_ready),
      .nonposted_in_header_i(nonposted_in_header),
      .nonposted_valid_o    (nonposted_valid),
      .nonposted_ready_i    (nonposted_ready),
      .nonposted_header_o   (nonposted_header),
      .response_in_valid_i  (response_in_valid),
      .response_in_ready_o  (response_in_ready),
      .response_in_eop_i    (response_in_eop),
      .response_in_header_i (response_in_header),
      .response_in_data_i   (response_in_data),
      .response_valid_o     (response_valid),
      .response_ready_i     (response_ready),
      .response_eop_o       (response_eop),
      .response_header_o    (response_header),
      .response_data_o      (response_data),
      .*
  );

  // The register file writes and reads nothing, VELO reads nothing and is not read. Answers of the host
  // that nobody asked for still come here, and are taken.
  assign {posted_in_valid[PortRegisters], posted_in_eop[PortRegisters]} = '0;
  assign posted_in_header[PortRegisters] = '0;
  assign posted_in_data[PortRegisters] = '0;
  assign nonposted_in_valid[PortVelo:PortRegisters] = '0;
  assign nonposted_in_header[PortVelo:PortRegisters] = '0;
  assign response_ready[PortVelo:PortRegisters] = '1;
  assign nonposted_ready[PortVelo] = 1'b0;
  assign {response_in_valid[PortVelo], response_in_eop[PortVelo]} = '0;
  assign response_in_header[PortVelo] = '0;
  assign response_in_data[PortVelo] = '0;

  // ----- the classes ----------------------------------------------------------------------------

  logic [NumSenders-1:0][NumClasses-1:0] out_valid, out_ready, out_sop, out_eop, in_valid, in_ready;
  logic [NumSenders-1:0][NumClasses-1:0][DataWidth-1:0] out_data;
  logic [NumClasses-1:1] stray;

  velo_unit_net #(
      .DataWidth(DataWidth),
      .NumUnits (NumSenders),
      .Kinds    ({KindsRma, CustomUnit ? KindsCustom : 48'b0, KindsVelo})
  ) u_net (
      .unit_out_valid_i(out_valid),
      .unit_out_ready_o(out_ready),
      .unit_out_sop_i  (out_sop),
      .unit_out_eop_i  (out_eop),
      .unit_out_data_i (out_data),
      .unit_in_valid_o (in_valid),
      .unit_in_ready_i (in_ready),
      .stray_o         (stray),
      .*
  );

  // VELO knows requests only, the custom unit no completions.
  assign {out_valid[NetVelo][2:1], out_sop[NetVelo][2:1], out_eop[NetVelo][2:1]} = '0;
  assign {out_valid[NetCustom][2], out_sop[NetCustom][2], out_eop[NetCustom][2]} = '0;
  assign out_data[NetVelo][2:1] = '0;
  assign out_data[NetCustom][2] = '0;
  assign in_ready[NetVelo][2:1] = '0;
  assign in_ready[NetCustom][2] = 1'b0;

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
  logic dma_valid;
  logic [AddrBits-1:0] dma_addr;
  logic [9:0] dma_len_bytes;

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
      .write_valid_i       (posted_valid[PortVelo]),
      .write_ready_o       (posted_ready[PortVelo]),
      .write_eop_i         (posted_eop[PortVelo]),
      .write_addr_i        (posted_header[PortVelo].addr),
      .write_len_bytes_i   (posted_header[PortVelo].len_bytes),
      .write_data_i        (posted_data[PortVelo]),
      .net_out_valid_o     (out_valid[NetVelo][0]),
      .net_out_ready_i     (out_ready[NetVelo][0]),
      .net_out_sop_o       (out_sop[NetVelo][0]),
      .net_out_eop_o       (out_eop[NetVelo][0]),
      .net_out_data_o      (out_data[NetVelo][0]),
      .net_in_valid_i      (in_valid[NetVelo][0]),
      .net_in_ready_o      (in_ready[NetVelo][0]),
      .net_in_sop_i        (net_in_sop_i[0]),
      .net_in_eop_i        (net_in_eop_i[0]),
      .net_in_data_i       (net_in_data_i[0]),
      .dma_valid_o         (dma_valid),
      .dma_ready_i         (posted_in_ready[PortVelo]),
      .dma_eop_o           (posted_in_eop[PortVelo]),
      .dma_data_o          (posted_in_data[PortVelo]),
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

  assign posted_in_valid[PortVelo]  = dma_valid;
  assign posted_in_header[PortVelo] = '{addr: dma_addr, len_bytes: dma_len_bytes, default: '0};

  // ----- custom unit ----------------------------------------------------------------------------

  logic [63:0] custom_setting, custom_status;

  velo_custom_slot #(
      .DataWidth(DataWidth),
      .Occupied (CustomUnit),
      .HostPort (PortHost)
  ) u_custom (
      .node_id_i      (node_id_o),
      .setting_i      (custom_setting),
      .status_o       (custom_status),
      .store_valid_i  (posted_valid[PortCustom]),
      .store_ready_o  (posted_ready[PortCustom]),
      .store_eop_i    (posted_eop[PortCustom]),
      .store_header_i (posted_header[PortCustom]),
      .store_data_i   (posted_data[PortCustom]),
      .load_valid_i   (nonposted_valid[PortCustom]),
      .load_ready_o   (nonposted_ready[PortCustom]),
      .load_header_i  (nonposted_header[PortCustom]),
      .answer_valid_o (response_in_valid[PortCustom]),
      .answer_ready_i (response_in_ready[PortCustom]),
      .answer_eop_o   (response_in_eop[PortCustom]),
      .answer_header_o(response_in_header[PortCustom]),
      .answer_data_o  (response_in_data[PortCustom]),
      .write_valid_o  (posted_in_valid[PortCustom]),
      .write_ready_i  (posted_in_ready[PortCustom]),
      .write_eop_o    (posted_in_eop[PortCustom]),
      .write_header_o (posted_in_header[PortCustom]),
      .write_data_o   (posted_in_data[PortCustom]),
      .read_valid_o   (nonposted_in_valid[PortCustom]),
      .read_ready_i   (nonposted_in_ready[PortCustom]),
      .read_header_o  (nonposted_in_header[PortCustom]),
      .memory_valid_i (response_valid[PortCustom]),
      .memory_ready_o (response_ready[PortCustom]),
      .memory_eop_i   (response_eop[PortCustom]),
      .memory_header_i(response_header[PortCustom]),
      .memory_data_i  (response_data[PortCustom]),
      .net_out_valid_o(out_valid[NetCustom][1:0]),
      .net_out_ready_i(out_ready[NetCustom][1:0]),
      .net_out_sop_o  (out_sop[NetCustom][1:0]),
      .net_out_eop_o  (out_eop[NetCustom][1:0]),
      .net_out_data_o (out_data[NetCustom][1:0]),
      .net_in_valid_i (in_valid[NetCustom][1:0]),
      .net_in_ready_o (in_ready[NetCustom][1:0]),
      .net_in_sop_i   (net_in_sop_i[1:0]),
      .net_in_eop_i   (net_in_eop_i[1:0]),
      .net_in_data_i  (net_in_data_i[1:0]),
      .*
  );

  // ----- RMA ------------------------------------------------------------------------------------

  rma_setting_t rma_setting;
  rma_report_t  rma_report;

  velo_rma_slot #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits),
      .MtuBytes (MtuBytes)
  ) u_rma (
      .node_id_i             (node_id_o),
      .watchdog_enable_i     (watchdog_enable),
      .watchdog_cycles_i     (watchdog_cycles),
      .setting_i             (rma_setting),
      .report_o              (rma_report),
      .posted_in_valid_i     (posted_valid[PortRma]),
      .posted_in_ready_o     (posted_ready[PortRma]),
      .posted_in_eop_i       (posted_eop[PortRma]),
      .posted_in_header_i    (posted_header[PortRma]),
      .posted_in_data_i      (posted_data[PortRma]),
      .nonposted_in_valid_i  (nonposted_valid[PortRma]),
      .nonposted_in_ready_o  (nonposted_ready[PortRma]),
      .nonposted_in_header_i (nonposted_header[PortRma]),
      .response_out_valid_o  (response_in_valid[PortRma]),
      .response_out_ready_i  (response_in_ready[PortRma]),
      .response_out_eop_o    (response_in_eop[PortRma]),
      .response_out_header_o (response_in_header[PortRma]),
      .response_out_data_o   (response_in_data[PortRma]),
      .posted_out_valid_o    (posted_in_valid[PortRma]),
      .posted_out_ready_i    (posted_in_ready[PortRma]),
      .posted_out_eop_o      (posted_in_eop[PortRma]),
      .posted_out_header_o   (posted_in_header[PortRma]),
      .posted_out_data_o     (posted_in_data[PortRma]),
      .write_done_i          (write_done[PortRma]),
      .nonposted_out_valid_o (nonposted_in_valid[PortRma]),
      .nonposted_out_ready_i (nonposted_in_ready[PortRma]),
      .nonposted_out_header_o(nonposted_in_header[PortRma]),
      .response_in_valid_i   (response_valid[PortRma]),
      .response_in_ready_o   (response_ready[PortRma]),
      .response_in_eop_i     (response_eop[PortRma]),
      .response_in_header_i  (response_header[PortRma]),
      .response_in_data_i    (response_data[PortRma]),
      .net_out_valid_o       (out_valid[NetRma]),
      .net_out_ready_i       (out_ready[NetRma]),
      .net_out_sop_o         (out_sop[NetRma]),
      .net_out_eop_o         (out_eop[NetRma]),
      .net_out_data_o        (out_data[NetRma]),
      .net_in_valid_i        (in_valid[NetRma]),
      .net_in_ready_o        (in_ready[NetRma]),
      .*
  );

  // ----- registers ------------------------------------------------------------------------------

  velo_regfile #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits)
  ) u_regfile (
      .posted_valid_i      (posted_valid[PortRegisters]),
      .posted_ready_o      (posted_ready[PortRegisters]),
      .posted_eop_i        (posted_eop[PortRegisters]),
      .posted_header_i     (posted_header[PortRegisters]),
      .posted_data_i       (posted_data[PortRegisters]),
      .nonposted_valid_i   (nonposted_valid[PortRegisters]),
      .nonposted_ready_o   (nonposted_ready[PortRegisters]),
      .nonposted_eop_i     (1'b1),
      .nonposted_header_i  (nonposted_header[PortRegisters]),
      .response_valid_o    (response_in_valid[PortRegisters]),
      .response_ready_i    (response_in_ready[PortRegisters]),
      .response_eop_o      (response_in_eop[PortRegisters]),
      .response_header_o   (response_in_header[PortRegisters]),
      .response_data_o     (response_in_data[PortRegisters]),
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
      .rma_setting_o       (rma_setting),
      .rma_report_i        (rma_report),
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
  assign unused = ^{posted_in_ready, nonposted_in_ready, nonposted_valid, nonposted_header,
                    response_in_ready, response_valid, response_eop, response_header,
                    response_data, write_done, out_ready, in_valid, posted_header};

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})

endmodule
