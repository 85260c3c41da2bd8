// SPDX-License-Identifier: Apache-2.0
//
// A VELO unit at the node's path: the unit itself (velo_unit), and, if it is narrower than the path, its
// converters and buffers. UnitWidth = DataWidth: wires.
//
// Ports as those of velo_unit, all streams as wide as the path. A unit of a half or a quarter of the
// path's width takes that many times longer for a message, so others have to have the path meanwhile:
//   * stores wait in a buffer of their own, so that one for this unit holds up none behind it for another;
//   * packets and DMA writes leave only when they are whole (velo_whole), so that they hold the ways that
//     all units share for no longer than their own beats.
// A packet header has a beat of its own on a path of 128 bits, as with velo_net_width; the store's last
// beat is half padding if its length says so.
//
// Added to a message's cycles by a narrow unit: one for its store, and one each for packet and DMA write
// after their last word. Errors: those of velo_unit.
//
// Source: VELO white paper, "Implementation" (scaled to several units at the crossbar).

`include "velo_assert.svh"

module velo_unit_slot
  import velo_pkg::*;
  import velo_secded_pkg::*;
  import htax_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned UnitWidth = DataWidth,
    parameter int unsigned CtxBits   = 8,
    parameter bit          Ecc       = 1'b0,
    parameter bit          Multicast = 1'b0
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [ 7:0] node_id_i,
    input logic        watchdog_enable_i,
    input logic [19:0] watchdog_cycles_i,
    input logic        send_watchdog_enable_i,
    input logic [23:0] send_watchdog_cycles_i,

    input  logic                cfg_valid_i,
    output logic                cfg_ready_o,
    input  logic [ CtxBits-1:0] cfg_ctx_i,
    input  logic                cfg_enabled_i,
    input  logic [AddrBits-1:6] cfg_base_i,
    input  logic [        14:0] cfg_last_slot_i,
    input  logic                read_pointer_valid_i,
    input  logic [ CtxBits-1:0] read_pointer_ctx_i,
    input  logic [        15:0] read_pointer_i,

    input  logic                 write_valid_i,
    output logic                 write_ready_o,
    input  logic                 write_eop_i,
    input  logic [ AddrBits-1:0] write_addr_i,
    input  logic [          9:0] write_len_bytes_i,
    input  logic [DataWidth-1:0] write_data_i,

    output logic                 net_out_valid_o,
    input  logic                 net_out_ready_i,
    output logic                 net_out_sop_o,
    output logic                 net_out_eop_o,
    output logic [DataWidth-1:0] net_out_data_o,
    input  logic                 net_in_valid_i,
    output logic                 net_in_ready_o,
    input  logic                 net_in_sop_i,
    input  logic                 net_in_eop_i,
    input  logic                 net_in_poison_i,
    input  logic [DataWidth-1:0] net_in_data_i,

    output logic                 dma_valid_o,
    input  logic                 dma_ready_i,
    output logic                 dma_eop_o,
    output logic [DataWidth-1:0] dma_data_o,
    output logic [ AddrBits-1:0] dma_addr_o,
    output logic [          9:0] dma_len_bytes_o,

    output logic         sent_o,
    output logic         refused_o,
    output error_e       refused_code_o,
    output logic   [7:0] refused_source_o,
    output logic         undelivered_o,
    output logic         received_o,
    output logic         stalled_o,
    output logic   [7:0] stall_ctx_o,
    output logic         dropped_o,
    output error_e       dropped_code_o,
    output logic   [7:0] dropped_ctx_o,
    output logic   [7:0] dropped_node_o,
    output ecc_t         ecc_o              // of the table of contexts
);

  localparam bit Narrow = UnitWidth != DataWidth;

  // The unit's side.
  logic store_valid, store_ready, store_eop, write_valid, write_ready, write_eop;
  logic out_valid, out_ready, out_sop, out_eop, in_valid, in_ready, in_sop, in_eop;
  logic [UnitWidth-1:0] store_data, write_data, out_data, in_data;
  logic [AddrBits-1:0] store_addr, write_addr;
  logic [9:0] store_len, write_len;

  velo_unit #(
      .DataWidth(UnitWidth),
      .CtxBits  (CtxBits),
      .AddrBits (AddrBits),
      .Ecc      (Ecc),
      .Multicast(Multicast)
  ) u_unit (
      .clk_i,
      .rst_ni,
      .node_id_i,
      .watchdog_enable_i,
      .watchdog_cycles_i,
      .send_watchdog_enable_i,
      .send_watchdog_cycles_i,
      .cfg_valid_i,
      .cfg_ready_o,
      .cfg_ctx_i,
      .cfg_enabled_i,
      .cfg_base_i,
      .cfg_last_slot_i,
      .read_pointer_valid_i,
      .read_pointer_ctx_i,
      .read_pointer_i,
      .write_valid_i    (store_valid),
      .write_ready_o    (store_ready),
      .write_eop_i      (store_eop),
      .write_addr_i     (store_addr),
      .write_len_bytes_i(store_len),
      .write_data_i     (store_data),
      .net_out_valid_o  (out_valid),
      .net_out_ready_i  (out_ready),
      .net_out_sop_o    (out_sop),
      .net_out_eop_o    (out_eop),
      .net_out_data_o   (out_data),
      .net_in_valid_i   (in_valid),
      .net_in_ready_o   (in_ready),
      .net_in_sop_i     (in_sop),
      .net_in_eop_i     (in_eop),
      .net_in_poison_i,
      .net_in_data_i    (in_data),
      .dma_valid_o      (write_valid),
      .dma_ready_i      (write_ready),
      .dma_eop_o        (write_eop),
      .dma_data_o       (write_data),
      .dma_addr_o       (write_addr),
      .dma_len_bytes_o  (write_len),
      .sent_o,
      .refused_o,
      .refused_code_o,
      .refused_source_o,
      .undelivered_o,
      .received_o,
      .stalled_o,
      .stall_ctx_o,
      .dropped_o,
      .dropped_code_o,
      .dropped_ctx_o,
      .dropped_node_o,
      .ecc_o
  );

  if (!Narrow) begin : gen_wires
    assign store_valid     = write_valid_i;
    assign write_ready_o   = store_ready;
    assign store_eop       = write_eop_i;
    assign store_data      = write_data_i;
    assign store_addr      = write_addr_i;
    assign store_len       = write_len_bytes_i;
    assign net_out_valid_o = out_valid;
    assign out_ready       = net_out_ready_i;
    assign net_out_sop_o   = out_sop;
    assign net_out_eop_o   = out_eop;
    assign net_out_data_o  = out_data;
    assign in_valid        = net_in_valid_i;
    assign net_in_ready_o  = in_ready;
    assign in_sop          = net_in_sop_i;
    assign in_eop          = net_in_eop_i;
    assign in_data         = net_in_data_i;
    assign dma_valid_o     = write_valid;
    assign write_ready     = dma_ready_i;
    assign dma_eop_o       = write_eop;
    assign dma_data_o      = write_data;
    assign dma_addr_o      = write_addr;
    assign dma_len_bytes_o = write_len;
  end else begin : gen_narrow
    // Two steps: from 128 to 64 bits, where a beat may have one word, and from 64 to 32.
    localparam int unsigned MidWidth = DataWidth == 128 ? 64 : DataWidth;
    // The longest packet or DMA write: header, or what stands for it, and a whole line.
    localparam int unsigned WholeDepth = DataWidth == 128 ? 8 : 16;
    // A packet is begun only with room for all of it, behind what the converters still hold of the one
    // before it: two beats.
    localparam int unsigned PacketDepth = 2 * WholeDepth;
    localparam int unsigned PacketRoom = (DataWidth == 128 ? 5 : 9) + 3;
    localparam int unsigned StoreDepth = 32;
    localparam int unsigned PlaceBits = AddrBits + 10;

    // ----- stores -------------------------------------------------------------------------------

    logic queue_valid, queue_ready, queue_eop, mid_store_valid, mid_store_ready, mid_store_eop;
    logic [DataWidth-1:0] queue_data;
    logic [MidWidth-1:0] mid_store_data;
    logic [$clog2(StoreDepth):0] unused_count;
    logic [1:0] unused_sop;

    velo_fifo #(
        .Width(PlaceBits + 1 + DataWidth),
        .Depth(StoreDepth)
    ) u_stores (
        .clk_i,
        .rst_ni,
        .push_valid_i(write_valid_i),
        .push_ready_o(write_ready_o),
        .push_data_i ({write_addr_i, write_len_bytes_i, write_eop_i, write_data_i}),
        .pop_valid_o (queue_valid),
        .pop_ready_i (queue_ready),
        .pop_data_o  ({store_addr, store_len, queue_eop, queue_data}),
        .count_o     (unused_count)
    );
    velo_narrow #(
        .Width    (DataWidth),
        .HalfWidth(MidWidth)
    ) u_store_mid (
        .clk_i,
        .rst_ni,
        .in_valid_i (queue_valid),
        .in_ready_o (queue_ready),
        .in_sop_i   (1'b0),
        .in_eop_i   (queue_eop),
        .in_single_i(queue_eop && odd_words(store_len[3:0])),
        .in_data_i  (queue_data),
        .out_valid_o(mid_store_valid),
        .out_ready_i(mid_store_ready),
        .out_sop_o  (unused_sop[0]),
        .out_eop_o  (mid_store_eop),
        .out_data_o (mid_store_data)
    );
    velo_narrow #(
        .Width    (MidWidth),
        .HalfWidth(UnitWidth)
    ) u_store (
        .clk_i,
        .rst_ni,
        .in_valid_i (mid_store_valid),
        .in_ready_o (mid_store_ready),
        .in_sop_i   (1'b0),
        .in_eop_i   (mid_store_eop),
        .in_single_i(1'b0),
        .in_data_i  (mid_store_data),
        .out_valid_o(store_valid),
        .out_ready_i(store_ready),
        .out_sop_o  (unused_sop[1]),
        .out_eop_o  (store_eop),
        .out_data_o (store_data)
    );

    // ----- packets ------------------------------------------------------------------------------

    logic mid_out_valid, mid_out_ready, mid_out_sop, mid_out_eop;
    logic mid_in_valid, mid_in_ready, mid_in_sop, mid_in_eop;
    logic packet_valid, packet_ready, packet_sop, packet_eop;
    logic [MidWidth-1:0] mid_out_data, mid_in_data;
    logic [DataWidth-1:0] packet_data;
    logic begun_valid, begun_ready, room;

    velo_packet_gate u_gate (
        .clk_i,
        .rst_ni,
        .in_valid_i (out_valid),
        .in_ready_o (out_ready),
        .in_eop_i   (out_eop),
        .out_valid_o(begun_valid),
        .out_ready_i(begun_ready),
        .out_room_i (room && begun_ready)
    );
    velo_widen #(
        .Width    (MidWidth),
        .HalfWidth(UnitWidth)
    ) u_out (
        .clk_i,
        .rst_ni,
        .in_valid_i (begun_valid),
        .in_ready_o (begun_ready),
        .in_sop_i   (out_sop),
        .in_eop_i   (out_eop),
        .in_single_i(1'b0),
        .in_data_i  (out_data),
        .out_valid_o(mid_out_valid),
        .out_ready_i(mid_out_ready),
        .out_sop_o  (mid_out_sop),
        .out_eop_o  (mid_out_eop),
        .out_data_o (mid_out_data)
    );
    velo_net_width #(
        .Width     (DataWidth),
        .UnitWidth (MidWidth),
        .NumClasses(1)
    ) u_net_width (
        .clk_i,
        .rst_ni,
        .unit_out_valid_i(mid_out_valid),
        .unit_out_ready_o(mid_out_ready),
        .unit_out_sop_i  (mid_out_sop),
        .unit_out_eop_i  (mid_out_eop),
        .unit_out_data_i (mid_out_data),
        .path_out_valid_o(packet_valid),
        .path_out_ready_i(packet_ready),
        .path_out_sop_o  (packet_sop),
        .path_out_eop_o  (packet_eop),
        .path_out_data_o (packet_data),
        .path_in_valid_i (net_in_valid_i),
        .path_in_ready_o (net_in_ready_o),
        .path_in_sop_i   (net_in_sop_i),
        .path_in_eop_i   (net_in_eop_i),
        .path_in_data_i  (net_in_data_i),
        .unit_in_valid_o (mid_in_valid),
        .unit_in_ready_i (mid_in_ready),
        .unit_in_sop_o   (mid_in_sop),
        .unit_in_eop_o   (mid_in_eop),
        .unit_in_data_o  (mid_in_data)
    );
    velo_narrow #(
        .Width    (MidWidth),
        .HalfWidth(UnitWidth)
    ) u_in (
        .clk_i,
        .rst_ni,
        .in_valid_i (mid_in_valid),
        .in_ready_o (mid_in_ready),
        .in_sop_i   (mid_in_sop),
        .in_eop_i   (mid_in_eop),
        .in_single_i(1'b0),
        .in_data_i  (mid_in_data),
        .out_valid_o(in_valid),
        .out_ready_i(in_ready),
        .out_sop_o  (in_sop),
        .out_eop_o  (in_eop),
        .out_data_o (in_data)
    );
    velo_whole #(
        .Width    (DataWidth + 1),
        .Depth    (PacketDepth),
        .RoomBeats(PacketRoom)
    ) u_packets (
        .clk_i,
        .rst_ni,
        .in_valid_i (packet_valid),
        .in_ready_o (packet_ready),
        .in_room_o  (room),
        .in_eop_i   (packet_eop),
        .in_data_i  ({packet_sop, packet_data}),
        .out_valid_o(net_out_valid_o),
        .out_ready_i(net_out_ready_i),
        .out_eop_o  (net_out_eop_o),
        .out_data_o ({net_out_sop_o, net_out_data_o})
    );

    // ----- DMA writes ---------------------------------------------------------------------------

    logic mid_write_valid, mid_write_ready, mid_write_eop, wide_valid, wide_ready, wide_eop;
    logic [MidWidth-1:0] mid_write_data;
    logic [DataWidth-1:0] wide_data;
    logic [1:0] unused_write_sop;

    velo_widen #(
        .Width    (MidWidth),
        .HalfWidth(UnitWidth)
    ) u_write_mid (
        .clk_i,
        .rst_ni,
        .in_valid_i (write_valid),
        .in_ready_o (write_ready),
        .in_sop_i   (1'b0),
        .in_eop_i   (write_eop),
        .in_single_i(1'b0),
        .in_data_i  (write_data),
        .out_valid_o(mid_write_valid),
        .out_ready_i(mid_write_ready),
        .out_sop_o  (unused_write_sop[0]),
        .out_eop_o  (mid_write_eop),
        .out_data_o (mid_write_data)
    );
    velo_widen #(
        .Width    (DataWidth),
        .HalfWidth(MidWidth)
    ) u_write (
        .clk_i,
        .rst_ni,
        .in_valid_i (mid_write_valid),
        .in_ready_o (mid_write_ready),
        .in_sop_i   (1'b0),
        .in_eop_i   (mid_write_eop),
        .in_single_i(1'b0),
        .in_data_i  (mid_write_data),
        .out_valid_o(wide_valid),
        .out_ready_i(wide_ready),
        .out_sop_o  (unused_write_sop[1]),
        .out_eop_o  (wide_eop),
        .out_data_o (wide_data)
    );
    logic unused, unused_room;
    velo_whole #(
        .Width(PlaceBits + DataWidth),
        .Depth(WholeDepth)
    ) u_writes (
        .clk_i,
        .rst_ni,
        .in_valid_i (wide_valid),
        .in_ready_o (wide_ready),
        .in_room_o  (unused_room),
        .in_eop_i   (wide_eop),
        .in_data_i  ({write_addr, write_len, wide_data}),
        .out_valid_o(dma_valid_o),
        .out_ready_i(dma_ready_i),
        .out_eop_o  (dma_eop_o),
        .out_data_o ({dma_addr_o, dma_len_bytes_o, dma_data_o})
    );

    assign unused = ^{unused_room, unused_count, unused_sop, unused_write_sop};
  end

  `VELO_ASSERT_INIT(
      UnitIsAPartOfThePath,
      DataWidth == UnitWidth || DataWidth == 2 * UnitWidth || DataWidth == 4 * UnitWidth)

endmodule
