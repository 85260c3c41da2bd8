// SPDX-License-Identifier: Apache-2.0
//
// From the units' streams of packets to the one of their traffic class: round robin, whole packets.
// Combinational, so a packet that finds the stream free loses no cycle.
//
// All sides valid/ready; `in_sop_i` and `in_eop_i` mark a packet's first and last beat. A packet begins
// only with `out_room_i`: the stream then has room for a message of VELO, so such a message is taken
// without a wait once its first beat was, and until then its unit may take it back. All units wait for
// the same room, so that none overtakes another by asking for less. A choice once made stands until the
// packet has passed, or its unit has taken it back: a stream that has room may yet hold a packet's first
// beat (velo_congestion_throttle). A unit that stops inside its packet stops the others. Errors: none.
// Source: case-for-fpga, section 3 (round robin for fairness).

`include "velo_assert.svh"

module velo_unit_merge #(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumUnits  = 2
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumUnits-1:0]                in_valid_i,
    output logic [NumUnits-1:0]                in_ready_o,
    input  logic [NumUnits-1:0]                in_sop_i,
    input  logic [NumUnits-1:0]                in_eop_i,
    input  logic [NumUnits-1:0][DataWidth-1:0] in_data_i,

    output logic                 out_valid_o,
    input  logic                 out_ready_i,
    input  logic                 out_room_i,
    output logic                 out_sop_o,
    output logic                 out_eop_o,
    output logic [DataWidth-1:0] out_data_o
);

  logic [NumUnits-1:0] grant, owner_q, served;
  logic kept_q, begun_q, start;

  velo_rr_arb #(
      .NumReq(NumUnits)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .req_i  (in_valid_i),
      .grant_o(grant),
      .take_i (start)
  );

  assign start       = !kept_q && out_room_i && |in_valid_i;
  assign served      = (kept_q ? owner_q : (out_room_i ? grant : '0)) & in_valid_i;
  assign in_ready_o  = out_ready_i ? served : '0;
  assign out_valid_o = |served;
  assign out_sop_o   = |(served & in_sop_i);
  assign out_eop_o   = |(served & in_eop_i);

  always_comb begin
    out_data_o = '0;
    for (int unsigned u = 0; u < NumUnits; u++) out_data_o |= served[u] ? in_data_i[u] : '0;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      kept_q  <= 1'b0;
      begun_q <= 1'b0;
    end else begin
      if (out_valid_o) kept_q <= !(out_ready_i && out_eop_o);
      else if (!begun_q) kept_q <= 1'b0;
      if (out_valid_o && out_ready_i) begun_q <= !out_eop_o;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) owner_q <= grant;
  end

  `VELO_ASSERT(OneUnit, (served & (served - 1'b1)) == '0)
  `VELO_ASSERT(KeptWhileBegun, !begun_q || kept_q)
  `VELO_ASSUME(FirstBeatFirst, !start || |(grant & in_sop_i))

endmodule
