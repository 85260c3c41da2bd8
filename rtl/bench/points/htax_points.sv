// SPDX-License-Identifier: Apache-2.0
//
// Functional points of htax, bound into it for `scripts/rtl coverage`. Ports by the names of the
// module's own signals. Errors: none.

`include "velo_assert.svh"

module htax_points #(
    parameter int unsigned NumPorts = 4
) (
    input logic clk_i,
    input logic rst_ni,

    input logic [NumPorts-1:0] posted_in_valid,
    input logic [NumPorts-1:0] posted_in_ready,
    input logic [NumPorts-1:0] posted_out_valid,
    input logic [NumPorts-1:0] posted_out_ready,
    input logic [NumPorts-1:0] nonposted_in_valid,
    input logic [NumPorts-1:0] nonposted_in_ready,
    input logic [NumPorts-1:0] response_out_valid,
    input logic [NumPorts-1:0] response_out_ready
);

  logic [NumPorts-1:0] moving, asking, answering;
  assign moving    = posted_out_valid & posted_out_ready;
  assign asking    = nonposted_in_valid & nonposted_in_ready;
  assign answering = response_out_valid & response_out_ready;

  `VELO_COVER(WriteHeld, |(posted_in_valid & ~posted_in_ready))
  `VELO_COVER(TargetHolds, |(posted_out_valid & ~posted_out_ready))
  `VELO_COVER(TwoTargetsAtOnce, (moving & (moving - 1'b1)) != '0)
  `VELO_COVER(ReadHeld, |(nonposted_in_valid & ~nonposted_in_ready))
  `VELO_COVER(AllChannelsAtOnce, |moving && |asking && |answering)

endmodule

bind htax htax_points #(.NumPorts(NumPorts)) u_points (.*);
