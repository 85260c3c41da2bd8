// SPDX-License-Identifier: Apache-2.0
//
// Congestion management of a node, between its units and its network ports: a throttle on each stream of
// requests that leaves, notices for the senders of marked requests that come, and the notices that come.
//
// Streams by network port: 0 to 2 the traffic classes, from 3 on the requests of further VELO units.
// `unit_out_*` to `net_out_*`, and `net_in_*` to `unit_in_*` (velo_net_pkg): whole packets, without a cycle
// more for those that need not wait. A packet that waits may be taken back before its first beat was taken.
// Completions of the units and notices take turns, a packet each (velo_unit_merge).
//
// Each stream of requests has levels of its own; a notice raises those of all. Responses and completions
// are neither marked nor held: each was asked for by a request that was.
//
// Counters, modulo their width: marked requests that came; notices that left, that were not made for a marked
// request, that came; cycles in which a throttle held a packet. Congestion = 0: wires, and counters of zero.
// Errors: none.
// Source: VELO paper, section 3, "Buffer requirements and flow control", which names congestion management
// and does not say how it is done.

`include "velo_assert.svh"

module velo_congestion
  import velo_net_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumVelo = 1,
    parameter bit Congestion = 1'b0,
    localparam int unsigned NumClasses = 3,
    localparam int unsigned NumNets = NumClasses + NumVelo - 1
) (
    input logic clk_i,  // clock of the core
    input logic rst_ni, // asynchronous reset

    // Settings: see the parts.
    input logic       enable_i,
    input logic [7:0] node_id_i,
    input logic [3:0] increase_i,
    input logic [7:0] recover_cycles_i,
    input logic [7:0] notice_cycles_i,

    // From the units to the network.
    input  net_stream_t [NumNets-1:0]                unit_out_i,
    input  logic        [NumNets-1:0][DataWidth-1:0] unit_out_data_i,
    output logic        [NumNets-1:0]                unit_out_ready_o,
    output net_stream_t [NumNets-1:0]                net_out_o,
    output logic        [NumNets-1:0][DataWidth-1:0] net_out_data_o,
    input  logic        [NumNets-1:0]                net_out_ready_i,
    input  logic        [NumNets-1:0]                net_out_room_i,

    // From the network to the units.
    input  net_stream_t [NumNets-1:0]                net_in_i,
    input  logic        [NumNets-1:0][DataWidth-1:0] net_in_data_i,
    output logic        [NumNets-1:0]                net_in_ready_o,
    output net_stream_t [NumNets-1:0]                unit_in_o,
    output logic        [NumNets-1:0][DataWidth-1:0] unit_in_data_o,
    input  logic        [NumNets-1:0]                unit_in_ready_i,

    output logic [15:0] marked_o,
    output logic [15:0] notices_sent_o,
    output logic [15:0] notices_suppressed_o,
    output logic [15:0] notices_received_o,
    output logic [31:0] held_o
);

  localparam int unsigned Completion = 2;

  // The units' streams of requests: the class's, and the further ones.
  function automatic int unsigned net_of(int unsigned unit);
    return unit == 0 ? 0 : NumClasses + unit - 1;
  endfunction

  // Responses pass.
  assign net_out_o[1]        = unit_out_i[1];
  assign net_out_data_o[1]   = unit_out_data_i[1];
  assign unit_out_ready_o[1] = net_out_ready_i[1];
  assign unit_in_o[1]        = net_in_i[1];
  assign unit_in_data_o[1]   = net_in_data_i[1];
  assign net_in_ready_o[1]   = unit_in_ready_i[1];

  if (Congestion) begin : gen_managed
    logic taken;  // a notice came
    logic [7:0] from;
    logic [NumVelo-1:0] marked, suppressed, held, sends;  // sends: a notice leaves, one at most
    // Completions to the network: the units', then notices.
    net_stream_t [NumVelo:0] completion;
    logic [NumVelo:0] ready;
    logic [NumVelo:0][DataWidth-1:0] data;

    for (genvar u = 0; u < NumVelo; u++) begin : gen_requests
      localparam int unsigned Net = net_of(u);
      logic unused_sop, unused_eop;

      velo_congestion_throttle #(
          .DataWidth(DataWidth)
      ) u_throttle (
          .clk_i,
          .rst_ni,
          .enable_i,
          .increase_i,
          .recover_cycles_i,
          .notice_valid_i(taken),
          .notice_node_i (from),
          .in_valid_i    (unit_out_i[Net].valid),
          .in_ready_o    (unit_out_ready_o[Net]),
          .in_sop_i      (unit_out_i[Net].sop),
          .in_eop_i      (unit_out_i[Net].eop),
          .in_data_i     (unit_out_data_i[Net]),
          .out_valid_o   (net_out_o[Net].valid),
          .out_ready_i   (net_out_ready_i[Net]),
          .out_sop_o     (net_out_o[Net].sop),
          .out_eop_o     (net_out_o[Net].eop),
          .out_data_o    (net_out_data_o[Net]),
          .held_o        (held[u])
      );

      velo_congestion_notice #(
          .DataWidth(DataWidth)
      ) u_notice (
          .clk_i,
          .rst_ni,
          .enable_i,
          .node_id_i,
          .notice_cycles_i,
          .in_valid_i    (net_in_i[Net].valid),
          .in_ready_o    (net_in_ready_o[Net]),
          .in_sop_i      (net_in_i[Net].sop),
          .in_eop_i      (net_in_i[Net].eop),
          .in_data_i     (net_in_data_i[Net]),
          .out_valid_o   (unit_in_o[Net].valid),
          .out_ready_i   (unit_in_ready_i[Net]),
          .out_sop_o     (unused_sop),
          .out_eop_o     (unused_eop),
          .out_data_o    (unit_in_data_o[Net]),
          .notice_valid_o(completion[1+u].valid),
          .notice_ready_i(ready[1+u]),
          .notice_sop_o  (completion[1+u].sop),
          .notice_eop_o  (completion[1+u].eop),
          .notice_data_o (data[1+u]),
          .marked_o      (marked[u]),
          .suppressed_o  (suppressed[u])
      );

      assign net_out_o[Net].poison = 1'b0;
      assign completion[1+u].poison = 1'b0;
      // These pass the part unchanged.
      assign unit_in_o[Net].sop = net_in_i[Net].sop;
      assign unit_in_o[Net].eop = net_in_i[Net].eop;
      assign unit_in_o[Net].poison = net_in_i[Net].poison;
      assign sends[u] = completion[1+u].valid && ready[1+u] && completion[1+u].eop;

      logic unused;
      assign unused = ^{unused_sop, unused_eop};
    end

    assign completion[0] = unit_out_i[Completion];
    assign data[0] = unit_out_data_i[Completion];
    assign unit_out_ready_o[Completion] = ready[0];

    velo_unit_merge #(
        .DataWidth(DataWidth),
        .NumUnits (1 + NumVelo)
    ) u_completions (
        .clk_i,
        .rst_ni,
        .in_i       (completion),
        .in_data_i  (data),
        .in_ready_o (ready),
        .out_o      (net_out_o[Completion]),
        .out_data_o (net_out_data_o[Completion]),
        .out_ready_i(net_out_ready_i[Completion]),
        .out_room_i (net_out_room_i[Completion])
    );

    logic unused_sop, unused_eop;
    velo_congestion_intake #(
        .DataWidth(DataWidth)
    ) u_intake (
        .clk_i,
        .rst_ni,
        .in_valid_i    (net_in_i[Completion].valid),
        .in_ready_o    (net_in_ready_o[Completion]),
        .in_sop_i      (net_in_i[Completion].sop),
        .in_eop_i      (net_in_i[Completion].eop),
        .in_data_i     (net_in_data_i[Completion]),
        .out_valid_o   (unit_in_o[Completion].valid),
        .out_ready_i   (unit_in_ready_i[Completion]),
        .out_sop_o     (unused_sop),
        .out_eop_o     (unused_eop),
        .out_data_o    (unit_in_data_o[Completion]),
        .notice_valid_o(taken),
        .notice_node_o (from)
    );
    assign unit_in_o[Completion].sop = net_in_i[Completion].sop;
    assign unit_in_o[Completion].eop = net_in_i[Completion].eop;
    assign unit_in_o[Completion].poison = net_in_i[Completion].poison;

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        marked_o             <= '0;
        notices_sent_o       <= '0;
        notices_suppressed_o <= '0;
        notices_received_o   <= '0;
        held_o               <= '0;
      end else begin
        marked_o <= marked_o + 16'($countones(marked));
        notices_sent_o <= notices_sent_o + 16'(|sends);
        notices_suppressed_o <= notices_suppressed_o + 16'($countones(suppressed));
        notices_received_o <= notices_received_o + 16'(taken);
        if (enable_i) held_o <= held_o + 32'($countones(held));
      end
    end

    logic unused;
    assign unused = ^{unused_sop, unused_eop, net_out_room_i, unit_out_i};
    // Classes stay apart: a notice that cannot leave holds no request.
    for (genvar u = 0; u < NumVelo; u++) begin : gen_free
      `VELO_ASSERT(RequestsPassNotices, net_in_ready_o[net_of(u)] == unit_in_ready_i[net_of(u)])
    end
  end else begin : gen_wires
    for (genvar n = 0; n < NumNets; n++) begin : gen_net
      if (n != 1) begin : gen_pass
        assign net_out_o[n]        = unit_out_i[n];
        assign net_out_data_o[n]   = unit_out_data_i[n];
        assign unit_out_ready_o[n] = net_out_ready_i[n];
        assign unit_in_o[n]        = net_in_i[n];
        assign unit_in_data_o[n]   = net_in_data_i[n];
        assign net_in_ready_o[n]   = unit_in_ready_i[n];
      end
    end
    assign {marked_o, notices_sent_o, notices_suppressed_o, notices_received_o, held_o} = '0;
    logic unused;
    assign unused = ^{clk_i, rst_ni, enable_i, node_id_i, increase_i, recover_cycles_i,
                      notice_cycles_i, net_out_room_i};
  end

endmodule
