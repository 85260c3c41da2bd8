// SPDX-License-Identifier: Apache-2.0
//
// From the units' streams of packets to the one of their traffic class: round robin, whole packets.
// Combinational, so a packet that finds the stream free loses no cycle.
//
// All sides as in velo_net_pkg. A packet begins only with `out_room_i`: the stream then has room for a message of
// VELO, so such a message is taken without a wait once its first beat was, and until then its unit may take it
// back. All units wait for the same room, so that none overtakes another by asking for less. A choice once made stands until the
// packet has passed, or its unit has taken it back: a stream that has room may yet hold a packet's first
// beat (velo_congestion_throttle). A unit that stops inside its packet stops the others. Errors: none.
// Source: case-for-fpga, section 3 (round robin for fairness).

`include "velo_assert.svh"

module velo_unit_merge
  import velo_net_pkg::*;
#(
    parameter int unsigned DataWidth = 32,
    parameter int unsigned NumUnits  = 2
) (
    input logic clk_i,
    input logic rst_ni,

    // From the units.
    input  net_stream_t [NumUnits-1:0]                in_i,
    input  logic        [NumUnits-1:0][DataWidth-1:0] in_data_i,
    output logic        [NumUnits-1:0]                in_ready_o,

    // To the network.
    output net_stream_t                 out_o,
    output logic        [DataWidth-1:0] out_data_o,
    input  logic                        out_ready_i,
    input  logic                        out_room_i    // for a message of VELO
);

  logic [NumUnits-1:0] valid, grant, owner_q, served;
  logic kept_q, begun_q, start;

  velo_rr_arb #(
      .NumReq(NumUnits)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .req_i  (valid),
      .grant_o(grant),
      .take_i (start)
  );

  for (genvar u = 0; u < NumUnits; u++) begin : gen_unit
    assign valid[u] = in_i[u].valid;
    `VELO_ASSUME(FirstBeatFirst, !(start && grant[u]) || in_i[u].sop)
  end

  assign start      = !kept_q && out_room_i && |valid;
  assign served     = (kept_q ? owner_q : (out_room_i ? grant : '0)) & valid;
  assign in_ready_o = out_ready_i ? served : '0;

  always_comb begin
    out_o      = '0;
    out_data_o = '0;
    for (int unsigned u = 0; u < NumUnits; u++) begin
      out_o |= served[u] ? in_i[u] : '0;
      out_data_o |= served[u] ? in_data_i[u] : '0;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      kept_q  <= 1'b0;
      begun_q <= 1'b0;
    end else begin
      if (out_o.valid) kept_q <= !(out_ready_i && out_o.eop);
      else if (!begun_q) kept_q <= 1'b0;
      if (out_o.valid && out_ready_i) begun_q <= !out_o.eop;
    end
  end
  always_ff @(posedge clk_i) begin
    if (start) owner_q <= grant;
  end

  `VELO_ASSERT(OneUnit, (served & (served - 1'b1)) == '0)
  `VELO_ASSERT(KeptWhileBegun, !begun_q || kept_q)

endmodule
