// SPDX-License-Identifier: Apache-2.0
//
// Fairness bound of the arbiter: of any requester that keeps asking, at most NumReq - 1 others are
// served first.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_rr_arb_props #(
    parameter int unsigned NumReq = 5
) (
    input logic              clk_i,
    input logic              rst_ni,
    input logic [NumReq-1:0] req_i,
    input logic              take_i
);

  logic [NumReq-1:0] grant;
  velo_rr_arb #(
      .NumReq(NumReq)
  ) u_dut (
      .grant_o(grant),
      .*
  );

  // The proof follows one requester: any one, chosen by the initial state and never changed.
  logic past_q;
  logic [NumReq-1:0] who_q;
  initial past_q = 1'b0;
  always_ff @(posedge clk_i) begin
    past_q <= 1'b1;
    who_q  <= who_q;
  end
  always_comb assume (past_q || !rst_ni);
  always_comb assume ($onehot(who_q));

  logic [$clog2(NumReq+1)-1:0] waited_q;
  logic asking_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      waited_q <= '0;
      asking_q <= 1'b0;
    end else begin
      asking_q <= (who_q & req_i) != '0 && !(take_i && (who_q & grant) != '0);
      if ((who_q & req_i) == '0 || (take_i && (who_q & grant) != '0)) waited_q <= '0;
      else if (take_i) waited_q <= waited_q + 1'b1;
    end
  end
  `VELO_ASSUME(KeepsAsking, !asking_q || (who_q & req_i) != '0)

  `VELO_ASSERT(ServedInTurn, waited_q <= ($clog2(NumReq + 1))'(NumReq - 1))
  `VELO_ASSERT(OneHot, $onehot0(grant))
  `VELO_COVER(WaitsForAllOthers, waited_q == ($clog2(NumReq + 1))'(NumReq - 1))

endmodule
