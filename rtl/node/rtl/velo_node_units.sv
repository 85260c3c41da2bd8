// SPDX-License-Identifier: Apache-2.0
//
// The functional units of a node, between crossbar and network: VELO, RMA, the custom unit, the register
// file, and the three classes of streams that they share (velo_unit_net).
//
// Crossbar side by port (velo_node_pkg), as in velo_node_fabric. Network and settings as in velo_node_core.
// Latency and errors: those of the units.
//
// Source: VELO paper, figure 1; case-for-fpga, figure 1.

`include "velo_assert.svh"

module velo_node_units
  import velo_pkg::*;
  import htax_pkg::*;
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
    parameter bit Ecc = 1'b0,
    parameter bit Multicast = 1'b0,  // messages may come by groups
    parameter bit Barrier = 1'b0,  // of groups, so with Multicast only
    localparam int unsigned NumClasses = 3,
    localparam int unsigned NumSenders = Barrier ? 4 : 3,
    localparam int unsigned NumNets = NumClasses + NumVelo - 1,
    localparam int unsigned LastUnit = last_unit(NumVelo)
) (
    input logic clk_i,
    input logic rst_ni,

    // From each unit to the crossbar: its offers, the beats' data beside them, and whether they are taken.
    output htax_port_t [LastUnit:FirstUnit] from_unit_o,
    output logic [LastUnit:FirstUnit][DataWidth-1:0] from_unit_posted_data_o,
    output logic [LastUnit:FirstUnit][DataWidth-1:0] from_unit_response_data_o,
    input htax_ready_t [LastUnit:FirstUnit] from_unit_ready_i,
    // Pulse: a unit's write has left for the host. State: the host does not take one.
    input logic [LastUnit:FirstUnit] write_done_i,
    input logic host_stalled_i,

    // From the crossbar to each unit, likewise.
    input  htax_port_t  [LastUnit:FirstUnit]                to_unit_i,
    input  logic        [LastUnit:FirstUnit][DataWidth-1:0] to_unit_posted_data_i,
    input  logic        [LastUnit:FirstUnit][DataWidth-1:0] to_unit_response_data_i,
    output htax_ready_t [LastUnit:FirstUnit]                to_unit_ready_o,

    // Packets to the network, by stream; see velo_net_pkg.
    output net_stream_t [NumNets-1:0]                net_out_o,
    output logic        [NumNets-1:0][DataWidth-1:0] net_out_data_o,   // the beats
    input  logic        [NumNets-1:0]                net_out_ready_i,  // they are taken
    input  logic        [NumNets-1:0]                net_out_room_i,   // VELO's would go in whole
    // Packets from the network, likewise.
    input  net_stream_t [NumNets-1:0]                net_in_i,
    input  logic        [NumNets-1:0][DataWidth-1:0] net_in_data_i,    // the beats
    output logic        [NumNets-1:0]                net_in_ready_o,   // they are taken

    output network_setting_t network_setting_o,
    input  network_state_t   network_state_i,

    output congestion_t        congestion_setting_o,
    input  congestion_report_t congestion_report_i,

    output logic [7:0] node_id_o
);

  // ----- the classes ----------------------------------------------------------------------------

  net_stream_t [NumSenders-1:0][NumClasses-1:0] unit_out, unit_in;
  logic [NumSenders-1:0][NumClasses-1:0] out_ready, in_ready;
  logic [NumSenders-1:0][NumClasses-1:0][DataWidth-1:0] out_data;
  logic [NumClasses-1:1] stray;

  velo_unit_net #(
      .DataWidth(DataWidth),
      .NumUnits(NumSenders),
      .Kinds((48 * NumSenders)'({
        KindsBarrier, KindsRma, CustomUnit ? KindsCustom : 48'b0, KindsVelo
      }))
  ) u_net (
      .unit_out_i      (unit_out),
      .unit_out_data_i (out_data),
      .unit_out_ready_o(out_ready),
      .unit_in_o       (unit_in),
      .unit_in_ready_i (in_ready),
      .stray_o         (stray),
      .net_out_o       (net_out_o[NumClasses-1:0]),
      .net_out_data_o  (net_out_data_o[NumClasses-1:0]),
      .net_out_ready_i (net_out_ready_i[NumClasses-1:0]),
      .net_out_room_i  (net_out_room_i[NumClasses-1:0]),
      .net_in_i        (net_in_i[NumClasses-1:0]),
      .net_in_data_i   (net_in_data_i[NumClasses-1:0]),
      .net_in_ready_o  (net_in_ready_o[NumClasses-1:0]),
      .clk_i,
      .rst_ni
  );

  // VELO knows requests only, the custom unit no completions.
  assign {unit_out[NetVelo][2:1], unit_out[NetCustom][2]} = '0;
  assign {out_data[NetVelo][2:1], out_data[NetCustom][2]} = '0;
  assign {in_ready[NetVelo][2:1], in_ready[NetCustom][2]} = '0;

  // ----- VELO -----------------------------------------------------------------------------------

  velo_setting_t velo_setting;
  velo_report_t velo_report;
  watchdog_t access_watchdog;
  watchdog_report_t watchdog_report;

  // By unit. The first one shares the class's stream of the network, the others have streams of their own.
  htax_stream_t [NumVelo-1:0] write, dma;
  logic [NumVelo-1:0] write_ready, dma_ready;
  net_stream_t [NumVelo-1:0] velo_out, velo_in;
  logic [NumVelo-1:0] velo_out_ready, velo_in_ready;
  logic [NumVelo-1:0][DataWidth-1:0] write_data, dma_data, velo_out_data, velo_in_data;

  for (genvar u = 0; u < NumVelo; u++) begin : gen_velo
    localparam int unsigned Port = port_of_velo(u);
    localparam int unsigned Net = u == 0 ? 0 : NumClasses + u - 1;

    assign write[u] = to_unit_i[Port].posted;
    assign write_data[u] = to_unit_posted_data_i[Port];
    // It reads nothing and is not read.
    assign to_unit_ready_o[Port] = '{posted: write_ready[u], nonposted: 1'b0, response: 1'b1};
    assign from_unit_o[Port] = '{posted: dma[u], default: '0};
    assign from_unit_posted_data_o[Port] = dma_data[u];
    assign from_unit_response_data_o[Port] = '0;
    assign dma_ready[u] = from_unit_ready_i[Port].posted;

    assign velo_in_data[u] = net_in_data_i[Net];
    if (u == 0) begin : gen_shares
      assign unit_out[NetVelo][0] = velo_out[u];
      assign out_data[NetVelo][0] = velo_out_data[u];
      assign velo_out_ready[u] = out_ready[NetVelo][0];
      assign velo_in[u] = unit_in[NetVelo][0];
      assign in_ready[NetVelo][0] = velo_in_ready[u];
    end else begin : gen_own
      velo_packet_gate u_gate (
          .clk_i      (clk_i),
          .rst_ni     (rst_ni),
          .in_valid_i (velo_out[u].valid),
          .in_ready_o (velo_out_ready[u]),
          .in_eop_i   (velo_out[u].eop),
          .out_valid_o(net_out_o[Net].valid),
          .out_ready_i(net_out_ready_i[Net]),
          .out_room_i (net_out_room_i[Net])
      );
      assign net_out_o[Net].sop = velo_out[u].sop;
      assign net_out_o[Net].eop = velo_out[u].eop;
      assign net_out_o[Net].poison = 1'b0;
      assign net_out_data_o[Net] = velo_out_data[u];
      assign velo_in[u] = net_in_i[Net];
      assign net_in_ready_o[Net] = velo_in_ready[u];
    end
    // The network took its first beat with room for all of it: so a store waits there or nowhere.
    `VELO_ASSERT(MessageIsTakenWhole, !velo_out[u].valid || velo_out[u].sop || velo_out_ready[u])
  end

  velo_units #(
      .DataWidth(DataWidth),
      .UnitWidth(VeloWidth),
      .NumVelo  (NumVelo),
      .CtxBits  (CtxBits),
      .Ecc      (Ecc),
      .Multicast(Multicast)
  ) u_velo (
      .node_id_i        (node_id_o),
      .access_watchdog_i(access_watchdog),
      .setting_i        (velo_setting),
      .report_o         (velo_report),
      .write_i          (write),
      .write_data_i     (write_data),
      .write_ready_o    (write_ready),
      .net_out_o        (velo_out),
      .net_out_data_o   (velo_out_data),
      .net_out_ready_i  (velo_out_ready),
      .net_in_i         (velo_in),
      .net_in_data_i    (velo_in_data),
      .net_in_ready_o   (velo_in_ready),
      .dma_o            (dma),
      .dma_data_o       (dma_data),
      .dma_ready_i      (dma_ready),
      .clk_i,
      .rst_ni
  );

  // ----- custom unit ----------------------------------------------------------------------------

  logic [63:0] custom_setting, custom_status;

  velo_custom_slot #(
      .DataWidth(DataWidth),
      .Occupied(CustomUnit),
      .DimmnetUnit(DimmnetUnit),
      .HostPort(PortHost),
      .Multicast(Multicast)
  ) u_custom (
      .node_id_i                (node_id_o),
      .setting_i                (custom_setting),
      .status_o                 (custom_status),
      .watchdog_i               (access_watchdog),
      .given_up_o               (watchdog_report.given_up[2:1]),
      .unanswered_o             (watchdog_report.unanswered[1]),
      .to_unit_i                (to_unit_i[PortCustom]),
      .to_unit_posted_data_i    (to_unit_posted_data_i[PortCustom]),
      .to_unit_response_data_i  (to_unit_response_data_i[PortCustom]),
      .to_unit_ready_o          (to_unit_ready_o[PortCustom]),
      .from_unit_o              (from_unit_o[PortCustom]),
      .from_unit_posted_data_o  (from_unit_posted_data_o[PortCustom]),
      .from_unit_response_data_o(from_unit_response_data_o[PortCustom]),
      .from_unit_ready_i        (from_unit_ready_i[PortCustom]),
      .net_out_o                (unit_out[NetCustom][1:0]),
      .net_out_data_o           (out_data[NetCustom][1:0]),
      .net_out_ready_i          (out_ready[NetCustom][1:0]),
      .net_in_i                 (unit_in[NetCustom][1:0]),
      .net_in_data_i            (net_in_data_i[1:0]),
      .net_in_ready_o           (in_ready[NetCustom][1:0]),
      .clk_i,
      .rst_ni
  );

  // ----- RMA ------------------------------------------------------------------------------------

  rma_setting_t rma_setting;
  rma_report_t  rma_report;
  logic [7:0] way_node, dead;
  logic way_none;

  always_comb begin
    for (int unsigned l = 0; l < 8; l++) dead[l] = network_state_i.link[l].dead;
  end
  velo_node_way #(
      .Multicast(Multicast)
  ) u_way (
      .clk_i,
      .rst_ni,
      .table_we_i  (network_setting_o.route_we),
      .table_node_i(network_setting_o.route_node),
      .table_hop_i (network_setting_o.route_hop),
      .dead_i      (dead),
      .node_i      (way_node),
      .none_o      (way_none)
  );

  velo_rma_slot #(
      .DataWidth(DataWidth),
      .CtxBits  (CtxBits),
      .MtuBytes (MtuBytes),
      .Ecc      (Ecc)
  ) u_rma (
      .node_id_i                (node_id_o),
      .access_watchdog_i        (access_watchdog),
      .way_node_o               (way_node),
      .way_none_i               (way_none),
      .setting_i                (rma_setting),
      .report_o                 (rma_report),
      .given_up_o               (watchdog_report.given_up[0]),
      .unanswered_o             (watchdog_report.unanswered[0]),
      .to_unit_i                (to_unit_i[PortRma]),
      .to_unit_posted_data_i    (to_unit_posted_data_i[PortRma]),
      .to_unit_response_data_i  (to_unit_response_data_i[PortRma]),
      .to_unit_ready_o          (to_unit_ready_o[PortRma]),
      .from_unit_o              (from_unit_o[PortRma]),
      .from_unit_posted_data_o  (from_unit_posted_data_o[PortRma]),
      .from_unit_response_data_o(from_unit_response_data_o[PortRma]),
      .from_unit_ready_i        (from_unit_ready_i[PortRma]),
      .write_done_i             (write_done_i[PortRma]),
      .net_out_o                (unit_out[NetRma]),
      .net_out_data_o           (out_data[NetRma]),
      .net_out_ready_i          (out_ready[NetRma]),
      .net_in_i                 (unit_in[NetRma]),
      .net_in_data_i            (net_in_data_i[NumClasses-1:0]),
      .net_in_ready_o           (in_ready[NetRma]),
      .clk_i,
      .rst_ni
  );

  logic network_stalled;

  // A write to host memory that waits is counted once; it cannot be taken back.
  logic host_late, host_late_q;
  assign watchdog_report.host_stall = host_late && !host_late_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) host_late_q <= 1'b0;
    else host_late_q <= host_late;
  end

  velo_watchdog u_host_watchdog (
      .clk_i    (clk_i),
      .rst_ni   (rst_ni),
      .enable_i (access_watchdog.enable),
      .cycles_i (access_watchdog.cycles),
      .waiting_i(host_stalled_i),
      .expired_o(host_late)
  );

  // ----- barriers -------------------------------------------------------------------------------

  barrier_access_t barrier_access;
  barrier_report_t barrier_report;

  if (Barrier) begin : gen_barrier
    // Arrivals are completions; the release is a message, and none of them comes here.
    velo_barrier #(
        .DataWidth(DataWidth)
    ) u_barrier (
        .node_id_i      (node_id_o),
        .access_i       (barrier_access),
        .report_o       (barrier_report),
        .in_valid_i     (unit_in[NetBarrier][2].valid),
        .in_ready_o     (in_ready[NetBarrier][2]),
        .in_eop_i       (unit_in[NetBarrier][2].eop),
        .in_data_i      (net_in_data_i[2]),
        .arrival_valid_o(unit_out[NetBarrier][2].valid),
        .arrival_ready_i(out_ready[NetBarrier][2]),
        .arrival_sop_o  (unit_out[NetBarrier][2].sop),
        .arrival_eop_o  (unit_out[NetBarrier][2].eop),
        .arrival_data_o (out_data[NetBarrier][2]),
        .release_valid_o(unit_out[NetBarrier][0].valid),
        .release_ready_i(out_ready[NetBarrier][0]),
        .release_sop_o  (unit_out[NetBarrier][0].sop),
        .release_eop_o  (unit_out[NetBarrier][0].eop),
        .release_data_o (out_data[NetBarrier][0]),
        .clk_i,
        .rst_ni
    );
    assign {unit_out[NetBarrier][2].poison, unit_out[NetBarrier][0].poison} = '0;
    assign unit_out[NetBarrier][1] = '0;
    assign out_data[NetBarrier][1] = '0;
    assign in_ready[NetBarrier][1:0] = '0;
  end else begin : gen_no_barrier
    assign barrier_report = '0;
    logic unused_access;
    assign unused_access = ^barrier_access;
  end

  // ----- registers ------------------------------------------------------------------------------

  // The register file writes and reads nothing. Answers of the host that nobody asked for still come
  // here, and are taken.
  assign from_unit_o[PortRegisters].posted = '0;
  assign from_unit_o[PortRegisters].nonposted = '0;
  assign from_unit_posted_data_o[PortRegisters] = '0;
  assign to_unit_ready_o[PortRegisters].response = 1'b1;

  velo_regfile #(
      .DataWidth(DataWidth)
  ) u_regfile (
      .posted_i          (to_unit_i[PortRegisters].posted),
      .posted_data_i     (to_unit_posted_data_i[PortRegisters]),
      .posted_ready_o    (to_unit_ready_o[PortRegisters].posted),
      .nonposted_i       (to_unit_i[PortRegisters].nonposted),
      .nonposted_ready_o (to_unit_ready_o[PortRegisters].nonposted),
      .response_o        (from_unit_o[PortRegisters].response),
      .response_data_o   (from_unit_response_data_o[PortRegisters]),
      .response_ready_i  (from_unit_ready_i[PortRegisters].response),
      .velo_setting_o    (velo_setting),
      .velo_report_i     (velo_report),
      .custom_setting_o  (custom_setting),
      .custom_status_i   (custom_status),
      .rma_setting_o     (rma_setting),
      .rma_report_i      (rma_report),
      .stray_response_i  (stray[1]),
      .stray_completion_i(stray[2]),
      .host_stalled_i    (host_stalled_i),
      .watchdog_setting_o(access_watchdog),
      .watchdog_report_i (watchdog_report),
      .network_stalled_i (network_stalled),
      .network_setting_o,
      .network_state_i,
      .congestion_setting_o,
      .congestion_report_i,
      .barrier_access_o  (barrier_access),
      .barrier_report_i  (barrier_report),
      .node_id_o,
      .clk_i,
      .rst_ni
  );

  // Of requests: units have some for the first class and none of it is taken; or a further VELO unit has.
  always_comb begin
    network_stalled = 1'b0;
    for (int unsigned s = 0; s < NumSenders; s++) network_stalled |= unit_out[s][0].valid;
    network_stalled &= !(net_out_o[0].valid && net_out_ready_i[0]);
    for (int unsigned u = 1; u < NumVelo; u++) begin
      network_stalled |= velo_out[u].valid && !velo_out_ready[u];
    end
  end

  logic unused;
  assign unused = ^{to_unit_i, to_unit_response_data_i, from_unit_ready_i, write_done_i, out_ready,
                    unit_in, velo_out};

  `VELO_ASSERT_INIT(BarriersAreOfGroups, !Barrier || Multicast)
  // A packet of CoreLogic is the payload of one packet here.
  `VELO_ASSERT_INIT(DimmnetPacketFits,
                    !DimmnetUnit || MtuBytes >= 8 * dimmnet_pkg::DimmnetWindowWords)

endmodule
