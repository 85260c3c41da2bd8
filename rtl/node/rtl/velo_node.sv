// SPDX-License-Identifier: Apache-2.0
//
// A whole node: velo_node_core and the network, with a PHY boundary of parallel symbols.
//
// NumVelo = 2 or 4 VELO units of VeloWidth bits share host port and links (velo_units): one at the path's
// width already fills its host port, so more of them are for units of a half or a quarter of it.
// Six links of 32 bits are the default; three wider ones are NumLinks = 3, DataWidth = 64
// or 128.
// Congestion = 0 leaves congestion management out; with it, it is off until a register turns it on.
// Host port as in velo_node_core; `phy_*` as in velo_link. The host transfers a posted write, and what
// it answers to a DMA read, without long pauses inside, as every bus does that carries whole
// transactions: the request class is passed on beat by beat, so a pause there would hold the packet's
// way through the network (`WholeRequests` = 1 waits for the whole packet first, at the cost of its
// length in cycles).
//
// Source: case-for-fpga, section 3, figure 1.

`include "velo_assert.svh"

module velo_node
  import velo_pkg::*;
  import htax_pkg::*;
  import velo_host_pkg::*;
  import velo_link_pkg::*;
  import velo_net_pkg::*;
  import velo_regfile_pkg::*;
  import velo_secded_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned CtxBits = 8,
    parameter bit CustomUnit = 1'b1,
    parameter bit DimmnetUnit = 1'b0,  // the custom unit is dimmnet_unit
    parameter bit WholeRequests = 1'b0,
    parameter int unsigned NumVelo = 1,
    parameter int unsigned VeloWidth = DataWidth,
    parameter bit Ecc = 1'b0,  // check bits in the large memories; see velo_ram
    parameter bit Multicast = 1'b0,  // messages to groups of nodes, see velo_switch
    parameter bit Barrier = 1'b0,  // of groups, see velo_barrier
    parameter bit Congestion = 1'b0
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

    // By link: words to and from its PHY, one in each cycle; see velo_link.
    input  logic [NumLinks-1:0]                phy_up_i,     // words can be received
    input  logic [NumLinks-1:0][          1:0] phy_kind_i,   // word that came: its kind
    input  logic [NumLinks-1:0][DataWidth-1:0] phy_data_i,   // word that came
    input  logic [NumLinks-1:0]                phy_pause_i,  // send idle words, no others
    output logic [NumLinks-1:0][          1:0] phy_kind_o,   // word to send: its kind
    output logic [NumLinks-1:0][DataWidth-1:0] phy_data_o,   // word to send

    output logic [7:0] node_id_o  // this node, as its register says
);

  localparam int unsigned NumNets = NumClasses + NumVelo - 1;

  // The core has streams, the router a vector for each of their signals.
  net_stream_t [NumNets-1:0] core_out, core_in;
  logic [NumNets-1:0] out_valid, out_ready, out_room, out_sop, out_eop;
  logic [NumNets-1:0] in_valid, in_ready, in_sop, in_eop, in_poison;
  logic [NumNets-1:0][DataWidth-1:0] out_data, in_data;
  for (genvar n = 0; n < NumNets; n++) begin : gen_net
    assign out_valid[n] = core_out[n].valid;
    assign out_sop[n]   = core_out[n].sop;
    assign out_eop[n]   = core_out[n].eop;
    assign core_in[n]   = '{in_valid[n], in_sop[n], in_eop[n], in_poison[n]};
  end

  network_setting_t network_setting;
  network_state_t   network_state;
  logic [NumLinks-1:0] up, dead;
  logic [NumLinks-1:0][2:0] refuse;
  logic [NumLinks-1:0][7:0] crc_errors, replays, timeouts, in_doubt, restarts, undelivered;
  count_t [NumLinks-1:0][NumVcs-1:0] credits;
  logic [NumLinks+NumNets-1:0][7:0] dropped;
  logic [NumNets-1:0][7:0] poisoned;
  ecc_count_t ecc;

  // The registers show eight links. All ports of requests count as one; so does their sum, modulo 256.
  always_comb begin
    network_state = '0;
    network_state.ecc = ecc;
    for (int unsigned l = 0; l < NumLinks; l++) begin
      network_state.link[l] = '{
          credits: 48'(credits[l]),
          undelivered: undelivered[l],
          restarts: restarts[l],
          in_doubt: in_doubt[l],
          dropped: dropped[l],
          timeouts: timeouts[l],
          replays: replays[l],
          crc_errors: crc_errors[l],
          refuse: refuse[l],
          dead: dead[l],
          up: up[l]
      };
    end
    network_state.node_port_dropped  = dropped[NumLinks+:NumClasses];
    network_state.node_port_poisoned = poisoned[NumClasses-1:0];
    for (int unsigned p = NumClasses; p < NumNets; p++) begin
      network_state.node_port_dropped[0] += dropped[NumLinks+p];
      network_state.node_port_poisoned[0] += poisoned[p];
    end
  end

  velo_node_core #(
      .DataWidth  (DataWidth),
      .CtxBits    (CtxBits),
      .MtuBytes   (MtuBytes),
      .CustomUnit (CustomUnit),
      .DimmnetUnit(DimmnetUnit),
      .NumVelo    (NumVelo),
      .VeloWidth  (VeloWidth),
      .Ecc        (Ecc),
      .Multicast  (Multicast),
      .Barrier    (Barrier),
      .Congestion (Congestion)
  ) u_core (
      .clk_i,
      .rst_ni,
      .net_out_o        (core_out),
      .net_out_data_o   (out_data),
      .net_out_ready_i  (out_ready),
      .net_out_room_i   (out_room),
      .net_in_i         (core_in),
      .net_in_data_i    (in_data),
      .net_in_ready_o   (in_ready),
      .network_setting_o(network_setting),
      .network_state_i  (network_state),
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
      .dma_answer_data_i,
      .node_id_o
  );

  velo_router #(
      .DataWidth   (DataWidth),
      .NumLinks    (NumLinks),
      .NumVcs      (NumVcs),
      .MtuBytes    (MtuBytes),
      .WholePackets({2'b11, WholeRequests}),
      .NumVelo     (NumVelo),
      .Multicast   (Multicast),
      .Congestion  (Congestion),
      .Ecc         (Ecc)
  ) u_router (
      .clk_i,
      .rst_ni,
      .table_we_i        (network_setting.route_we),
      .table_node_i      (network_setting.route_node),
      .table_hop_i       (network_setting.route_hop),
      .table_group_i     (network_setting.route_group),
      .mark_enable_i     (network_setting.mark_enable),
      .mark_cycles_i     (network_setting.mark_cycles),
      .dead_enable_i     (network_setting.dead_enable),
      .dead_cycles_i     (network_setting.dead_cycles),
      .unit_in_valid_i   (out_valid),
      .unit_in_ready_o   (out_ready),
      .unit_in_room_o    (out_room),
      .unit_in_sop_i     (out_sop),
      .unit_in_eop_i     (out_eop),
      .unit_in_data_i    (out_data),
      .unit_out_valid_o  (in_valid),
      .unit_out_ready_i  (in_ready),
      .unit_out_sop_o    (in_sop),
      .unit_out_eop_o    (in_eop),
      .unit_out_poison_o (in_poison),
      .unit_out_data_o   (in_data),
      .link_enable_i     (network_setting.link_enable[NumLinks-1:0]),
      .link_reset_i      (network_setting.link_restart[NumLinks-1:0]),
      .link_forget_i     (network_setting.link_forget[NumLinks-1:0]),
      .phy_up_i,
      .phy_kind_i,
      .phy_data_i,
      .phy_pause_i,
      .phy_kind_o,
      .phy_data_o,
      .link_up_o         (up),
      .link_refuse_o     (refuse),
      .link_crc_errors_o (crc_errors),
      .link_replays_o    (replays),
      .link_timeouts_o   (timeouts),
      .link_in_doubt_o   (in_doubt),
      .link_restarts_o   (restarts),
      .link_dead_o       (dead),
      .link_undelivered_o(undelivered),
      .link_credits_o    (credits),
      .dropped_o         (dropped),
      .poisoned_o        (poisoned),
      .ecc_o             (ecc)
  );

  logic unused;
  assign unused = ^{network_setting, core_out};

  `VELO_ASSERT_INIT(LinksFitRegisters, NumLinks >= 1 && NumLinks <= 8)
  `VELO_ASSERT_INIT(GroupsAsInSpec, 256 - NumGroups == GroupNodeMin)
  `VELO_ASSERT_INIT(CreditsFitRegister, NumVcs * $bits(count_t) <= 48)
  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {
                     host_response_o.answer_valid, control_response_o.answer_valid,
                     dma_request_o.write_valid, dma_request_o.read_valid, phy_kind_o})

endmodule
