// SPDX-License-Identifier: Apache-2.0
//
// velo_patience for proofs of its users: patience may end at any time, whatever happened before. What holds with it
// holds with the real one, whose counts are deep and proven by themselves (velo_patience.sby).

module velo_patience #(
    parameter int unsigned CtxBits = 8,
    parameter int unsigned Width = 20,
    parameter int unsigned GiveEvery = 8
) (
    input logic clk_i,
    input logic rst_ni,

    output logic ready_o,

    input logic             enable_i,
    input logic [Width-1:0] cycles_i,

    input  logic [CtxBits-1:0] ctx_i,
    input  logic               waiting_i,
    output logic               expired_o
);

  (* anyseq *)logic ready, expired;
  assign ready_o   = ready;
  assign expired_o = expired;

  logic unused;
  assign unused = ^{clk_i, rst_ni, enable_i, cycles_i, ctx_i, waiting_i, GiveEvery};

endmodule
