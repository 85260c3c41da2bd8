// SPDX-License-Identifier: Apache-2.0
//
// Functional points of velo_requester, bound into it for `scripts/rtl coverage`. Ports by the names
// of the module's own signals. Errors: none.

`include "velo_assert.svh"

module requester_points
  import velo_pkg::*;
#(
    parameter int unsigned DataWidth = 32
) (
    input logic clk_i,
    input logic rst_ni,

    input logic                   net_valid_o,
    input logic                   net_ready_i,
    input logic                   net_sop_o,
    input logic                   net_eop_o,
    input logic   [DataWidth-1:0] net_data_o,
    input logic                   error_valid_o,
    input error_e                 error_code_o
);

  logic taken, starts, ended_q;
  packet_t packet;
  assign taken  = net_valid_o && net_ready_i;
  assign starts = taken && net_sop_o;
  assign packet = packet_t'({32'b0, net_data_o[31:0]});  // the lower half is all that is looked at
  always_ff @(posedge clk_i) ended_q <= taken && net_eop_o;

  `VELO_COVER(WholeLine, starts && !packet.frag)
  `VELO_COVER(FirstFragment, starts && packet.frag && !packet.frag_last)
  `VELO_COVER(LastFragment, starts && packet.frag && packet.frag_last)
  `VELO_COVER(PacketsWithoutGap, starts && ended_q)
  `VELO_COVER(HeldByNetwork, net_valid_o && !net_ready_i)
  `VELO_COVER(RefusedMisaligned, error_valid_o && error_code_o == ErrorMisaligned)
  `VELO_COVER(RefusedOversize, error_valid_o && error_code_o == ErrorOversize)
  `VELO_COVER(RefusedMalformed, error_valid_o && error_code_o == ErrorMalformed)

  logic unused;
  assign unused = ^{packet, net_data_o};

endmodule

bind velo_requester requester_points #(.DataWidth(DataWidth)) u_points (.*);
