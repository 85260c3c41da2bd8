// SPDX-License-Identifier: Apache-2.0
//
// From one stream of packets to the units that take them in, by the packet's kind. Combinational.
//
// `Kinds[u]` has a bit for each kind (spec/velo.toml, enum packet_kind) that unit u takes; what no
// unit claims goes to unit `Rest`, which refuses or counts it. All sides valid/ready; a packet goes
// whole to one unit, which `out_valid_o` names; the other signals of the stream are common to all.
// A unit that does not take its packet holds back the stream: units of one traffic class share a fate.
// Errors: none. Source: VELO paper, figure 1 (functional units behind the network ports).

`include "velo_assert.svh"

module velo_unit_split #(
    parameter int unsigned                      DataWidth = 32,
    parameter int unsigned                      NumUnits  = 2,
    parameter int unsigned                      Rest      = 0,
    parameter logic        [NumUnits-1:0][15:0] Kinds     = '0
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic                 in_valid_i,
    output logic                 in_ready_o,
    input  logic                 in_eop_i,
    input  logic [DataWidth-1:0] in_data_i,

    output logic [NumUnits-1:0] out_valid_o,
    input  logic [NumUnits-1:0] out_ready_i
);

  logic [NumUnits-1:0] claimed, unit, unit_q;
  logic open_q;

  // The kind is in the header's lowest bits: the first beat says where the packet goes.
  always_comb begin
    for (int unsigned u = 0; u < NumUnits; u++) claimed[u] = Kinds[u][in_data_i[7:4]];
    if (claimed == '0) claimed[Rest] = 1'b1;
  end

  assign unit        = open_q ? unit_q : claimed;
  assign out_valid_o = in_valid_i ? unit : '0;
  assign in_ready_o  = |(unit & out_ready_i);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (in_valid_i && in_ready_o) open_q <= !in_eop_i;
  end
  always_ff @(posedge clk_i) begin
    if (!open_q) unit_q <= claimed;
  end

  logic unused;
  assign unused = ^in_data_i;

  `VELO_ASSERT_INIT(RestExists, Rest < NumUnits)
  `VELO_ASSERT(OneUnit, (unit & (unit - 1'b1)) == '0 && unit != '0)

endmodule
