// SPDX-License-Identifier: Apache-2.0
//
// Functional points of velo_gsm, bound into it for `scripts/rtl coverage`. Ports by the names of the
// module's own signals. Errors: none.

`include "velo_assert.svh"

module gsm_points
  import htax_pkg::*;
  import velo_net_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input htax_port_t        to_unit_i,
    input htax_ready_t       to_unit_ready_o,
    input htax_port_t        from_unit_o,
    input net_stream_t  [1:0] net_out_o,
    input logic         [1:0] net_out_ready_i,
    input logic               refused,
    input logic               response_dropped,
    input logic               request_dropped
);

  `VELO_COVER(LoadBehindStore, to_unit_i.posted.valid && to_unit_i.nonposted.valid && !to_unit_ready_o.nonposted)
  `VELO_COVER(LoadAnswered, from_unit_o.response.valid && !from_unit_o.response.header.error)
  `VELO_COVER(LoadRefused, from_unit_o.response.valid && from_unit_o.response.header.error)
  `VELO_COVER(HostRefusedRead, to_unit_i.response.valid && to_unit_i.response.header.error)
  `VELO_COVER(RequestHeld, net_out_o[0].valid && !net_out_ready_i[0])
  `VELO_COVER(ResponseHeld, net_out_o[1].valid && !net_out_ready_i[1])
  `VELO_COVER(WriteRefused, refused)
  `VELO_COVER(StrayResponse, response_dropped)
  `VELO_COVER(BadRequest, request_dropped)

  logic unused;
  assign unused = ^{to_unit_i, to_unit_ready_o, from_unit_o, net_out_o};

endmodule

bind velo_gsm gsm_points u_points (.*);
