// SPDX-License-Identifier: Apache-2.0
//
// The crossbar's arbiters: which input may begin a packet to which output in this cycle?
//
// One round of iSLIP: each free output grants one of the free inputs that ask for it, each input
// accepts one of its grants, both round robin, and the turn moves on only where a grant was accepted,
// which is what makes them fall out of step with each other and fill the crossbar. Combinational; the
// turns move two cycles later; input and output of an accepted grant are not free until then. Of those
// two, one is for the way from an input to here.
// Fair are the turns to inputs that ask in the same cycle. `hold_o[i][o]`: input i must not ask for output o from
// the next cycle on, which is kept for another one, see velo_switch_patience.
//
// `accept_o[i][o]`: at most one per row and per column, subset of the requests.
// Source: case-for-fpga, section 3 ("round-robin arbiters"); McKeown, IEEE/ACM ToN 7(2), iSLIP.

`include "velo_assert.svh"

module velo_switch_match #(
    parameter int unsigned NumPorts = 9,
    parameter int unsigned WatchCycles = 256,
    parameter int unsigned KeepCycles = 2048
) (
    input logic clk_i,
    input logic rst_ni,

    input  logic [NumPorts-1:0][NumPorts-1:0] request_i,      // [input][output], of free inputs
    input  logic [NumPorts-1:0]               output_free_i,
    output logic [NumPorts-1:0][NumPorts-1:0] accept_o,
    output logic [NumPorts-1:0]               any_o,          // input: some output is accepted
    output logic [NumPorts-1:0][NumPorts-1:0] hold_o
);

  logic [NumPorts-1:0][NumPorts-1:0]
      asks, grants, granted, accept_q, used_q, served, served_q, was_served;

  // Column o of the inputs' requests is row o of the outputs' view. It is known last which outputs are
  // free, and that decides only whether an output's choice counts.
  for (genvar i = 0; i < int'(NumPorts); i++) begin : gen_transpose
    for (genvar o = 0; o < int'(NumPorts); o++) begin : gen_pair
      assign asks[o][i] = request_i[i][o];
      assign granted[i][o] = grants[o][i] && output_free_i[o];
      assign served[o][i] = accept_o[i][o];
      assign served_q[o][i] = used_q[i][o];
      assign was_served[o][i] = accept_q[i][o];
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      accept_q <= '0;
      used_q   <= '0;
    end else begin
      accept_q <= accept_o;
      used_q   <= accept_q;
    end
  end

  velo_switch_patience #(
      .NumPorts   (NumPorts),
      .WatchCycles(WatchCycles),
      .KeepCycles (KeepCycles)
  ) u_patience (
      .clk_i,
      .rst_ni,
      .request_i,
      .accepted_i(accept_q),
      .hold_o
  );

  for (genvar p = 0; p < int'(NumPorts); p++) begin : gen_arb
    velo_switch_arb #(
        .NumReq(NumPorts)
    ) u_grant (
        .clk_i,
        .rst_ni,
        .req_i  (asks[p]),
        .grant_o(grants[p]),
        .used_i (served_q[p])
    );
    velo_switch_arb #(
        .NumReq(NumPorts)
    ) u_accept (
        .clk_i,
        .rst_ni,
        .req_i  (granted[p]),
        .grant_o(accept_o[p]),
        .used_i (used_q[p])
    );
    assign any_o[p] = |granted[p];
    `VELO_ASSUME(BusyAfterInput, !(|accept_q[p] || |used_q[p]) || request_i[p] == '0)
    `VELO_ASSUME(BusyAfterOutput, !(|was_served[p] || |served_q[p]) || !output_free_i[p])
    `VELO_ASSERT(OneOutputAnInput, (accept_o[p] & (accept_o[p] - 1'b1)) == '0)
    `VELO_ASSERT(OneInputAnOutput, (served[p] & (served[p] - 1'b1)) == '0)
    `VELO_ASSERT(AnyIsAny, any_o[p] == |accept_o[p])
    `VELO_ASSERT(OnlyWhatWasAsked, (accept_o[p] & ~request_i[p]) == '0)
  end

endmodule
