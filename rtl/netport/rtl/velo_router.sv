// SPDX-License-Identifier: Apache-2.0
//
// All of a node that is network: the switch, a link port for each cable and a network port for each
// traffic class (0 request, 1 response, 2 completion). With NumVelo > 1, ports 3 and up are more of the
// request class, one for each further VELO unit: messages for context c come by that of unit c mod NumVelo.
//
// `unit_in_*` and `unit_out_*`: valid/ready streams of packets, one a class; `unit_in_room_o` as in
// velo_netport_tx. `phy_*` and `link_forget_i`: see velo_link.
// `dead_*_i`: how long packets wait for a link that is down until it is dead, and what is for it is swallowed
// (velo_router_sink).
// `mark_*_i`: congestion management in the switch, unless it is left out (Congestion = 0).
// The routing table is written through `table_*_i`. Regenerating with three double-width links is
// NumLinks = 3, DataWidth = 64. Status, for the register file: per link up, reason of refusal and counters, whether it
// is dead and how many packets were swallowed for it; per link and channel the credits left; per port a counter of
// packets that led nowhere, and per node port one of packets that ended poisoned. Of the latter only messages of class
// request come to `unit_out_*`, see velo_netport_rx.
// Source: case-for-fpga, section 3, figure 1.

`include "velo_assert.svh"

module velo_router
  import velo_link_pkg::*;
  import velo_secded_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumLinks = 6,
    parameter int unsigned NumVcs = 6,
    parameter int unsigned MtuBytes = 512,
    parameter int unsigned BufferUnits = 30,
    parameter int unsigned TimeoutCycles = 1023,
    parameter int unsigned InitWords = 32,
    parameter bit [NumClasses-1:0] WholePackets = '1,  // per class, see velo_netport_tx
    parameter int unsigned NumVelo = 1,
    parameter bit Multicast = 1'b0,  // see velo_switch
    parameter bit Congestion = 1'b0,
    parameter bit Ecc = 1'b0,  // check bits in the switch's buffers and the links' rings
    localparam int unsigned NumNodePorts = NumClasses + NumVelo - 1,
    localparam int unsigned NumPorts = NumLinks + NumNodePorts
) (
    input logic clk_i,
    input logic rst_ni,

    // The routing table of the switch.
    input logic               table_we_i,    // write this entry
    input logic         [7:0] table_node_i,  // number of a node or group
    input hop_t               table_hop_i,   // the way, if it is a node's
    input group_ports_t       table_group_i, // the way, if the number is a group's

    // Congestion management, see velo_switch.
    input logic        mark_enable_i,  // mark packets at all
    input logic [15:0] mark_cycles_i,  // that congestion must have lasted

    // Links that are down, see velo_router_sink.
    input logic        dead_enable_i,  // one may be dead
    input logic [23:0] dead_cycles_i,  // that it was down for so long, at least

    // Packets of the units, by node port; valid/ready: a word stands until it is taken.
    input logic [NumNodePorts-1:0] unit_in_valid_i,  // a word is offered
    output logic [NumNodePorts-1:0] unit_in_ready_o,  // it is taken
    output logic [NumNodePorts-1:0] unit_in_room_o,  // one of VELO's would go in whole
    input logic [NumNodePorts-1:0] unit_in_sop_i,  // it is its packet's first
    input logic [NumNodePorts-1:0] unit_in_eop_i,  // it is the last
    input logic [NumNodePorts-1:0][DataWidth-1:0] unit_in_data_i,  // the word

    // Packets for the units, likewise.
    output logic [NumNodePorts-1:0]                unit_out_valid_o,   // a word is offered
    input  logic [NumNodePorts-1:0]                unit_out_ready_i,   // it is taken
    output logic [NumNodePorts-1:0]                unit_out_sop_o,     // it is its packet's first
    output logic [NumNodePorts-1:0]                unit_out_eop_o,     // it is the last
    output logic [NumNodePorts-1:0]                unit_out_poison_o,  // with the last: void
    output logic [NumNodePorts-1:0][DataWidth-1:0] unit_out_data_o,    // the word

    // Links: settings, and words to and from their PHYs; see velo_link.
    input  logic [NumLinks-1:0]                link_enable_i,  // 0: down
    input  logic [NumLinks-1:0]                link_reset_i,   // down, and up again in the session
    input  logic [NumLinks-1:0]                link_forget_i,  // down, and up in a new one
    input  logic [NumLinks-1:0]                phy_up_i,       // words can be received
    input  logic [NumLinks-1:0][          1:0] phy_kind_i,     // word that came: its kind
    input  logic [NumLinks-1:0][DataWidth-1:0] phy_data_i,     // word that came
    input  logic [NumLinks-1:0]                phy_pause_i,    // send idle words
    output logic [NumLinks-1:0][          1:0] phy_kind_o,     // word to send: its kind
    output logic [NumLinks-1:0][DataWidth-1:0] phy_data_o,     // word to send

    // State, for registers; counters are modulo 256.
    output logic [NumLinks-1:0] link_up_o,  // packets can pass
    output logic [NumLinks-1:0][2:0] link_refuse_o,  // why not, refuse_e
    output logic [NumLinks-1:0][7:0] link_crc_errors_o,  // came in wrong
    output logic [NumLinks-1:0][7:0] link_replays_o,  // retransmissions
    output logic [NumLinks-1:0][7:0] link_timeouts_o,  // unacknowledged
    output logic [NumLinks-1:0][7:0] link_in_doubt_o,  // given up
    output logic [NumLinks-1:0][7:0] link_restarts_o,  // sessions that ended
    output logic [NumLinks-1:0] link_dead_o,  // down for too long: packets are swallowed
    output logic [NumLinks-1:0][7:0] link_undelivered_o,  // so many were
    output count_t [NumLinks-1:0][NumVcs-1:0] link_credits_o,  // left, by channel
    output logic [NumPorts-1:0][7:0] dropped_o,  // led nowhere, by port
    output logic [NumNodePorts-1:0][7:0] poisoned_o,  // ended poisoned
    output ecc_count_t ecc_o  // words with wrong bits that were used in this cycle
);

  localparam int unsigned VcsPerClass = NumVcs / NumClasses;

  logic [NumPorts-1:0] in_valid, in_sop, in_eop, out_valid, out_sop, out_eop, out_stop, dropped;
  logic [NumPorts-1:0] in_poison, in_again, out_poison, out_waited, out_sink, out_sunk;
  logic [NumLinks-1:0] link_stop;
  logic [NumNodePorts-1:0] poisoned;
  vc_t [NumPorts-1:0] in_vc, out_vc;
  logic [NumPorts-1:0][DataWidth-1:0] in_data, out_data;
  count_t [NumPorts-1:0] out_credits;
  count_t [NumPorts-1:0][NumVcs-1:0] in_freed, out_freed, out_avail;
  ecc_t [NumPorts+NumLinks-1:0] ecc;  // of the switch's inputs and the links

  assign ecc_o = ecc_count(64'(ecc));

  velo_switch #(
      .DataWidth   (DataWidth),
      .NumLinks    (NumLinks),
      .NumVcs      (NumVcs),
      .MtuBytes    (MtuBytes),
      .BufferUnits (BufferUnits),
      .NumNodePorts(NumNodePorts),
      .Multicast   (Multicast),
      .Congestion  (Congestion),
      .Ecc         (Ecc)
  ) u_switch (
      .clk_i,
      .rst_ni,
      .in_valid_i   (in_valid),
      .in_sop_i     (in_sop),
      .in_eop_i     (in_eop),
      .in_poison_i  (in_poison),
      .in_again_i   (in_again),
      .in_vc_i      (in_vc),
      .in_data_i    (in_data),
      .in_freed_o   (in_freed),
      .out_valid_o  (out_valid),
      .out_sop_o    (out_sop),
      .out_eop_o    (out_eop),
      .out_poison_o (out_poison),
      .out_vc_o     (out_vc),
      .out_data_o   (out_data),
      .out_stop_i   (out_stop),
      .out_credits_i(out_credits),
      .out_freed_i  (out_freed),
      .out_avail_o  (out_avail),
      .out_waited_o (out_waited),
      .out_sink_i   (out_sink),
      .out_sunk_o   (out_sunk),
      .dropped_o    (dropped),
      .ecc_o        (ecc[NumPorts-1:0]),
      .mark_enable_i,
      .mark_cycles_i,
      .table_we_i,
      .table_node_i,
      .table_hop_i,
      .table_group_i
  );

  velo_router_sink #(
      .NumLinks(NumLinks)
  ) u_sink (
      .clk_i,
      .rst_ni,
      .enable_i(dead_enable_i),
      .cycles_i(dead_cycles_i),
      .up_i    (link_up_o),
      .wanted_i(out_waited[NumLinks-1:0]),
      .stop_i  (link_stop),
      .stop_o  (out_stop[NumLinks-1:0]),
      .sink_o  (out_sink[NumLinks-1:0]),
      .dead_o  (link_dead_o)
  );
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) link_undelivered_o <= '0;
    else begin
      for (int l = 0; l < int'(NumLinks); l++) begin
        link_undelivered_o[l] <= link_undelivered_o[l] + 8'(out_sunk[l]);
      end
    end
  end

  for (genvar l = 0; l < int'(NumLinks); l++) begin : gen_link
    kind_e   phy_kind;
    refuse_e refuse;
    assign phy_kind_o[l] = phy_kind;
    assign link_refuse_o[l] = refuse;
    assign link_credits_o[l] = out_avail[l];

    velo_link #(
        .DataWidth    (DataWidth),
        .NumVcs       (NumVcs),
        .MtuBytes     (MtuBytes),
        .BufferUnits  (BufferUnits),
        .MinCredits   (need_credits(DataWidth, MtuBytes)),
        .TimeoutCycles(TimeoutCycles),
        .FrameWords   (UnitWords * units_of(packet_words(DataWidth, MtuBytes))),
        .InitWords    (InitWords),
        .UnitWords    (UnitWords),
        .Ecc          (Ecc)
    ) u_link (
        .clk_i,
        .rst_ni,
        .enable_i    (link_enable_i[l]),
        .link_reset_i(link_reset_i[l]),
        .forget_i    (link_forget_i[l]),
        .phy_up_i    (phy_up_i[l]),
        .phy_kind_i  (kind_e'(phy_kind_i[l])),
        .phy_data_i  (phy_data_i[l]),
        .phy_pause_i (phy_pause_i[l]),
        .phy_kind_o  (phy_kind),
        .phy_data_o  (phy_data_o[l]),
        .in_valid_i  (out_valid[l]),
        .in_sop_i    (out_sop[l]),
        .in_eop_i    (out_eop[l]),
        .in_poison_i (out_poison[l]),
        .in_vc_i     (out_vc[l]),
        .in_data_i   (out_data[l]),
        .in_stop_o   (link_stop[l]),
        .out_valid_o (in_valid[l]),
        .out_sop_o   (in_sop[l]),
        .out_eop_o   (in_eop[l]),
        .out_poison_o(in_poison[l]),
        .out_again_o (in_again[l]),
        .out_vc_o    (in_vc[l]),
        .out_data_o  (in_data[l]),
        .out_freed_i (in_freed[l]),
        .credits_o   (out_credits[l]),
        .freed_o     (out_freed[l]),
        .up_o        (link_up_o[l]),
        .refuse_o    (refuse),
        .crc_errors_o(link_crc_errors_o[l]),
        .replays_o   (link_replays_o[l]),
        .timeouts_o  (link_timeouts_o[l]),
        .in_doubt_o  (link_in_doubt_o[l]),
        .restarts_o  (link_restarts_o[l]),
        .ecc_o       (ecc[NumPorts+l])
    );
  end

  for (genvar c = 0; c < int'(NumNodePorts); c++) begin : gen_class
    localparam int unsigned Class = c < int'(NumClasses) ? c : 0;
    localparam int unsigned P = NumLinks + c;
    localparam int unsigned V = Class * VcsPerClass;
    count_t freed;

    velo_netport_tx #(
        .DataWidth   (DataWidth),
        .MtuBytes    (MtuBytes),
        .BufferUnits (BufferUnits),
        .WholePackets(WholePackets[Class])
    ) u_tx (
        .clk_i,
        .rst_ni,
        .in_valid_i (unit_in_valid_i[c]),
        .in_ready_o (unit_in_ready_o[c]),
        .in_room_o  (unit_in_room_o[c]),
        .in_sop_i   (unit_in_sop_i[c]),
        .in_eop_i   (unit_in_eop_i[c]),
        .in_data_i  (unit_in_data_i[c]),
        .out_valid_o(in_valid[P]),
        .out_sop_o  (in_sop[P]),
        .out_eop_o  (in_eop[P]),
        .out_data_o (in_data[P]),
        .freed_i    (in_freed[P][V])
    );
    assign in_vc[P]     = vc_t'(V);
    assign in_poison[P] = 1'b0;
    assign in_again[P]  = 1'b0;

    velo_netport_rx #(
        .DataWidth(DataWidth),
        .BufferUnits(BufferUnits),
        .MessagesAtOnce(Class == 0)
    ) u_rx (
        .clk_i,
        .rst_ni,
        .in_valid_i  (out_valid[P]),
        .in_sop_i    (out_sop[P]),
        .in_eop_i    (out_eop[P]),
        .in_poison_i (out_poison[P]),
        .in_data_i   (out_data[P]),
        .freed_o     (freed),
        .out_valid_o (unit_out_valid_o[c]),
        .out_ready_i (unit_out_ready_i[c]),
        .out_sop_o   (unit_out_sop_o[c]),
        .out_eop_o   (unit_out_eop_o[c]),
        .out_poison_o(unit_out_poison_o[c]),
        .poisoned_o  (poisoned[c]),
        .out_data_o  (unit_out_data_o[c])
    );
    assign out_stop[P] = 1'b0;
    assign out_sink[P] = 1'b0;
    assign out_credits[P] = count_t'(BufferUnits);
    always_comb begin
      out_freed[P] = '0;
      out_freed[P][V] = freed;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      dropped_o  <= '0;
      poisoned_o <= '0;
    end else begin
      for (int p = 0; p < int'(NumPorts); p++) dropped_o[p] <= dropped_o[p] + 8'(dropped[p]);
      for (int c = 0; c < int'(NumNodePorts); c++) begin
        poisoned_o[c] <= poisoned_o[c] + 8'(poisoned[c]);
      end
    end
  end

  logic unused;
  assign unused = &{1'b0, in_freed, out_avail, out_vc, out_waited, out_sunk};

  `VELO_ASSERT_KNOWN(OffersAndEventsAreKnown, {unit_in_ready_o, unit_out_valid_o, link_up_o,
                                               phy_kind_o})

endmodule
