// SPDX-License-Identifier: Apache-2.0
//
// Functional points of velo_gsm, bound into it for `scripts/rtl coverage`. Ports by the names of the
// module's own signals. Errors: none.

`include "velo_assert.svh"

module gsm_points
  import htax_pkg::*;
(
    input logic clk_i,
    input logic rst_ni,

    input logic               store_valid_i,
    input logic               load_valid_i,
    input logic               load_ready_o,
    input logic               answer_valid_o,
    input htax_header_t       answer_header_o,
    input logic               memory_valid_i,
    input htax_header_t       memory_header_i,
    input logic         [1:0] net_out_valid_o,
    input logic         [1:0] net_out_ready_i,
    input logic               refused,
    input logic               response_dropped,
    input logic               request_dropped
);

  `VELO_COVER(LoadBehindStore, store_valid_i && load_valid_i && !load_ready_o)
  `VELO_COVER(LoadAnswered, answer_valid_o && !answer_header_o.error)
  `VELO_COVER(LoadRefused, answer_valid_o && answer_header_o.error)
  `VELO_COVER(HostRefusedRead, memory_valid_i && memory_header_i.error)
  `VELO_COVER(RequestHeld, net_out_valid_o[0] && !net_out_ready_i[0])
  `VELO_COVER(ResponseHeld, net_out_valid_o[1] && !net_out_ready_i[1])
  `VELO_COVER(WriteRefused, refused)
  `VELO_COVER(StrayResponse, response_dropped)
  `VELO_COVER(BadRequest, request_dropped)

  logic unused;
  assign unused = ^{answer_header_o, memory_header_i};

endmodule

bind velo_gsm gsm_points u_points (.*);
