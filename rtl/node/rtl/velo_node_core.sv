// SPDX-License-Identifier: Apache-2.0
//
// A node without its network: host bridge, on-chip crossbar, VELO, RMA, a custom unit, register
// file, and the three streams, one a traffic class, that a network takes up.
//
// Host port (velo_host_pkg):
//   host_*      posted writes into the node's window (spec/velo.toml, layout `window`), and reads from it;
//   control_*   the same for registers only, a way of its own;
//   dma_*       posted writes to host memory, in order, and reads of it, answered in any order.
// VELO's and the custom unit's accesses to host memory are of aligned 64-bit words. The RMA unit's have any
// address and length, none crosses a page of 4 KiB, and their data begin with the byte at the address.
//
// The host must follow these rules, so that nothing waits for ever. It takes DMA writes and answers DMA
// reads even while it waits for something else, and does not hold back control writes for host writes. A
// read that is offered shows the data of all writes taken before it; an answer that has begun goes on. A
// message may wait until a ring far away has room. To make room a host writes a read pointer, and that
// write must not wait for messages. The same holds for notification queues. Registers can be reached by
// `host_request_i`, too, but behind messages.
//
// On a path of 128 bits a packet's header has a beat of its own, and the words behind it go two by two.
//
// NumVelo = 2 or 4: so many VELO units, each of VeloWidth bits, with the contexts spread over them by
// their lowest bits (velo_units); units from the second on have a port of the crossbar and a stream of the
// network for themselves, those behind the three classes.
//
// Network: a packet's first beat is the low part of its header.
// Packets of the response and completion classes that are for no unit are swallowed and counted
// (registers `stray_*`), so they cannot stop the network.
//
// Congestion management stands between units and network (velo_congestion); Congestion = 0: none. Settings and
// state of the network pass from and to the registers, see velo_regfile_pkg.
//
// The custom unit is velo_gsm, with DimmnetUnit = 1 dimmnet_unit; another with its ports may take its place.
// CustomUnit = 0: none.
//
// Source: VELO paper, figure 1; case-for-fpga, figure 1.

`include "velo_assert.svh"

module velo_node_core
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_host_pkg::*;
  import velo_net_pkg::*;
  import velo_node_pkg::*;
  import velo_regfile_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned CtxBits = 8,
    parameter int unsigned MtuBytes = 512,
    parameter bit CustomUnit = 1'b1,
    parameter bit DimmnetUnit = 1'b0,  // the custom unit is dimmnet_unit
    parameter int unsigned NumVelo = 1,
    parameter int unsigned VeloWidth = DataWidth,
    parameter bit Ecc = 1'b0,  // check bits in the units' memories
    parameter bit Multicast = 1'b0,  // messages may come by groups
    parameter bit Barrier = 1'b0,  // of groups, see velo_barrier
    parameter bit Congestion = 1'b0,
    localparam int unsigned NumClasses = 3,
    localparam int unsigned NumNets = NumClasses + NumVelo - 1,
    localparam int unsigned LastUnit = last_unit(NumVelo)
) (
    input logic clk_i,
    input logic rst_ni,

    // Stores and loads of the host for the units, and their answers; see velo_host_pkg.
    input  host_request_t                  host_request_i,
    input  logic           [DataWidth-1:0] host_write_data_i,  // beside `host_request_i.write`
    output host_response_t                 host_response_o,
    output logic           [DataWidth-1:0] host_answer_data_o, // beside `host_response_o.answer`

    // The same for the registers, which wait for no unit.
    input  host_request_t                  control_request_i,
    input  logic           [DataWidth-1:0] control_write_data_i,
    output host_response_t                 control_response_o,
    output logic           [DataWidth-1:0] control_answer_data_o,

    // Writes and reads of host memory, and what was read.
    output dma_request_t                  dma_request_o,
    output logic          [DataWidth-1:0] dma_write_data_o,  // beside `dma_request_o.write`
    input  dma_response_t                 dma_response_i,
    input  logic          [DataWidth-1:0] dma_answer_data_i, // beside `dma_response_i.answer`

    // Packets to the network, by stream; see velo_net_pkg.
    output net_stream_t [NumNets-1:0]                net_out_o,
    output logic        [NumNets-1:0][DataWidth-1:0] net_out_data_o,   // the beats
    input  logic        [NumNets-1:0]                net_out_ready_i,  // they are taken
    input  logic        [NumNets-1:0]                net_out_room_i,   // VELO's would go in whole
    // Packets from the network, likewise.
    input  net_stream_t [NumNets-1:0]                net_in_i,
    input  logic        [NumNets-1:0][DataWidth-1:0] net_in_data_i,    // the beats
    output logic        [NumNets-1:0]                net_in_ready_o,   // they are taken

    // From and to the registers, see velo_regfile_pkg.
    output network_setting_t network_setting_o,
    input  network_state_t   network_state_i,

    output logic [7:0] node_id_o  // this node, as its register says
);

  // ----- host bridge and crossbar ---------------------------------------------------------------

  htax_port_t [LastUnit:FirstUnit] from_unit, to_unit;
  htax_ready_t [LastUnit:FirstUnit] from_unit_ready, to_unit_ready;
  logic [LastUnit:FirstUnit][DataWidth-1:0] from_unit_posted_data, from_unit_response_data;
  logic [LastUnit:FirstUnit][DataWidth-1:0] to_unit_posted_data, to_unit_response_data;
  logic [LastUnit:FirstUnit] write_done;

  velo_node_fabric #(
      .DataWidth (DataWidth),
      .NumVelo   (NumVelo),
      .CustomUnit(CustomUnit)
  ) u_fabric (
      .from_unit_i              (from_unit),
      .from_unit_posted_data_i  (from_unit_posted_data),
      .from_unit_response_data_i(from_unit_response_data),
      .from_unit_ready_o        (from_unit_ready),
      .write_done_o             (write_done),
      .to_unit_o                (to_unit),
      .to_unit_posted_data_o    (to_unit_posted_data),
      .to_unit_response_data_o  (to_unit_response_data),
      .to_unit_ready_i          (to_unit_ready),
      .clk_i,
      .rst_ni,
      .host_request_i,
      .host_write_data_i,
      .host_response_o,
      .host_answer_data_o,
      .control_request_i,
      .control_write_data_i,
      .control_response_o,
      .control_answer_data_o,
      .dma_request_o,
      .dma_write_data_o,
      .dma_response_i,
      .dma_answer_data_i
  );

  // ----- units ----------------------------------------------------------------------------------

  congestion_t setting;
  congestion_report_t report;
  net_stream_t [NumNets-1:0] unit_out, unit_in;
  logic [NumNets-1:0] unit_out_ready, unit_in_ready;
  logic [NumNets-1:0][DataWidth-1:0] unit_out_data, unit_in_data;

  velo_node_units #(
      .DataWidth  (DataWidth),
      .CtxBits    (CtxBits),
      .MtuBytes   (MtuBytes),
      .CustomUnit (CustomUnit),
      .DimmnetUnit(DimmnetUnit),
      .NumVelo    (NumVelo),
      .VeloWidth  (VeloWidth),
      .Ecc        (Ecc),
      .Multicast  (Multicast),
      .Barrier    (Barrier)
  ) u_units (
      .clk_i,
      .rst_ni,
      .from_unit_o(from_unit),
      .from_unit_posted_data_o(from_unit_posted_data),
      .from_unit_response_data_o(from_unit_response_data),
      .from_unit_ready_i(from_unit_ready),
      .write_done_i(write_done),
      .to_unit_i(to_unit),
      .to_unit_posted_data_i(to_unit_posted_data),
      .to_unit_response_data_i(to_unit_response_data),
      .to_unit_ready_o(to_unit_ready),
      .host_stalled_i(dma_request_o.write_valid && !dma_response_i.write_ready),
      .net_out_o(unit_out),
      .net_out_data_o(unit_out_data),
      .net_out_ready_i(unit_out_ready),
      .net_out_room_i,
      .net_in_i(unit_in),
      .net_in_data_i(unit_in_data),
      .net_in_ready_o(unit_in_ready),
      .network_setting_o,
      .network_state_i,
      .congestion_setting_o(setting),
      .congestion_report_i(report),
      .node_id_o
  );

  // ----- congestion management ------------------------------------------------------------------

  velo_congestion #(
      .DataWidth (DataWidth),
      .NumVelo   (NumVelo),
      .Congestion(Congestion)
  ) u_congestion (
      .clk_i,
      .rst_ni,
      .enable_i            (setting.enable),
      .node_id_i           (node_id_o),
      .increase_i          (setting.increase),
      .recover_cycles_i    (setting.recover_cycles),
      .notice_cycles_i     (setting.notice_cycles),
      .unit_out_i          (unit_out),
      .unit_out_data_i     (unit_out_data),
      .unit_out_ready_o    (unit_out_ready),
      .net_out_o,
      .net_out_data_o,
      .net_out_ready_i,
      .net_out_room_i,
      .net_in_i,
      .net_in_data_i,
      .net_in_ready_o,
      .unit_in_o           (unit_in),
      .unit_in_data_o      (unit_in_data),
      .unit_in_ready_i     (unit_in_ready),
      .marked_o            (report.marked),
      .notices_sent_o      (report.sent),
      .notices_suppressed_o(report.suppressed),
      .notices_received_o  (report.received),
      .held_o              (report.held)
  );
  assign report.present = Congestion;

  `VELO_ASSERT_INIT(DataWidthSupported, DataWidth inside {32, 64, 128})

endmodule
