// SPDX-License-Identifier: Apache-2.0
//
// Promises of velo_axi_order: an answer begins only when all writes that were under way as it came have been answered,
// waits for no others, goes on without a wait, and stands.

`define VELO_ASSUME_HERE
`include "velo_assert.svh"

module velo_axi_order_props (
    input logic clk_i,
    input logic rst_ni,
    input logic write_taken_i,
    input logic write_answered_i,
    input logic answer_valid_i,
    input logic answer_eop_i,
    input logic answer_ready_i
);

  logic [5:0] writes_q, older_q, older;
  logic ready, valid;
  velo_axi_order u_dut (
      .writes_i      (writes_q),
      .answer_ready_o(ready),
      .answer_valid_o(valid),
      .*
  );

  // ----- the surroundings: writes come and are answered, an answer stands until it is taken ---------

  logic past_q, open_q, waits_q;
  initial past_q = 1'b0;
  always_comb assume (past_q || !rst_ni);
  always_ff @(posedge clk_i) begin
    past_q  <= 1'b1;
    waits_q <= rst_ni && answer_valid_i && !ready;
    if (!rst_ni) begin
      writes_q <= '0;
      open_q   <= 1'b0;
    end else begin
      writes_q <= writes_q + 6'(write_taken_i) - 6'(write_answered_i);
      if (answer_valid_i && ready) open_q <= !answer_eop_i;
    end
    older_q <= older - 6'(write_answered_i && older != '0);
  end
  assign older = waits_q ? older_q : writes_q;
  `VELO_ASSUME(AnswersToWrites, !write_answered_i || writes_q != '0)
  `VELO_ASSUME(FewWrites, !write_taken_i || writes_q != '1)
  `VELO_ASSUME(AnswerStands, !waits_q || answer_valid_i)

  // ----- promises ---------------------------------------------------------------------------------

  `VELO_ASSERT(BehindItsWrites, !valid || open_q || older == '0)
  `VELO_ASSERT(WaitsForNoOther, !answer_valid_i || valid || (!open_q && older != '0))
  `VELO_ASSERT(TakenIfOffered, (answer_valid_i && ready) == (valid && answer_ready_i))
  velo_prop_stands u_stands (
      .clk_i,
      .rst_ni,
      .valid_i   (valid),
      .ready_i   (answer_ready_i),
      .withdraw_i(1'b0),
      .data_i    (1'b0)
  );
  // For the induction.
  `VELO_ASSERT(TieOpen, u_dut.open_q == open_q)
  `VELO_ASSERT(TieOlder, !waits_q || open_q ||
               (u_dut.u_order.waits_q && u_dut.u_order.older_q == older_q))
  `VELO_ASSERT(NoMoreThanThere, older <= writes_q)

  `VELO_COVER(Waits, waits_q && !open_q && valid && writes_q != '0)

endmodule
