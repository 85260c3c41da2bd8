// SPDX-License-Identifier: Apache-2.0
//
// Functional points of velo_switch, bound into it for `scripts/rtl coverage`. Ports by the names of
// the module's own. Errors: none.

`include "velo_assert.svh"

module switch_points
  import velo_link_pkg::*;
  import velo_switch_pkg::*;
#(
    parameter  int unsigned DataWidth = 32,
    parameter  int unsigned NumLinks  = 6,
    parameter  int unsigned NumVcs    = 6,
    localparam int unsigned NumPorts  = NumLinks + NumClasses
) (
    input logic clk_i,
    input logic rst_ni,

    input logic   [NumPorts-1:0]                in_valid_i,
    input logic   [NumPorts-1:0]                in_sop_i,
    input logic   [NumPorts-1:0][DataWidth-1:0] in_data_i,
    input logic   [NumPorts-1:0]                out_valid_o,
    input logic   [NumPorts-1:0]                out_sop_o,
    input logic   [NumPorts-1:0]                out_eop_o,
    input vc_t    [NumPorts-1:0]                out_vc_o,
    input logic   [NumPorts-1:0]                out_stop_i,
    input count_t [NumPorts-1:0][   NumVcs-1:0] out_avail_o,
    input count_t [NumPorts-1:0]                out_credits_i,
    input logic   [NumPorts-1:0]                dropped_o
);

  logic [NumPorts-1:0] ended_q, open_q;
  logic routed, empty, without_gap, held;
  always_ff @(posedge clk_i) begin
    ended_q <= out_valid_o & out_eop_o;
    open_q  <= rst_ni ? (out_valid_o & ~out_eop_o) | (open_q & ~out_valid_o) : '0;
  end

  always_comb begin
    routed = 1'b0;
    empty  = 1'b0;
    for (int p = 0; p < int'(NumPorts); p++) begin
      routed |= in_valid_i[p] && in_sop_i[p] && in_data_i[p][0];
      for (int v = 0; v < int'(NumVcs); v++) begin
        empty |= out_credits_i[p] != '0 && out_avail_o[p][v] == '0;
      end
    end
    without_gap = |(ended_q & out_valid_o & out_sop_o);
    held        = |(out_stop_i & open_q);
  end

  `VELO_COVER(AllPortsBusy, &out_valid_o)
  `VELO_COVER(PacketsWithoutGap, without_gap)
  `VELO_COVER(StoppedWithinPacket, held)
  `VELO_COVER(CreditsAllGone, empty)
  `VELO_COVER(PacketWithRoute, routed)
  `VELO_COVER(LedNowhere, |dropped_o)
  for (genvar v = 0; v < int'(NumVcs); v++) begin : gen_vc
    logic [NumLinks-1:0] used;
    for (genvar p = 0; p < int'(NumLinks); p++) begin : gen_port
      assign used[p] = out_valid_o[p] && out_vc_o[p] == vc_t'(v);
    end
    `VELO_COVER(ChannelUsedOnALink, |used)
  end

  logic unused;
  assign unused = ^out_vc_o;  // the node ports' part

endmodule

bind velo_switch switch_points #(
    .DataWidth(DataWidth),
    .NumLinks(NumLinks),
    .NumVcs(NumVcs)
) u_points (.*);
